//! From exports to the content of a run directory; nothing is written yet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::trace::TraceError;
use protocol::{Nanos, TraceId};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::error::{ImportError, shape, together};
use super::record::record;
use super::write::{Imported, Repetition};
use super::{Export, ExportedRequest, ExportedRun, Tool};
use crate::campaign::Campaign;
use crate::input::read_regular;
use crate::records::{
    Pace, RequestRecord, RunRecord, ScheduleRecord, Versioned as _, schedule_sha256, sha256_hex,
};
use crate::replay::Connections;
use crate::rundir::{ImportFile, ImportedFile, Lack, LackEntry, Manifest, cell_name};
use crate::schedule::length_ns;
use crate::slo;

/// Files of one arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Exports, in order: their runs are its repetitions.
    pub files: Vec<PathBuf>,
}

/// What counts as good.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// Largest TTFT, ms.
    pub ttft_ms: f64,
    /// Largest TPOT, ms per token.
    pub tpot_ms: f64,
    /// Where both come from.
    pub origin: String,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Whose exports these are.
    pub tool: Tool,
    /// Arms; the first is the floor.
    pub arms: Vec<Arm>,
    /// Name of the campaign.
    pub name: String,
    /// Bounds.
    pub slo: Slo,
    /// Good-fraction that a rate must reach.
    pub target: f64,
    /// Accelerators behind each arm.
    pub accelerators: u64,
    /// Offered rate, for exports that name none, requests per second.
    pub rate_rps: Option<f64>,
}

/// Reads every export and makes a run of them.
///
/// # Errors
/// [`ImportError`], which names what is wrong and the mend.
pub fn import(request: &Request) -> Result<Imported, ImportError> {
    import_with(request, &read_regular)
}

/// The same from bytes that `read` gives for a path.
///
/// # Errors
/// As [`import`].
pub fn import_with(
    request: &Request,
    read: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
) -> Result<Imported, ImportError> {
    let mut gathered = Gathered::default();
    for arm in &request.arms {
        for path in &arm.files {
            let bytes =
                read(path).map_err(|cause| ImportError::Read { path: path.to_owned(), cause })?;
            gathered.file(request, &arm.name, path, &bytes)?;
        }
    }
    let text = campaign_text(request, &gathered)?;
    let campaign = Campaign::parse(text.into_bytes(), Path::new("campaign.toml"))?;
    let rows = gathered.repetitions.iter().flat_map(|rep| &rep.schedule);
    let largest = rows.map(|row| row.output_tokens).max().unwrap_or(0);
    let slo = slo::derive(&campaign, largest, None, None)?;
    let manifest = manifest(request, &campaign, &gathered);
    let import = ImportFile {
        schema: ImportFile::SCHEMA.to_owned(),
        tool: request.tool.name().to_owned(),
        tool_version: gathered.tool_version,
        shape: request.tool.shape().to_owned(),
        files: gathered.files,
        lacks: gathered
            .lacks
            .into_iter()
            .map(|(evidence, why)| LackEntry { evidence, why })
            .collect(),
    };
    Ok(Imported { campaign, slo, manifest, import, repetitions: gathered.repetitions })
}

#[derive(Default)]
struct Gathered {
    tool_version: Option<String>,
    model: Option<String>,
    files: Vec<ImportedFile>,
    lacks: BTreeMap<Lack, String>,
    repetitions: Vec<Repetition>,
    /// Repetitions so far, by cell.
    counts: BTreeMap<String, u32>,
    rates: Vec<f64>,
}

impl Gathered {
    fn file(
        &mut self,
        request: &Request,
        arm: &str,
        path: &Path,
        bytes: &[u8],
    ) -> Result<(), ImportError> {
        let Export { tool_version, runs } = request.tool.decode(bytes, path)?;
        if let (Some(one), Some(other)) = (&self.tool_version, &tool_version)
            && one != other
        {
            let problem =
                format!("{}: written by version {other}, others by {one}", path.display());
            return Err(together(problem, "compare runs of one version of the tool"));
        }
        self.tool_version = self.tool_version.take().or(tool_version);
        let mut places = Vec::new();
        for run in &runs {
            places.push(self.run(request, arm, path, run)?);
        }
        self.files.push(ImportedFile {
            path: path.to_owned(),
            sha256: sha256_hex(bytes),
            repetitions: places,
        });
        Ok(())
    }

