//! A run directory of a large campaign: two arms, two rates, five repetitions, one agent that saw both legs.
//! Its records say what a clean run says, so that no gate ends the work early.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::iter;
use std::path::Path;

use anyhow::Context as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, LogNormal};
use serde::Serialize;
use serde_json::{Value, json};

use analyzer::outcome::Class;
use analyzer::prompt::Salt;
use analyzer::records::{
    FramingVerdict, Pace, RequestRecord, ScheduleRecord, StampSource, TokensSource, Versioned as _,
    schedule_sha256, sha256_hex,
};
use analyzer::rundir::{KernelRow, Leg};
use protocol::{Nanos, TraceId};

use crate::phases;

const SEED: u64 = 7;
pub(crate) const ARMS: [&str; 2] = ["floor", "aware"];
const RATES: [u64; 2] = [100, 200];
const REPETITIONS: u64 = 5;
pub(crate) const START_NS: u64 = 1_000_000_000;
/// Planned to dispatched, and planned to sent.
const DISPATCHED_NS: u64 = 10_000;
const SENT_NS: u64 = 1_000_000;
const TOKENS: u64 = 11;
/// Of a request on one leg.
const SEGMENTS: u64 = 20;
const TRACE: &str = "{}\n";

/// Requests of every repetition.
pub(crate) struct Plan {
    per_repetition: u64,
}

impl Plan {
    pub(crate) fn new(quick: bool) -> Self {
        Self { per_repetition: if quick { 2_500 } else { 50_000 } }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.per_repetition * REPETITIONS * (ARMS.len() * RATES.len()) as u64
    }

    /// Seconds that the windows of the lowest rate last, with time to drain.
    fn longest_s(&self) -> u64 {
        self.per_repetition * 3 / RATES[0] / 2 + 10
    }

    fn campaign(&self) -> String {
        let arms: String = ARMS
            .iter()
            .zip(1..)
            .map(|(name, port)| {
                let floor = *name == "floor";
                format!(
                    "[[arm]]\nname = \"{name}\"\nfloor = {floor}\nvip = \"http://127.0.0.1:{port}\"\n\
                     accelerators = 2\n"
                )
            })
            .collect();
        format!(
            "name = \"bench\"\nseed = {SEED}\nrun_dir = \"run\"\n[trace]\npath = \"trace.jsonl\"\n\
             [request]\nmodel = \"m\"\n[slo]\n\
             fixed = {{ ttft_ms = 300.0, tpot_ms = 20.0, origin = \"bench\" }}\n\
             [load]\nrates_rps = {RATES:?}\narrivals = \"poisson\"\n{arms}\
             [[backend]]\naddress = \"127.0.0.1:3\"\ncapacity_tokens_per_s = 1000\n\
             [[agent]]\nname = \"host\"\nurl = \"http://127.0.0.1:5\"\nrole = \"host\"\n"
        )
    }
}

/// Writes the run directory; answers its size in bytes.
pub(crate) fn write(plan: &Plan, root: &Path) -> anyhow::Result<u64> {
    let campaign = plan.campaign();
    fs::write(root.join("campaign.toml"), &campaign)?;
    fs::write(root.join("trace.jsonl"), TRACE)?;
    let mut schedules = serde_json::Map::new();
    for rate in RATES {
        for repetition in 1..=REPETITIONS {
            let offsets = offsets(rate, repetition, plan.per_repetition);
            let hash = schedule_sha256(scheduled(&offsets))?;
            for arm in ARMS {
                let cell = Cell { arm, rate, repetition, offsets: &offsets, hash: &hash };
                cell.write(root).with_context(|| format!("{arm} r{rate} rep{repetition}"))?;
            }
            schedules.insert(format!("r{rate}/rep{repetition}"), Value::String(hash));
        }
    }
    let manifest = json!({
        "schema": "goodput.manifest/1", "name": "bench", "campaign_path": "campaign.toml",
        "campaign_sha256": sha256_hex(campaign.as_bytes()),
        "trace_source_sha256": sha256_hex(TRACE.as_bytes()),
        "trace_sha256": sha256_hex(TRACE.as_bytes()), "trace_origin": null, "schedules": schedules,
        "fleet_fingerprint": "bench", "goodput_version": "bench", "kernel": "bench",
        "without_agent": false, "overrides": [],
    });
    fs::write(root.join("manifest.json"), serde_json::to_vec(&manifest)?)?;
    let slo = json!({
        "schema": "goodput.slo/1", "ttft_ns": 300_000_000_u64, "tpot_ns": 20_000_000_u64,
        "deadline_ns": 1_000_000_000_u64, "origin": {"kind": "fixed", "origin": "bench"},
    });
    fs::write(root.join("slo.json"), serde_json::to_vec(&slo)?)?;
    phases::write(root, plan.longest_s())?;
    size(root)
}

fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}

/// Poisson arrivals.
fn offsets(rate: u64, repetition: u64, count: u64) -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(rate * 1_000 + repetition);
    let mut at = 0.0;
    (0..count)
        .map(|_| {
            at += -rng.random::<f64>().max(f64::MIN_POSITIVE).ln() / rate as f64 * 1e9;
            nanoseconds(at)
        })
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "hours in nanoseconds, never negative"
)]
fn nanoseconds(at: f64) -> u64 {
    at as u64
}

fn scheduled(offsets: &[u64]) -> impl Iterator<Item = ScheduleRecord> {
    offsets.iter().zip(0..).map(|(offset, index)| ScheduleRecord {
        schema: ScheduleRecord::SCHEMA.to_owned(),
        index,
        row: index,
        planned_offset_ns: *offset,
        input_tokens: Some(100),
        output_tokens: TOKENS,
        trace_id: None,
    })
}

struct Cell<'a> {
    arm: &'static str,
    rate: u64,
    repetition: u64,
    offsets: &'a [u64],
    hash: &'a str,
}

impl Cell<'_> {
    fn write(&self, root: &Path) -> anyhow::Result<()> {
        let dir = root.join(format!("{}-r{}/rep{}", self.arm, self.rate, self.repetition));
        fs::create_dir_all(&dir)?;
        let create = |name| fs::File::create(dir.join(name)).map(BufWriter::new);
        let (mut requests, mut kernel) = (create("requests.jsonl")?, create("kernel.jsonl")?);
        let mut schedule = create("schedule.jsonl")?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.rate * 1_000 + self.repetition);
        let median_ms: f64 = if self.arm == "floor" { 190.0 } else { 150.0 };
        let ttft_ms = LogNormal::new(median_ms.ln(), 0.25)?;
        let mut end_ns = START_NS;
        let mut pace = Pace::default();
        for (record, index) in scheduled(self.offsets).zip(0..) {
            let id = self.trace_id(index)?;
            let record = ScheduleRecord { trace_id: Some(id), ..record };
            writeln!(schedule, "{}", serde_json::to_string(&record)?)?;
            let planned = START_NS + record.planned_offset_ns;
            let request = Request {
                planned,
                ttft_ns: nanoseconds(ttft_ms.sample(&mut rng) * 1e6),
                tpot_ns: rng.random_range(8_000_000..14_000_000),
            };
            writeln!(requests, "{}", serde_json::to_string(&request.client(id, index))?)?;
            for leg in [Leg::Client, Leg::Backend] {
                writeln!(kernel, "{}", serde_json::to_string(&request.leg(id, leg))?)?;
            }
            end_ns = end_ns.max(request.end_ns());
            pace.add(Nanos::new(planned), Some(Nanos::new(planned + DISPATCHED_NS)));
        }
        for file in [&mut requests, &mut kernel, &mut schedule] {
            file.flush()?;
        }
        fs::write(dir.join("run.json"), serde_json::to_vec(&self.run(end_ns, pace))?)?;
        Ok(fs::write(dir.join("gateway.json"), serde_json::to_vec(&phases::gateway(self.arm))?)?)
    }

    fn trace_id(&self, index: u64) -> anyhow::Result<TraceId> {
        let name = format!("{} {} {} {index}", self.arm, self.rate, self.repetition);
        Ok(sha256_hex(name.as_bytes())[..32].parse()?)
    }

    #[expect(clippy::cast_possible_truncation, reason = "five repetitions")]
    fn run(&self, end_ns: u64, pace: Pace) -> Value {
        let count = self.offsets.len();
        let length_ns = count as u64 * 1_000_000_000 / self.rate;
        let figures = pace.figures(count, length_ns);
        json!({
            "schema": "goodput.run/1", "arm": self.arm, "rate_rps": self.rate as f64,
            "repetition": self.repetition, "schedule_sha256": self.hash,
            "salt": Salt::derive(SEED, self.arm, self.rate as f64, self.repetition as u32).as_text(),
            "window_start_ns": START_NS, "window_end_ns": end_ns, "schedule_length_ns": length_ns,
            "attempted": count, "dispatched": figures.dispatched,
            "offered_rps": figures.offered_rps, "achieved_rps": figures.achieved_rps,
            "lag_p50_ns": figures.lag_p50_ns, "lag_p99_ns": figures.lag_p99_ns,
            "lag_max_ns": figures.lag_max_ns,
            "connection_mode": "fresh", "connections": count, "coalesced_reads": 0,
            "stamp_fallbacks": 0, "clock_steps": 0, "interrupted": false, "oversized_bodies": 0,
            "burstiness": null,
            "agents": [{
                "name": "host", "url": "http://127.0.0.1:5", "complete": true, "reasons": [],
                "window_id": "1", "observations": 2 * count,
                "counters": {"endpoint_packets": 2 * SEGMENTS * count as u64},
            }],
        })
    }
}

