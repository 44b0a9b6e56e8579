//! Faults by name, chosen for a whole backend or gateway, or by a request's model `fault:<name>`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// What a request's `model` starts with when it asks for a fault.
pub const FAULT_MODEL_PREFIX: &str = "fault:";

/// A fault that a backend commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendFault {
    /// Answers with this status and a JSON error; 429 and 503 carry `Retry-After: 1`.
    Status(u16),
    /// Accepts the connection, reads the request and never answers.
    HalfDead,
    /// Does not listen: the kernel refuses every connection. As a request's fault: reset at once.
    Refuse,
    /// Falls silent after this many tokens and keeps the connection open.
    StallAfter(u64),
    /// Resets the connection after this many tokens.
    ResetAfter(u64),
    /// Closes the connection without ending the message after this many tokens.
    TruncateAfter(u64),
    /// Closes a kept connection at its next request, as an idle timeout does that runs out while the request
    /// is on its way. The first request of a connection is answered.
    CloseReused,
    /// Serves a byte script of `protocol::cases`, byte by byte.
    Script(String),
}

/// A fault that a gateway commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayFault {
    /// Delays everything that the backend sends by this much; order and spacing stay.
    HoldChunks(Duration),
    /// Names other backends in the receipt of a disaggregated request than those that it asks.
    WrongReceipt,
    /// Gathers what the backend sends for this long and writes it as one piece.
    Coalesce(Duration),
}

/// The name is not that of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown fault {0:?}; `simfleet faults` lists them")]
pub struct UnknownFault(String);

impl FromStr for BackendFault {
    type Err = UnknownFault;

    fn from_str(s: &str) -> Result<Self, UnknownFault> {
        let (name, value) = s.split_once('=').unwrap_or((s, ""));
        let number = value.parse::<u64>().ok();
        let status = value.parse::<u16>().ok().filter(|s| (400..600).contains(s));
        match (name, number, status) {
            ("half_dead", None, _) if value.is_empty() => Ok(Self::HalfDead),
            ("close_reused", None, _) if value.is_empty() => Ok(Self::CloseReused),
            ("refuse", None, _) if value.is_empty() => Ok(Self::Refuse),
            ("status", _, Some(code)) => Ok(Self::Status(code)),
            ("stall_after", Some(n), _) => Ok(Self::StallAfter(n)),
            ("reset_after", Some(n), _) => Ok(Self::ResetAfter(n)),
            ("truncate_after", Some(n), _) => Ok(Self::TruncateAfter(n)),
            (_, _, _) if crate::script::exists(s) => Ok(Self::Script(s.to_owned())),
            _ => Err(UnknownFault(s.to_owned())),
        }
    }
}

impl fmt::Display for BackendFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code) => write!(f, "status={code}"),
            Self::HalfDead => f.write_str("half_dead"),
            Self::Refuse => f.write_str("refuse"),
            Self::CloseReused => f.write_str("close_reused"),
            Self::StallAfter(n) => write!(f, "stall_after={n}"),
            Self::ResetAfter(n) => write!(f, "reset_after={n}"),
            Self::TruncateAfter(n) => write!(f, "truncate_after={n}"),
            Self::Script(id) => f.write_str(id),
        }
    }
}

impl FromStr for GatewayFault {
    type Err = UnknownFault;

    fn from_str(s: &str) -> Result<Self, UnknownFault> {
        let unknown = || UnknownFault(s.to_owned());
        if s == "wrong_receipt" {
            return Ok(Self::WrongReceipt);
        }
        let (name, value) = s.split_once('=').ok_or_else(unknown)?;
        let ms = value.parse::<u32>().map_err(|_| unknown())?;
        let wait = Duration::from_millis(u64::from(ms));
        match name {
            "hold_chunks_ms" => Ok(Self::HoldChunks(wait)),
            "coalesce_ms" => Ok(Self::Coalesce(wait)),
            _ => Err(unknown()),
        }
    }
}

/// What the codes behind a scripted fault mean.
pub const FAULT_CODES: &str = "\
Codes in brackets group the scripted streams by the reports that they reproduce: base a good stream, \
A what counts as the first token, B the syntax of events, C ends and errors of streams, \
D counting tokens, F framing of HTTP.";

/// Every fault: how its name is written, and what it does.
#[must_use]
pub fn fault_list() -> Vec<(String, String)> {
    let own = [
        ("status=N", "backend: answers with status N (400 to 599) and a JSON error"),
        ("half_dead", "backend: accepts the connection and the request, never answers"),
        ("refuse", "backend: does not listen (as a request's fault: resets at once)"),
        ("close_reused", "backend: closes a kept connection at its second request, unanswered"),
        ("stall_after=N", "backend: falls silent after N tokens, connection open"),
        ("reset_after=N", "backend: resets the connection after N tokens"),
        ("truncate_after=N", "backend: closes after N tokens without ending the message"),
        ("wrong_receipt", "gateway: names other backends in the receipt than it asks"),
        ("hold_chunks_ms=N", "gateway: delays everything from the backend by N ms"),
        ("coalesce_ms=N", "gateway: gathers for N ms and writes that as one piece"),
    ];
    let own = own.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned()));
    own.chain(crate::script::list()).collect()
}

#[cfg(test)]
mod tests {
    use super::{BackendFault, FAULT_CODES, GatewayFault};

    #[test]
    fn every_code_of_a_script_has_its_meaning() {
        let cases = protocol::cases::cases();
        let ids = || cases.iter().flat_map(|case| case.ids);
        assert!(ids().count() > cases.len());
        for id in ids() {
            let group = if *id == "base" { id } else { &id[..1] };
            assert!(FAULT_CODES.contains(&format!(" {group} ")), "{id}");
        }
    }

    #[test]
    fn a_backend_faults_name_is_read_and_written_the_same() {
        let names =
            ["status=503", "half_dead", "refuse", "close_reused", "stall_after=3", "reset_after=0"];
        for name in names {
            assert_eq!(name.parse::<BackendFault>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn names_that_mean_nothing_are_refused() {
        for name in ["", "status", "status=200", "stall_after=x", "half_dead=1", "no_such_fault"] {
            assert!(name.parse::<BackendFault>().is_err(), "{name}");
        }
        assert!("hold_chunks_ms=-1".parse::<GatewayFault>().is_err());
        assert!("hold_chunks_ms=5".parse::<GatewayFault>().is_ok());
        assert_eq!("wrong_receipt".parse(), Ok(GatewayFault::WrongReceipt));
    }
}
