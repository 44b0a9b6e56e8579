//! Ctrl-C and SIGTERM as a flag that long work looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::Context as _;
use nix::sys::signal::{SigSet, Signal};

/// Exit codes of interrupted programs are 128 plus the signal's number.
const SIGNAL_EXIT_BASE: i32 = 128;

/// A flag that the first SIGINT or SIGTERM sets; a second one ends the process at once.
#[derive(Clone, Debug)]
pub(crate) struct StopOnSignal {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicI32>,
}

impl StopOnSignal {
    /// Blocks both signals in this thread and all it starts later, and waits for them in a thread of its
    /// own. Call it before any other thread exists.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let stop =
            Self { flag: Arc::new(AtomicBool::new(false)), signal: Arc::new(AtomicI32::new(0)) };
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        signals.thread_block().context("cannot block signals")?;
        let waiting = stop.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || waiting.wait(&signals))
            .context("cannot start the signal thread")?;
        Ok(stop)
    }

    /// The flag.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Exit code of an interrupted program, once a signal came.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        let signal = self.signal.load(Ordering::Relaxed);
        u8::try_from(SIGNAL_EXIT_BASE + signal).ok().filter(|_| signal != 0)
    }

    fn wait(&self, signals: &SigSet) {
        while let Ok(signal) = signals.wait() {
            if self.flag.swap(true, Ordering::Relaxed) {
                std::process::exit(SIGNAL_EXIT_BASE + signal as i32);
            }
            self.signal.store(signal as i32, Ordering::Relaxed);
        }
    }
}