/// A delivered request of [`TOKENS`] tokens.
struct Request {
    planned: u64,
    ttft_ns: u64,
    tpot_ns: u64,
}

impl Request {
    fn first_token_ns(&self) -> u64 {
        self.planned + self.ttft_ns
    }

    fn last_token_ns(&self) -> u64 {
        self.first_token_ns() + (TOKENS - 1) * self.tpot_ns
    }

    fn end_ns(&self) -> u64 {
        self.last_token_ns() + 2_000_000
    }

    fn client(&self, trace_id: TraceId, index: u64) -> RequestRecord {
        let after = |offset: u64| Some(Nanos::new(self.planned + offset));
        let first = after(self.ttft_ns);
        let last = Some(Nanos::new(self.last_token_ns()));
        let done = Some(Nanos::new(self.last_token_ns() + 1_000_000));
        let ttft_ns = i64::try_from(self.ttft_ns).ok();
        RequestRecord {
            schema: RequestRecord::SCHEMA.to_owned(),
            index,
            trace_id,
            conn_id: Some(index),
            conn_request_index: Some(0),
            conn_reused: false,
            retries: 0,
            planned_ns: Nanos::new(self.planned),
            dispatched_ns: after(DISPATCHED_NS),
            connected_ns: after(500_000),
            sent_ns: after(SENT_NS),
            first_byte_ns: first,
            head_ns: first,
            first_event_ns: first,
            first_token_ns: first,
            first_content_token_ns: first,
            last_token_ns: last,
            done_ns: done,
            framing_end_ns: done,
            end_ns: Nanos::new(self.end_ns()),
            stamp_source: Some(StampSource::Kernel),
            coalesced_read: Some(false),
            token_events: TOKENS,
            completion_tokens: Some(TOKENS),
            prompt_tokens: Some(100),
            cached_tokens: Some(40),
            tokens_from: Some(TokensSource::Usage),
            status: Some(200),
            finish_reason: Some("length".to_owned()),
            retry_after: None,
            response_id: Some(format!("chatcmpl-{trace_id}")),
            framing: FramingVerdict::Valid,
            framing_rule: None,
            framing_offset: None,
            class: Class::Ok,
            detail: String::new(),
            names_server_timeout: false,
            error_event: false,
            unreadable_payload: false,
            export_delivered: None,
            ttft_ns,
            ttft_from_sent_ns: ttft_ns.map(|ttft| ttft - SENT_NS.cast_signed()),
            tpot_ns: Some(self.tpot_ns),
            tpot_undefined: None,
            request_bytes: 400,
            response_bytes: 2_000,
        }
    }

    /// The kernel's view: the client leg 50 us tighter at each end, the backend leg inside it.
    fn leg(&self, trace_id: TraceId, leg: Leg) -> Wire {
        let (endpoint, role, inset, tail) = match leg {
            Leg::Client => ("127.0.0.1:1", "vip", 50_000, 50_000),
            Leg::Backend => ("127.0.0.1:3", "backend", 250_000, 350_000),
        };
        let first = self.first_token_ns() - tail;
        let token_ns = iter::once(first).chain((1..TOKENS).map(|_| self.tpot_ns)).collect();
        let row = KernelRow {
            schema: KernelRow::SCHEMA.to_owned(),
            trace_id: Some(trace_id),
            endpoint: endpoint.to_owned(),
            leg,
            role: Some(role.to_owned()),
            request_end_ns: Some(self.planned + SENT_NS + inset),
            first_token_ns: Some(first),
            last_token_ns: Some(self.last_token_ns() - tail),
            token_events: Some(TOKENS),
            completion_tokens: Some(TOKENS),
            status: Some(200),
            receipt_prefill: None,
            receipt_decode: None,
            framing: Some("valid".to_owned()),
            outcome: Some("ok".to_owned()),
            segments: Some(SEGMENTS),
            adopted: false,
        };
        Wire { row, peer: "127.0.0.1:40000", token_ns, interface: "lo" }
    }
}

/// A row as an agent writes it: with the stamps of all tokens, which analysis passes over.
#[derive(Serialize)]
struct Wire {
    #[serde(flatten)]
    row: KernelRow,
    peer: &'static str,
    token_ns: Vec<u64>,
    interface: &'static str,
}
