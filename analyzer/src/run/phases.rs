//! The phases, in order.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::RunError;
use super::baseline;
use super::cell::{Bench, Cell, inflight_file};
use super::finish::{Judged, analyze_dir};
use super::manifest::manifest;
use super::order::order;
use super::prepare::{Arm, Existing, Prepared, RunOptions};
use super::reporter::{Reporter, Step};
use crate::agent_client::Agent;
use crate::analyze::{CellAnalysis, analyze};
use crate::campaign::{Campaign, Comparison};
use crate::clock::{Clock, SystemClock};
use crate::evidence::{HealthFile, load};
use crate::health::{Readiness, ReadinessTarget, Vip, check};
use crate::probe::concentration;
use crate::records::{Versioned as _, read_lines};
use crate::rundir::{
    InflightRow, Manifest, ProbeFile, RunDir, SloFile, TargetKind, read_json, read_optional,
    remove_run, write_json,
};
use crate::verify::CrosscheckProgram;

/// Runs a campaign to its verdict.
///
/// # Errors
/// [`RunError`]. Before phase 0 has passed nothing is written; what was measured later stays.
pub fn run(
    campaign: &Path,
    options: RunOptions,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<Judged, RunError> {
    let prepared = Prepared::new(Campaign::load(campaign)?, options)?;
    let clock = SystemClock;
    let (agents, slo) = preregister(&prepared, &clock, stop, reporter)?;
    let bench = Bench { prepared: &prepared, agents: &agents, slo: &slo, clock: &clock, stop };
    let path = prepared.dir.file("health.jsonl");
    let watch: Arc<dyn Clock> = Arc::new(clock);
    let readiness = Readiness::start(&path, readiness_targets(&prepared), &watch)?;
    let measured = probes(&bench, reporter).and_then(|()| cells(&bench, reporter));
    readiness.finish()?;
    measured?;
    reporter.phase("phases 4 and 5: analyze and verify");
    analyze_dir(prepared.dir.root(), &CrosscheckProgram)
}

/// Phase 0 alone, without writing anything.
///
/// # Errors
/// [`RunError`] for a bad campaign; a service that fails is in the result.
pub fn check_health(campaign: &Path) -> Result<HealthFile, RunError> {
    let prepared = Prepared::new(Campaign::load(campaign)?, RunOptions::anywhere())?;
    asked(&prepared)
}

/// Phases 0 and 2 alone, with the SLO that the probe's deadline needs.
///
/// # Errors
/// [`RunError`].
pub fn probe_only(
    campaign: &Path,
    options: RunOptions,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<Vec<ProbeFile>, RunError> {
    let prepared = Prepared::new(Campaign::load(campaign)?, options)?;
    let clock = SystemClock;
    let (agents, slo) = preregister(&prepared, &clock, stop, reporter)?;
    let bench = Bench { prepared: &prepared, agents: &agents, slo: &slo, clock: &clock, stop };
    probes(&bench, reporter)?;
    let arms = prepared.arms.iter().map(|arm| prepared.dir.probe(&arm.keys.name));
    Ok(arms.map(|path| read_json(&path)).collect::<Result<_, _>>()?)
}

/// Phase 0, and all that must be fixed before the first measured request.
fn preregister<'a>(
    prepared: &'a Prepared,
    clock: &SystemClock,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<(Vec<Agent<'a>>, SloFile), RunError> {
    let agents = prepared.agents()?;
    advise(prepared, reporter);
    reporter.phase("phase 0: health");
    let health = health(prepared)?;
    check_agents(prepared, &agents)?;
    register(prepared, &health, reporter)?;
    let slo = slo(prepared, clock, stop, reporter)?;
    Ok((agents, slo))
}

/// What a person would want to know before hours of measuring, and not after.
fn advise(prepared: &Prepared, reporter: &mut dyn Reporter) {
    let load = &prepared.campaign.keys().load;
    let (planned, needed) = (prepared.repetitions(), load.published_repetitions());
    if let Some(asked) = prepared.options.repetitions.filter(|asked| *asked > planned) {
        let most = load.max_repetitions;
        reporter
            .note(&format!("--repetitions {asked} is above max_repetitions: {most} are measured"));
    }
    if planned < needed {
        reporter.note(&format!(
            "{planned} repetitions of each cell; a verdict to publish needs {needed}: expect ADD_REPLICATES"
        ));
    }
}

fn health(prepared: &Prepared) -> Result<HealthFile, RunError> {
    for arm in &prepared.arms {
        let unreachable = |source| {
            RunError::Unhealthy(format!(
                "unreachable VIP {} of arm {}: {source}",
                arm.keys.vip, arm.keys.name
            ))
        };
        arm.target.check().map_err(unreachable)?;
    }
    let health = asked(prepared)?;
    if health.ok { Ok(health) } else { Err(RunError::Unhealthy(failures(&health))) }
}

fn asked(prepared: &Prepared) -> Result<HealthFile, RunError> {
    let backends = &prepared.campaign.keys().backend;
    let addresses: Vec<String> = backends.iter().map(|backend| backend.address.clone()).collect();
    let rate = prepared.campaign.rates().first().copied().unwrap_or(1.0);
    let ids = prepared.schedule("health", rate, 0, None)?;
    let vips: Vec<Vip<'_>> = prepared
        .arms
        .iter()
        .zip(ids.requests().iter().cycle())
        .map(|(arm, planned)| Vip {
            arm: &arm.keys.name,
            url: &arm.keys.vip,
            target: &arm.target,
            trace_id: planned.trace_id,
        })
        .collect();
    let (control, bearer) = (&prepared.control, prepared.bearer.as_ref());
    Ok(check(control, &SystemClock, &vips, &addresses, &prepared.body, bearer)?)
}

fn failures(health: &HealthFile) -> String {
    let vips = health.vips.iter().filter(|vip| !vip.ok).map(|vip| {
        let (arm, url, class, detail) = (&vip.arm, &vip.vip, &vip.class, &vip.detail);
        format!("VIP {url} of arm {arm} did not complete a request ({class}: {detail})")
    });
    let backends = health.backends.iter().filter(|backend| !backend.ok);
    let backends =
        backends.map(|backend| format!("backend {}: {}", backend.address, backend.detail));
    let all: Vec<String> = vips.chain(backends).collect();
    format!("{}; bring them up before measuring", all.join("; "))
}

fn check_agents(prepared: &Prepared, agents: &[Agent<'_>]) -> Result<(), RunError> {
    for agent in agents {
        agent
            .status(&prepared.control)
            .map_err(|source| RunError::Agent { name: agent.name().to_owned(), source })?;
    }
    Ok(())
}

/// Makes the run directory and puts down what is pre-registered, or checks that it still holds.
fn register(
    prepared: &Prepared,
    health: &HealthFile,
    reporter: &mut dyn Reporter,
) -> Result<(), RunError> {
    let (dir, root) = (&prepared.dir, prepared.dir.root());
    let manifest = manifest(prepared, health)?;
    let resumed =
        prepared.options.existing == Existing::Resume && dir.file("manifest.json").exists();
    if resumed {
        let then: Manifest = read_json(&dir.file("manifest.json"))?;
        let what = manifest.differences(&then);
        reporter.note("continuing: finished repetitions are kept");
        return match what.is_empty() {
            true => Ok(()),
            false => Err(RunError::ResumeDiffers { path: root.to_owned(), what }),
        };
    }
    if prepared.options.existing == Existing::Resume {
        reporter.note(&format!("nothing to continue in {}: a run begins", root.display()));
    }
    if root.exists() {
        remove_run(root).map_err(RunError::io(root))?;
    }
    put_down(prepared, health, &manifest)
}

/// The directory appears with everything in it, or not at all: half of it would be nobody's to continue
/// or to remove.
fn put_down(prepared: &Prepared, health: &HealthFile, manifest: &Manifest) -> Result<(), RunError> {
    let root = prepared.dir.root();
    let mut name = root.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = RunDir::new(&root.with_file_name(name));
    if partial.root().exists() {
        remove_run(partial.root()).map_err(RunError::io(partial.root()))?;
    }
    std::fs::create_dir_all(partial.root()).map_err(RunError::io(partial.root()))?;
    for (name, bytes) in
        [("campaign.toml", prepared.campaign.bytes()), ("trace.jsonl", &prepared.trace_lines)]
    {
        let path = partial.file(name);
        std::fs::write(&path, bytes).map_err(RunError::io(&path))?;
    }
    write_json(&partial.file("health.json"), health)?;
    write_json(&partial.file("manifest.json"), manifest)?;
    std::fs::rename(partial.root(), root).map_err(RunError::io(root))
}

fn slo(
    prepared: &Prepared,
    clock: &dyn Clock,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<SloFile, RunError> {
    let path = prepared.dir.file("slo.json");
    if let Some(slo) = read_optional(&path)? {
        return baseline::confirmed(prepared, slo);
    }
    let partial = prepared.dir.file("baseline");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(RunError::io(&partial))?;
    }
    reporter.phase("SLO");
    let slo = baseline::slo(prepared, clock, stop, reporter)?;
    write_json(&path, &slo)?;
    reporter.note(&format!(
        "SLO: TTFT {:.1} ms, TPOT {:.3} ms, deadline {:.0} ms",
        slo.ttft_ns as f64 / 1e6,
        slo.tpot_ns as f64 / 1e6,
        slo.deadline_ns as f64 / 1e6
    ));
    if let Some(text) = tighter_lag(prepared, &slo) {
        reporter.note(&text);
    }
    Ok(slo)
}

/// The bound on the client's lag when the SLO makes it stricter than what the campaign says.
fn tighter_lag(prepared: &Prepared, slo: &SloFile) -> Option<String> {
    let asked_ms = prepared.campaign.keys().thresholds.client_lag_p99_ms;
    let bound_ms = prepared.campaign.keys().thresholds.client_lag_bound_ns(slo.ttft_ns) / 1e6;
    (bound_ms < asked_ms).then(|| {
        format!(
            "client lag: p99 may be {bound_ms:.3} ms, 1 % of the TTFT SLO, not the {asked_ms} ms of [thresholds]"
        )
    })
}

fn readiness_targets(prepared: &Prepared) -> Vec<ReadinessTarget> {
    let vips = prepared.arms.iter().map(|arm| ReadinessTarget {
        kind: TargetKind::Vip,
        name: arm.keys.vip.clone(),
        url: format!("{}/v1/models", arm.keys.vip.trim_end_matches('/')),
        token: prepared.token.clone(),
    });
    let backends = prepared.campaign.keys().backend.iter().map(|backend| ReadinessTarget {
        kind: TargetKind::Backend,
        name: backend.address.clone(),
        url: format!("http://{}/v1/models", backend.address),
        token: None,
    });
    vips.chain(backends).collect()
}

/// Phase 2 for every arm that lacks it.
fn probes(bench: &Bench<'_>, reporter: &mut dyn Reporter) -> Result<(), RunError> {
    let prepared = bench.prepared;
    reporter.phase("phase 2: mechanism probe");
    for (index, arm) in prepared.arms.iter().enumerate() {
        let path = prepared.dir.probe(&arm.keys.name);
        if path.exists() {
            continue;
        }
        let file = probe(bench, arm, (index + 1, prepared.arms.len()), reporter)?;
        for mismatch in &file.gateway.mismatches {
            reporter.note(&format!("MODE_MISMATCH in arm {}: {mismatch}", arm.keys.name));
        }
        write_json(&path, &file)?;
    }
    Ok(())
}

fn probe(
    bench: &Bench<'_>,
    arm: &Arm,
    (number, of): (usize, usize),
    reporter: &mut dyn Reporter,
) -> Result<ProbeFile, RunError> {
    let prepared = bench.prepared;
    let keys = prepared.campaign.keys();
    let seconds = prepared.options.probe_seconds.unwrap_or(keys.probe.seconds);
    let rows = prepared.trace.rows().len();
    let lowest = prepared.campaign.rates().first().copied().unwrap_or(1.0);
    let rate = keys.probe.rate_rps.unwrap_or_else(|| lowest.min(rows as f64 / seconds));
    let requests = burst(rate, seconds, rows);
    let schedule =
        prepared.schedule(&format!("{}-probe", arm.keys.name), rate, 0, Some(requests))?;
    let label = format!("{} probe", arm.keys.name);
    let out = prepared.dir.root().join("probe").join(&arm.keys.name);
    let cell = Cell { arm, schedule: &schedule, repetition: 0, label: &label, out: out.clone() };
    let step = Step { label: label.clone(), number, of, seconds_left: seconds };
    let measured = bench.measure(&cell, reporter.step(&step, requests as u64).as_mut())?;
    interrupted(bench)?;
    let several = bench.agents.len() > 1;
    let mut rows: Vec<InflightRow> = Vec::new();
    for agent in bench.agents {
        let path = out.join(inflight_file(agent.name(), several));
        if path.exists() {
            rows.extend(read_lines(&path)?.records);
        }
    }
    let backends: Vec<(String, String)> = keys
        .backend
        .iter()
        .map(|backend| (backend.address.clone(), backend.role.clone()))
        .collect();
    Ok(ProbeFile {
        schema: ProbeFile::SCHEMA.to_owned(),
        arm: arm.keys.name.clone(),
        seconds,
        requests: measured.summary.run.attempted,
        completed: measured.summary.delivered(),
        concentration: concentration(&rows, &backends, !rows.is_empty()),
        gateway: measured.gateway,
    })
}

/// Requests of a burst, at least one and at most all rows.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive and cut to the number of rows"
)]
fn burst(rate: f64, seconds: f64, rows: usize) -> usize {
    ((rate * seconds).round() as usize).clamp(1, rows)
}

/// Phase 3: one warm-up per arm, then repetitions outermost.
fn cells(bench: &Bench<'_>, reporter: &mut dyn Reporter) -> Result<(), RunError> {
    reporter.phase("phase 3: replay");
    measure_all(bench, &todo(bench.prepared), reporter)?;
    let rounds = match bench.prepared.options.single_pass {
        true => 0,
        false => bench.prepared.campaign.keys().load.replace_invalid,
    };
    for _ in 0..rounds {
        let lacking = lacking(bench.prepared)?;
        if lacking.is_empty() {
            break;
        }
        reporter.note(&format!("making up for {} discarded repetitions", lacking.len()));
        measure_all(bench, &lacking, reporter)?;
    }
    Ok(())
}

fn measure_all(
    bench: &Bench<'_>,
    todo: &[Todo],
    reporter: &mut dyn Reporter,
) -> Result<(), RunError> {
    let size = bench.prepared.trace.rows().len();
    let mut left: f64 = todo.iter().map(|cell| size as f64 / cell.rate).sum();
    for (index, next) in todo.iter().enumerate() {
        let prepared = bench.prepared;
        let arm = &prepared.arms[next.arm];
        let warmup =
            (next.repetition == 0).then(|| prepared.campaign.keys().warmup.requests.min(size));
        let schedule = prepared.schedule(&arm.keys.name, next.rate, next.repetition, warmup)?;
        let out = prepared.dir.repetition(&arm.keys.name, next.rate, next.repetition);
        let label = crate::analyze::place(&arm.keys.name, Some(next.rate), Some(next.repetition));
        let (number, of) = (index + 1, todo.len());
        let step = Step { label, number, of, seconds_left: left };
        let requests = schedule.requests().len() as u64;
        let cell = Cell {
            arm,
            schedule: &schedule,
            repetition: next.repetition,
            label: &arm.keys.name,
            out,
        };
        bench.measure(&cell, reporter.step(&step, requests).as_mut())?;
        interrupted(bench)?;
        left -= size as f64 / next.rate;
    }
    Ok(())
}

fn interrupted(bench: &Bench<'_>) -> Result<(), RunError> {
    if bench.stop.load(Ordering::Relaxed) { Err(bench.prepared.interrupted()) } else { Ok(()) }
}

/// A cell that is still to be measured.
struct Todo {
    arm: usize,
    rate: f64,
    repetition: u32,
}

fn todo(prepared: &Prepared) -> Vec<Todo> {
    let rates = prepared.campaign.rates();
    let lowest = rates.first().copied().unwrap_or(1.0);
    let arms = prepared.arms.len();
    let seed = prepared.campaign.keys().seed;
    let warmups = (0..arms).map(|arm| Todo { arm, rate: lowest, repetition: 0 });
    let measured = (1..=prepared.repetitions()).flat_map(|repetition| {
        let order = order(arms, seed, repetition);
        rates.iter().flat_map(move |rate| {
            let cells: Vec<Todo> =
                order.iter().map(|arm| Todo { arm: *arm, rate: *rate, repetition }).collect();
            cells
        })
    });
    warmups.chain(measured).filter(|cell| !recorded(prepared, cell)).collect()
}

/// One more repetition for every cell with fewer valid ones than this run is to have. Paired comparison
/// needs whole blocks, so there a rate that lacks one is repeated for every arm.
fn lacking(prepared: &Prepared) -> Result<Vec<Todo>, RunError> {
    let analysis = analyze(&load(&prepared.dir)?);
    let keys = prepared.campaign.keys();
    let lacks = |cell: &CellAnalysis| cell.valid < prepared.repetitions() as usize;
    let paired = keys.statistics.comparison == Comparison::Paired;
    let mut todo = Vec::new();
    for (place, rate) in prepared.campaign.rates().into_iter().enumerate() {
        let cells: Vec<&CellAnalysis> =
            analysis.arms.iter().filter_map(|arm| arm.cells.get(place)).collect();
        let block = paired && cells.iter().any(|cell| lacks(cell));
        for (arm, cell) in cells.iter().enumerate().filter(|(_, cell)| block || lacks(cell)) {
            let last = cell.repetitions.iter().map(|rep| rep.repetition).max().unwrap_or(0);
            if last < keys.load.max_repetitions {
                todo.push(Todo { arm, rate, repetition: last + 1 });
            }
        }
    }
    Ok(todo)
}

/// Whole, by its `run.json`. An interrupted repetition has one too, and is measured again.
fn recorded(prepared: &Prepared, cell: &Todo) -> bool {
    let name = &prepared.arms[cell.arm].keys.name;
    let path = prepared.dir.repetition(name, cell.rate, cell.repetition).join("run.json");
    crate::records::RunRecord::read(&path).is_ok_and(|run| !run.interrupted)
}
