//! Hosts of every kind, one fault at a time.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use caps::Capability::{self, *};
use caps::CapsHashSet;

use super::*;
use crate::capture::foreign::{ForeignProgram, Hook};
use crate::config::{Config, Settings};
use crate::endpoint::Endpoint;
use crate::sockdiag::{NamespaceId, NamespaceView};

fn all() -> CapsHashSet {
    caps::all()
}

fn link(name: &str, index: u32, link_type: u16) -> Link {
    Link {
        name: name.to_owned(),
        index,
        up: true,
        loopback: name == "lo",
        link_type,
        mtu: Some(1500),
        gro: Some(true),
        lro: Some(false),
        addresses: Vec::new(),
    }
}

fn config() -> Config {
    let endpoint = |text: &str| text.parse::<Endpoint>().unwrap();
    let settings = Settings {
        interfaces: vec!["eth0".to_owned()],
        endpoints: vec![endpoint("vip=10.0.0.10:80"), endpoint("backend=10.0.1.1:80")],
        ..Settings::default()
    };
    settings.complete("host").unwrap()
}

/// A host on which nothing is to be mended.
fn healthy() -> Facts {
    let file = |(file, text): (File, &str)| (file, text.to_owned());
    let files = [
        (File::Lockdown, "none [integrity] confidentiality\n"),
        (File::UnprivilegedBpf, "2\n"),
        (File::BpfStats, "0\n"),
        (File::BpfJit, "1\n"),
        (File::ClockSource, "tsc\n"),
        (File::TimeOffsets, "monotonic           0         0\nboottime            0         0\n"),
    ];
    let loaded = |name: &str| Loaded { name: name.to_owned(), verdict: Ok(Some(1000)) };
    let names = ["egress_ethernet", "egress_ip", "packet_socket", "retransmit", "socket_state"];
    let served = NamespaceView {
        namespace: NamespaceId(1),
        own: true,
        endpoints: vec!["10.0.0.10:80".parse().unwrap()],
    };
    Facts {
        release: "6.18.1".to_owned(),
        ring_buffers: Some(true),
        tcx: Some(true),
        socket_filters: Some(true),
        socket_states: Ok(()),
        retransmits: Ok(()),
        btf: true,
        programs: Some(Ok(names.map(loaded).to_vec())),
        forced: None,
        privileges: Privileges { root: true, effective: all(), permitted: all(), bounding: all() },
        files: files.map(file).into_iter().collect(),
        memlock: Some(8 << 20),
        ring_bytes: 16 << 20,
        links: Ok(vec![link("lo", 1, 772), link("eth0", 2, 1), link("llb0", 3, 65534)]),
        wanted: vec!["eth0".to_owned()],
        foreign: BTreeMap::from([("eth0".to_owned(), Ok(Vec::new()))]),
        config: Some(Ok(config())),
        api: Some(ApiState::Free),
        token: Some(TokenFile { path: "agent.token".into(), content: Ok((0o600, 64)) }),
        jsonl: Some(("rows.jsonl".into(), Ok(()))),
        sockets: Ok(SocketPlaces { namespaces: vec![served] }),
        clocks: Some(Clocks { offset_ns: 1_000_000_000, within_ns: 80, read_ns: 40 }),
        vip: Some(vip_facts()),
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn vip_facts() -> VipFacts {
    VipFacts {
        vip: address("10.0.0.10:80"),
        from: Some("10.0.0.1".parse().unwrap()),
        answer: Ok(200),
        seen: Ok(vip::Seen {
            client_leg: true,
            traced: [address("10.0.1.1:80")].into(),
            ..vip::Seen::default()
        }),
        backends: vec![address("10.0.1.1:80")],
    }
}

fn without(capability: Capability) -> Facts {
    let mut facts = healthy();
    facts.privileges.effective.remove(&capability);
    facts.privileges.permitted.remove(&capability);
    facts
}

/// The row called `check`, which must be the only one that is not ok.
fn only_fault(facts: &Facts, check: &str) -> (State, String, String) {
    let report = examine(facts);
    let faults: Vec<_> = report.rows.iter().filter(|row| row.state != State::Ok).collect();
    let [fault] = faults[..] else { panic!("not one fault in {check}: {faults:#?}") };
    assert_eq!(fault.check, check, "{fault:?}");
    assert_eq!(report.is_ready(), fault.state != State::Fail);
    let mend = fault.mend.clone().unwrap();
    assert!(!mend.is_empty() && !fault.found.is_empty(), "{fault:?}");
    (fault.state, fault.found.clone(), mend)
}

fn with(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = healthy();
    change(&mut facts);
    facts
}

fn found<'a>(report: &'a Report, check: &str) -> &'a str {
    &report.rows.iter().find(|row| row.check == check).unwrap().found
}

