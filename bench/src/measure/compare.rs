//! With the agent, with an idle agent, without any, and against tcpdump; interleaved.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::Args;
use super::run::{observed, packet_cost};
use crate::agent::Agent;
use crate::host::{HostCpu, process_cpu_ns, share};
use crate::load::{Outcome, Plan};
use crate::remote::Load;
use crate::report::Report;

/// A rate that leaves both CPUs time: queueing would drown the difference.
const RATE: u64 = 5_000;

fn plan(seconds: u64) -> Plan {
    let (connections, events_per_request) = (50, 10);
    Plan {
        connections,
        events_per_second: RATE,
        seconds,
        event_bytes: 200,
        events_per_request,
        churn: false,
    }
}

/// One run and the host's busy share while it lasted.
struct Run {
    outcome: Outcome,
    busy: f64,
}

/// Runs the load with an agent on `endpoints`, if any.
fn load_with(
    args: &Args,
    watched: impl Fn(&[SocketAddr]) -> Option<Vec<SocketAddr>>,
) -> anyhow::Result<Run> {
    let mut load = Load::prepare(&plan(args.seconds(6, 2)))?;
    let agent =
        watched(&load.ready.endpoints).map(|it| Agent::start(&args.agent, &it)).transpose()?;
    let before = HostCpu::read()?;
    load.begin()?;
    let outcome = load.finish()?;
    let busy = HostCpu::read()?.busy_since(before);
    drop(agent);
    Ok(Run { outcome, busy })
}

/// Measures what the client and the host feel, and the CPU that tcpdump and `read` would cost.
pub(super) fn run(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let unused: SocketAddr = "127.0.0.1:9".parse()?;
    let (mut p50, mut p99, mut points, mut idle_points) = (vec![], vec![], vec![], vec![]);
    for repeat in 1..=args.repeats() {
        eprintln!("with and without the agent, {repeat} of {}", args.repeats());
        let off = load_with(args, |_| None)?;
        let idle = load_with(args, |_| Some(vec![unused]))?;
        let on = load_with(args, |endpoints| Some(endpoints.to_vec()))?;
        p50.push(share(on.outcome.ttft_p50_ns, off.outcome.ttft_p50_ns));
        p99.push(share(on.outcome.ttft_p99_ns, off.outcome.ttft_p99_ns));
        points.push((on.busy - idle.busy) * 100.0);
        idle_points.push((idle.busy - off.busy) * 100.0);
    }
    report.client_ttft_p50_ratio_on_off = report.figure("client_ttft_p50_ratio_on_off", p50);
    report.client_ttft_p99_ratio_on_off = report.figure("client_ttft_p99_ratio_on_off", p99);
    report.host_cpu_points_on_minus_idle = report.figure("host_cpu_points_on_minus_idle", points);
    report.figure("host_cpu_points_idle_minus_off", idle_points);
    against_tcpdump(args, report)
}

