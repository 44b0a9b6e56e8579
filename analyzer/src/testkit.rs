//! Synthetic runs for tests: evidence in memory, and the same on disk.

use std::collections::BTreeMap;
use std::path::Path;

use protocol::{Nanos, TraceId};
use serde_json::json;

use crate::campaign::Campaign;
use crate::evidence::{BackendHealth, CellPlace, Evidence, HealthFile, Repetition, VipHealth};
use crate::join::Observed;
use crate::outcome::Class;
use crate::prompt::Salt;
use crate::records::{
    AgentRecord, FramingVerdict, LineWriter, Pace, RequestRecord, RunRecord, ScheduleRecord,
    StampSource, TokensSource, Versioned, schedule_sha256, sha256_hex,
};
use crate::rundir::{
    Concentration, Expected, GatewayFile, KernelRow, Leg, Manifest, ProbeFile, Readback,
    ReadinessRow, RunDir, Scrape, SloFile, SloOrigin, TargetKind, write_json,
};
use crate::verify::{Recomputation, SecondComputation};

pub(crate) const CAMPAIGN: &str = r#"name = "synthetic"
seed = 7
run_dir = "target/run"
[trace]
path = "trace.jsonl"
[request]
model = "m"
[slo]
fixed = { ttft_ms = 300.0, tpot_ms = 20.0, origin = "synthetic" }
[load]
rates_rps = [10, 20]
arrivals = "poisson"
[[arm]]
name = "floor"
floor = true
vip = "http://127.0.0.1:1"
accelerators = 2
[[arm]]
name = "aware"
vip = "http://127.0.0.1:2"
metrics = "http://127.0.0.1:4"
accelerators = 2
min_hit_share = 0.5
max_miss_share = 0.5
expected = { lb_mode = "hard" }
[[backend]]
address = "127.0.0.1:3"
capacity_tokens_per_s = 1000
[[agent]]
name = "host"
url = "http://127.0.0.1:5"
role = "host"
"#;

pub(crate) const TRACE: &[u8] = b"{}\n";
pub(crate) const TTFT_SLO_NS: u64 = 300_000_000;
pub(crate) const TPOT_SLO_NS: u64 = 20_000_000;
/// Requests of every repetition.
pub(crate) const SIZE: u64 = 100;

pub(crate) fn campaign(text: &str) -> Campaign {
    Campaign::parse(text.as_bytes().to_vec(), Path::new("x/campaign.toml")).unwrap()
}

/// Distinct per place, and unlike zero.
pub(crate) fn trace_id(arm: &str, rate: f64, repetition: u32, index: u64) -> TraceId {
    let digest = sha256_hex(format!("{arm} {rate} {repetition} {index}").as_bytes());
    digest[..32].parse().unwrap()
}

/// A delivered request: sent 1 ms after planned, TTFT as given from planned, TPOT 10 ms, 11 tokens.
pub(crate) fn delivered(id: TraceId, index: u64, ttft_ns: i64) -> RequestRecord {
    let planned = 1_000_000_000 + index * 10_000_000;
    let at = |offset: i64| Nanos::new(planned.saturating_add_signed(offset));
    RequestRecord {
        schema: RequestRecord::SCHEMA.to_owned(),
        index,
        trace_id: id,
        conn_id: Some(index),
        conn_request_index: Some(0),
        conn_reused: false,
        retries: 0,
        planned_ns: Nanos::new(planned),
        dispatched_ns: Some(at(10_000)),
        connected_ns: Some(at(500_000)),
        sent_ns: Some(at(1_000_000)),
        first_byte_ns: Some(at(ttft_ns)),
        head_ns: Some(at(ttft_ns)),
        first_event_ns: Some(at(ttft_ns)),
        first_token_ns: Some(at(ttft_ns)),
        first_content_token_ns: Some(at(ttft_ns)),
        last_token_ns: Some(at(ttft_ns + 100_000_000)),
        done_ns: Some(at(ttft_ns + 101_000_000)),
        framing_end_ns: Some(at(ttft_ns + 101_000_000)),
        end_ns: at(ttft_ns + 102_000_000),
        stamp_source: Some(StampSource::Kernel),
        coalesced_read: Some(false),
        token_events: 11,
        completion_tokens: Some(11),
        prompt_tokens: Some(100),
        cached_tokens: Some(40),
        tokens_from: Some(TokensSource::Usage),
        status: Some(200),
        finish_reason: Some("length".to_owned()),
        retry_after: None,
        response_id: None,
        framing: FramingVerdict::Valid,
        framing_rule: None,
        framing_offset: None,
        class: Class::Ok,
        detail: String::new(),
        names_server_timeout: false,
        error_event: false,
        unreadable_payload: false,
        export_delivered: None,
        ttft_ns: Some(ttft_ns),
        ttft_from_sent_ns: Some(ttft_ns - 1_000_000),
        tpot_ns: Some(10_000_000),
        tpot_undefined: None,
        request_bytes: 400,
        response_bytes: 2_000,
    }
}

