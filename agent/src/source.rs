//! What the agent asks of a live source beyond its records.

use crate::capture::tcx::TcxSource;
use crate::capture::{CaptureError, CaptureSource};

/// A source that can also tell what it could not see.
pub trait LiveSource: CaptureSource {
    /// Packets that another program took away since the source was opened.
    ///
    /// # Errors
    /// When the kernel refuses to read a counter.
    fn preempted(&self) -> Result<u64, CaptureError> {
        Ok(0)
    }

    /// Socket transitions for which the kernel left the program out.
    fn missed_transitions(&self) -> u64 {
        0
    }
}

impl LiveSource for TcxSource {
    fn preempted(&self) -> Result<u64, CaptureError> {
        Ok(self.interfaces()?.iter().map(|interface| interface.preempted()).sum())
    }

    fn missed_transitions(&self) -> u64 {
        Self::missed_transitions(self).unwrap_or(0)
    }
}
