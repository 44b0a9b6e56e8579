//! Live capture: TCX programs or socket filters on interfaces, and tracepoints for sockets.

mod config;
mod cost;
mod counters;
mod endpoints;
mod load;
mod packet_socket;
mod preflight;
mod record;
mod ring;
mod tracefs;

pub use record::parse as parse_record;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya_log::EbpfLogger;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::time::{ClockId, clock_gettime};
use protocol::Nanos;

pub use config::{
    DEFAULT_REQUEST_BUDGET, DEFAULT_RING_BYTES, InterfaceRef, Method, TcxConfig, can_watch,
    canonical, has_ethernet_header,
};
pub use cost::{ProgramCost, TriedProgram, program_costs, try_programs};
pub use counters::InterfaceView;
pub use preflight::{Host, Missing, Probe, preflight, preflight_of, supported};
pub use tracefs::retransmit_obstacle;

use super::{CaptureCounters, CaptureError, CaptureEvent, CaptureSource};
use config::Interface;
use counters::Consumed;
use load::{Maps, program_error};
use ring::RingPositions;

/// Records handed over per call at most, so that a flood can't keep the caller from its other work.
const BATCH: usize = 65_536;
/// How long a record may wait before it is looked for: the kernel side wakes the reader only when the
/// ring fills.
const TIMER: Duration = Duration::from_millis(10);
/// A record is reserved and committed within one run of a program; a writer that takes this long
/// is broken.
const COMMIT_PATIENCE: Duration = Duration::from_secs(2);

/// The kernel programs, attached, and the ring they write to. Dropping it detaches them.
pub struct TcxSource {
    maps: Maps,
    positions: RingPositions,
    epoll: Epoll,
    log: Option<EbpfLogger<&'static dyn log::Log>>,
    interfaces: Vec<(Interface, Option<u64>)>,
    endpoints: Vec<SocketAddr>,
    /// Connection slots by endpoint.
    slots: BTreeMap<SocketAddr, u32>,
    consumed: Consumed,
    opened: Nanos,
    method: Method,
    retransmits: Result<(), String>,
    /// Each runs the filter on one interface while it is open.
    _sockets: Vec<OwnedFd>,
    /// Owns the programs and their links.
    bpf: Ebpf,
}

/// Connections of one endpoint, as the kernel's sockets tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct EndpointConnections {
    /// The configured endpoint.
    pub endpoint: SocketAddr,
    /// Server-side connections entered minus those left since the programs were attached: negative
    /// when connections that are older than the agent have ended. Only sockets on this host count.
    pub change: i64,
}

/// Now, on the clock of the kernel programs.
fn monotonic() -> Result<Nanos, CaptureError> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(|error| CaptureError::System {
        call: "clock_gettime(CLOCK_MONOTONIC)",
        source: error.into(),
        mend: "report this kernel: it has no monotonic clock",
    })?;
    let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec()).unwrap_or(0);
    Ok(Nanos::new(seconds * 1_000_000_000 + nanos))
}

fn epoll_error(source: nix::Error) -> CaptureError {
    CaptureError::System {
        call: "epoll on the ring buffer",
        source: source.into(),
        mend: "raise the limit of open files (ulimit -n)",
    }
}

fn is_segment(event: &CaptureEvent<'_>) -> bool {
    matches!(event, CaptureEvent::Segment(_))
}

fn stamp_of(event: &CaptureEvent<'_>) -> Nanos {
    match event {
        CaptureEvent::Segment(segment) => segment.stamp,
        CaptureEvent::Socket(transition) => transition.stamp,
        CaptureEvent::Retransmit(retransmit) => retransmit.stamp,
    }
}