/// The same request, ended as `class` before its first token.
pub(crate) fn failed(row: &RequestRecord, class: Class) -> RequestRecord {
    RequestRecord {
        class,
        detail: "synthetic".to_owned(),
        first_token_ns: None,
        last_token_ns: None,
        completion_tokens: None,
        tokens_from: None,
        ttft_ns: None,
        ttft_from_sent_ns: None,
        tpot_ns: None,
        ..row.clone()
    }
}

/// What an agent on the gateway's host would see: the client leg 50 us tighter at each end, the gateway
/// adding 200 us before the backend leg and 300 us after it.
pub(crate) fn legs(row: &RequestRecord, backend: &str) -> Vec<KernelRow> {
    let leg = |leg, endpoint: &str, role: &str, inset: i64, tail: i64| KernelRow {
        schema: KernelRow::SCHEMA.to_owned(),
        trace_id: Some(row.trace_id),
        endpoint: endpoint.to_owned(),
        leg,
        role: Some(role.to_owned()),
        request_end_ns: row.sent_ns.map(|ns| ns.get().saturating_add_signed(inset)),
        first_token_ns: row.first_token_ns.map(|ns| ns.get().saturating_add_signed(-tail)),
        last_token_ns: row.last_token_ns.map(|ns| ns.get().saturating_add_signed(-tail)),
        token_events: Some(row.token_events),
        completion_tokens: row.completion_tokens,
        status: Some(200),
        receipt_prefill: None,
        receipt_decode: None,
        framing: Some("valid".to_owned()),
        outcome: Some(row.class.name().to_owned()),
        segments: Some(20),
        adopted: false,
    };
    vec![
        leg(Leg::Client, "127.0.0.1:1", "vip", 50_000, 50_000),
        leg(Leg::Backend, backend, "backend", 250_000, 350_000),
    ]
}

/// A repetition with `good` good requests of [`SIZE`]; the others miss their TTFT SLO.
pub(crate) fn repetition(arm: &str, rate_rps: f64, number: u32, good: u64) -> Repetition {
    let ids: Vec<TraceId> = (0..SIZE).map(|i| trace_id(arm, rate_rps, number, i)).collect();
    let requests: Vec<RequestRecord> = (0..SIZE)
        .zip(&ids)
        .map(|(i, id)| delivered(*id, i, if i < good { 100_000_000 } else { 301_000_000 }))
        .collect();
    let schedule: Vec<ScheduleRecord> =
        (0..SIZE).zip(&ids).map(|(i, id)| planned(*id, i)).collect();
    let rows = requests.iter().flat_map(|row| legs(row, "127.0.0.1:3")).collect();
    let mut rep = Repetition {
        place: CellPlace { arm: arm.to_owned(), rate_rps, repetition: number },
        schedule,
        requests,
        run: run_record(arm, rate_rps, number),
        gateway: Some(gateway(arm, 60.0, 40.0)),
        torn: Vec::new(),
        observed: vec![Observed { account: account(), rows }],
    };
    sum_up(&mut rep);
    rep
}

/// Makes `run.json` say what the records say, as the replay would have.
pub(crate) fn sum_up(rep: &mut Repetition) {
    let mut pace = Pace::default();
    rep.requests.iter().for_each(|row| pace.add(row.planned_ns, row.dispatched_ns));
    let figures = pace.figures(rep.schedule.len(), rep.run.schedule_length_ns);
    let end = rep.requests.iter().map(|row| row.end_ns).max();
    rep.run = RunRecord {
        schedule_sha256: schedule_sha256(rep.schedule.iter().cloned()).unwrap(),
        attempted: rep.schedule.len() as u64,
        dispatched: figures.dispatched,
        offered_rps: figures.offered_rps,
        achieved_rps: figures.achieved_rps,
        lag_p50_ns: figures.lag_p50_ns,
        lag_p99_ns: figures.lag_p99_ns,
        lag_max_ns: figures.lag_max_ns,
        window_end_ns: end.unwrap_or(rep.run.window_start_ns),
        ..rep.run.clone()
    };
}

/// Makes the agent's account count the rows that are there.
pub(crate) fn recount_observations(rep: &mut Repetition) {
    for observed in &mut rep.observed {
        observed.account.observations = Some(observed.rows.len() as u64);
    }
}

