//! The engine over a scripted source and a clock that only tests move.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::Nanos;
use serde_json::Value;
use tokio::sync::oneshot::{Receiver, channel};

mod connections;
mod leases;
mod prompts;

use super::*;
use crate::capture::SocketTransition;
use crate::clock::Clock;
use crate::endpoint::{Endpoint, Role};
use crate::flow::FlowLimits;
use crate::testing::*;
use crate::window::{Closing, Reason, WindowError};

#[derive(Default)]
struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Nanos {
        Nanos::new(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Bench {
    script: Script,
    engine: Engine,
    clock: Arc<TestClock>,
    written: Written,
}

impl Bench {
    fn new() -> Self {
        let (script, source) = scripted();
        let clock = Arc::new(TestClock::default());
        let written = Written::default();
        let config = EngineConfig {
            endpoints: vec![Endpoint { address: endpoint(), role: Role::Backend }],
            interfaces: BTreeMap::from([(1, "eth0".to_owned())]),
            interval_ns: 100_000_000,
            limits: FlowLimits::default(),
            jsonl: Some(Box::new(written.clone())),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
        };
        Self { script, engine: Engine::new(Box::new(source), config), clock, written }
    }

    fn at(&self, now: u64) {
        self.clock.0.store(now, Ordering::SeqCst);
    }

    fn poll(&mut self) {
        self.engine.poll(Duration::ZERO);
    }

    fn ask<T>(&mut self, command: impl FnOnce(tokio::sync::oneshot::Sender<T>) -> Command) -> T {
        self.begin(command).try_recv().unwrap()
    }

    fn begin<T>(
        &mut self,
        command: impl FnOnce(tokio::sync::oneshot::Sender<T>) -> Command,
    ) -> Receiver<T> {
        let (reply, answer) = channel();
        self.engine.serve(command(reply));
        answer
    }

    fn open(&mut self) -> String {
        self.ask(|reply| Command::Open(Opening::new("label"), reply)).unwrap().window_id
    }

    fn close(&mut self, id: &str) -> Closing {
        self.ask(|reply| Command::Close(Ending::new(id, 0), reply)).unwrap()
    }

    fn rows(&mut self, id: &str) -> Vec<Value> {
        let rows = self.ask(|reply| Command::Observations(id.to_owned(), reply)).unwrap();
        rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
    }
}

fn good(number: u8, start: u64) -> Talk {
    let mut talk = Talk::open_at(u32::from(number) * 77_777, 5000, start);
    talk.request(&post(number, "private prompt")).response(&stream(3));
    talk.client_fin().endpoint_fin();
    talk
}

fn reasons(closing: &Closing) -> Vec<Reason> {
    closing.reasons.iter().copied().collect()
}

#[test]
fn a_window_holds_its_requests_and_reconciles() {
    let mut bench = Bench::new();
    bench.script.packets(&good(1, 1_000_000).packets);
    bench.poll();
    bench.at(2_000_000);
    let id = bench.open();
    bench.script.packets(&good(2, 3_000_000).packets);
    bench.at(9_000_000);
    let closing = bench.close(&id);
    assert!(closing.complete, "{closing:?}");
    assert_eq!((closing.observations, closing.open_requests), (1, 0));
    let segments = closing.counters.segments;
    assert_eq!((segments.attempted, segments.failed, segments.consumed), (6, 0, 6));
    let rows = bench.rows(&id);
    assert_eq!(rows[0]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4702");
    assert_eq!(rows[0]["outcome"], "ok");
    assert_eq!(rows[0]["interface"], "eth0");
    assert_eq!(rows[0]["schema"], "goodput.kernel/1");
    let token_ns: Vec<u64> = serde_json::from_value(rows[0]["token_ns"].clone()).unwrap();
    assert_eq!(token_ns, [rows[0]["first_token_ns"].as_u64().unwrap(), 0, 0]);
}

#[test]
fn the_file_gets_every_request_and_nothing_of_prompts_or_answers() {
    let mut bench = Bench::new();
    bench.script.packets(&good(1, 1_000_000).packets);
    bench.poll();
    let text = String::from_utf8(bench.written.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(!text.contains("private") && !text.contains("secret"), "{text}");
    let documented = include_str!("../../../docs/formats.md");
    let row: serde_json::Map<String, Value> = serde_json::from_str(text.trim_end()).unwrap();
    for key in row.keys().filter(|key| *key != "schema") {
        assert!(documented.contains(&format!("`{key}`")), "{key} is not documented");
    }
}

#[test]
fn closing_waits_for_open_requests_and_names_those_that_stay() {
    let mut bench = Bench::new();
    bench.at(1);
    let id = bench.open();
    let mut talk = good(1, 1_000_000);
    let rest = talk.packets.split_off(3);
    bench.script.packets(&talk.packets);
    bench.at(5_000_000);
    let mut patient = bench.begin(|reply| Command::Close(Ending::new(&id, 100), reply));
    bench.poll();
    assert!(patient.try_recv().is_err(), "a request is still open");
    bench.script.packets(&rest);
    bench.at(6_000_000);
    bench.poll();
    let closing = patient.try_recv().unwrap().unwrap();
    assert!(closing.complete && closing.observations == 1, "{closing:?}");
    assert_eq!(closing.closed_ns.get(), 5_000_000);

    let id = bench.open();
    let mut talk = Talk::open_at(9, 9, 7_000_000);
    talk.request(&post(2, ""));
    bench.script.packets(&talk.packets);
    bench.at(8_000_000);
    let mut patient = bench.begin(|reply| Command::Close(Ending::new(&id, 100), reply));
    bench.at(200_000_000);
    bench.poll();
    let closing = patient.try_recv().unwrap().unwrap();
    assert_eq!(reasons(&closing), [Reason::OpenRequests]);
    assert_eq!((closing.open_requests, closing.observations), (1, 0));
}

#[test]
fn every_kind_of_loss_is_named() {
    let mut bench = Bench::new();
    bench.at(1);
    let full = bench.open();
    bench.script.send(Step::Fail);
    bench.poll();
    assert_eq!(reasons(&bench.close(&full)), [Reason::RingFull]);

    let id = bench.open();
    let mut adopted = Talk::silent(1, 1, 10);
    adopted.request(&post(1, "")).response(&stream(1)).client_fin().endpoint_fin();
    bench.script.packets(&adopted.packets);
    assert_eq!(reasons(&bench.close(&id)), [Reason::AdoptedConnection]);

    let id = bench.open();
    let mut holed = good(1, 100);
    holed.packets.remove(3);
    bench.script.packets(&holed.packets);
    assert_eq!(reasons(&bench.close(&id)), [Reason::SequenceGap]);

    let id = bench.open();
    bench.script.counters.lock().unwrap().segments.attempted += 1;
    assert_eq!(reasons(&bench.close(&id)), [Reason::CountersDisagree]);
    bench.script.counters.lock().unwrap().segments.consumed += 1;

    let id = bench.open();
    bench.script.counters.lock().unwrap().unparsed_packets += 1;
    assert_eq!(reasons(&bench.close(&id)), [Reason::UnparsedPacket]);

    let id = bench.open();
    bench.script.send(Step::Break);
    bench.poll();
    assert_eq!(reasons(&bench.close(&id)), [Reason::SourceFailed]);
    let status = bench.ask(Command::Status);
    assert!(status.reasons.contains(&Reason::SourceFailed));
}

#[test]
fn gauges_follow_sockets_and_requests() {
    let mut bench = Bench::new();
    let mut talk = good(1, 1_000_000);
    talk.packets.truncate(3);
    bench.script.packets(&talk.packets);
    let transition = SocketTransition {
        stamp: Nanos::new(1_000_500),
        local: endpoint(),
        remote: peer(),
        old_state: 3,
        new_state: 1,
        at_endpoint: true,
    };
    bench.script.send(Step::Socket(transition));
    bench.poll();
    let gauges = bench.ask(Command::Gauges);
    let gauge = serde_json::to_value(&gauges.endpoints[0]).unwrap();
    assert_eq!(gauge["connections"], 1);
    assert_eq!(gauge["requests"], 1);
    assert_eq!(gauge["source"], "tracepoint");
}

#[test]
fn calls_about_windows_that_are_not_there_are_refused() {
    let mut bench = Bench::new();
    let id = bench.open();
    bench.close(&id);
    let again = bench.ask(|reply| Command::Close(Ending::new(&id, 0), reply));
    assert_eq!(again.unwrap_err(), WindowError::Closed);
    bench.ask(|reply| Command::Delete(id.clone(), reply)).unwrap();
    let gone = bench.ask(|reply| Command::Inflight(id.clone(), reply));
    assert_eq!(gone.unwrap_err(), WindowError::Unknown);
    let open = bench.open();
    let mut talk = Talk::open_at(9, 9, 0);
    talk.request(&post(2, ""));
    bench.script.packets(&talk.packets);
    bench.at(1_000_000);
    let mut waiting = bench.begin(|reply| Command::Close(Ending::new(&open, 60_000), reply));
    bench.ask(|reply| Command::Delete(open, reply)).unwrap();
    assert_eq!(waiting.try_recv().unwrap().unwrap_err(), WindowError::Unknown);
}
