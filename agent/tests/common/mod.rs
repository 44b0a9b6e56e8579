//! What tests of the program itself share.

use std::process::Child;

/// False, said loudly, where the kernel programs can't be attached.
pub(crate) fn kernel_available(test: &str) -> bool {
    let missing = agent::capture::tcx::preflight();
    for one in &missing {
        eprintln!("SKIPPED {test}: {} is missing; {}", one.what, one.mend);
    }
    let required = std::env::var("GOODPUT_REQUIRE_KERNEL").is_ok_and(|value| value == "1");
    assert!(
        missing.is_empty() || !required,
        "GOODPUT_REQUIRE_KERNEL=1, but nothing can be attached"
    );
    missing.is_empty()
}

/// Ended when dropped, so that no failing test leaves an agent behind.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
