//! Nothing is left attached, however the agent ends.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agent::capture::tcx::{InterfaceRef, Method, TcxSource};
use aya::programs::{SchedClassifier, TcAttachType};

use crate::support::{config, for_each_method, kernel_available, open};

fn attached() -> Vec<u32> {
    let programs = |direction| SchedClassifier::query_tcx("lo", direction);
    // Programs of other tests come and go between the two calls that a query makes.
    loop {
        if let (Ok((_, ingress)), Ok((_, egress))) =
            (programs(TcAttachType::Ingress), programs(TcAttachType::Egress))
        {
            return ingress.iter().chain(&egress).map(aya::programs::ProgramInfo::id).collect();
        }
    }
}

fn any_attached(ids: &[u32]) -> bool {
    attached().iter().any(|id| ids.contains(id))
}

/// The kernel takes a dead process's links down in the background.
fn assert_detached(ids: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while any_attached(ids) {
        assert!(Instant::now() < deadline, "programs {ids:?} are still attached after 10 s");
        std::thread::yield_now();
    }
}

#[test]
fn dropping_the_source_detaches_its_programs() {
    if !kernel_available("drop") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = open(listener.local_addr().unwrap(), Method::Tcx);
    let ids = source.program_ids().unwrap();
    assert!(any_attached(&ids));
    drop(source);
    assert_detached(&ids);
}

#[test]
fn a_failed_open_leaves_nothing_attached() {
    if !kernel_available("failed open") {
        return;
    }
    let mut config = config("127.0.0.1:9".parse().unwrap(), Method::Tcx);
    config.interfaces.push(InterfaceRef::Name("nosuch0".to_owned()));
    let error = TcxSource::open(&config).err().unwrap().to_string();
    assert!(error.contains("unknown interface nosuch0"), "{error}");
}

#[test]
#[ignore = "the process that the next test kills"]
fn hold_a_source_until_killed() {
    let filter = std::env::var("GOODPUT_HOLD").is_ok_and(|method| method == "socket-filter");
    let method = if filter { Method::SocketFilter } else { Method::Tcx };
    let source = open("127.0.0.1:9".parse().unwrap(), method);
    let ids: Vec<_> = source.program_ids().unwrap().iter().map(u32::to_string).collect();
    println!("\nholding {}", ids.join(" "));
    let _ = std::io::stdin().read(&mut [0; 1]);
}

fn loaded() -> Vec<u32> {
    aya::programs::loaded_programs().flatten().map(|it| it.id()).collect()
}

#[test]
fn killing_the_process_leaves_no_program() {
    for_each_method("SIGKILL", |method| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "detach::hold_a_source_until_killed", "--ignored", "--nocapture"])
            .env("GOODPUT_HOLD", method.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let holding = lines.map(Result::unwrap).find(|line| line.starts_with("holding ")).unwrap();
        let ids: Vec<u32> =
            holding.split_whitespace().skip(1).map(|id| id.parse().unwrap()).collect();
        let present = || loaded().iter().any(|id| ids.contains(id));
        assert_eq!(any_attached(&ids), method == Method::Tcx, "{ids:?}");
        assert!(present(), "{ids:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_detached(&ids);
        let deadline = Instant::now() + Duration::from_secs(10);
        while present() {
            assert!(Instant::now() < deadline, "programs {ids:?} are still loaded after 10 s");
            std::thread::yield_now();
        }
    });
}
