//! What every test needs: a source, or a loud reason why not.

use std::net::SocketAddr;

use agent::capture::tcx::{Host, InterfaceRef, Method, TcxConfig, TcxSource, preflight_of};

/// False, said loudly, where this host can't attach the programs. With `GOODPUT_REQUIRE_KERNEL=1`
/// that is a failure, so that a machine which must run these tests never skips them.
pub(crate) fn kernel_available(test: &str) -> bool {
    let missing: Vec<_> = METHODS.iter().flat_map(|it| preflight_of(&Host, Some(*it))).collect();
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

/// Every way of looking at packets: each must see the same.
pub(crate) const METHODS: [Method; 2] = [Method::Tcx, Method::SocketFilter];

/// Runs a test for each method, where this host has them.
pub(crate) fn for_each_method(test: &str, body: impl Fn(Method)) {
    if kernel_available(test) {
        METHODS.into_iter().for_each(body);
    }
}

pub(crate) fn config(endpoint: SocketAddr, method: Method) -> TcxConfig {
    let interfaces = vec![InterfaceRef::Name("lo".to_owned())];
    TcxConfig { method: Some(method), ..TcxConfig::new(interfaces, vec![endpoint]) }
}

pub(crate) fn open(endpoint: SocketAddr, method: Method) -> TcxSource {
    TcxSource::open(&config(endpoint, method)).unwrap()
}
