//! Every scripted case over a socket: class, framing, first token.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use analyzer::records::FramingVerdict;
use protocol::StreamOutcome;
use protocol::cases::{Case, End, ExpectedFraming, cases};

use crate::harness::{Setup, assert_stamped_within, replay};
use crate::server::{Exchange, Log, Written, log, serve};

/// Serves a case: each step at its instant after the request, in the server's own time.
fn perform(case: &Case, mut exchange: Exchange) -> Vec<(u64, Written)> {
    let begin = Instant::now();
    let pause_until = |ms| {
        let wait = Duration::from_millis(ms).saturating_sub(begin.elapsed());
        std::thread::sleep(wait);
    };
    let mut written = Vec::new();
    for step in &case.steps {
        pause_until(step.at_ms);
        written.push((step.at_ms, exchange.write(&step.bytes)));
    }
    match case.end {
        End::KeepAlive => exchange.wait_for_close(),
        End::Close(ms) => pause_until(ms),
        End::Reset(ms) => {
            pause_until(ms);
            exchange.reset();
        }
    }
    written
}

fn class_of(outcome: StreamOutcome) -> &'static str {
    match outcome {
        // The client asked for no coding: a body that it cannot read is a bad payload.
        StreamOutcome::Unknown(_) => "bad_payload",
        known => known.class(),
    }
}

fn framing_of(framing: ExpectedFraming) -> FramingVerdict {
    match framing {
        ExpectedFraming::Valid => FramingVerdict::Valid,
        ExpectedFraming::Invalid(_) => FramingVerdict::Invalid,
        ExpectedFraming::Incomplete | ExpectedFraming::Unknown => FramingVerdict::Unknown,
    }
}

#[test]
fn every_scripted_case_gets_the_right_class_framing_and_first_token() {
    let cases = cases();
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    let written: Log<(String, Vec<(u64, Written)>)> = log();
    let writer = Arc::clone(&written);
    let address = serve(move |exchange| {
        let name = exchange.prompt();
        let case = protocol::cases::case(&name).unwrap();
        let steps = perform(&case, exchange);
        writer.lock().unwrap().push((name, steps));
    });
    let run = replay(address, &names, &Setup::default());
    for (case, record) in cases.iter().zip(&run.records) {
        let name = case.name;
        let expect = &case.expect;
        assert_eq!(record.class.name(), class_of(expect.outcome), "{name}: {record:?}");
        assert_eq!(record.framing, framing_of(expect.framing), "{name}: {record:?}");
        if let ExpectedFraming::Invalid(rule) = expect.framing {
            assert_eq!(record.framing_rule.as_deref(), Some(rule.code()), "{name}");
        }
        assert_eq!(record.retry_after.as_deref(), expect.retry_after, "{name}");
        assert_eq!(record.first_token_ns.is_some(), expect.ttft_ms.is_some(), "{name}");
        if record.class.is_delivered() {
            assert_eq!(record.completion_tokens, Some(expect.output_tokens), "{name}");
            assert_eq!(record.token_events, expect.token_events, "{name}");
        }
    }
    let written = written.lock().unwrap();
    let steps: BTreeMap<&str, _> =
        written.iter().map(|(name, steps)| (name.as_str(), steps)).collect();
    for (case, record) in cases.iter().zip(&run.records) {
        // A thread that still waits for its close has logged nothing yet.
        let Some(steps) = steps.get(case.name) else { continue };
        let (Some(at_ms), Some(stamp)) = (case.expect.ttft_ms, record.first_token_ns) else {
            continue;
        };
        // Steps of one instant may follow each other: the token is in one of them.
        let earliest = steps.iter().find(|(at, _)| *at == at_ms);
        let latest = steps.iter().rfind(|(at, _)| *at == at_ms);
        let (Some((_, first)), Some((_, last))) = (earliest, latest) else {
            panic!("{}: no step at {at_ms} ms", case.name)
        };
        let write = Written { before: first.before, after: last.after };
        assert_stamped_within(record, stamp, write, case.name);
    }
    assert!(steps.len() > cases.len() / 2);
}
