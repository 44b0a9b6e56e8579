//! What was observed against what was sent.

use std::sync::PoisonError;

use protocol::StreamOutcome;
use protocol::cases::ExpectedFraming;
use protocol::timeline::TokensFrom;
use serde_json::Value;

use super::Traffic;
use super::client::Sent;
use super::plan::Talk;
use super::report::Check;
use super::server::Served;
use super::watch::Gauges;
use crate::window::Closing;

/// In flight while every answer was held back, and after the last one.
pub(super) fn gauges(count: usize, full: Gauges, empty: Gauges) -> Vec<Check> {
    vec![
        Check::equal("connections in flight", &count, &full.0),
        Check::equal("requests in flight", &count, &full.1),
        Check::equal("connections at the end", &0, &empty.0),
        Check::equal("requests at the end", &0, &empty.1),
    ]
}

/// The window's own account.
pub(super) fn window(closing: Option<&Closing>, count: usize) -> Vec<Check> {
    let Some(closing) = closing else {
        return vec![Check::equal("window", &"closed", &"not closed")];
    };
    let reasons = serde_json::to_string(&closing.reasons).unwrap_or_default();
    let counters = &closing.counters;
    vec![
        Check::equal("reasons against completeness", &"[]", &reasons),
        Check::equal("observations", &count, &closing.observations),
        Check::equal("segments lost", &0, &counters.segments.failed),
        Check::equal(
            "segments consumed",
            &counters.segments.attempted,
            &counters.segments.consumed,
        ),
        Check::equal("transitions lost", &0, &counters.sockets.failed),
        Check::equal(
            "transitions consumed",
            &counters.sockets.attempted,
            &counters.sockets.consumed,
        ),
        Check::equal("packets unparsed", &0, &counters.unparsed_packets),
    ]
}

/// Every request's row.
pub(super) fn observations(rows: &[Value], traffic: &Traffic) -> Vec<Check> {
    let sent = traffic.sent.lock().unwrap_or_else(PoisonError::into_inner);
    let served = traffic.served.lock().unwrap_or_else(PoisonError::into_inner);
    let talk = |talk: &Talk| {
        let id = talk.trace_id.to_string();
        let row = rows.iter().find(|row| row["trace_id"] == id);
        let sent = sent.iter().find(|it| it.number == talk.number);
        let served = served.iter().find(|it| it.number == talk.number);
        observation(talk, row, sent, served)
    };
    traffic.talks.iter().map(talk).collect()
}

/// All of a row in one check: `observed` names only what is wrong.
fn observation(
    talk: &Talk,
    row: Option<&Value>,
    sent: Option<&Sent>,
    served: Option<&Served>,
) -> Check {
    let family = if talk.endpoint.is_ipv4() { "IPv4" } else { "IPv6" };
    let name = format!("{family} {}", talk.case.name);
    let expected = summary(talk);
    let (Some(row), Some(sent), Some(served)) = (row, sent, served) else {
        let missing = if row.is_none() { "no observation of its trace id" } else { "not sent" };
        return Check { name, expected, observed: missing.to_owned(), ok: false };
    };
    let mut faults = facts(talk, row, sent);
    faults.extend(instants(row, sent, served));
    let observed = if faults.is_empty() { expected.clone() } else { faults.join("; ") };
    Check { name, expected, observed, ok: faults.is_empty() }
}

fn outcome(talk: &Talk) -> &'static str {
    talk.case.expect.outcome.class()
}

fn framing(talk: &Talk) -> (&'static str, Option<&'static str>) {
    match talk.case.expect.framing {
        ExpectedFraming::Valid => ("valid", None),
        ExpectedFraming::Invalid(rule) => ("invalid", Some(rule.code())),
        ExpectedFraming::Incomplete | ExpectedFraming::Unknown => ("unknown", None),
    }
}

fn summary(talk: &Talk) -> String {
    let (verdict, rule) = framing(talk);
    let rule = rule.map(|rule| format!(" ({rule})")).unwrap_or_default();
    let events = talk.case.expect.token_events;
    format!("{}, framing {verdict}{rule}, {events} token events", outcome(talk))
}

