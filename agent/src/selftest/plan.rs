//! What is sent: scripted responses with known answers, each by a request with a trace id of its own.

use std::net::SocketAddr;

use protocol::cases::{Case, case};
use protocol::{TraceId, TraceParent};

/// Scripts of every kind of verdict: good, broken framing, cut short, errors.
const CASES: [&str; 16] = [
    "base",
    "content_length",
    "close_delimited",
    "interim_response",
    "coalesced_write",
    "event_split",
    "long_event",
    "multi_token_chunks",
    "tool_calls",
    "no_usage",
    "inband_error",
    "status_429",
    "reset_mid_stream",
    "truncated_clean_eof",
    "bad_chunk_size",
    "chunk_too_long",
];
/// More than the agent copies of a request: its end must then be found by sequence number.
const LONG_PROMPT: usize = 100_000;

/// One request and the script that answers it.
pub(super) struct Talk {
    /// Number of the talk, from 0; the request's path names it.
    pub(super) number: usize,
    /// Where the request goes.
    pub(super) endpoint: SocketAddr,
    /// Its correlation.
    pub(super) trace_id: TraceId,
    /// The request, whole.
    pub(super) request: Vec<u8>,
    /// The answer's script.
    pub(super) case: Case,
}

/// Every case on every endpoint.
pub(super) fn talks(endpoints: &[SocketAddr]) -> Vec<Talk> {
    let cases = || CASES.iter().filter_map(|name| case(name));
    let pairs = endpoints.iter().flat_map(|endpoint| cases().map(move |case| (*endpoint, case)));
    pairs
        .enumerate()
        .filter_map(|(number, (endpoint, case))| talk(number, endpoint, case))
        .collect()
}

fn talk(number: usize, endpoint: SocketAddr, case: Case) -> Option<Talk> {
    let id = 0x5e1f_7e57_u128 << 96 | u128::try_from(number + 1).ok()?;
    let trace_id = TraceId::new(id.to_be_bytes()).ok()?;
    let parent = TraceParent::unsampled(trace_id, [1; 8]).ok()?;
    let prompt = "x".repeat(if number == 0 { LONG_PROMPT } else { 100 });
    let body = format!(
        r#"{{"model":"selftest","stream":true,"messages":[{{"role":"user","content":"{prompt}"}}]}}"#
    );
    let request = format!(
        "POST /{number} HTTP/1.1\r\nHost: {endpoint}\r\nContent-Type: application/json\r\n\
         {}: {parent}\r\nContent-Length: {}\r\n\r\n{body}",
        TraceParent::HEADER,
        body.len()
    );
    Some(Talk { number, endpoint, trace_id, request: request.into_bytes(), case })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_case_exists_and_both_kinds_of_verdict_are_among_them() {
        use protocol::cases::ExpectedFraming;
        let endpoint = "127.0.0.1:1".parse().unwrap();
        let talks = talks(&[endpoint]);
        assert_eq!(talks.len(), CASES.len());
        let framings: Vec<_> = talks.iter().map(|it| it.case.expect.framing).collect();
        assert!(framings.contains(&ExpectedFraming::Valid));
        assert!(framings.iter().any(|it| matches!(it, ExpectedFraming::Invalid(_))));
        assert!(talks[0].request.len() > LONG_PROMPT);
    }
}
