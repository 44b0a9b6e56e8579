//! The fleet's clock: CLOCK_MONOTONIC, and an alarm on it that is precise below a millisecond.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId as Clock, clock_gettime};
use protocol::Nanos;
use tokio::io::unix::AsyncFd;

/// Nanoseconds in a second.
pub(crate) const NS_PER_S: u64 = 1_000_000_000;

/// The current CLOCK_MONOTONIC instant.
///
/// # Errors
/// When the kernel refuses to read the clock.
pub fn monotonic_now() -> io::Result<Nanos> {
    let t = clock_gettime(Clock::CLOCK_MONOTONIC)?;
    let s = u64::try_from(t.tv_sec()).unwrap_or(0);
    let ns = u64::try_from(t.tv_nsec()).unwrap_or(0);
    Ok(Nanos::new(s.saturating_mul(NS_PER_S).saturating_add(ns)))
}

/// Owns the timer descriptor in the form that the reactor asks for.
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Waits for absolute CLOCK_MONOTONIC instants.
///
/// The runtime's own timer rounds up to whole milliseconds, half of the 2 ms that a model deadline
/// may be missed by; a timer descriptor fires within tens of microseconds and needs no spinning.
pub(crate) struct Alarm {
    fd: AsyncFd<Descriptor>,
}

impl Alarm {
    /// An alarm on the current runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        #[expect(deprecated, reason = "sound here: `Descriptor` owns the descriptor it names")]
        let fd = AsyncFd::new(Descriptor(timer))?;
        Ok(Self { fd })
    }

    /// Returns at or just after `deadline`; at once when it has passed.
    pub(crate) async fn wait_until(&self, deadline: Nanos) -> io::Result<()> {
        // An all-zero expiration would disarm the timer instead of firing it.
        let at = deadline.get().max(1);
        let spec = TimeSpec::new(
            i64::try_from(at / NS_PER_S).unwrap_or(i64::MAX),
            i64::try_from(at % NS_PER_S).unwrap_or(0),
        );
        let timer = &self.fd.get_ref().0;
        timer.set(Expiration::OneShot(spec), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        loop {
            let mut guard = self.fd.readable().await?;
            match timer.wait() {
                Ok(()) => return Ok(()),
                Err(Errno::EAGAIN) => guard.clear_ready(),
                Err(Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}