fn facts(talk: &Talk, row: &Value, sent: &Sent) -> Vec<String> {
    let mut faults = Vec::new();
    let mut compare = |key: &str, expected: Value| {
        if row[key] != expected {
            faults.push(format!("{key} is {}, not {expected}", row[key]));
        }
    };
    let (verdict, rule) = framing(talk);
    compare("outcome", outcome(talk).into());
    compare("framing", verdict.into());
    compare("framing_rule", rule.into());
    compare("token_events", talk.case.expect.token_events.into());
    compare("request_bytes", talk.request.len().into());
    compare("endpoint", talk.endpoint.to_string().into());
    compare("adopted", false.into());
    if talk.case.expect.tokens_from == TokensFrom::Usage {
        compare("completion_tokens", talk.case.expect.output_tokens.into());
    }
    if talk.case.expect.framing == ExpectedFraming::Valid {
        compare("response_bytes", sent.received.into());
    }
    if let StreamOutcome::HttpStatus(status) = talk.case.expect.outcome {
        compare("status", status.into());
    }
    faults
}

/// Kernel stamps lie between the instants around the system calls that moved the bytes.
fn instants(row: &Value, sent: &Sent, served: &Served) -> Vec<String> {
    let mut faults = Vec::new();
    let mut within = |key: &str, from: u64, to: u64| {
        let stamp = row[key].as_u64();
        if !stamp.is_some_and(|stamp| (from..=to).contains(&stamp)) {
            faults.push(format!("{key} is {}, not within {from} to {to}", row[key]));
        }
    };
    within("request_first_ns", sent.first_write.get(), served.request_read.get());
    within("request_end_ns", sent.first_write.get(), served.request_read.get());
    within("first_byte_ns", served.first_write.get(), sent.first_read.get());
    if !row["last_token_ns"].is_null() {
        within("first_token_ns", served.first_write.get(), sent.end.get());
        within("last_token_ns", served.first_write.get(), sent.end.get());
    }
    faults
}

#[cfg(test)]
mod tests {
    use protocol::Nanos;
    use serde_json::json;

    use super::super::plan::talks;
    use super::*;

    fn parts() -> (Talk, Value, Sent, Served) {
        let talk = talks(&["127.0.0.1:1".parse().unwrap()]).remove(0);
        let received = talk.case.bytes().len();
        let row = json!({
            "endpoint": "127.0.0.1:1", "outcome": "ok", "framing": "valid", "token_events": 5,
            "completion_tokens": 5, "request_bytes": talk.request.len(), "adopted": false,
            "response_bytes": received, "request_first_ns": 11, "request_end_ns": 12,
            "first_byte_ns": 31, "first_token_ns": 32, "last_token_ns": 33,
        });
        let at = Nanos::new;
        let sent =
            Sent { number: 0, first_write: at(10), first_read: at(40), end: at(50), received };
        (talk, row, sent, Served { number: 0, request_read: at(20), first_write: at(30) })
    }

    #[test]
    fn a_right_row_passes_and_each_wrong_key_is_named() {
        let (talk, row, sent, served) = parts();
        let check = observation(&talk, Some(&row), Some(&sent), Some(&served));
        assert!(check.ok, "{}", check.observed);
        for key in row.as_object().unwrap().keys() {
            let mut wrong = row.clone();
            wrong[key] = json!(9);
            let check = observation(&talk, Some(&wrong), Some(&sent), Some(&served));
            assert!(!check.ok && check.observed.contains(key), "{key}: {}", check.observed);
        }
    }

    #[test]
    fn a_missing_observation_or_request_fails() {
        let (talk, row, sent, served) = parts();
        assert!(!observation(&talk, None, Some(&sent), Some(&served)).ok);
        assert!(!observation(&talk, Some(&row), None, Some(&served)).ok);
        assert!(!window(None, 1).iter().all(|check| check.ok));
        assert!(!gauges(3, (3, 2), (0, 0)).iter().all(|check| check.ok));
    }
}
