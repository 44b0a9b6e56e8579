//! A fact, or why it is none.

use std::io;

use protocol::Nanos;
use serde::Serialize;

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Fact<T> {
    /// It was read.
    Known {
        /// When.
        at_ns: Nanos,
        /// What.
        value: T,
    },
    /// It could not be read.
    Unknown {
        /// When that was tried.
        at_ns: Nanos,
        /// Why not.
        why: String,
        /// What the operator can do about it.
        mend: String,
    },
}

/// Why something could not be read, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Why.
    pub why: String,
    /// What to do.
    pub mend: String,
}

impl Unknown {
    /// With its mend.
    #[must_use]
    pub fn new(why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { why: why.into(), mend: mend.into() }
    }

    /// `what` could not be read.
    #[must_use]
    pub fn failed(what: &str, error: &io::Error) -> Self {
        let mend = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "start the agent as root or with cap_sys_ptrace (docs/agent.md): it reads this before it \
                 drops its capabilities; if LoxiLB was started later, restart the agent"
            }
            io::ErrorKind::NotFound => "ask again: the process has just ended",
            _ => "see the log of the kernel",
        };
        Self::new(format!("{what}: {error}"), mend)
    }
}

impl<T> Fact<T> {
    /// What a reading at `at_ns` gave.
    #[must_use]
    pub fn of(at_ns: Nanos, reading: Result<T, Unknown>) -> Self {
        match reading {
            Ok(value) => Self::Known { at_ns, value },
            Err(Unknown { why, mend }) => Self::Unknown { at_ns, why, mend },
        }
    }

    /// Its value, if it is known.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    /// This fact, or what `before` knew where this is unknown.
    #[must_use]
    pub fn or(self, before: Option<&Self>) -> Self
    where
        T: Clone,
    {
        match (&self, before) {
            (Self::Unknown { .. }, Some(before @ Self::Known { .. })) => before.clone(),
            _ => self,
        }
    }
}
