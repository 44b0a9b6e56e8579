//! What the agent asks of a live source beyond its records.

use std::net::SocketAddr;

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

    /// Server-side connections entered minus those left since the attachment, per endpoint, as the
    /// kernel itself has counted: right even when records found no room. `None` where the source has
    /// no such gauge.
    fn connection_changes(&self) -> Option<Vec<(SocketAddr, i64)>> {
        None
    }
}

impl LiveSource for TcxSource {
    fn preempted(&self) -> Result<u64, CaptureError> {
        Ok(self.interfaces()?.iter().map(|interface| interface.preempted()).sum())
    }

    fn missed_transitions(&self) -> u64 {
        Self::missed_transitions(self).unwrap_or(0)
    }

    fn connection_changes(&self) -> Option<Vec<(SocketAddr, i64)>> {
        let gauges = self.connections().ok()?;
        Some(gauges.into_iter().map(|gauge| (gauge.endpoint, gauge.change)).collect())
    }
}
