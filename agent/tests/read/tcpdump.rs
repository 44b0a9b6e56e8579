//! A real exchange on loopback, captured by tcpdump.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};

use agent::capture::pcap::{Reader, parse};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::CaptureFile;
use crate::{tools, tshark};

const REQUESTS: usize = 3;
const END: &[u8] = b"0\r\n\r\n";

/// A capture that has not seen the end of the connection by then never will.
const LIMIT_S: &str = "60";

/// tcpdump, writing to its standard output; ended when dropped.
struct Capture {
    child: Child,
    /// Kept open: tcpdump reports there when it ends.
    stderr: BufReader<ChildStderr>,
}

impl Drop for Capture {
    fn drop(&mut self) {
        // `timeout` passes it on to tcpdump, unless both have ended already.
        let _ = signal(&self.child, Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

impl Capture {
    /// Returns once packets are being captured.
    fn start(interface: &str, server: SocketAddr) -> Self {
        let mut command = Command::new("timeout");
        command.args([LIMIT_S, "tcpdump", "-i", interface, "-U", "-B", "16384", "-w", "-"]);
        command.args(["--time-stamp-precision=nano", "tcp", "port", &server.port().to_string()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut capture = Self { child, stderr };
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert_ne!(capture.stderr.read_line(&mut line).unwrap(), 0, "tcpdump gave up");
        }
        capture
    }

    /// Reads until both sides have closed, then ends tcpdump. Returns the file.
    fn finish(mut self, server: SocketAddr) -> Vec<u8> {
        let mut file = Copied { from: self.child.stdout.take().unwrap(), bytes: Vec::new() };
        let mut reader = Reader::open(&mut file).unwrap();
        let mut closed = [false; 2];
        while closed != [true; 2] {
            assert!(reader.advance().unwrap(), "tcpdump ended before the connection");
            let Ok(packet) = parse(&reader.frame().unwrap()) else { continue };
            closed[usize::from(packet.source == server)] |= packet.flags.fin();
        }
        signal(&self.child, Signal::SIGINT).unwrap();
        file.read_to_end(&mut Vec::new()).unwrap();
        let mut report = String::new();
        self.stderr.read_to_string(&mut report).unwrap();
        assert!(report.contains("\n0 packets dropped by kernel"), "{report}");
        file.bytes
    }
}

fn signal(child: &Child, signal: Signal) -> nix::Result<()> {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal)
}

/// Keeps what is read.
struct Copied<R> {
    from: R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for Copied<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.bytes.extend(&buffer[..count]);
        Ok(count)
    }
}

fn read_until(stream: &mut TcpStream, end: &[u8]) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !seen.ends_with(end) {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "closed too early");
        seen.extend(&buffer[..count]);
    }
}

fn serve(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    for _ in 0..REQUESTS {
        read_until(&mut stream, b"the end of the prompt");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for _ in 0..20 {
            let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"w\"}}]}\n\n";
            write!(stream, "{:x}\r\n{event}\r\n", event.len()).unwrap();
        }
        stream.write_all(END).unwrap();
    }
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

fn ask(server: SocketAddr) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    let body = "x".repeat(100_000) + "the end of the prompt";
    for _ in 0..REQUESTS {
        write!(stream, "POST /v1/completions HTTP/1.1\r\nHost: x\r\n").unwrap();
        write!(stream, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        read_until(&mut stream, END);
    }
}

fn compare(interface: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let capture = Capture::start(interface, server);
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&listener));
        ask(server);
    });
    let file = CaptureFile::new(&capture.finish(server));
    tshark::assert_same(&file.path, server, REQUESTS);
}

/// On one interface the link is Ethernet, on `any` it is Linux cooked.
#[test]
fn times_and_bytes_of_a_real_exchange_are_those_of_tshark() {
    let test = "times_and_bytes_of_a_real_exchange_are_those_of_tshark";
    if !tools::available(test, &["tshark", "tcpdump"]) || !tools::may_capture(test) {
        return;
    }
    ["lo", "any"].into_iter().for_each(compare);
}
