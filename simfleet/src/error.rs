//! What can go wrong while a fleet is set up.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Why a fleet could not be configured or started. Every message names the place and the mend.
#[derive(Debug, Error)]
pub enum FleetError {
    /// The configuration file cannot be read.
    #[error("{}: cannot read the fleet configuration: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The configuration text is not valid.
    #[error("fleet configuration: {0}")]
    Parse(String),
    /// A value is out of range, or two values contradict each other.
    #[error("fleet configuration: {place}: {problem}; {mend}")]
    Invalid {
        /// The table and key.
        place: String,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        mend: String,
    },
    /// An address cannot be listened on.
    #[error("{place}: cannot listen on {addr}: {source}; {}", listen_mend(source))]
    Listen {
        /// The table and key.
        place: String,
        /// The address.
        addr: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// A log file cannot be opened.
    #[error("{}: cannot open the log: {source}; name a file in a folder that exists and is writable", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The kernel refuses a clock or timer.
    #[error("cannot use CLOCK_MONOTONIC timers: {0}")]
    Clock(#[from] io::Error),
}

impl FleetError {
    /// A value that cannot be used.
    pub(crate) fn invalid(
        place: impl Into<String>,
        problem: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self::Invalid { place: place.into(), problem: problem.into(), mend: mend.into() }
    }

    /// The same error, found `within` a file or on a line.
    pub(crate) fn within(self, within: impl fmt::Display) -> Self {
        match self {
            Self::Parse(text) => Self::Parse(format!("{within}: {text}")),
            Self::Invalid { place, problem, mend } => {
                Self::Invalid { place: format!("{within}: {place}"), problem, mend }
            }
            other => other,
        }
    }
}

fn listen_mend(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "stop the program that uses it, or configure another port (0 takes any free one)"
        }
        io::ErrorKind::AddrNotAvailable => {
            "no interface of this host or network namespace has that address; add it or use 127.0.0.1"
        }
        io::ErrorKind::PermissionDenied => {
            "use a port above 1023, or run with CAP_NET_BIND_SERVICE"
        }
        _ => "check the address",
    }
}
