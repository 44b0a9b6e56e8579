//! Rows about settings of the kernel.

use super::{Facts, File, Row, State};

/// Since this release maps are charged to the memory cgroup and no longer against `RLIMIT_MEMLOCK`.
const UNCHARGED: (u64, u64) = (5, 11);
/// What the maps take besides the ring.
const OTHER_MAPS_BYTES: u64 = 16 * 1024 * 1024;

pub(super) fn rows(facts: &Facts) -> Vec<Row> {
    vec![
        lockdown(facts),
        btf(facts),
        memlock(facts),
        unprivileged(facts),
        switch(
            facts,
            File::BpfStats,
            "0",
            "setting.bpf_stats",
            "off: programs run untimed",
            "on: the kernel reads a clock twice for each run of each program, of all programs",
            "sudo sysctl kernel.bpf_stats_enabled=0",
        ),
        jit(facts),
    ]
}

/// Under `confidentiality` tracefs can't be opened (`LOCKDOWN_TRACEFS` of `include/linux/security.h`
/// lies beyond `LOCKDOWN_INTEGRITY_MAX`).
fn lockdown(facts: &Facts) -> Row {
    const CHECK: &str = "setting.lockdown";
    const MEND: &str =
        "boot with lockdown=integrity (kernel command line), which keeps out writers only";
    let Some(text) = facts.file(File::Lockdown) else {
        return if facts.socket_states.is_ok() {
            Row::ok(CHECK, "not told, and not confidentiality: tracefs can be read")
        } else {
            let mend = "sudo mount -t securityfs securityfs /sys/kernel/security";
            Row::bad(State::Unknown, CHECK, "the kernel does not tell its mode", mend)
        };
    };
    let mode = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|it| it.0);
    match mode {
        Some("confidentiality") => {
            Row::bad(State::Fail, CHECK, "confidentiality: tracefs is closed to everybody", MEND)
        }
        Some(mode) => Row::ok(CHECK, mode),
        None => Row::bad(State::Unknown, CHECK, format!("unknown form: {text}"), MEND),
    }
}

fn btf(facts: &Facts) -> Row {
    let found = if facts.btf {
        "/sys/kernel/btf/vmlinux is there"
    } else {
        "/sys/kernel/btf/vmlinux is not there; the agent's programs do without"
    };
    Row::ok("setting.btf", found)
}

/// Major and minor number of a release, as `uname -r` prints it.
fn version(release: &str) -> Option<(u64, u64)> {
    let mut numbers = release.split(|it: char| !it.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn memlock(facts: &Facts) -> Row {
    const CHECK: &str = "setting.memlock";
    let Some(limit) = facts.memlock else { return Row::ok(CHECK, "unlimited") };
    let needed = u64::from(facts.ring_bytes) + OTHER_MAPS_BYTES;
    let found = format!("{limit} bytes");
    match version(&facts.release) {
        Some(version) if version >= UNCHARGED => {
            Row::ok(CHECK, format!("{found}; this kernel does not charge maps against it"))
        }
        _ if limit >= needed => Row::ok(CHECK, found),
        _ => Row::bad(
            State::Fail,
            CHECK,
            format!("{found}, and the maps need {needed}"),
            "ulimit -l unlimited, or LimitMEMLOCK=infinity in the systemd unit",
        ),
    }
}

fn unprivileged(facts: &Facts) -> Row {
    const CHECK: &str = "setting.unprivileged_bpf";
    match facts.file(File::UnprivilegedBpf) {
        Some("0") => Row::ok(CHECK, "open to every user (0); the agent needs CAP_BPF all the same"),
        Some(value) => Row::ok(CHECK, format!("closed to users without CAP_BPF ({value})")),
        None => Row::ok(CHECK, "the kernel has no such setting"),
    }
}

fn jit(facts: &Facts) -> Row {
    let (check, mend) = ("setting.bpf_jit", "sudo sysctl net.core.bpf_jit_enable=1");
    // Where it is built in for good there is no such file.
    match facts.file(File::BpfJit) {
        Some("0") => Row::bad(
            State::Warn,
            check,
            "off: programs are interpreted, at several times the cost per packet",
            mend,
        ),
        Some(value) => Row::ok(check, format!("on ({value})")),
        None => Row::ok(check, "not told to this user or namespace"),
    }
}

fn switch(
    facts: &Facts,
    file: File,
    wanted: &str,
    check: &str,
    good: &str,
    bad: &str,
    mend: &str,
) -> Row {
    match facts.file(file) {
        Some(value) if value == wanted => Row::ok(check, good),
        Some(_) => Row::bad(State::Warn, check, bad, mend),
        None => Row::ok(check, "the kernel has no such setting"),
    }
}
