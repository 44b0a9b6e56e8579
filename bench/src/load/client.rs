//! Reads streams and counts them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::script::request;
use super::{Outcome, Plan, Script};

/// Without a byte for so long the run has failed.
const PATIENCE: Duration = Duration::from_secs(20);

struct Reader {
    socket: TcpStream,
    /// Requests sent.
    requests: u64,
    /// Bytes read of the current answer.
    read: u64,
    sent: Instant,
    /// The first event of the current answer was read.
    begun: bool,
}

struct Client<'a> {
    endpoints: &'a [SocketAddr],
    plan: &'a Plan,
    script: &'a Script,
    epoll: Epoll,
    readers: Vec<Reader>,
    /// Index of the next reader that sends its first request.
    next: usize,
    finished: usize,
    ttft_ns: Vec<u64>,
    outcome: Outcome,
    buffer: Vec<u8>,
}

/// Performs every request of the plan.
pub(super) fn run(
    endpoints: &[SocketAddr],
    plan: &Plan,
    script: &Script,
) -> anyhow::Result<Outcome> {
    let mut client = Client {
        endpoints,
        plan,
        script,
        epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
        readers: Vec::new(),
        next: 0,
        finished: 0,
        ttft_ns: Vec::new(),
        outcome: Outcome::default(),
        buffer: vec![0; 64 * 1024],
    };
    client.connect_all()?;
    let started = Instant::now();
    client.read_all(started)?;
    client.outcome.elapsed_ns = nanos(started.elapsed());
    Ok(client.summary())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Client<'_> {
    fn connect(&self, number: usize) -> anyhow::Result<TcpStream> {
        let endpoint = self.endpoints.get(number % self.endpoints.len()).context("no endpoint")?;
        let socket = TcpStream::connect(endpoint)
            .with_context(|| format!("connection {number} to {endpoint}"))?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let key = u64::try_from(number)?;
        self.epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, key))?;
        Ok(socket)
    }

    fn connect_all(&mut self) -> anyhow::Result<()> {
        for number in 0..usize::try_from(self.plan.connections)? {
            let socket = self.connect(number)?;
            let sent = Instant::now();
            self.readers.push(Reader { socket, requests: 0, read: 0, sent, begun: false });
        }
        Ok(())
    }

    fn read_all(&mut self, started: Instant) -> anyhow::Result<()> {
        let mut events = vec![EpollEvent::empty(); 1024];
        let mut last = Instant::now();
        while self.finished < self.readers.len() {
            self.start_due(started)?;
            let count = self.epoll.wait(&mut events, EpollTimeout::from(1_u8)).unwrap_or(0);
            for event in events.iter().take(count) {
                self.read(usize::try_from(event.data())?)?;
                last = Instant::now();
            }
            ensure!(last.elapsed() < PATIENCE, "no byte for {} s", PATIENCE.as_secs());
        }
        Ok(())
    }

    /// First requests are spread over one interval, so that events are, too.
    fn start_due(&mut self, started: Instant) -> anyhow::Result<()> {
        let step = self.plan.interval_ns() / self.plan.connections;
        let due = usize::try_from(nanos(started.elapsed()) / step.max(1))?;
        while self.next < self.readers.len().min(due + 1) {
            self.send(self.next)?;
            self.next += 1;
        }
        Ok(())
    }

    fn send(&mut self, number: usize) -> anyhow::Result<()> {
        let Some(reader) = self.readers.get_mut(number) else { return Ok(()) };
        let request = request(u64::try_from(number)?, reader.requests)?;
        reader.requests += 1;
        reader.read = 0;
        reader.begun = false;
        reader.sent = Instant::now();
        Ok(reader.socket.write_all(&request)?)
    }

    fn read(&mut self, number: usize) -> anyhow::Result<()> {
        let first_event = self.script.head.len() as u64 + self.script.event.len() as u64;
        let Some(reader) = self.readers.get_mut(number) else { return Ok(()) };
        let taken = match reader.socket.read(&mut self.buffer) {
            Ok(taken) => taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        ensure!(taken > 0, "connection {number} was closed by the server");
        reader.read += taken as u64;
        self.outcome.bytes_read += taken as u64;
        if !reader.begun && reader.read >= first_event {
            reader.begun = true;
            self.ttft_ns.push(nanos(reader.sent.elapsed()));
        }
        if reader.read >= self.script.answer_len() {
            ensure!(reader.read == self.script.answer_len(), "more bytes than an answer has");
            self.answered(number)?;
        }
        Ok(())
    }

    fn answered(&mut self, number: usize) -> anyhow::Result<()> {
        self.outcome.requests += 1;
        self.outcome.events_read += self.script.events;
        let done = self.readers.get(number).map_or(0, |it| it.requests);
        if done >= self.plan.requests_per_connection() {
            self.finished += 1;
            return Ok(());
        }
        if self.plan.churn {
            let socket = self.connect(number)?;
            if let Some(reader) = self.readers.get_mut(number) {
                reader.socket = socket;
            }
        }
        self.send(number)
    }

    fn summary(mut self) -> Outcome {
        self.ttft_ns.sort_unstable();
        let rank = |percent: usize| {
            let at = (self.ttft_ns.len() * percent).div_ceil(100).saturating_sub(1);
            self.ttft_ns.get(at).copied().unwrap_or(0)
        };
        self.outcome.ttft_p50_ns = rank(50);
        self.outcome.ttft_p99_ns = rank(99);
        self.outcome
    }
}
