//! Request bytes: head and body in one buffer.

use protocol::{TraceId, TraceParent};

use super::target::Target;
use super::token::BearerToken;
use crate::prompt::Body;

/// What every request of a run has in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) target: &'a Target,
    pub(super) bearer: Option<&'a BearerToken>,
}

impl Head<'_> {
    /// The whole request. No field here is a stickiness key of a gateway; the correlation is
    /// `traceparent` alone. No `Connection: close` either: some servers would answer it with a body that
    /// ends with the connection, whose end proves nothing.
    pub(super) fn request(&self, trace_id: TraceId, body: &Body) -> Vec<u8> {
        let target = self.target;
        let mut head = format!(
            "POST {}{} HTTP/1.1\r\n\
             Host: {}\r\n\
             User-Agent: goodput/{}\r\n\
             Accept: text/event-stream\r\n\
             Accept-Encoding: identity\r\n\
             Content-Type: application/json\r\n\
             Content-Length: {}\r\n\
             {}: {}\r\n",
            target.base_path(),
            body.api.path(),
            target.authority(),
            env!("CARGO_PKG_VERSION"),
            body.json.len(),
            TraceParent::HEADER,
            traceparent(trace_id),
        );
        if let Some(token) = self.bearer {
            head.push_str("Authorization: Bearer ");
            head.push_str(token.expose());
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&body.json);
        bytes
    }
}

/// The parent id is the trace id's second half, with its lowest bit set so that it is never zero.
fn traceparent(trace_id: TraceId) -> String {
    let mut parent_id = [0; 8];
    parent_id.copy_from_slice(&trace_id.bytes()[8..]);
    parent_id[7] |= 1;
    TraceParent { trace_id, parent_id, flags: 0 }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Api;

    #[test]
    fn a_request_carries_exactly_these_fields() {
        let target = Target::resolve("http://127.0.0.1:9/base").unwrap();
        let body = Body { api: Api::Chat, json: b"{}".to_vec() };
        let id: TraceId = "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap();
        let bytes = Head { target: &target, bearer: None }.request(id, &body);
        let expected = format!(
            "POST /base/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\
             User-Agent: goodput/{}\r\nAccept: text/event-stream\r\nAccept-Encoding: identity\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\
             traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-a3ce929d0e0e4737-00\r\n\r\n{{}}",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
