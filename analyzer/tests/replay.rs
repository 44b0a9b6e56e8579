//! The replay against real sockets: every scripted case, the classes that are the client's alone, and the
//! instants it reports, each against the instants of the server's own writes.

mod support;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use analyzer::clock::SystemClock;
use analyzer::outcome::Class;
use analyzer::prompt::BodyOptions;
use analyzer::records::{FramingVerdict, RequestRecord, ScheduleRecord, StampSource, read_lines};
use analyzer::replay::{
    Client, ProgressSink, ReplayConfig, RequestLimits, RunIdentity, RunSummary, Silent, Target,
    Tuning, run,
};
use analyzer::schedule::{Arrivals, Plan, build};
use protocol::cases::{Case, End, ExpectedFraming, cases};
use protocol::{Nanos, StreamOutcome};
use support::{Exchange, HEAD, Log, Written, log, serve, tail, token, trace};

const MS: u64 = 1_000_000;
/// The mapping of the kernel's clock is trusted to half of this.
const CLOCK_SLACK_NS: i64 = 50_000;

/// One run of these prompts, unsalted so that the server can tell them apart.
struct Run {
    summary: RunSummary,
    records: Vec<RequestRecord>,
    planned: Vec<ScheduleRecord>,
}

struct Setup {
    rate_rps: f64,
    limits: RequestLimits,
    tuning: Tuning,
}

impl Default for Setup {
    fn default() -> Self {
        let limits = RequestLimits::with_deadline_ns(60_000 * MS);
        Self { rate_rps: 200.0, limits, tuning: Tuning::default() }
    }
}

fn replay<S: AsRef<str>>(address: SocketAddr, prompts: &[S], setup: &Setup) -> Run {
    replay_until(address, prompts, setup, &AtomicBool::new(false), &mut Silent)
}

fn replay_until<S: AsRef<str>>(
    address: SocketAddr,
    prompts: &[S],
    setup: &Setup,
    stop: &AtomicBool,
    progress: &mut dyn ProgressSink,
) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(prompts);
    let plan = Plan {
        rate_rps: setup.rate_rps,
        arrivals: Arrivals::Constant,
        requests: None,
        seed: 1,
        repetition: 1,
        arm: "arm",
    };
    let schedule = build(&trace, &plan).unwrap();
    let config = ReplayConfig {
        identity: RunIdentity { arm: "arm".into(), repetition: 1 },
        target: &Target::resolve(&format!("http://{address}")).unwrap(),
        bearer: None,
        trace: &trace,
        schedule: &schedule,
        body: &BodyOptions::default(),
        salt: None,
        limits: setup.limits,
        out: dir.path(),
        workers: None,
        tuning: setup.tuning,
    };
    let summary = run(&config, &SystemClock, stop, progress).unwrap();
    let lines = read_lines::<RequestRecord>(&dir.path().join("requests.jsonl")).unwrap();
    assert_eq!(lines.torn_bytes, 0);
    let mut records = lines.records;
    records.sort_by_key(|record| record.index);
    let planned = read_lines(&dir.path().join("schedule.jsonl")).unwrap().records;
    assert_eq!(summary.classes.values().sum::<u64>(), summary.run.attempted);
    assert_eq!(records.len(), prompts.len());
    Run { summary, records, planned }
}

fn good(mut exchange: Exchange) {
    exchange.write(HEAD);
    exchange.write(token());
    exchange.write(token());
    exchange.write(tail());
    exchange.wait_for_close();
}

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

/// A kernel stamp is taken within the sender's own system call: it lies between the readings around it,
/// whatever the load. A coalesced stamp may be later, never earlier.
fn assert_stamped_within(record: &RequestRecord, stamp: Nanos, write: Written, what: &str) {
    assert!(stamp.since(write.before) >= -CLOCK_SLACK_NS, "{what}: {record:?} {write:?}");
    let exact = record.stamp_source == Some(StampSource::Kernel);
    if exact && record.coalesced_read == Some(false) {
        assert!(write.after.since(stamp) >= -CLOCK_SLACK_NS, "{what}: {record:?} {write:?}");
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
