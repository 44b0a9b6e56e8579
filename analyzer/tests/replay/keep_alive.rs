//! Connections that carry several requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier};

use analyzer::outcome::Class;
use analyzer::records::RequestRecord;
use analyzer::replay::{Connections, Silent};

use crate::harness::{Run, Setup, assert_stamped_within, replay, replay_until};
use crate::server::{Exchange, HEAD, Log, Written, serve_kept, tail, token};

fn prompts(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("p{i}")).collect()
}

fn kept(rate_rps: f64) -> Setup {
    Setup { rate_rps, connections: Connections::KeepAlive, ..Setup::default() }
}

/// Answers whole.
fn answer(exchange: &mut Exchange) {
    exchange.write(HEAD);
    exchange.write(token());
    exchange.write(token());
    exchange.write(tail());
}

/// Connection and place on it of every request, as the records have it.
fn places(run: &Run) -> Vec<(u64, u64)> {
    let of = |r: &RequestRecord| (r.conn_id.unwrap(), r.conn_request_index.unwrap());
    run.records.iter().map(of).collect()
}

/// Asserts that client and server put the same requests on the same connections, in the same order.
fn assert_same_places(run: &Run, served: &BTreeMap<String, (usize, usize)>) {
    let mut pairs = BTreeSet::new();
    for (i, (conn, place)) in places(run).into_iter().enumerate() {
        let (theirs, at) = served[&format!("p{i}")];
        assert_eq!(u64::try_from(at).unwrap(), place, "request {i}");
        pairs.insert((conn, theirs));
    }
    let unique = |ids: BTreeSet<u64>| ids.len() == pairs.len();
    assert!(unique(pairs.iter().map(|p| p.0).collect()), "{pairs:?}");
    assert!(unique(pairs.iter().map(|p| p.1 as u64).collect()), "{pairs:?}");
}

#[test]
fn an_answered_connection_takes_the_next_request_and_every_stamp_is_its_own() {
    let log = Log::<(String, usize, usize, Written)>::default();
    let server = Arc::clone(&log);
    let address = serve_kept(move |conn, place, mut exchange| {
        exchange.write(HEAD);
        let first = exchange.write(token());
        server.lock().unwrap().push((exchange.prompt(), conn, place, first));
        exchange.write(token());
        exchange.write(tail());
        Some(exchange.stream)
    });
    let run = replay(address, &prompts(12), &kept(40.0));
    assert_eq!(run.summary.classes, BTreeMap::from([(Class::Ok, 12)]));
    let log = log.lock().unwrap();
    let served = log.iter().map(|(prompt, conn, place, _)| (prompt.clone(), (*conn, *place)));
    assert_same_places(&run, &served.collect());
    assert!(run.summary.run.connections < 12, "25 ms apart, and answered at once");
    for (i, record) in run.records.iter().enumerate() {
        let (reused, index) = (record.conn_reused, record.conn_request_index.unwrap());
        assert_eq!((reused, record.connected_ns.is_some()), (index > 0, index == 0), "{record:?}");
        assert_eq!(record.retries, 0);
        let (.., first) = log.iter().find(|(prompt, ..)| *prompt == format!("p{i}")).unwrap();
        assert_stamped_within(record, record.first_token_ns.unwrap(), *first, "first token");
        assert!(record.dispatched_ns <= record.sent_ns && record.sent_ns <= record.first_byte_ns);
    }
}

#[test]
fn the_loop_stays_open_when_no_connection_is_idle() {
    // Nobody is answered before all have arrived: with a closed loop this would never end.
    const N: usize = 6;
    let all = Arc::new(Barrier::new(N));
    let address = serve_kept(move |_, place, mut exchange| {
        if place == 0 {
            all.wait();
        }
        answer(&mut exchange);
        Some(exchange.stream)
    });
    let run = replay(address, &prompts(N), &kept(400.0));
    assert_eq!(run.summary.classes, BTreeMap::from([(Class::Ok, N as u64)]));
    assert_eq!(run.summary.run.connections, N as u64);
    assert!(run.records.iter().all(|r| !r.conn_reused));
}

#[test]
fn fresh_connections_are_what_a_run_has_unless_it_says_otherwise() {
    let address = serve_kept(|_, _, mut exchange| {
        answer(&mut exchange);
        Some(exchange.stream)
    });
    let run = replay(address, &prompts(5), &Setup { rate_rps: 50.0, ..Setup::default() });
    assert_eq!(places(&run).iter().map(|p| p.1).collect::<Vec<_>>(), [0; 5]);
    assert_eq!(run.summary.run.connections, 5);
}

