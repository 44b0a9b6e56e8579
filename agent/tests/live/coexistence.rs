//! The agent beside a datapath like LoxiLB's, and beside programs that take packets away.

use std::process::Command;

use agent::capture::CaptureSource as _;
use agent::capture::foreign::{self, Hook};
use agent::capture::tcx::{InterfaceRef, Method, TcxConfig, TcxSource};
use agent::window::Reason;
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, unshare};

use crate::frames::frame;
use crate::inject::Frame;
use crate::neighbour::Neighbour;
use crate::recorder::Recorder;
use crate::rig::Rig;
use crate::support::{for_each_method, kernel_available};

/// `TC_ACT_OK`: what LoxiLB returns for a packet that it lets pass. At TCX it ends the walk.
const PASS: u32 = 0;

fn run(line: &str) {
    let mut words = line.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{line}");
}

/// A link in a namespace of this thread; what is sent on `near` arrives on `far`.
fn link() -> u32 {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    run("ip link add near type veth peer name far");
    for end in ["near", "far"] {
        // Nothing but the test's own frames.
        run(&format!("ip link set {end} addrgenmode none"));
        run(&format!("ip link set {end} up"));
    }
    if_nametoindex("far").unwrap()
}

fn watching(method: Method) -> TcxConfig {
    let interfaces = vec![InterfaceRef::Name("far".to_owned())];
    let config = TcxConfig::new(interfaces, vec!["127.0.0.1:8000".parse().unwrap()]);
    TcxConfig { method: Some(method), ..config }
}

fn watch(method: Method) -> TcxSource {
    TcxSource::open(&watching(method)).unwrap()
}

fn send() {
    Frame { seq: 5, ..frame(8000, b"hello") }.send_on("near");
}

/// Sends a frame; returns how many segments the agent and packets the neighbour saw more.
fn both_see(source: &mut TcxSource, neighbour: &Neighbour) -> (usize, u64) {
    let before = neighbour.seen();
    send();
    let mut recorder = Recorder::default();
    recorder.poll_until(source, |it| !it.segments.is_empty());
    recorder.drain(source);
    (recorder.segments.len(), neighbour.seen() - before)
}

/// Programs on the interface but for the agent's: this process holds the neighbour's, too.
fn others(source: &TcxSource, ifindex: u32) -> Vec<foreign::ForeignProgram> {
    let own = source.program_ids().unwrap().into_iter().collect();
    foreign::list_except(ifindex, &own).unwrap()
}

#[test]
fn agent_and_clsact_both_see_every_packet_in_whatever_order_they_come_and_go() {
    for_each_method("clsact", |method| {
        let ifindex = link();
        let neighbour = Neighbour::new(PASS);
        run("tc qdisc add dev far clsact");
        neighbour.in_clsact(ifindex);
        let mut source = watch(method);
        assert_eq!(both_see(&mut source, &neighbour), (1, 1), "attached before the agent");

        run("tc qdisc del dev far clsact");
        assert_eq!(both_see(&mut source, &neighbour), (1, 0), "wiped");

        // `add` is exclusive: it would fail if the agent had made the qdisc.
        run("tc qdisc add dev far clsact");
        neighbour.in_clsact(ifindex);
        assert_eq!(both_see(&mut source, &neighbour), (1, 1), "attached after the agent");
        assert_eq!(source.interfaces().unwrap()[0].preempted(), 0);

        let foreign = others(&source, ifindex);
        assert_eq!(foreign.len(), 1, "{foreign:?}");
        let found = &foreign[0];
        assert_eq!((found.hook, found.priority, found.handle), (Hook::TcIngress, Some(1), Some(1)));
        let behind = (method == Method::Tcx).then_some(false);
        assert_eq!((found.before_agent, found.name.as_deref()), (behind, Some("neighbour")));
    });
}