fn can_read(agent: &Path) -> bool {
    let mut help = Command::new(agent);
    help.args(["read", "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
    help.status().is_ok_and(|status| status.success())
}

fn against_tcpdump(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    if !can_read(&args.agent) {
        report.notes.push("tcpdump: not compared, this agent has no `read`".to_owned());
        return Ok(());
    }
    let mut pairs = Vec::new();
    for repeat in 1..=args.repeats().min(3) {
        eprintln!("against tcpdump, {repeat}");
        match pair(args)? {
            Some(pair) => pairs.push(pair),
            None => report.notes.push("tcpdump: a run is void, tcpdump dropped packets".to_owned()),
        }
    }
    let ratios = pairs.iter().map(Pair::ratio).collect();
    report.cpu_ratio_vs_tcpdump = report.figure("cpu_ratio_vs_tcpdump", ratios);
    let parts: [(&'static str, Part); 4] = [
        ("pair_agent_ns_per_event", |it| it.agent),
        ("pair_programs_ns_per_event", |it| it.programs),
        ("pair_tcpdump_ns_per_event", |it| it.tcpdump),
        ("pair_read_ns_per_event", |it| it.read),
    ];
    for (name, part) in parts {
        report.figure(name, pairs.iter().map(|it| share(part(it), it.events)).collect());
    }
    Ok(())
}

/// One share of what a pair cost.
type Part = fn(&Pair) -> u64;

/// CPU nanoseconds that the same load costs both ways.
struct Pair {
    events: u64,
    agent: u64,
    /// Run time of its packet programs, which is nobody's CPU time in the kernel's accounts.
    programs: u64,
    tcpdump: u64,
    read: u64,
}

impl Pair {
    fn ratio(&self) -> f64 {
        share(self.agent + self.programs, self.tcpdump + self.read)
    }
}

/// The same load both ways; `None` when tcpdump dropped packets.
fn pair(args: &Args) -> anyhow::Result<Option<Pair>> {
    let mut plan = plan(args.seconds(10, 3));
    plan.events_per_second = 20_000;
    plan.events_per_request = 100;
    plan.connections = 100;
    // Of the kernel's work the programs' run time is the agent's; tcpdump's tap is not charged to it.
    let stats = aya::sys::enable_stats(aya::sys::Stats::RunTime)?;
    let seen = observed(&args.agent, &plan, |_| Ok(()))?;
    drop(stats);
    let (events, agent) = (seen.outcome.events_written, seen.agent_cpu_ns);
    let programs = packet_cost(&seen.programs)?.run_time_ns;
    let folder = std::env::temp_dir().join(format!("goodput-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let other = tcpdump_and_read(args, &plan, &folder);
    std::fs::remove_dir_all(&folder)?;
    Ok(other?.map(|(tcpdump, read)| Pair { events, agent, programs, tcpdump, read }))
}

/// CPU nanoseconds of tcpdump and of `read` on its file.
fn tcpdump_and_read(args: &Args, plan: &Plan, folder: &Path) -> anyhow::Result<Option<(u64, u64)>> {
    let mut load = Load::prepare(plan)?;
    let file = folder.join("capture.pcap");
    let filter = load.ready.endpoints.iter().map(|it| format!("port {}", it.port()));
    let filter = filter.collect::<Vec<_>>().join(" or ");
    let mut tcpdump = Command::new("tcpdump")
        .args(["-i", "lo", "-n", "-s", "0", "-B", "65536", "-Z", "root", "-w"])
        .arg(&file)
        .arg(filter)
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start tcpdump; mend: apt-get install tcpdump")?;
    let deadline = Instant::now() + Duration::from_secs(10);
    // The file's header is written once the filter is attached.
    while !file.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let endpoints = load.ready.endpoints.clone();
    load.begin()?;
    load.finish()?;
    let dumped = process_cpu_ns(tcpdump.id())?;
    let pid = nix::unistd::Pid::from_raw(i32::try_from(tcpdump.id())?);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT)?;
    let mut said = String::new();
    if let Some(mut pipe) = tcpdump.stderr.take() {
        std::io::Read::read_to_string(&mut pipe, &mut said)?;
    }
    tcpdump.wait()?;
    if !said.contains("\n0 packets dropped by kernel") {
        return Ok(None);
    }
    let read = children_cpu_ns(|| {
        let mut command = Command::new(&args.agent);
        command.arg("read").arg(&file).stdout(Stdio::null());
        for endpoint in &endpoints {
            command.arg("--endpoint").arg(format!("backend={endpoint}"));
        }
        anyhow::ensure!(command.status()?.success(), "goodput-agent read failed");
        Ok(())
    })?;
    Ok(Some((dumped, read)))
}

/// CPU time of the processes that `work` starts and waits for, in nanoseconds.
fn children_cpu_ns(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<u64> {
    let before = children_now()?;
    work()?;
    Ok(children_now()? - before)
}

fn children_now() -> anyhow::Result<u64> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike as _;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(u64::try_from(micros)? * 1_000)
}