    /// Gives the place of the repetition.
    fn run(
        &mut self,
        request: &Request,
        arm: &str,
        path: &Path,
        run: &ExportedRun,
    ) -> Result<String, ImportError> {
        let rate = rate(request.rate_rps, run, path)?;
        self.same_model(run, path)?;
        for lack in Lack::OF_EVERY_EXPORT.iter().chain(&run.lacks) {
            self.lacks.entry(*lack).or_insert_with(|| lack.why().to_owned());
        }
        if !self.rates.iter().any(|known| known.total_cmp(&rate).is_eq()) {
            self.rates.push(rate);
        }
        let cell = cell_name(arm, rate);
        let count = self.counts.entry(cell.clone()).or_default();
        *count += 1;
        let repetition = repetition(arm, rate, *count, &run.requests, path)?;
        self.repetitions.push(repetition);
        Ok(format!("{cell}/rep{count}"))
    }

    fn same_model(&mut self, run: &ExportedRun, path: &Path) -> Result<(), ImportError> {
        if let (Some(one), Some(other)) = (&self.model, &run.model)
            && one != other
        {
            let problem = format!("{}: model {other}, others are of {one}", path.display());
            return Err(together(problem, "import runs of one model"));
        }
        if self.model.is_none() {
            self.model.clone_from(&run.model);
        }
        Ok(())
    }
}

/// The rate that the export names, or else the one of the command line; checked against the instants.
fn rate(asked: Option<f64>, run: &ExportedRun, path: &Path) -> Result<f64, ImportError> {
    let rate = match (run.rate_rps, asked) {
        (Some(rate), None) => rate,
        (Some(rate), Some(asked)) if rate.total_cmp(&asked).is_eq() => rate,
        (Some(rate), Some(asked)) => {
            let problem = format!("its rate is {rate} rps, --rate says {asked}");
            return Err(shape(path, problem, "leave --rate out"));
        }
        (None, Some(asked)) => asked,
        (None, None) => {
            let problem = "the export names no offered rate";
            return Err(shape(path, problem, "add `--rate R`, the rate that was asked for"));
        }
    };
    held(rate, run, path).map(|()| rate)
}

/// Seen from first to last send, another order of rate is another unit or another number.
const RATE_BAND: f64 = 3.0;
/// Fewer sends tell no rate.
const LEAST_SENDS: usize = 10;

fn held(rate: f64, run: &ExportedRun, path: &Path) -> Result<(), ImportError> {
    let planned = || run.requests.iter().map(|request| request.planned_ns);
    let (Some(first), Some(last)) = (planned().min(), planned().max()) else { return Ok(()) };
    let seen = (run.requests.len() - 1) as f64 * 1e9 / (last - first).max(1) as f64;
    if run.requests.len() < LEAST_SENDS || (rate / RATE_BAND..rate * RATE_BAND).contains(&seen) {
        return Ok(());
    }
    let problem = format!("offered rate {rate} rps, but its requests began at {seen:.2} rps");
    Err(shape(path, problem, "name the rate that was asked for, and times as the tool wrote them"))
}

fn repetition(
    arm: &str,
    rate_rps: f64,
    number: u32,
    requests: &[ExportedRequest],
    path: &Path,
) -> Result<Repetition, ImportError> {
    let mut sorted: Vec<&ExportedRequest> = requests.iter().collect();
    sorted.sort_by_key(|request| (request.planned_ns, request.sent_ns));
    let start = sorted.first().map_or(0, |request| request.planned_ns);
    let length_ns = length_ns(sorted.len(), rate_rps)
        .map_err(|cause| shape(path, cause.to_string(), "name another rate"))?;
    let ids = TraceIds::of(&sorted);
    let mut schedule = Vec::new();
    let mut records = Vec::new();
    for (index, request) in (0_u64..).zip(sorted) {
        let trace_id = ids
            .of_request(index)
            .map_err(|cause| shape(path, cause.to_string(), "import it anew"))?;
        schedule.push(ScheduleRecord {
            schema: ScheduleRecord::SCHEMA.to_owned(),
            index,
            row: index,
            planned_offset_ns: request.planned_ns - start,
            input_tokens: request.prompt_tokens,
            output_tokens: request.completion_tokens.unwrap_or(0),
            trace_id: Some(trace_id),
        });
        records.push(record(index, trace_id, request));
    }
    let run = run_record((arm, rate_rps, number), start, length_ns, &schedule, &records)?;
    Ok(Repetition { run, schedule, records })
}

/// Ids follow from the instants, so that a run that is imported twice is seen to be a copy.
struct TraceIds([u8; 32]);

impl TraceIds {
    fn of(requests: &[&ExportedRequest]) -> Self {
        let mut hash = Sha256::new();
        for request in requests {
            let instants = [Some(request.sent_ns), request.first_token_ns, request.last_token_ns];
            instants.iter().for_each(|it| hash.update(it.unwrap_or(0).to_le_bytes()));
        }
        Self(hash.finalize().into())
    }

    fn of_request(&self, index: u64) -> Result<TraceId, TraceError> {
        let digest =
            Sha256::new().chain_update(self.0).chain_update(index.to_le_bytes()).finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        // All zeros is no id.
        bytes[0] |= 1;
        TraceId::new(bytes)
    }
}