#[test]
fn a_later_program_in_front_that_takes_packets_away_is_noticed_and_named() {
    if !kernel_available("preempted") {
        return;
    }
    let ifindex = link();
    let mut source = watch(Method::Tcx);
    let thief = Neighbour::new(PASS);
    assert_eq!(both_see(&mut source, &thief), (1, 0));
    assert_eq!(source.interfaces().unwrap()[0].preempted(), 0);

    let theft = thief.in_front(ifindex);
    send();
    while thief.seen() == 0 {
        std::thread::yield_now();
    }
    let mut recorder = Recorder::default();
    recorder.drain(&mut source);
    assert!(recorder.segments.is_empty());
    assert_eq!(source.interfaces().unwrap()[0].preempted(), 1);
    let foreign = others(&source, ifindex);
    assert_eq!((foreign[0].hook, foreign[0].before_agent), (Hook::TcxIngress, Some(true)));

    drop(theft);
    assert_eq!(both_see(&mut source, &thief), (1, 0));
}

#[test]
fn a_window_in_which_packets_were_taken_away_says_so() {
    /// More than a window forgives for packets between two counters.
    const FRAMES: u64 = 200;
    if !kernel_available("preempted window") {
        return;
    }
    let ifindex = link();
    let mut rig = Rig::over(&watching(Method::Tcx));
    let thief = Neighbour::new(PASS);
    let window = |rig: &mut Rig| {
        let (id, before) = (rig.open(), thief.seen());
        let theft = thief.in_front(ifindex);
        (0..FRAMES).for_each(|_| send());
        while thief.seen() - before < FRAMES {
            std::thread::yield_now();
        }
        drop(theft);
        rig.close(&id)
    };
    let stolen = window(&mut rig);
    assert!(!stolen.complete && stolen.reasons.contains(&Reason::Preempted), "{stolen:?}");
    assert_eq!(stolen.counters.preempted_packets, FRAMES);

    let id = rig.open();
    (0..FRAMES).for_each(|_| send());
    let seen = rig.close(&id);
    assert!(!seen.reasons.contains(&Reason::Preempted), "{seen:?}");
    assert_eq!(seen.counters.preempted_packets, 0);
}

#[test]
fn packet_sockets_see_what_tcx_programs_take_away() {
    if !kernel_available("packet socket before TCX") {
        return;
    }
    let ifindex = link();
    let mut source = watch(Method::SocketFilter);
    let thief = Neighbour::new(PASS);
    let _theft = thief.in_front(ifindex);
    assert_eq!(both_see(&mut source, &thief), (1, 1));
    assert_eq!(source.interfaces().unwrap()[0].preempted(), 0);
    assert_eq!(source.counters().unwrap().segments.attempted, 1);
}

#[test]
fn a_segment_that_a_local_socket_sends_again_is_told_by_the_kernel() {
    for_each_method("retransmission", |method| {
        link();
        run("ip address add 198.18.7.1/24 dev near");
        run("ip neighbour add 198.18.7.2 lladdr 02:00:00:00:00:02 dev near");
        let endpoint = "198.18.7.2:8000".parse().unwrap();
        let interfaces = vec![InterfaceRef::Name("near".to_owned())];
        let config = TcxConfig::new(interfaces, vec![endpoint]);
        let mut source = TcxSource::open(&TcxConfig { method: Some(method), ..config }).unwrap();
        source.retransmits_watched().unwrap();
        // Nobody answers: the SYN is sent again after a second.
        std::thread::scope(|scope| {
            let patience = std::time::Duration::from_secs(2);
            let connecting = std::net::TcpStream::connect_timeout;
            let namespace = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
            scope.spawn(move || {
                nix::sched::setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
                connecting(&endpoint, patience).unwrap_err()
            });
            let mut recorder = Recorder::default();
            recorder.poll_until(&mut source, |it| !it.retransmits.is_empty());
            let again = recorder.retransmits[0];
            assert_eq!((again.destination, again.from_endpoint), (endpoint, false));
            let syns = |it: &Recorder| it.segments.iter().filter(|it| it.flags.syn()).count();
            recorder.poll_until(&mut source, |it| syns(it) >= 2);
        });
    });
}
