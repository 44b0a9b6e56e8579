//! The validity rules: a clean repetition passes, and each fault alone gives its code.

use std::path::Path;

use protocol::Nanos;

use super::{Check, equal};
use crate::campaign::Campaign;
use crate::evidence::{CellPlace, Repetition};
use crate::join::{Judge, join};
use crate::outcome::Class;
use crate::records::{FramingVerdict, RequestRecord, ScheduleRecord};
use crate::rundir::{ReadinessRow, SloFile, SloOrigin, TargetKind};
use crate::verify::gates::{Context, gates};
use crate::verify::{Code, Effect};

/// A repetition of four requests at 10 rps, as a replay writes it.
const CAMPAIGN: &[u8] = include_bytes!("data/campaign.toml");
const SCHEDULE: &str = include_str!("data/schedule.jsonl");
const REQUESTS: &str = include_str!("data/requests.jsonl");
const RUN: &str = include_str!("data/run.json");
const GATEWAY: &str = include_str!("data/gateway.json");

pub(super) fn request() -> Option<RequestRecord> {
    rows(REQUESTS).into_iter().next()
}

pub(super) fn schedule() -> Vec<ScheduleRecord> {
    rows(SCHEDULE)
}

fn rows<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn repetition() -> Option<Repetition> {
    Some(Repetition {
        place: CellPlace { arm: "floor".to_owned(), rate_rps: 10.0, repetition: 1 },
        schedule: schedule(),
        requests: rows(REQUESTS),
        run: serde_json::from_str(RUN).ok()?,
        gateway: serde_json::from_str(GATEWAY).ok(),
        observed: Vec::new(),
        torn: Vec::new(),
    })
}

/// What a repetition is judged with beside itself.
#[derive(Clone)]
struct Case {
    rep: Repetition,
    readiness: Vec<ReadinessRow>,
    /// Schedule hash that the manifest would hold.
    registered: String,
}

impl Case {
    fn clean() -> Option<Self> {
        let probe = |at_ns, target: &str, kind| ReadinessRow {
            schema: String::new(),
            at_ns,
            target: target.to_owned(),
            kind,
            ok: true,
            status: Some(200),
            detail: None,
        };
        let probes = |at| {
            [
                probe(at, "http://127.0.0.1:1", TargetKind::Vip),
                probe(at, "127.0.0.1:3", TargetKind::Backend),
            ]
        };
        let readiness = [1_050_000_000, 1_100_000_000].into_iter().flat_map(probes).collect();
        let rep = repetition()?;
        Some(Self { registered: rep.run.schedule_sha256.clone(), rep, readiness })
    }

    fn down(&mut self, kind: TargetKind) {
        self.readiness.iter_mut().filter(|row| row.kind == kind).for_each(|row| row.ok = false);
    }

    /// Codes that the gates find; `None` when the embedded campaign cannot be read.
    fn codes(&self) -> Option<Vec<Code>> {
        let campaign = Campaign::parse(CAMPAIGN.to_vec(), Path::new("campaign.toml")).ok()?;
        let keys = campaign.keys();
        let slo = SloFile {
            schema: String::new(),
            ttft_ns: 300_000_000,
            tpot_ns: 20_000_000,
            deadline_ns: 1_000_000_000,
            origin: SloOrigin::Fixed { origin: "selfcheck".to_owned() },
        };
        let judge = Judge { ttft_ns: slo.ttft_ns, tpot_ns: slo.tpot_ns };
        let context = Context {
            slo: &slo,
            thresholds: &keys.thresholds,
            statistics: &keys.statistics,
            readiness: &self.readiness,
            backends: &keys.backend,
            vip: "http://127.0.0.1:1",
            floor_schedule: None,
            agents: &[],
            seed: keys.seed,
            registered_schedule: Some(&self.registered),
            imported: false,
            copy: None,
        };
        let found = gates(&self.rep, &join(&self.rep.requests, &[], judge), &context);
        let discarding = found.iter().filter(|finding| finding.effect >= Effect::DiscardRepetition);
        Some(discarding.map(|finding| finding.code).collect())
    }
}

type Fault = fn(&mut Case);

const FAULTS: &[(&str, Code, Fault)] = &[
    ("a response broke framing", Code::FramingInvalid, |case| {
        each(case, 1, |row| row.framing = FramingVerdict::Invalid);
    }),
    ("a request hung", Code::HangOrTruncation, |case| {
        each(case, 1, |row| row.class = Class::TimeoutStalled);
    }),
    ("a response was truncated", Code::HangOrTruncation, |case| {
        each(case, 1, |row| row.class = Class::Truncated);
    }),
    ("a 504", Code::BackendTimeout, |case| each(case, 1, |row| row.status = Some(504))),
    ("a body that names a prefill timeout", Code::BackendTimeout, |case| {
        each(case, 1, |row| row.names_server_timeout = true);
    }),
    ("the VIP was down", Code::VipDown, |case| case.down(TargetKind::Vip)),
    ("a backend was down", Code::BackendDown, |case| case.down(TargetKind::Backend)),
    ("nobody probed", Code::ReadinessUnknown, |case| case.readiness.clear()),
    ("no request is paired", Code::ZeroPaired, |case| {
        each(case, usize::MAX, |row| row.class = Class::Reset);
    }),
    ("a scheduled request has no record", Code::Incomplete, |case| {
        case.rep.requests.pop();
    }),
    ("a request was cancelled by the tool", Code::Incomplete, |case| {
        each(case, 1, |row| row.class = Class::CancelledByTool);
    }),
    ("a request is recorded twice", Code::AccountingBroken, |case| {
        let again = case.rep.requests.first().cloned();
        case.rep.requests.extend(again);
    }),
    ("the last line is torn", Code::TornRecord, |case| {
        case.rep.torn.push(("requests.jsonl".to_owned(), 12));
    }),
    ("the client sent late", Code::ClientLag, |case| {
        each(case, usize::MAX, |row| {
            row.dispatched_ns = row.dispatched_ns.map(|ns| Nanos::new(ns.get() + 6_000_000));
        });
    }),
    ("the gateway is in another mode", Code::ModeMismatch, |case| {
        if let Some(gateway) = &mut case.rep.gateway {
            gateway.mismatches.push("lb_mode rr".to_owned());
        }
    }),
    ("no readback of the gateway", Code::ModeMismatch, |case| case.rep.gateway = None),
    ("another schedule was replayed", Code::ScheduleMismatch, |case| {
        case.rep.run.schedule_sha256 = "0".repeat(64);
    }),
];

fn each(case: &mut Case, rows: usize, change: impl Fn(&mut RequestRecord)) {
    case.rep.requests.iter_mut().take(rows).for_each(change);
}

pub(super) fn checks() -> Vec<Check> {
    let Some(clean) = Case::clean() else {
        return vec![equal("embedded repetition", &"unreadable", &"readable")];
    };
    let mut checks = vec![equal("a clean repetition is valid", &clean.codes(), &Some(Vec::new()))];
    for (name, code, fault) in FAULTS {
        let mut case = clean.clone();
        fault(&mut case);
        let named = case.codes().is_some_and(|codes| codes.contains(code));
        checks.push(equal(format!("{name}: {}", code.name()), &named, &true));
    }
    checks
}