#[test]
fn a_healthy_host_has_nothing_to_mend() {
    let report = examine(&healthy());
    assert_eq!((report.worst(), report.is_ready()), (State::Ok, true), "{report:#?}");
    assert!(report.rows.iter().all(|row| row.mend.is_none()));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["schema"], &json["source"]), (&"goodput.doctor/2".into(), &"tcx".into()));
    assert_eq!(json["rows"][0]["state"], "ok");
    let checks: std::collections::BTreeSet<_> = report.rows.iter().map(|row| &row.check).collect();
    assert_eq!(checks.len(), report.rows.len(), "a name stands for one row");
}

#[test]
fn the_source_that_would_be_chosen_is_named_with_its_reason() {
    let older = with(|it| it.tcx = Some(false));
    let report = examine(&older);
    assert!(found(&report, "kernel.source").starts_with("socket-filter: the kernel has no TCX"));
    assert_eq!(serde_json::to_value(&report).unwrap()["source"], "socket-filter");
    assert_eq!(report.worst(), State::Ok);
    let forced = with(|it| it.forced = Some(Method::SocketFilter));
    assert!(found(&examine(&forced), "kernel.source").contains("asked for"));
    let (state, _, mend) = only_fault(
        &with(|it| (it.forced, it.tcx) = (Some(Method::Tcx), Some(false))),
        "kernel.source",
    );
    assert!(state == State::Fail && mend.contains("6.6"), "{mend}");
}

#[test]
fn what_a_kernel_lacks_fails_where_it_is_needed() {
    let (state, _, mend) =
        only_fault(&with(|it| it.ring_buffers = Some(false)), "kernel.ring_buffer");
    assert!(state == State::Fail && mend.contains("5.8"), "{mend}");
    let (state, ..) = only_fault(
        &with(|it| (it.tcx, it.socket_filters) = (Some(false), Some(false))),
        "kernel.socket_filter",
    );
    assert_eq!(state, State::Fail);
    let states = |it: &mut Facts| it.socket_states = Err("other layout; report it".to_owned());
    let (state, what, mend) = only_fault(&with(states), "kernel.socket_states");
    assert_eq!((state, &what[..], &mend[..]), (State::Fail, "other layout", "report it"));
    let gone = with(|it| it.retransmits = Err("no such file; alone".to_owned()));
    assert_eq!(only_fault(&gone, "kernel.retransmissions").0, State::Warn);
    let asked = examine(&with(|it| (it.ring_buffers, it.tcx) = (None, None)));
    assert_eq!((asked.worst(), asked.count(State::Unknown)), (State::Unknown, 2));
}

#[test]
fn a_refused_program_fails_only_where_it_would_be_attached() {
    let refused = |name: &str, wanted: &str, tcx: bool| {
        with(|it| {
            it.programs = Some(Ok(vec![Loaded {
                name: name.to_owned(),
                verdict: Err("invalid access".to_owned()),
            }]));
            it.wanted = vec![wanted.to_owned()];
            it.tcx = Some(tcx);
        })
    };
    for (name, wanted, tcx, state) in [
        ("ingress_ethernet", "eth0", true, State::Fail),
        ("ingress_ethernet", "lo", true, State::Fail),
        ("ingress_ethernet", "llb0", true, State::Warn),
        ("ingress_ethernet", "eth0", false, State::Warn),
        ("egress_ip", "llb0", true, State::Fail),
        ("egress_ip", "eth0", true, State::Warn),
        ("packet_socket", "eth0", true, State::Warn),
        ("packet_socket", "eth0", false, State::Fail),
        ("socket_state", "eth0", true, State::Fail),
        ("retransmit", "eth0", true, State::Warn),
    ] {
        let facts = refused(name, wanted, tcx);
        let fault = only_fault(&facts, &format!("kernel.programs.{name}"));
        assert_eq!(fault.0, state, "{name} on {wanted}, tcx {tcx}");
    }
    let maps = with(|it| it.programs = Some(Err("maps: refused; x".to_owned())));
    assert_eq!(only_fault(&maps, "kernel.programs").0, State::Fail);
}

