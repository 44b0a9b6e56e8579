//! What the kernel accounts: processes, programs, the host.

use std::fs;

use anyhow::Context as _;
use serde::Serialize;

/// Facts without which figures can't be compared.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Host {
    pub(crate) kernel: String,
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    pub(crate) memory_mib: u64,
    /// Load average of the last minute before the bench began: above 0.5, figures of cost hold
    /// somebody else's work, too.
    pub(crate) load_before: f64,
}

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .map(|it| it.trim_start_matches([':', ' ', '\t']))
}

fn kib(text: &str, key: &str) -> Option<u64> {
    after(text, key)?.split_whitespace().next()?.parse().ok()
}

impl Host {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
        let memory = fs::read_to_string("/proc/meminfo")?;
        Ok(Self {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            cpu: after(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cpus: std::thread::available_parallelism()?.get(),
            memory_mib: kib(&memory, "MemTotal").unwrap_or(0) / 1024,
            load_before: load_average()?,
        })
    }
}

fn load_average() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    text.split(' ').next().and_then(|it| it.parse().ok()).context("/proc/loadavg has no number")
}

/// CPU time of a process, user and system, in nanoseconds; granularity is the scheduler's.
pub(crate) fn process_cpu_ns(pid: u32) -> anyhow::Result<u64> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // Field 1: time on a CPU (Documentation/scheduler/sched-stats.rst).
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        total += text.split_whitespace().next().and_then(|it| it.parse().ok()).unwrap_or(0);
    }
    Ok(total)
}

/// Anonymous memory of a process, in KiB.
pub(crate) fn rss_anon_kib(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    kib(&status, "RssAnon").context("/proc/PID/status has no RssAnon")
}

/// Busy and total jiffies of the host since boot (proc(5): user nice system idle iowait irq softirq steal).
#[derive(Clone, Copy)]
pub(crate) struct HostCpu {
    busy: u64,
    total: u64,
}

impl HostCpu {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().and_then(|it| it.strip_prefix("cpu ")).unwrap_or("");
        let numbers: Vec<u64> = line.split_whitespace().take(8).flat_map(str::parse).collect();
        let total = numbers.iter().sum();
        let idle: u64 = numbers.iter().skip(3).take(2).sum();
        Ok(Self { busy: total - idle, total })
    }

    /// Busy share of the time since `before`.
    pub(crate) fn busy_since(self, before: Self) -> f64 {
        share(self.busy - before.busy, self.total - before.total)
    }
}

/// Quotient for people and ratios; counts here stay far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds of one run fit 53 bits")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    part as f64 / (whole.max(1)) as f64
}

/// A loaded kernel program of a process, from `/proc/PID/fdinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Program {
    pub(crate) id: u64,
    /// `packets` (TCX or socket filter) or `sockets` (tracepoint).
    pub(crate) kind: &'static str,
    pub(crate) run_time_ns: u64,
    pub(crate) run_count: u64,
    pub(crate) verified_instructions: u64,
}

/// Program types of `include/uapi/linux/bpf.h`.
fn kind(program_type: u64) -> &'static str {
    match program_type {
        1 => "packets (socket filter)",
        3 => "packets (tcx)",
        5 | 17 => "sockets (tracepoint)",
        _ => "other",
    }
}

/// The programs that `pid` holds, by id; run time and count only grow while statistics are on.
pub(crate) fn programs(pid: u32) -> anyhow::Result<Vec<Program>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        let Some(id) = kib(&text, "prog_id") else { continue };
        // A link names its program too, but has no type of it.
        let Some(program_type) = kib(&text, "prog_type") else { continue };
        let number = |key| kib(&text, key).unwrap_or(0);
        found.push(Program {
            id,
            kind: kind(program_type),
            run_time_ns: number("run_time_ns"),
            run_count: number("run_cnt"),
            verified_instructions: number("verified_insns"),
        });
    }
    found.sort_by_key(|program| program.id);
    found.dedup();
    Ok(found)
}

/// Memory of all maps that `pid` holds, in KiB.
pub(crate) fn maps_kib(pid: u32) -> anyhow::Result<u64> {
    let mut maps = std::collections::BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        if let (Some(id), Some(bytes)) = (kib(&text, "map_id"), kib(&text, "memlock")) {
            maps.insert(id, bytes);
        }
    }
    Ok(maps.values().sum::<u64>() / 1024)
}