fn planned(id: TraceId, index: u64) -> ScheduleRecord {
    ScheduleRecord {
        schema: ScheduleRecord::SCHEMA.to_owned(),
        index,
        row: index,
        planned_offset_ns: index * 10_000_000,
        input_tokens: Some(100),
        output_tokens: 11,
        trace_id: Some(id),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates of tests are positive and far from the ends"
)]
fn length_ns(rate_rps: f64) -> u64 {
    (SIZE as f64 / rate_rps * 1e9) as u64
}

fn run_record(arm: &str, rate_rps: f64, repetition: u32) -> RunRecord {
    let length_ns = length_ns(rate_rps);
    RunRecord {
        schema: RunRecord::SCHEMA.to_owned(),
        arm: arm.to_owned(),
        rate_rps,
        repetition,
        schedule_sha256: String::new(),
        salt: Some(Salt::derive(7, arm, rate_rps, repetition).as_text()),
        window_start_ns: Nanos::new(1_000_000_000),
        window_end_ns: Nanos::new(1_000_000_000 + length_ns + 500_000_000),
        schedule_length_ns: length_ns,
        attempted: SIZE,
        dispatched: SIZE,
        offered_rps: rate_rps,
        achieved_rps: rate_rps,
        lag_p50_ns: Some(10_000),
        lag_p99_ns: Some(20_000),
        lag_max_ns: Some(30_000),
        connection_mode: crate::replay::Connections::Fresh,
        connections: SIZE,
        coalesced_reads: 0,
        stamp_fallbacks: 0,
        clock_steps: 0,
        interrupted: false,
        oversized_bodies: 0,
        burstiness: None,
        agents: vec![account()],
    }
}

pub(crate) fn account() -> AgentRecord {
    AgentRecord {
        name: "host".to_owned(),
        url: "http://127.0.0.1:5".to_owned(),
        complete: true,
        reasons: Vec::new(),
        window_id: Some("1".to_owned()),
        observations: Some(2 * SIZE),
        counters: BTreeMap::from([("endpoint_packets".to_owned(), json!(5_000))]),
    }
}

/// A gateway in its mode whose counters rose by `hits` and `misses`; absent series for `None`.
pub(crate) fn gateway(
    arm: &str,
    hits: impl Into<Option<f64>>,
    misses: impl Into<Option<f64>>,
) -> GatewayFile {
    let mut after = BTreeMap::from([("other".to_owned(), 1.0)]);
    if let Some(hits) = hits.into() {
        after.insert("loxilb_pd_kv_tier15_hits_total{ep_idx=\"0\"}".to_owned(), hits);
    }
    if let Some(misses) = misses.into() {
        let series = "loxilb_pd_kv_tier15_miss_reason_total{reason=\"no_worker\"}";
        after.insert(series.to_owned(), misses);
    }
    let readback =
        Readback { found: true, lb_mode: Some("hard".to_owned()), ..Readback::default() };
    GatewayFile {
        schema: GatewayFile::SCHEMA.to_owned(),
        arm: arm.to_owned(),
        expected: Expected::default(),
        readback: readback.clone(),
        readback_after: readback,
        mismatches: Vec::new(),
        before: Scrape::Answered { series: BTreeMap::from([("other".to_owned(), 0.0)]) },
        after: Scrape::Answered { series: after },
        repeated_prefix_requests: Some(80),
    }
}

/// A run of five repetitions: both arms sustain 10 rps, only `aware` sustains 20.
pub(crate) fn evidence() -> Evidence {
    with_good(|arm, rate, number| match (arm, rate > 15.0) {
        (_, false) => 95 + u64::from(number % 2),
        ("floor", true) => 70 + u64::from(number),
        (_, true) => 92 + u64::from(number % 3),
    })
}

/// A run of five repetitions with so many good requests per (arm, rate, repetition).
pub(crate) fn with_good(good: impl Fn(&str, f64, u32) -> u64) -> Evidence {
    let campaign = campaign(CAMPAIGN);
    let mut repetitions = Vec::new();
    for arm in ["floor", "aware"] {
        for rate in [10.0, 20.0] {
            for number in 1..=5 {
                repetitions.push(repetition(arm, rate, number, good(arm, rate, number)));
            }
        }
    }
    let probes = ["floor", "aware"].map(|arm| (arm.to_owned(), probe(arm)));
    Evidence {
        manifest: manifest(&campaign),
        trace_sha256: sha256_hex(TRACE),
        slo: SloFile {
            schema: SloFile::SCHEMA.to_owned(),
            ttft_ns: TTFT_SLO_NS,
            tpot_ns: TPOT_SLO_NS,
            deadline_ns: 1_000_000_000,
            origin: SloOrigin::Fixed { origin: "synthetic".to_owned() },
        },
        health: Some(health()),
        probes: BTreeMap::from(probes),
        slo_recorded: true,
        baseline: None,
        derived: None,
        readiness: Some(readiness()),
        import: None,
        repetitions,
        campaign,
    }
}

