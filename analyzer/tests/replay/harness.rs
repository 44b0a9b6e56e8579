//! One run against a test's server, read back from its files.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use analyzer::clock::SystemClock;
use analyzer::prompt::BodyOptions;
use analyzer::records::{RequestRecord, ScheduleRecord, StampSource, read_lines};
use analyzer::replay::{
    Connections, ProgressSink, ReplayConfig, RequestLimits, RunIdentity, RunSummary, Silent,
    Target, Tuning, run,
};
use analyzer::schedule::{Arrivals, Plan, build};
use protocol::Nanos;

use crate::server::{Exchange, HEAD, Written, tail, token, trace};

pub(crate) const MS: u64 = 1_000_000;
/// The mapping of the kernel's clock is trusted to half of this.
pub(crate) const CLOCK_SLACK_NS: i64 = 50_000;

/// One run of these prompts, unsalted so that the server can tell them apart.
pub(crate) struct Run {
    pub(crate) summary: RunSummary,
    pub(crate) records: Vec<RequestRecord>,
    pub(crate) planned: Vec<ScheduleRecord>,
}

pub(crate) struct Setup {
    pub(crate) rate_rps: f64,
    pub(crate) limits: RequestLimits,
    pub(crate) tuning: Tuning,
    pub(crate) connections: Connections,
}

impl Default for Setup {
    fn default() -> Self {
        let limits = RequestLimits::with_deadline_ns(60_000 * MS);
        let (tuning, connections) = (Tuning::default(), Connections::Fresh);
        Self { rate_rps: 200.0, limits, tuning, connections }
    }
}

pub(crate) fn replay<S: AsRef<str>>(address: SocketAddr, prompts: &[S], setup: &Setup) -> Run {
    replay_until(address, prompts, setup, &AtomicBool::new(false), &mut Silent)
}

pub(crate) fn replay_until<S: AsRef<str>>(
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
        connections: setup.connections,
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

pub(crate) fn good(mut exchange: Exchange) {
    exchange.write(HEAD);
    exchange.write(token());
    exchange.write(token());
    exchange.write(tail());
    exchange.wait_for_close();
}

/// A kernel stamp is taken within the sender's own system call: it lies between the readings around it,
/// whatever the load. A coalesced stamp may be later, never earlier.
pub(crate) fn assert_stamped_within(
    record: &RequestRecord,
    stamp: Nanos,
    write: Written,
    what: &str,
) {
    assert!(stamp.since(write.before) >= -CLOCK_SLACK_NS, "{what}: {record:?} {write:?}");
    let exact = record.stamp_source == Some(StampSource::Kernel);
    if exact && record.coalesced_read == Some(false) {
        assert!(write.after.since(stamp) >= -CLOCK_SLACK_NS, "{what}: {record:?} {write:?}");
    }
}