#[test]
fn each_missing_capability_has_a_row_and_the_line_that_gives_it() {
    for capability in [CAP_NET_ADMIN, CAP_SYS_PTRACE] {
        let (state, what, mend) =
            only_fault(&without(capability), &format!("capability.{capability}"));
        let limits = if capability == CAP_NET_ADMIN { State::Fail } else { State::Warn };
        assert_eq!(state, limits);
        assert!(what.contains("needed to"), "{what}");
        assert!(mend.contains("setcap") && mend.contains("cap_bpf,cap_perfmon"), "{mend}");
    }
    let mut split = without(CAP_BPF);
    assert_eq!(examine(&split).worst(), State::Ok, "CAP_SYS_ADMIN includes it");
    split.privileges.effective.remove(&CAP_SYS_ADMIN);
    let report = examine(&split);
    assert_eq!((report.count(State::Fail), report.count(State::Warn)), (1, 1));
}

#[test]
fn a_capability_is_needed_only_where_nothing_stands_in_for_it() {
    assert_eq!(examine(&without(CAP_NET_RAW)).worst(), State::Ok, "tcx needs no packet socket");
    let mut older = without(CAP_NET_RAW);
    older.tcx = Some(false);
    assert_eq!(only_fault(&older, "capability.CAP_NET_RAW").0, State::Fail);
    assert_eq!(examine(&without(CAP_DAC_READ_SEARCH)).worst(), State::Ok, "root owns tracefs");
    let mut other = without(CAP_DAC_READ_SEARCH);
    (other.privileges.root, other.socket_states) = (false, Err("refused; root".to_owned()));
    assert_eq!(examine(&other).count(State::Fail), 2);
}

#[test]
fn the_mend_goes_by_where_a_capability_got_lost() {
    let mut file = without(CAP_NET_ADMIN);
    file.privileges.permitted.insert(CAP_NET_ADMIN);
    let (.., mend) = only_fault(&file, "capability.CAP_NET_ADMIN");
    assert!(mend.contains("permitted and not in force") && mend.contains("+ep"), "{mend}");
    let mut container = without(CAP_NET_ADMIN);
    container.privileges.bounding.remove(&CAP_NET_ADMIN);
    let (.., mend) = only_fault(&container, "capability.CAP_NET_ADMIN");
    assert!(mend.contains("--cap-add NET_ADMIN") && mend.contains("securityContext"), "{mend}");
}

#[test]
fn settings_of_the_kernel_are_judged_by_what_they_cost() {
    let file = |file: File, text: &str| {
        with(|it| {
            it.files.insert(file, text.to_owned());
        })
    };
    let closed = file(File::Lockdown, "none integrity [confidentiality]");
    assert_eq!(only_fault(&closed, "setting.lockdown").0, State::Fail);
    let odd = file(File::Lockdown, "?");
    assert_eq!(only_fault(&odd, "setting.lockdown").0, State::Unknown);
    let silent = with(|it| drop(it.files.remove(&File::Lockdown)));
    assert_eq!(examine(&silent).worst(), State::Ok, "tracefs can be read");
    let timed = file(File::BpfStats, "1");
    assert_eq!(only_fault(&timed, "setting.bpf_stats").0, State::Warn);
    let interpreted = file(File::BpfJit, "0");
    assert_eq!(only_fault(&interpreted, "setting.bpf_jit").0, State::Warn);
    let bare = with(|it| it.files.clear());
    assert_eq!(examine(&bare).worst(), State::Ok, "settings that a kernel lacks are no fault");
    let charged = with(|it| it.release = "5.10.0-28".to_owned());
    let (state, _, mend) = only_fault(&charged, "setting.memlock");
    assert!(state == State::Fail && mend.contains("LimitMEMLOCK=infinity"), "{mend}");
    let raised = with(|it| (it.release, it.memlock) = ("5.10".to_owned(), None));
    assert_eq!(examine(&raised).worst(), State::Ok);
    assert_eq!(examine(&with(|it| it.btf = false)).worst(), State::Ok);
}