fn manifest(campaign: &Campaign) -> Manifest {
    Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        name: "synthetic".to_owned(),
        campaign_path: "x/campaign.toml".to_owned(),
        campaign_sha256: sha256_hex(campaign.bytes()),
        trace_source_sha256: sha256_hex(TRACE),
        trace_sha256: sha256_hex(TRACE),
        trace_origin: None,
        schedules: registered(),
        fleet_fingerprint: "fleet".to_owned(),
        goodput_version: "test".to_owned(),
        kernel: "test".to_owned(),
        without_agent: false,
        overrides: Vec::new(),
    }
}

/// Every repetition of the testkit has the same schedule.
fn registered() -> BTreeMap<String, String> {
    let schedule = (0..SIZE).map(|i| planned(trace_id("any", 0.0, 0, i), i));
    let hash = schedule_sha256(schedule).unwrap();
    let cells = ["r10", "r20"].into_iter().flat_map(|rate| (1..=15).map(move |n| (rate, n)));
    cells.map(|(rate, n)| (format!("{rate}/rep{n}"), hash.clone())).collect()
}

/// Every target up, once a second through every window.
fn readiness() -> Vec<ReadinessRow> {
    let targets = [
        ("http://127.0.0.1:1", TargetKind::Vip),
        ("http://127.0.0.1:2", TargetKind::Vip),
        ("127.0.0.1:3", TargetKind::Backend),
    ];
    (1..=12_u64)
        .flat_map(|second| {
            targets.map(|(target, kind)| ReadinessRow {
                schema: ReadinessRow::SCHEMA.to_owned(),
                at_ns: second * 1_000_000_000,
                target: target.to_owned(),
                kind,
                ok: true,
                status: Some(200),
                detail: None,
            })
        })
        .collect()
}

pub(crate) fn health() -> HealthFile {
    let vip = |arm: &str| VipHealth {
        arm: arm.to_owned(),
        vip: "http://127.0.0.1:1".to_owned(),
        ok: true,
        status: Some(200),
        class: "ok".to_owned(),
        detail: String::new(),
    };
    HealthFile {
        schema: HealthFile::SCHEMA.to_owned(),
        ok: true,
        vips: vec![vip("floor"), vip("aware")],
        backends: vec![BackendHealth {
            address: "127.0.0.1:3".to_owned(),
            ok: true,
            models: vec!["m".to_owned()],
            max_model_len: None,
            detail: String::new(),
        }],
    }
}

fn probe(arm: &str) -> ProbeFile {
    ProbeFile {
        schema: ProbeFile::SCHEMA.to_owned(),
        arm: arm.to_owned(),
        seconds: 10.0,
        requests: 100,
        completed: 100,
        concentration: BTreeMap::from([("backend".to_owned(), Concentration::Idle)]),
        gateway: gateway(arm, 60.0, 40.0),
    }
}

/// Writes the evidence as a run directory.
pub(crate) fn write(evidence: &Evidence, root: &Path) {
    let dir = RunDir::new(root);
    std::fs::write(dir.file("campaign.toml"), evidence.campaign.bytes()).unwrap();
    std::fs::write(dir.file("trace.jsonl"), TRACE).unwrap();
    write_json(&dir.file("manifest.json"), &evidence.manifest).unwrap();
    write_json(&dir.file("slo.json"), &evidence.slo).unwrap();
    write_json(&dir.file("health.json"), &evidence.health).unwrap();
    for (arm, probe) in &evidence.probes {
        write_json(&dir.probe(arm), probe).unwrap();
    }
    if let Some(rows) = &evidence.readiness {
        lines(&dir.file("health.jsonl"), rows);
    }
    for rep in &evidence.repetitions {
        let place = &rep.place;
        let out = dir.repetition(&place.arm, place.rate_rps, place.repetition);
        std::fs::create_dir_all(&out).unwrap();
        lines(&out.join("schedule.jsonl"), &rep.schedule);
        lines(&out.join("requests.jsonl"), &rep.requests);
        lines(&out.join("kernel.jsonl"), &rep.observed[0].rows);
        write_json(&out.join("gateway.json"), &rep.gateway).unwrap();
        rep.run.write(&out.join("run.json")).unwrap();
    }
}

fn lines<T: serde::Serialize>(path: &Path, rows: &[T]) {
    let mut writer = LineWriter::create(path).unwrap();
    rows.iter().for_each(|row| writer.append(row).unwrap());
}

/// A second computation that finds nothing.
pub(crate) struct Agreeing;

impl SecondComputation for Agreeing {
    fn compute(&self, _: &Path) -> Recomputation {
        Recomputation::Agrees
    }
}