fn run_record(
    (arm, rate_rps, repetition): (&str, f64, u32),
    start: u64,
    schedule_length_ns: u64,
    schedule: &[ScheduleRecord],
    records: &[RequestRecord],
) -> Result<RunRecord, ImportError> {
    let mut pace = Pace::default();
    records.iter().for_each(|row| pace.add(row.planned_ns, row.dispatched_ns));
    let figures = pace.figures(records.len(), schedule_length_ns);
    let window_start_ns = Nanos::new(start);
    Ok(RunRecord {
        schema: RunRecord::SCHEMA.to_owned(),
        arm: arm.to_owned(),
        rate_rps,
        repetition,
        schedule_sha256: schedule_sha256(schedule.iter().cloned())?,
        salt: None,
        window_start_ns,
        window_end_ns: records.iter().map(|row| row.end_ns).max().unwrap_or(window_start_ns),
        schedule_length_ns,
        attempted: records.len() as u64,
        dispatched: figures.dispatched,
        offered_rps: figures.offered_rps,
        achieved_rps: figures.achieved_rps,
        lag_p50_ns: figures.lag_p50_ns,
        lag_p99_ns: figures.lag_p99_ns,
        lag_max_ns: figures.lag_max_ns,
        connection_mode: Connections::Fresh,
        connections: 0,
        coalesced_reads: 0,
        stamp_fallbacks: 0,
        clock_steps: 0,
        interrupted: false,
        oversized_bodies: 0,
        burstiness: None,
        agents: Vec::new(),
    })
}

#[derive(Serialize)]
struct CampaignText<'a> {
    name: &'a str,
    seed: u64,
    run_dir: &'a str,
    backend: [(); 0],
    imported: BTreeMap<&'a str, &'a str>,
    trace: BTreeMap<&'a str, &'a str>,
    request: BTreeMap<&'a str, &'a str>,
    slo: SloText<'a>,
    load: LoadText<'a>,
    arm: Vec<ArmText<'a>>,
}

#[derive(Serialize)]
struct SloText<'a> {
    target: f64,
    fixed: FixedText<'a>,
}

#[derive(Serialize)]
struct FixedText<'a> {
    ttft_ms: f64,
    tpot_ms: f64,
    origin: &'a str,
}

#[derive(Serialize)]
struct LoadText<'a> {
    rates_rps: &'a [f64],
    arrivals: &'a str,
}

#[derive(Serialize)]
struct ArmText<'a> {
    name: &'a str,
    floor: bool,
    vip: String,
    accelerators: u64,
}

/// The campaign that the exports stand for. Its VIPs are names that no host has (RFC 2606): nobody knows what was asked.
fn campaign_text(request: &Request, gathered: &Gathered) -> Result<String, ImportError> {
    let arms = request.arms.iter().enumerate().map(|(nth, arm)| ArmText {
        name: &arm.name,
        floor: nth == 0,
        vip: format!("http://arm-{}.imported.invalid", nth + 1),
        accelerators: request.accelerators,
    });
    let mut rates = gathered.rates.clone();
    rates.sort_by(f64::total_cmp);
    let slo = &request.slo;
    let text = CampaignText {
        name: &request.name,
        seed: 0,
        run_dir: ".",
        backend: [],
        imported: BTreeMap::from([("tool", request.tool.name())]),
        trace: BTreeMap::from([("path", "trace.jsonl")]),
        request: BTreeMap::from([("model", gathered.model.as_deref().unwrap_or("not recorded"))]),
        slo: SloText {
            target: request.target,
            fixed: FixedText { ttft_ms: slo.ttft_ms, tpot_ms: slo.tpot_ms, origin: &slo.origin },
        },
        load: LoadText { rates_rps: &rates, arrivals: "trace" },
        arm: arms.collect(),
    };
    toml::to_string(&text).map_err(|cause| {
        together(format!("no campaign can be written: {cause}"), "name plain numbers and words")
    })
}

fn manifest(request: &Request, campaign: &Campaign, gathered: &Gathered) -> Manifest {
    let schedules = gathered.repetitions.iter().map(|rep| {
        let cell = cell_name(&rep.run.arm, rep.run.rate_rps);
        (format!("{cell}/rep{}", rep.run.repetition), rep.run.schedule_sha256.clone())
    });
    Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        name: request.name.clone(),
        campaign_path: "campaign.toml".to_owned(),
        campaign_sha256: sha256_hex(campaign.bytes()),
        trace_source_sha256: sha256_hex(b""),
        trace_sha256: sha256_hex(b""),
        trace_origin: None,
        schedules: schedules.collect(),
        fleet_fingerprint: "not recorded".to_owned(),
        goodput_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: "not recorded".to_owned(),
        without_agent: false,
        overrides: Vec::new(),
    }
}
