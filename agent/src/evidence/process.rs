//! LoxiLB's processes: when they started, and the variables that set their routing mode.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::fact::Unknown;

/// The variables that are read, and no others: those that set LoxiLB's routing mode (LoxiLB inference
/// gateway, `pkg/loxinet/ai_kv_unified.go` and its configuration guide).
pub const ENVIRONMENT: [&str; 13] = [
    "LLB_KV_HASH_DEBUG",
    "LLB_KV_NONE_HASH_SEED",
    "LLB_PD_MAX_INFLIGHT_PER_EP",
    "LLB_PD_PREFILL_TIMEOUT_SEC",
    "LLB_PD_QUEUE_DEPTH_PER_EP",
    "LOXILB_KV_CAP_SUM_MILLI",
    "LOXILB_KV_COLDSTART_SEED_N",
    "LOXILB_KV_LB_MODE",
    "LOXILB_KV_LOAD_PENALTY",
    "LOXILB_KV_MEAN_LOAD_FACTOR",
    "LOXILB_KV_SPILL_RELIEF",
    "LOXILB_KV_TLOAD_LOG",
    "LOXILB_KV_UNIFIED_MODE",
];

/// Variables by name; `None` is not set.
pub type Environment = BTreeMap<&'static str, Option<String>>;

/// Processes of one name that are looked at.
const MOST_PROCESSES: usize = 16;
/// Bytes of an environment; the kernel takes no more of arguments and environment together by default
/// (execve(2), a quarter of the stack's limit of 8 MiB).
const MOST_ENVIRONMENT: u64 = 2 * 1024 * 1024;
/// Characters kept of a value.
const MOST_VALUE: usize = 256;
/// Characters of a process's name that the kernel keeps (`TASK_COMM_LEN` without its end, proc(5)).
const COMM: usize = 15;
/// Ticks a second of `/proc/PID/stat` (`USER_HZ`, 100 on every architecture that the agent is built for).
const TICKS_PER_S: u64 = 100;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Process {
    /// Its id in the agent's PID namespace.
    pub pid: u32,
    /// When it started, in nanoseconds since the host booted (CLOCK_BOOTTIME), to 10 ms.
    pub started_boottime_ns: u64,
    /// The same in milliseconds of Unix time, to a second.
    pub started_unix_ms: u64,
}

/// `/proc`, or what a test takes for it.
#[derive(Clone, Debug)]
pub struct Proc(PathBuf);

impl Default for Proc {
    fn default() -> Self {
        Self(PathBuf::from("/proc"))
    }
}

impl Proc {
    /// Another root.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// A file of a process.
    #[must_use]
    pub fn path(&self, pid: u32, name: &str) -> PathBuf {
        self.0.join(pid.to_string()).join(name)
    }

    /// The processes called `name`, by id.
    ///
    /// # Errors
    /// When `/proc` can't be read.
    pub fn called(&self, name: &str) -> Result<Vec<Process>, Unknown> {
        let failed = |error: io::Error| Unknown::failed("/proc", &error);
        let booted = self.booted_unix_s().map_err(failed)?;
        let entries = fs::read_dir(&self.0).map_err(failed)?.flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let comm: String = name.chars().take(COMM).collect();
        let is_called = |pid: &u32| {
            fs::read(self.path(*pid, "comm")).is_ok_and(|text| text.trim_ascii() == comm.as_bytes())
        };
        let mut found: Vec<_> =
            pids.filter(is_called).filter_map(|pid| self.process(pid, booted)).collect();
        found.sort_unstable();
        found.truncate(MOST_PROCESSES);
        Ok(found)
    }

    /// Nothing when it has ended.
    fn process(&self, pid: u32, booted_unix_s: u64) -> Option<Process> {
        let stat = fs::read_to_string(self.path(pid, "stat")).ok()?;
        let ticks = start_ticks(&stat)?;
        let started_ms = ticks.saturating_mul(1000 / TICKS_PER_S);
        Some(Process {
            pid,
            started_boottime_ns: started_ms.saturating_mul(1_000_000),
            started_unix_ms: booted_unix_s.saturating_mul(1000).saturating_add(started_ms),
        })
    }

    fn booted_unix_s(&self) -> io::Result<u64> {
        let stat = fs::read_to_string(self.0.join("stat"))?;
        let booted = stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        booted.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The variables of [`ENVIRONMENT`] that a process was started with.
    ///
    /// # Errors
    /// Without the privilege to read them.
    pub fn environment(&self, pid: u32) -> Result<Environment, Unknown> {
        let failed = |error: io::Error| Unknown::failed("/proc/PID/environ", &error);
        let mut bytes = Vec::new();
        let file = File::open(self.path(pid, "environ")).map_err(failed)?;
        file.take(MOST_ENVIRONMENT + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MOST_ENVIRONMENT {
            let why = format!("its environment is larger than {MOST_ENVIRONMENT} bytes");
            return Err(Unknown::new(why, "start LoxiLB with fewer variables"));
        }
        Ok(allowed(&bytes))
    }
}

/// The value of a variable that is set twice is its first, as getenv(3) finds it.
fn allowed(environ: &[u8]) -> Environment {
    let mut found: Environment = ENVIRONMENT.into_iter().map(|name| (name, None)).collect();
    for variable in environ.split(|byte| *byte == 0) {
        let Some(at) = variable.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = (&variable[..at], &variable[at + 1..]);
        let slot = found.iter_mut().find(|(allowed, _)| allowed.as_bytes() == name);
        if let Some((_, slot @ None)) = slot {
            *slot = Some(String::from_utf8_lossy(value).chars().take(MOST_VALUE).collect());
        }
    }
    found
}

/// Field 22 of `/proc/PID/stat` (proc_pid_stat(5)). The name, field 2, may hold blanks and parentheses.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_behind_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 98765 20 21";
        assert_eq!(start_ticks(&format!("7 (loxilb) {rest}")), Some(98_765));
        assert_eq!(start_ticks(&format!("7 (a b) c) {rest}")), Some(98_765));
        assert_eq!(start_ticks("7 (loxilb) S 1 2"), None);
        assert_eq!(start_ticks(""), None);
    }

    #[test]
    fn only_allowed_variables_are_kept_and_the_first_value_counts() {
        let environ = b"PATH=/bin\0LOXILB_KV_LB_MODE=hard\0LOXILB_KV_LB_MODE=soft\0SECRET=canary\0\
            XLOXILB_KV_LB_MODE=canary\0LOXILB_KV_LB_MODE_X=canary\0LLB_KV_NONE_HASH_SEED=\0broken\0=x\0";
        let found = allowed(environ);
        let set: Vec<_> =
            found.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        assert_eq!(set, [("LLB_KV_NONE_HASH_SEED", ""), ("LOXILB_KV_LB_MODE", "hard")]);
        assert_eq!(found.len(), ENVIRONMENT.len());
        assert!(!format!("{found:?}").contains("canary"));
        let long = [b"LOXILB_KV_LB_MODE=".to_vec(), b"x".repeat(5000)].concat();
        assert_eq!(allowed(&long)["LOXILB_KV_LB_MODE"].as_ref().map(String::len), Some(256));
    }
}