impl TcxSource {
    /// Loads the programs and attaches them in the network namespace of this thread.
    ///
    /// # Errors
    /// Names what is wrong with `config`, what privilege is missing, or what the kernel refused;
    /// nothing stays attached then.
    pub fn open(config: &TcxConfig) -> Result<Self, CaptureError> {
        let endpoints = config.checked_endpoints()?;
        let mut interfaces = config::resolve(&config.interfaces)?;
        if let Some(missing) = preflight_of(&Host, config.method).into_iter().next() {
            return Err(CaptureError::Program { what: missing.what, mend: missing.mend });
        }
        let method = config.method.unwrap_or_else(|| preflight::suitable(&Host));
        tracefs::prepare()?;
        let opened = monotonic()?;
        let factor = load::spread(&mut interfaces)?;
        let mut bpf = load::load(config, factor)?;
        let maps = load::take_maps(&mut bpf)?;
        load::set_request_bytes(&mut bpf, config.request_budget)?;
        load::fill_endpoints(&mut bpf, &endpoints)?;
        let log = config.kernel_log.then(|| EbpfLogger::init(&mut bpf)).transpose();
        let log = log.map_err(|error| program_error("opening the kernel log", &error))?;
        let positions = RingPositions::new(maps.records.as_fd())?;
        let epoll = Self::epoll(&maps, log.as_ref())?;
        load::attach_sockets(&mut bpf)?;
        let retransmits = load::attach_retransmits(&mut bpf).map_err(|error| error.to_string());
        let sockets = load::attach_interfaces(&mut bpf, &interfaces, method)?;
        // After attaching: packets in between are seen by the programs, not missed.
        let interfaces =
            interfaces.into_iter().map(|it| (it.clone(), counters::rx_now(&it))).collect();
        let slots = endpoints.iter().copied().zip(0..).collect();
        Ok(Self {
            maps,
            positions,
            epoll,
            log,
            interfaces,
            endpoints,
            slots,
            consumed: Consumed::default(),
            opened,
            method,
            retransmits,
            _sockets: sockets,
            bpf,
        })
    }

