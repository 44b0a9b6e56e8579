//! What is sent, when, and the instants that are reported for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use analyzer::outcome::Class;
use analyzer::records::StampSource;
use analyzer::replay::Tuning;
use protocol::Nanos;

use crate::harness::{MS, Setup, assert_stamped_within, good, replay};
use crate::server::{HEAD, Log, Written, log, serve, tail, token};

#[test]
fn requests_leave_on_schedule_whether_or_not_others_are_answered() {
    const REQUESTS: usize = 24;
    // No answer comes before the last request: a client that waits for answers would never finish.
    let all = Arc::new(Barrier::new(REQUESTS));
    let address = serve(move |exchange| {
        all.wait();
        good(exchange);
    });
    let prompts: Vec<String> = (0..REQUESTS).map(|n| format!("p{n}")).collect();
    let run = replay(address, &prompts, &Setup::default());
    assert_eq!(run.summary.classes, BTreeMap::from([(Class::Ok, 24)]));
    let start = run.summary.run.window_start_ns.get();
    let mut connections: Vec<u64> = run.records.iter().filter_map(|r| r.conn_id).collect();
    connections.sort_unstable();
    assert_eq!(connections, (0..24).collect::<Vec<u64>>());
    for (record, planned) in run.records.iter().zip(&run.planned) {
        assert_eq!(record.planned_ns.get(), start + planned.planned_offset_ns);
        assert_eq!(Some(record.trace_id), planned.trace_id);
        let order = [
            Some(record.planned_ns),
            record.dispatched_ns,
            record.connected_ns,
            record.sent_ns,
            record.last_token_ns,
        ];
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{record:?}");
        assert!(record.end_ns >= record.last_token_ns.unwrap());
    }
}

#[test]
fn the_request_carries_its_trace_id_and_no_stickiness_key() {
    let heads: Log<String> = log();
    let writer = Arc::clone(&heads);
    let address = serve(move |exchange| {
        writer.lock().unwrap().push(exchange.head.clone());
        good(exchange);
    });
    let run = replay(address, &["a"], &Setup::default());
    let head = heads.lock().unwrap()[0].to_ascii_lowercase();
    let id = run.records[0].trace_id;
    let parent = head.lines().find_map(|line| line.strip_prefix("traceparent: ")).unwrap();
    assert!(parent.starts_with(&format!("00-{id}-")) && parent.ends_with("-00"), "{parent}");
    for key in ["x-request-id", "x-session-id", "x-trace-id", "x-conversation-id", "cookie"] {
        assert!(!head.contains(key), "{head}");
    }
}

#[test]
fn sent_is_never_after_the_server_has_the_last_byte() {
    let received: Log<(String, Nanos)> = log();
    let writer = Arc::clone(&received);
    let address = serve(move |exchange| {
        writer.lock().unwrap().push((exchange.prompt(), exchange.received));
        good(exchange);
    });
    // A body beyond any socket buffer takes many writes.
    let prompts = ["x".repeat(8 << 20), "small".to_owned()];
    let run = replay(address, &prompts, &Setup::default());
    for (prompt, at) in received.lock().unwrap().iter() {
        let index = usize::from(prompt == "small");
        let record = &run.records[index];
        assert!(record.sent_ns.unwrap() <= *at, "{record:?}");
        assert!(record.request_bytes > u64::try_from(prompt.len()).unwrap());
    }
    assert_eq!(run.summary.run.oversized_bodies, 1);
}

#[test]
fn a_client_that_holds_its_last_byte_moves_its_own_part_by_that() {
    const HOLD_MS: u64 = 20;
    let received: Log<(Nanos, Written)> = log();
    let writer = Arc::clone(&received);
    let address = serve(move |mut exchange| {
        exchange.write(HEAD);
        let first = exchange.write(token());
        writer.lock().unwrap().push((exchange.received, first));
        exchange.write(token());
        exchange.write(tail());
        exchange.wait_for_close();
    });
    let tuning = Tuning { hold_last_byte_ns: HOLD_MS * MS, ..Tuning::default() };
    let run = replay(address, &["a"], &Setup { tuning, ..Setup::default() });
    let (record, (received, _)) = (&run.records[0], received.lock().unwrap()[0]);
    assert_eq!(record.class, Class::Ok);
    let hold = i64::try_from(HOLD_MS * MS).unwrap();
    assert!(received.since(record.sent_ns.unwrap()) >= hold);
    assert!(record.ttft_from_sent_ns.unwrap() >= hold);
}

#[test]
fn a_late_reader_is_late_by_its_own_clock_and_not_by_the_kernels() {
    const DELAY_MS: u64 = 20;
    for clock_stamps in [false, true] {
        let writes: Log<Written> = log();
        let writer = Arc::clone(&writes);
        let address = serve(move |mut exchange| {
            exchange.write(HEAD);
            // The head is read, late, before the token comes; and the token before the rest.
            std::thread::sleep(Duration::from_millis(10 * DELAY_MS));
            let first = exchange.write(token());
            std::thread::sleep(Duration::from_millis(10 * DELAY_MS));
            exchange.write(token());
            exchange.write(tail());
            writer.lock().unwrap().push(first);
            exchange.wait_for_close();
        });
        let tuning = Tuning { read_delay_ns: DELAY_MS * MS, clock_stamps, ..Tuning::default() };
        let run = replay(address, &["a"], &Setup { tuning, ..Setup::default() });
        let (record, write) = (&run.records[0], writes.lock().unwrap()[0]);
        assert_eq!(record.class, Class::Ok);
        let stamp = record.first_token_ns.unwrap();
        if clock_stamps {
            assert_eq!(record.stamp_source, Some(StampSource::Clock));
            assert!(stamp.since(write.before) >= i64::try_from(DELAY_MS * MS).unwrap());
            assert_eq!(run.summary.run.stamp_fallbacks, 1);
        } else {
            assert_eq!(record.stamp_source, Some(StampSource::Kernel));
            assert_stamped_within(record, stamp, write, "late reader");
        }
    }
}

#[test]
fn a_token_read_together_with_what_follows_is_marked() {
    let address = serve(|mut exchange| {
        let all = match exchange.prompt().as_str() {
            // Only line ends follow the token: its stamp is its own.
            "alone" => vec![HEAD.to_owned() + &token()],
            _ => vec![HEAD.to_owned() + &token() + &token() + &tail()],
        };
        for piece in all {
            exchange.write(piece);
        }
        if exchange.prompt() == "alone" {
            std::thread::sleep(Duration::from_millis(300));
            exchange.write(token() + &tail());
        }
        exchange.wait_for_close();
    });
    let run = replay(address, &["alone", "together"], &Setup::default());
    let marks: Vec<_> = run.records.iter().map(|record| record.coalesced_read).collect();
    assert_eq!(marks, [Some(false), Some(true)]);
    assert_eq!(run.summary.run.coalesced_reads, 1);
    // Two tokens in one read share an instant: there is no interval to divide.
    assert_eq!(run.records[1].tpot_ns, None);
    assert!(run.records[1].tpot_undefined.is_some());
}
