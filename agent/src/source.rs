//! What the agent asks of a live source beyond its records.

use std::net::SocketAddr;

use crate::capture::tcx::{InterfaceView, TcxSource};
use crate::capture::{CaptureError, CaptureSource};
use crate::metrics::InterfaceCount;

/// A source that can also tell what it could not see.
pub trait LiveSource: CaptureSource {
    /// Packets that another program took away since the source was opened.
    ///
    /// # Errors
    /// When the kernel refuses to read a counter.
    fn preempted(&self) -> Result<u64, CaptureError> {
        Ok(0)
    }

    /// Watched interfaces that are not there any more, or cannot be asked: what arrives on an interface that took
    /// the name is not seen.
    fn lost_interfaces(&self) -> u64 {
        0
    }

    /// Socket transitions for which the kernel left the program out.
    fn missed_transitions(&self) -> u64 {
        0
    }

    /// Retransmissions for which the kernel left the program out.
    fn missed_retransmits(&self) -> u64 {
        0
    }

    /// Copies so many bytes of each request from now on, head included. Needs no privilege. A source
    /// that copies everything has nothing to do.
    ///
    /// # Errors
    /// When the kernel refuses to write the option.
    fn set_request_bytes(&mut self, bytes: u32) -> Result<(), CaptureError> {
        let _ = bytes;
        Ok(())
    }

    /// Server-side connections entered minus those left since the attachment, per endpoint, as the
    /// kernel itself has counted: right even when records found no room. `None` where the source has
    /// no such gauge.
    fn connection_changes(&self) -> Option<Vec<(SocketAddr, i64)>> {
        None
    }

    /// What went through each interface since the source was opened.
    ///
    /// # Errors
    /// When the kernel refuses to read a counter.
    fn interface_counts(&self) -> Result<Vec<InterfaceCount>, CaptureError> {
        Ok(Vec::new())
    }

    /// Watches exactly `endpoints` from now on. Needs no privilege: what was opened stays writable.
    ///
    /// # Errors
    /// Names what is wrong with `endpoints`, or what the kernel refused.
    fn set_endpoints(&mut self, endpoints: &[SocketAddr]) -> Result<(), CaptureError> {
        let _ = endpoints;
        Err(CaptureError::Program {
            what: format!("the source `{}` can't change its endpoints", self.name()),
            mend: "restart the agent".to_owned(),
        })
    }
}

impl LiveSource for TcxSource {
    fn preempted(&self) -> Result<u64, CaptureError> {
        Ok(self.interfaces()?.iter().map(|interface| interface.preempted()).sum())
    }

    fn lost_interfaces(&self) -> u64 {
        Self::lost_interfaces(self)
    }

    fn missed_transitions(&self) -> u64 {
        Self::missed_transitions(self).unwrap_or(0)
    }

    fn missed_retransmits(&self) -> u64 {
        Self::missed_retransmits(self).unwrap_or(0)
    }

    fn set_request_bytes(&mut self, bytes: u32) -> Result<(), CaptureError> {
        Self::set_request_bytes(self, bytes)
    }

    fn connection_changes(&self) -> Option<Vec<(SocketAddr, i64)>> {
        let gauges = self.connections().ok()?;
        Some(gauges.into_iter().map(|gauge| (gauge.endpoint, gauge.change)).collect())
    }

    fn interface_counts(&self) -> Result<Vec<InterfaceCount>, CaptureError> {
        let count = |view: InterfaceView| InterfaceCount {
            packets: view.ingress_packets + view.egress_packets,
            preempted: view.preempted(),
            name: view.name,
        };
        Ok(self.interfaces()?.into_iter().map(count).collect())
    }

    fn set_endpoints(&mut self, endpoints: &[SocketAddr]) -> Result<(), CaptureError> {
        Self::set_endpoints(self, endpoints)
    }
}
