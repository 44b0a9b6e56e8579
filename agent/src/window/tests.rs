use std::sync::Arc;

use protocol::Nanos;

use super::*;
use crate::capture::ClassCounters;

fn ns(at: u64) -> Nanos {
    Nanos::new(at)
}

#[test]
fn every_reason_follows_from_its_counter_alone() {
    let lossless = ClassCounters { attempted: 10, failed: 0, consumed: 10 };
    let lossy = ClassCounters { attempted: 10, failed: 3, consumed: 7 };
    let short = ClassCounters { attempted: 10, failed: 0, consumed: 9 };
    let clean = WindowCounters { segments: lossless, sockets: lossless, ..Default::default() };
    assert!(reasons(&clean).is_empty());
    let cases = [
        (WindowCounters { segments: lossy, ..clean }, Reason::RingFull),
        (WindowCounters { sockets: lossy, ..clean }, Reason::RingFull),
        (WindowCounters { segments: short, ..clean }, Reason::CountersDisagree),
        (WindowCounters { missed_transitions: 1, ..clean }, Reason::MissedTransitions),
        (WindowCounters { connection_corrections: 1, ..clean }, Reason::ConnectionDrift),
        (WindowCounters { gaps: 1, ..clean }, Reason::SequenceGap),
        (WindowCounters { conflicts: 1, ..clean }, Reason::SequenceGap),
        (WindowCounters { unparsed_packets: 1, ..clean }, Reason::UnparsedPacket),
        (WindowCounters { adopted_segments: 1, ..clean }, Reason::AdoptedConnection),
        (WindowCounters { evicted_flows: 1, ..clean }, Reason::MemoryLimit),
        (WindowCounters { unassigned_bytes: 1, ..clean }, Reason::UnassignedBytes),
        (WindowCounters { lost_interfaces: 1, ..clean }, Reason::InterfaceLost),
        (WindowCounters { preempted_packets: 1000, ..clean }, Reason::Preempted),
    ];
    for (counters, reason) in cases {
        assert_eq!(reasons(&counters).into_iter().collect::<Vec<_>>(), [reason], "{counters:?}");
    }
    let slack = WindowCounters { preempted_packets: 3, packets: 1000, ..clean };
    assert!(reasons(&slack).is_empty());
}

#[test]
fn codes_are_those_of_the_documentation() {
    let api = include_str!("../../../docs/agent-api.md");
    for reason in Reason::ALL {
        let code = serde_json::to_string(&reason).unwrap();
        let code = code.trim_matches('"');
        assert!(api.contains(&format!("`{code}`")), "{code}");
    }
}

#[test]
fn observations_go_to_every_window_that_saw_their_first_byte() {
    let mut windows = Windows::default();
    let (first, _) = windows.open("a".to_owned(), ns(100), Snapshot::default()).unwrap();
    let (second, _) = windows.open("b".to_owned(), ns(200), Snapshot::default()).unwrap();
    windows.set_end(first, ns(250)).unwrap();
    for seen in [50, 150, 200, 250, 300] {
        windows.add(ns(seen), &Arc::from(seen.to_string().as_str()));
    }
    let rows = |key| windows.get(key).unwrap().rows();
    assert_eq!(rows(first).iter().map(|it| &**it).collect::<Vec<_>>(), ["150", "200", "250"]);
    assert_eq!(rows(second).iter().map(|it| &**it).collect::<Vec<_>>(), ["200", "250", "300"]);
}

#[test]
fn windows_and_their_memory_are_bounded() {
    let mut windows = Windows::with_limit(10);
    for _ in 0..MAX_WINDOWS {
        windows.open(String::new(), ns(0), Snapshot::default()).unwrap();
    }
    let full = windows.open(String::new(), ns(0), Snapshot::default());
    assert_eq!(full.unwrap_err(), WindowError::Full);
    for key in 2..=MAX_WINDOWS as u64 {
        windows.delete(key).unwrap();
    }
    for _ in 0..3 {
        windows.add(ns(1), &Arc::from("four"));
    }
    windows.set_end(1, ns(2)).unwrap();
    let closing = windows.close(1, &Snapshot::default(), 0, []).unwrap();
    assert_eq!(closing.observations, 2);
    assert_eq!(closing.reasons.into_iter().collect::<Vec<_>>(), [Reason::MemoryLimit]);
    windows.delete(1).unwrap();
    assert_eq!(windows.bytes_kept(), 0);
}

#[test]
fn ids_are_exact() {
    let mut windows = Windows::default();
    let (key, id) = windows.open(String::new(), ns(0), Snapshot::default()).unwrap();
    assert_eq!(windows.key(&id), Ok(key));
    for wrong in ["", "w", "w01", "w+1", "w2", "1", "w1 "] {
        assert_eq!(windows.key(wrong), Err(WindowError::Unknown), "{wrong}");
    }
    windows.set_end(key, ns(1)).unwrap();
    assert_eq!(windows.set_end(key, ns(2)), Err(WindowError::Closed));
}