#[test]
fn interfaces_must_exist_be_up_and_carry_ip() {
    let first = |change: fn(&mut Link)| with(|it| change(&mut it.links.as_mut().unwrap()[1]));
    let gone = with(|it| it.wanted.push("nosuch0".to_owned()));
    let (state, _, mend) = only_fault(&gone, "interface.nosuch0");
    assert!(state == State::Fail && mend.contains("lo, eth0, llb0"), "{mend}");
    let infiniband = first(|it| it.link_type = 32);
    assert_eq!(only_fault(&infiniband, "interface.eth0").0, State::Fail);
    let (state, _, mend) = only_fault(&first(|it| it.up = false), "interface.eth0");
    assert!(state == State::Warn && mend == "sudo ip link set eth0 up", "{mend}");
    let merging = first(|it| it.lro = Some(true));
    assert_eq!(only_fault(&merging, "interface.eth0.merging").0, State::Warn);
    let closed = with(|it| it.links = Err("refused".to_owned()));
    let report = examine(&closed);
    assert!(report.is_ready() && report.worst() == State::Unknown, "{report:#?}");
    let by_index = with(|it| it.wanted = vec!["2".to_owned()]);
    assert_eq!(examine(&by_index).worst(), State::Ok);
    let none = examine(&with(|it| it.wanted.clear()));
    assert!(found(&none, "interfaces").contains("lo, eth0, llb0"));
}

#[test]
fn programs_of_others_are_a_conflict_only_in_front() {
    let program = |hook, name: &str, before_agent| ForeignProgram {
        hook,
        id: Some(7),
        name: Some(name.to_owned()),
        position: 0,
        priority: Some(1),
        handle: Some(1),
        before_agent,
    };
    let beside = |program: ForeignProgram| {
        with(|it| drop(it.foreign.insert("eth0".to_owned(), Ok(vec![program]))))
    };
    let loxilb = beside(program(Hook::TcIngress, "tc_packet_hook0", None));
    let report = examine(&loxilb);
    assert_eq!(report.worst(), State::Ok);
    assert!(found(&report, "programs.eth0").contains("tc_packet_hook0, id 7, priority 1"));
    let xdp = beside(program(Hook::Xdp, "xdp_packet_hook", None));
    assert_eq!(only_fault(&xdp, "programs.eth0").0, State::Warn);
    let front = beside(program(Hook::TcxIngress, "other", Some(true)));
    assert_eq!(only_fault(&front, "programs.eth0").0, State::Warn);
    let agent = examine(&beside(program(Hook::TcxIngress, "ingress_etherne", None)));
    assert!(found(&agent, "programs.eth0").contains("an agent that runs already"));
    let refused =
        with(|it| drop(it.foreign.insert("eth0".to_owned(), Err("EPERM; root".to_owned()))));
    assert_eq!(only_fault(&refused, "programs.eth0").0, State::Unknown);
}

#[test]
fn what_the_configuration_names_is_looked_at() {
    let bad = with(|it| it.config = Some(Err("line 2: unknown key; docs".to_owned())));
    let (state, what, mend) = only_fault(&bad, "config");
    assert_eq!((state, &what[..], &mend[..]), (State::Fail, "line 2: unknown key", "docs"));
    let taken = with(|it| it.api = Some(ApiState::Refused("in use".to_owned())));
    assert_eq!(only_fault(&taken, "api").0, State::Fail);
    assert_eq!(only_fault(&with(|it| it.api = Some(ApiState::Agent)), "api").0, State::Warn);
    let token =
        |content| with(|it| it.token = Some(TokenFile { path: "agent.token".into(), content }));
    let (state, _, mend) = only_fault(&token(Err("gone".to_owned())), "api.token");
    assert!(state == State::Fail && mend.contains("openssl rand -hex 32"), "{mend}");
    assert_eq!(only_fault(&token(Ok((0o600, 4))), "api.token").0, State::Warn);
    let (.., mend) = only_fault(&token(Ok((0o644, 64))), "api.token");
    assert_eq!(mend, "chmod o-rwx agent.token");
    let full = with(|it| it.jsonl = Some(("rows".into(), Err("refused".to_owned()))));
    assert_eq!(only_fault(&full, "config.jsonl").0, State::Fail);
}

#[test]
fn endpoints_without_a_socket_here_are_named() {
    let report = examine(&healthy());
    let sockets = found(&report, "sockets");
    assert!(sockets.contains("exact: 10.0.0.10:80; estimated"), "{sockets}");
    assert!(sockets.ends_with("10.0.1.1:80"), "{sockets}");
    let (state, _, mend) =
        only_fault(&with(|it| it.sockets = Err("no module".to_owned())), "sockets");
    assert!(state == State::Warn && mend.contains("tcp_diag"), "{mend}");
}

