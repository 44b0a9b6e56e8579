//! What an operator without privilege is told.

use agent::capture::tcx::{Method, TcxSource, preflight, supported};
use caps::CapSet;

use crate::support::{config, kernel_available};

#[test]
fn without_capabilities_open_names_them_and_the_line_that_gives_them() {
    if !kernel_available("privilege") {
        return;
    }
    assert!(supported());
    // Capabilities belong to the thread, and every test has its own.
    caps::clear(None, CapSet::Effective).unwrap();
    let missing = preflight();
    assert!(missing[0].what.contains("CAP_BPF"), "{missing:?}");
    assert!(missing[0].what.contains("CAP_NET_ADMIN"), "{missing:?}");
    let error =
        TcxSource::open(&config("127.0.0.1:9".parse().unwrap(), Method::Tcx)).err().unwrap();
    assert!(error.to_string().contains("sudo setcap cap_bpf,cap_perfmon,cap_net_admin"), "{error}");
}

#[test]
fn the_four_documented_capabilities_are_enough() {
    if !kernel_available("four capabilities") {
        return;
    }
    let needed = [
        caps::Capability::CAP_BPF,
        caps::Capability::CAP_PERFMON,
        caps::Capability::CAP_NET_ADMIN,
        caps::Capability::CAP_DAC_READ_SEARCH,
    ];
    caps::set(None, CapSet::Effective, &needed.into_iter().collect()).unwrap();
    let source = TcxSource::open(&config("127.0.0.1:9".parse().unwrap(), Method::Tcx)).unwrap();
    assert!(!source.program_ids().unwrap().is_empty());
}