/// Runs eight requests against a server that answers the first of a connection and treats the second as
/// `second` says; how often it saw each prompt.
fn with_second(
    second: impl Fn(Exchange) + Send + Sync + 'static,
) -> (Run, BTreeMap<String, usize>) {
    let seen = Log::<String>::default();
    let log = Arc::clone(&seen);
    let address = serve_kept(move |_, place, mut exchange| {
        log.lock().unwrap().push(exchange.prompt());
        if place > 0 {
            second(exchange);
            return None;
        }
        answer(&mut exchange);
        Some(exchange.stream)
    });
    let run = replay(address, &prompts(8), &kept(40.0));
    let mut counts = BTreeMap::new();
    for prompt in seen.lock().unwrap().iter() {
        *counts.entry(prompt.clone()).or_insert(0) += 1;
    }
    (run, counts)
}

#[test]
fn a_reused_connection_that_ends_before_any_byte_is_replaced_once_and_that_is_recorded() {
    for reset in [false, true] {
        let (run, counts) =
            with_second(move |exchange| if reset { exchange.reset() } else { drop(exchange) });
        assert_eq!(run.summary.classes, BTreeMap::from([(Class::Ok, 8)]));
        assert!(run.records.iter().any(|r| r.retries == 1), "nothing was ever reused");
        for (i, record) in run.records.iter().enumerate() {
            let times = counts[&format!("p{i}")];
            assert_eq!(u64::from(record.retries) + 1, times as u64, "{record:?}");
            assert!(!record.conn_reused, "the record is of the time that was answered");
            assert!(record.retries <= 1 && record.dispatched_ns < record.connected_ns);
        }
    }
}

#[test]
fn nothing_is_sent_again_after_a_byte_of_the_response() {
    let (run, counts) = with_second(|mut exchange| {
        exchange.write("H");
    });
    assert!(counts.values().all(|times| *times == 1), "{counts:?}");
    assert!(run.records.iter().all(|r| r.retries == 0));
    let truncated = run.records.iter().filter(|r| r.class == Class::Truncated);
    assert!(truncated.clone().count() > 0 && truncated.clone().all(|r| r.conn_reused));
}

#[test]
fn nothing_is_sent_again_on_a_connection_of_its_own() {
    let seen = Log::<String>::default();
    let log = Arc::clone(&seen);
    let address = serve_kept(move |_, _, exchange| {
        log.lock().unwrap().push(exchange.prompt());
        None
    });
    let run = replay(address, &prompts(4), &kept(100.0));
    assert_eq!(seen.lock().unwrap().len(), 4);
    assert!(run.records.iter().all(|r| !r.class.is_delivered() && r.retries == 0));
}

#[test]
fn a_connection_is_not_used_again_when_either_end_of_the_message_forbids_it() {
    let body = format!("{}{}{}", token(), token(), tail());
    let plain = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}],\
                 \"usage\":{\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";
    let event_stream = "content-type: text/event-stream\r\n";
    let closing = HEAD.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1);
    let length = plain.len();
    let responses = [
        format!("{closing}{body}"),
        format!("HTTP/1.0 200 OK\r\n{event_stream}content-length: {length}\r\n\r\n{plain}"),
        format!("{HEAD}{body}HTTP/1.1 200 OK\r\n\r\n"),
    ];
    for response in responses {
        let sent = response.clone();
        let address = serve_kept(move |_, _, mut exchange| {
            exchange.write(&sent);
            Some(exchange.stream)
        });
        let run = replay(address, &prompts(4), &kept(40.0));
        assert_eq!(run.summary.run.connections, 4, "{response}");
        assert!(run.records.iter().all(|r| !r.conn_reused));
    }
}

#[test]
fn a_server_that_closes_idle_connections_costs_no_request() {
    let address = serve_kept(|_, _, mut exchange| {
        answer(&mut exchange);
        None
    });
    let run = replay(address, &prompts(6), &kept(40.0));
    assert_eq!(run.summary.classes, BTreeMap::from([(Class::Ok, 6)]));
    assert!(run.records.iter().all(|r| !r.conn_reused));
}

#[test]
fn a_stop_ends_requests_on_reused_connections_too() {
    struct StopAt<'a>(&'a AtomicBool, usize);
    impl analyzer::replay::ProgressSink for StopAt<'_> {
        fn ended(&mut self, _: &RequestRecord) {
            self.1 = self.1.saturating_sub(1);
            if self.1 == 0 {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        fn tick(&mut self) {}
    }
    let address = serve_kept(|_, _, mut exchange| {
        answer(&mut exchange);
        Some(exchange.stream)
    });
    let stop = AtomicBool::new(false);
    let run = replay_until(address, &prompts(400), &kept(100.0), &stop, &mut StopAt(&stop, 3));
    assert!(run.summary.run.interrupted);
    assert!(run.summary.classes[&Class::CancelledByTool] > 300, "{:?}", run.summary.classes);
    let again: SocketAddr = address;
    let after =
        replay_until(again, &prompts(3), &kept(100.0), &AtomicBool::new(false), &mut Silent);
    assert_eq!(after.summary.classes, BTreeMap::from([(Class::Ok, 3)]));
}
