//! Programs of others that some tests need.

use std::process::{Command, Stdio};

/// Debian's packages are named like the programs.
fn runs(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// False, said loudly, where one is missing. With `GOODPUT_REQUIRE_KERNEL=1` that is a failure, so
/// that a machine which must run these tests never skips them.
pub(crate) fn available(test: &str, programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().copied().filter(|program| !runs(program)).collect();
    if missing.is_empty() {
        return true;
    }
    let mend = format!("apt-get install {}", missing.join(" "));
    eprintln!("SKIPPED {test}: {missing:?} can't be started; {mend}");
    assert!(!required(), "GOODPUT_REQUIRE_KERNEL=1 and {missing:?} can't be started; {mend}");
    false
}

/// False, said loudly, where this user can't capture packets.
pub(crate) fn may_capture(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED {test}: tcpdump may capture only as root; sudo -E cargo test");
        assert!(!required(), "GOODPUT_REQUIRE_KERNEL=1 and not root");
    }
    root
}

fn required() -> bool {
    std::env::var("GOODPUT_REQUIRE_KERNEL").is_ok_and(|value| value == "1")
}