    fn epoll(
        maps: &Maps,
        log: Option<&EbpfLogger<&'static dyn log::Log>>,
    ) -> Result<Epoll, CaptureError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(epoll_error)?;
        let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        epoll.add(maps.records.as_fd(), readable).map_err(epoll_error)?;
        if let Some(log) = log {
            epoll.add(log.as_fd(), readable).map_err(epoll_error)?;
        }
        Ok(epoll)
    }

    /// Kernel ids of the loaded programs, for telling them apart from other programs on the host.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn program_ids(&self) -> Result<Vec<u32>, CaptureError> {
        let loaded = self.bpf.programs().filter(|(_, program)| program.fd().is_ok());
        loaded
            .map(|(name, program)| program.info().map(|it| it.id()).map_err(|it| (name, it)))
            .map(|id| id.map_err(|(name, error)| program_error(name, &error)))
            .collect()
    }

    /// Copies so many bytes of each request from now on; needs no privilege.
    ///
    /// # Errors
    /// When the kernel refuses to write the option.
    pub fn set_request_bytes(&mut self, bytes: u32) -> Result<(), CaptureError> {
        load::set_request_bytes(&mut self.bpf, bytes)
    }

    /// How packets are looked at.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether retransmissions of local sockets are told by the kernel, else why not.
    ///
    /// # Errors
    /// The reason, with what holds instead.
    pub fn retransmits_watched(&self) -> Result<(), &str> {
        self.retransmits.as_ref().copied().map_err(String::as_str)
    }

    /// Endpoints in the form records carry them (plain IPv4), sorted.
    #[must_use]
    pub fn endpoints(&self) -> &[SocketAddr] {
        &self.endpoints
    }

    /// What went through each interface.
    ///
    /// # Errors
    /// When the kernel refuses to read a counter.
    pub fn interfaces(&self) -> Result<Vec<InterfaceView>, CaptureError> {
        let view = |(interface, baseline): &(Interface, Option<u64>)| {
            counters::interface_view(&self.maps, interface, *baseline)
        };
        self.interfaces.iter().map(view).collect()
    }

    /// Interfaces that are gone or renamed, and those whose received packets cannot be read any more.
    #[must_use]
    pub fn lost_interfaces(&self) -> u64 {
        let lost = |(interface, baseline): &&(Interface, Option<u64>)| {
            !interface.is_there() || (baseline.is_some() && counters::rx_now(interface).is_none())
        };
        self.interfaces.iter().filter(lost).count() as u64
    }

    /// The in-kernel connection gauge of each endpoint.
    ///
    /// # Errors
    /// When the kernel refuses to read a gauge.
    pub fn connections(&self) -> Result<Vec<EndpointConnections>, CaptureError> {
        let read = |(endpoint, slot): (&SocketAddr, &u32)| {
            let change = self.maps.connections.get(slot, 0);
            let change = change.map_err(|error| program_error("reading connections", &error))?;
            Ok(EndpointConnections { endpoint: *endpoint, change })
        };
        self.slots.iter().map(read).collect()
    }

    /// Times the kernel left out the tracepoint program because one was already running on that
    /// CPU: each may be a lost socket transition and a wrong connection gauge. `None` when the
    /// kernel does not tell.
    #[must_use]
    pub fn missed_transitions(&self) -> Option<u64> {
        self.recursion_misses("socket_state")
    }

    /// The same for retransmissions: each may be one that no request was told of.
    #[must_use]
    pub fn missed_retransmits(&self) -> Option<u64> {
        self.recursion_misses("retransmit")
    }

    fn recursion_misses(&self, program: &str) -> Option<u64> {
        let program = self.bpf.program(program)?;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&program.fd().ok()?.as_fd());
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("recursion_misses:")?.trim().parse().ok())
    }

    /// Takes one record out; `None` when none is ready.
    fn take_one(
        &mut self,
        sink: &mut dyn FnMut(CaptureEvent<'_>),
    ) -> Option<Result<Nanos, CaptureError>> {
        let item = self.maps.records.next()?;
        let Some(event) = record::parse(&item) else {
            return Some(Err(CaptureError::Program {
                what: format!("a ring record of {} bytes has no known form", item.len()),
                mend:
                    "the kernel object and the agent differ: run cargo xtask ebpf and build again"
                        .to_owned(),
            }));
        };
        if is_segment(&event) {
            self.consumed.segments += 1;
        } else {
            self.consumed.sockets += 1;
        }
        sink(event);
        Some(Ok(stamp_of(&event)))
    }

    /// Takes out what is ready, at most a batch.
    fn take_ready(
        &mut self,
        sink: &mut dyn FnMut(CaptureEvent<'_>),
    ) -> Result<usize, CaptureError> {
        let mut taken = 0;
        let mut last = None;
        while taken < BATCH {
            let Some(stamp) = self.take_one(sink) else { break };
            last = Some(stamp?);
            taken += 1;
        }
        if let Some(log) = &mut self.log {
            log.flush();
        }
        last.map_or(Ok(()), |stamp| self.ensure_monotonic(stamp))?;
        Ok(taken)
    }

    /// A stamp must lie between the source's opening and now on `CLOCK_MONOTONIC`: else the kernel's
    /// stamps and the client's are of different clocks and no difference means anything.
    fn ensure_monotonic(&self, stamp: Nanos) -> Result<(), CaptureError> {
        let now = monotonic()?;
        if (self.opened..=now).contains(&stamp) {
            return Ok(());
        }
        Err(CaptureError::Program {
            what: format!(
                "kernel stamp {} ns lies outside {} to {} ns of CLOCK_MONOTONIC",
                stamp.get(),
                self.opened.get(),
                now.get()
            ),
            mend: "report this kernel: bpf_ktime_get_ns is not its CLOCK_MONOTONIC".to_owned(),
        })
    }
}

impl CaptureSource for TcxSource {
    fn poll(
        &mut self,
        timeout: Duration,
        sink: &mut dyn FnMut(CaptureEvent<'_>),
    ) -> Result<usize, CaptureError> {
        let taken = self.take_ready(sink)?;
        if taken > 0 {
            return Ok(taken);
        }
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now()).min(TIMER);
            let left = EpollTimeout::try_from(left).unwrap_or(EpollTimeout::ZERO);
            let waited = self.epoll.wait(&mut [EpollEvent::empty(); 2], left);
            let taken = match waited {
                Ok(_) | Err(nix::Error::EINTR) => self.take_ready(sink)?,
                Err(error) => return Err(epoll_error(error)),
            };
            // A signal ends the wait early; the caller decides what that means.
            if taken > 0 || waited.is_err() || Instant::now() >= until {
                return Ok(taken);
            }
        }
    }

    fn drain(&mut self, sink: &mut dyn FnMut(CaptureEvent<'_>)) -> Result<usize, CaptureError> {
        let end = self.positions.produced();
        let started = Instant::now();
        let mut taken = 0;
        // Positions wrap together, so their difference is what is left.
        while end.wrapping_sub(self.positions.consumed()).cast_signed() > 0 {
            match self.take_one(sink) {
                Some(stamp) => {
                    stamp?;
                    taken += 1;
                }
                // The next record is reserved and being written on another CPU.
                None if started.elapsed() < COMMIT_PATIENCE => std::thread::yield_now(),
                None => {
                    return Err(CaptureError::Program {
                        what: "a record in the ring was reserved and never written".to_owned(),
                        mend: "restart the agent and report this kernel".to_owned(),
                    });
                }
            }
        }
        Ok(taken)
    }

    fn counters(&mut self) -> Result<CaptureCounters, CaptureError> {
        let interfaces: Vec<_> = self.interfaces.iter().map(|(it, _)| it.clone()).collect();
        counters::read(&self.maps, &interfaces, self.consumed)
    }

    fn name(&self) -> &'static str {
        self.method.name()
    }
}
