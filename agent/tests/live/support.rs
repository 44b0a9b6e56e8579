//! What every test needs: a source, or a loud reason why not.

use std::net::SocketAddr;

use agent::capture::tcx::{InterfaceRef, TcxConfig, TcxSource, preflight};

/// False, said loudly, where this host can't attach the programs. With `GOODPUT_REQUIRE_KERNEL=1`
/// that is a failure, so that a machine which must run these tests never skips them.
pub(crate) fn kernel_available(test: &str) -> bool {
    let missing = preflight();
    if missing.is_empty() {
        return true;
    }
    for one in &missing {
        eprintln!("SKIPPED {test}: {} is missing; {}", one.what, one.mend);
    }
    let required = std::env::var("GOODPUT_REQUIRE_KERNEL").is_ok_and(|value| value == "1");
    assert!(!required, "GOODPUT_REQUIRE_KERNEL=1 and the kernel programs can't be attached");
    false
}

pub(crate) fn config(endpoint: SocketAddr) -> TcxConfig {
    TcxConfig::new(vec![InterfaceRef::Name("lo".to_owned())], vec![endpoint])
}

pub(crate) fn open(endpoint: SocketAddr) -> TcxSource {
    TcxSource::open(&config(endpoint)).unwrap()
}
