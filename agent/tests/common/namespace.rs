//! Network namespaces of a test's own.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use nix::sched::{CloneFlags, setns};

/// A network namespace with its loopback interface up; dropping it deletes it.
pub(crate) struct Namespace(pub(crate) String);

fn ip(args: &[&str]) {
    let status = Command::new("ip").args(args).status().unwrap();
    assert!(status.success(), "ip {args:?}");
}

impl Namespace {
    pub(crate) fn new(label: &str) -> Self {
        // Tests of one process run side by side and may choose the same label.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("goodput-live-{}-{number}-{label}", std::process::id());
        ip(&["netns", "add", &name]);
        let namespace = Self(name);
        namespace.ip(&["link", "set", "lo", "up"]);
        namespace
    }

    pub(crate) fn ip(&self, args: &[&str]) {
        ip(&[&["-n", &self.0], args].concat());
    }

    /// Runs `action` in a thread inside: sockets belong to the namespace in which they are made.
    pub(crate) fn inside<T: Send>(&self, action: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.0)).unwrap();
        let run = || {
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            action()
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    pub(crate) fn listen(&self, at: SocketAddr) -> TcpListener {
        self.inside(|| TcpListener::bind(at).unwrap())
    }

    pub(crate) fn connect(&self, to: SocketAddr) -> TcpStream {
        self.inside(|| TcpStream::connect(to).unwrap())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}