#[test]
fn clocks_that_differ_from_the_kernels_fail_and_slow_ones_warn() {
    let shifted = with(|it| {
        it.files.insert(File::TimeOffsets, "monotonic 86400 0\nboottime 0 0".to_owned());
    });
    assert_eq!(only_fault(&shifted, "time.namespace").0, State::Fail);
    let boot_only = with(|it| {
        it.files.insert(File::TimeOffsets, "monotonic 0 0\nboottime 86400 0".to_owned());
    });
    assert_eq!(examine(&boot_only).worst(), State::Ok);
    let slow = with(|it| {
        it.files.insert(File::ClockSource, "hpet".to_owned());
        it.clocks = Some(Clocks { offset_ns: 0, within_ns: 4000, read_ns: 2000 });
    });
    let (state, what, _) = only_fault(&slow, "time.source");
    assert!(state == State::Warn && what.contains("hpet, 2000 ns"), "{what}");
    assert_eq!(only_fault(&with(|it| it.clocks = None), "time.offset").0, State::Unknown);
}

#[test]
fn a_service_must_be_reached_seen_and_forward_the_header() {
    let vip = |change: fn(&mut VipFacts)| {
        with(|it| {
            it.links.as_mut().unwrap()[1].addresses = vec!["10.0.0.1".parse().unwrap()];
            change(it.vip.as_mut().unwrap());
        })
    };
    let lost = vip(|it| it.from = None);
    assert_eq!(only_fault(&lost, "vip.route").0, State::Fail);
    let dead = vip(|it| it.answer = Err("refused".to_owned()));
    assert_eq!(only_fault(&dead, "vip.answer").0, State::Fail);
    let unseen = vip(|it| it.seen = Ok(vip::Seen::default()));
    let (state, what, mend) = only_fault(&unseen, "vip.visible");
    assert!(state == State::Fail && what.contains("by eth0 and was not seen"), "{what}");
    assert!(mend.contains("--interface eth0"), "{mend}");
    let unwatched = vip(|it| it.seen = Err("no interface is named".to_owned()));
    assert_eq!(only_fault(&unwatched, "vip.visible").0, State::Unknown);
    let dropped = vip(|it| {
        let seen = it.seen.as_mut().unwrap();
        seen.untraced = std::mem::take(&mut seen.traced);
    });
    let (state, what, _) = only_fault(&dropped, "vip.traceparent");
    assert!(state == State::Warn && what.contains("10.0.1.1:80 got requests"), "{what}");
    let silent = vip(|it| it.seen.as_mut().unwrap().traced.clear());
    assert_eq!(only_fault(&silent, "vip.traceparent").0, State::Unknown);
    let alone = vip(|it| {
        it.seen.as_mut().unwrap().traced.clear();
        it.backends.clear();
    });
    assert!(only_fault(&alone, "vip.traceparent").2.contains("--endpoint backend="));
}

#[test]
fn an_own_address_must_be_on_a_watched_interface() {
    let own = |wanted: &str| {
        with(|it| {
            it.wanted = vec![wanted.to_owned()];
            it.links.as_mut().unwrap()[2].addresses = vec!["10.0.0.10".parse().unwrap()];
            it.vip.as_mut().unwrap().from = Some("10.0.0.10".parse().unwrap());
        })
    };
    assert_eq!(examine(&own("llb0")).worst(), State::Ok);
    let (state, what, mend) = only_fault(&own("eth0"), "vip.route");
    assert!(state == State::Warn && what.contains("llb0 on this host"), "{what}");
    assert!(mend.contains("watch llb0"), "{mend}");
    let mut local = own("llb0");
    local.vip.as_mut().unwrap().seen = Ok(vip::Seen::default());
    let (state, _, mend) = only_fault(&local, "vip.visible");
    assert!(state == State::Unknown && mend.contains("--interface lo"), "{mend}");
}

#[test]
fn services_are_written_as_addresses_or_urls() {
    for (text, address) in [
        ("10.0.0.10:8000", "10.0.0.10:8000"),
        ("http://10.0.0.10:8000/v1", "10.0.0.10:8000"),
        ("http://10.0.0.10", "10.0.0.10:80"),
        ("http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
        ("http://[2001:db8::1]/", "[2001:db8::1]:80"),
        ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
    ] {
        assert_eq!(text.parse::<Vip>().unwrap().to_string(), address, "{text}");
    }
    for wrong in ["", "gateway:80", "10.0.0.1", "https://10.0.0.1:443", "10.0.0.1:99999"] {
        assert!(wrong.parse::<Vip>().unwrap_err().to_string().contains("http://"), "{wrong}");
    }
}
