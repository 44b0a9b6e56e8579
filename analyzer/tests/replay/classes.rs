//! The classes that only the client can give.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use analyzer::clock::SystemClock;
use analyzer::outcome::Class;
use analyzer::prompt::BodyOptions;
use analyzer::records::RequestRecord;
use analyzer::replay::{Client, ProgressSink, RequestLimits, Silent, Target};

use crate::harness::{MS, Setup, good, replay, replay_until};
use crate::server::{HEAD, serve, token};

#[test]
fn past_the_deadline_body_bytes_decide_between_slow_and_stalled() {
    let address = serve(|mut exchange| {
        exchange.write(HEAD);
        exchange.write(token());
        if exchange.prompt() == "no head" {
            return;
        }
        exchange.wait_for_close();
    });
    let with = |stall_ns| {
        let limits = RequestLimits { deadline_ns: 300 * MS, stall_ns };
        replay(address, &["a"], &Setup { limits, ..Setup::default() }).records.remove(0)
    };
    let (slow, stalled) = (with(10_000 * MS), with(MS));
    assert_eq!((slow.class, stalled.class), (Class::TimeoutSlow, Class::TimeoutStalled));
    for record in [slow, stalled] {
        let held = record.end_ns.since(record.planned_ns);
        assert!(held >= i64::try_from(300 * MS).unwrap(), "{held}");
        assert!(record.ttft_ns.is_some() && record.tpot_ns.is_none());
    }
}

#[test]
fn silence_without_a_head_is_stalled() {
    let address = serve(|mut exchange| exchange.wait_for_close());
    let limits = RequestLimits::with_deadline_ns(200 * MS);
    let run = replay(address, &["a"], &Setup { limits, ..Setup::default() });
    assert_eq!(run.records[0].class, Class::TimeoutStalled);
    assert_eq!((run.records[0].status, run.records[0].ttft_ns), (None, None));
}

#[test]
fn a_closed_port_is_a_connect_error_of_every_request() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let run = replay(address, &["a", "b"], &Setup::default());
    assert_eq!(run.summary.classes, BTreeMap::from([(Class::ConnectError, 2)]));
    assert!(run.records.iter().all(|record| record.sent_ns.is_none() && !record.detail.is_empty()));
}

#[test]
fn an_answer_that_comes_before_the_request_is_whole_is_still_read() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut some = [0; 1024];
        let _ = stream.read(&mut some).unwrap();
        stream
            .write_all(
                b"HTTP/1.1 413 Content Too Large\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
            )
            .unwrap();
        // Dropping the stream with unread data resets the connection.
    });
    let run = replay(address, &["x".repeat(8 << 20)], &Setup::default());
    let record = &run.records[0];
    assert_eq!((record.class, record.status), (Class::HttpStatus, Some(413)), "{record:?}");
    assert_eq!(record.retry_after.as_deref(), Some("7"));
}

/// Stops the run when the first request has ended.
struct StopAtFirst<'a>(&'a AtomicBool);

impl ProgressSink for StopAtFirst<'_> {
    fn ended(&mut self, _: &RequestRecord) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_stopped_run_books_what_is_left_as_cancelled() {
    let address = serve(|mut exchange| match exchange.prompt().as_str() {
        "p1" => good(exchange),
        _ => exchange.wait_for_close(),
    });
    let prompts: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    let stop = AtomicBool::new(false);
    let setup = Setup { rate_rps: 1000.0, ..Setup::default() };
    let run = replay_until(address, &prompts, &setup, &stop, &mut StopAtFirst(&stop));
    assert!(run.summary.run.interrupted);
    assert_eq!(run.summary.classes, BTreeMap::from([(Class::CancelledByTool, 9), (Class::Ok, 1)]));
}

#[test]
fn what_was_never_sent_is_booked_as_cancelled_too() {
    let address = serve(good);
    // Ten requests over an hour, and a stop before the first.
    let prompts: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    let setup = Setup { rate_rps: 0.0025, ..Setup::default() };
    let run = replay_until(address, &prompts, &setup, &AtomicBool::new(true), &mut Silent);
    assert_eq!(run.summary.classes, BTreeMap::from([(Class::CancelledByTool, 10)]));
    assert!(run.records.iter().skip(1).all(|record| record.dispatched_ns.is_none()));
    assert_eq!((run.summary.run.attempted, run.summary.run.connections <= 1), (10, true));
}

#[test]
fn one_request_at_a_time_gives_the_same_record() {
    let address = serve(good);
    let target = Target::resolve(&format!("http://{address}")).unwrap();
    let limits = RequestLimits::with_deadline_ns(60_000 * MS);
    let client = Client::new(&target, None, limits, &SystemClock);
    let options = BodyOptions::default();
    let body = analyzer::prompt::short_chat("hello", 2, &options).unwrap();
    let stop = AtomicBool::new(false);
    for index in 0..3 {
        let id = protocol::TraceId::new([u8::try_from(index).unwrap() + 1; 16]).unwrap();
        let record = client.one(index, id, &body, &stop).unwrap();
        assert_eq!((record.class, record.conn_id), (Class::Ok, Some(index)));
        assert_eq!(record.completion_tokens, Some(2));
        assert!(record.dispatched_ns.unwrap() >= record.planned_ns);
    }
    assert_eq!(client.clock_steps(), 0);
}
