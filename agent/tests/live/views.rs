//! Ordinary interfaces: both directions, each interface a view of its own.

use std::process::Command;

use agent::capture::CaptureSource as _;
use agent::capture::tcx::{InterfaceRef, TcxConfig, TcxSource};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, unshare};

use crate::frames::frame;
use crate::inject::Frame;
use crate::recorder::Recorder;
use crate::support::for_each_method;

fn ip(args: &str) {
    let status = Command::new("ip").args(args.split(' ')).status().unwrap();
    assert!(status.success(), "ip {args}");
}

#[test]
fn an_interface_that_is_removed_is_lost_and_its_successor_is_another() {
    for_each_method("a removed interface", |method| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        ip("link add near type veth peer name far");
        let endpoint = "127.0.0.1:8000".parse().unwrap();
        let source = TcxSource::open(&TcxConfig {
            method: Some(method),
            ..TcxConfig::new(vec![InterfaceRef::Name("near".to_owned())], vec![endpoint])
        })
        .unwrap();
        assert_eq!(source.lost_interfaces(), 0);
        ip("link del near");
        assert_eq!(source.lost_interfaces(), 1);
        ip("link add other type veth peer name near");
        assert_eq!(source.lost_interfaces(), 1, "the new `near` is not watched");
    });
}

#[test]
fn a_packet_that_passes_two_interfaces_is_two_views_of_one_segment() {
    for_each_method("two interfaces", |method| {
        // Only this thread, and what it starts, moves to the new namespace.
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        ip("link add near type veth peer name far");
        ip("link set near up");
        ip("link set far up");
        let names = ["near", "far"];
        let interfaces = names.map(|it| InterfaceRef::Name(it.to_owned())).to_vec();
        let endpoint = "127.0.0.1:8000".parse().unwrap();
        let mut source = TcxSource::open(&TcxConfig {
            method: Some(method),
            ..TcxConfig::new(interfaces, vec![endpoint])
        })
        .unwrap();

        Frame { seq: 5, ..frame(8000, b"hello") }.send_on("near");
        let mut recorder = Recorder::default();
        recorder.poll_until(&mut source, |it| it.segments.len() >= 2);
        recorder.drain(&mut source);

        let seen: Vec<_> = recorder.segments.iter().map(|it| it.ifindex).collect();
        assert_eq!(seen, names.map(|it| if_nametoindex(it).unwrap()));
        assert!(recorder.segments.iter().all(|it| it.seq == 5 && it.payload == b"hello"));
        let views = source.interfaces().unwrap();
        assert!(views[0].egress_packets >= 1 && views[1].ingress_packets >= 1, "{views:?}");
        assert!(views.iter().all(|it| it.preempted() == 0 && !it.loopback), "{views:?}");
        let counters = source.counters().unwrap();
        assert_eq!((counters.segments.attempted, counters.segments.consumed), (2, 2));
    });
}
