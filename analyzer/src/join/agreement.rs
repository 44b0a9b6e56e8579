//! Where the two records contradict each other.

use serde::{Deserialize, Serialize};

use super::index::Legs;
use super::unit::off_by_a_unit;
use crate::outcome::Class;
use crate::records::{FramingVerdict, RequestRecord};
use crate::rundir::{KernelRow, Leg};

/// The bounds by which both sides' stamps are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judge {
    /// TTFT bound, ns.
    pub ttft_ns: u64,
    /// TPOT bound, ns per token.
    pub tpot_ns: u64,
}

impl Judge {
    /// A missing TPOT is left to the single-token policy, which is the same for both sides.
    fn good(self, ttft_ns: i64, tpot_ns: Option<i64>) -> bool {
        let within = |value: i64, bound: u64| i128::from(value) <= i128::from(bound);
        within(ttft_ns, self.ttft_ns) && tpot_ns.is_none_or(|tpot| within(tpot, self.tpot_ns))
    }
}

/// A request that is good by one side's stamps only. Both count TTFT from the send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flip {
    /// Row of the schedule.
    pub index: u64,
    /// Which side calls it good.
    pub good_by: Side,
    /// Client TTFT from sent, ns.
    pub client_ttft_ns: i64,
    /// Client leg's TTFT, ns.
    pub kernel_ttft_ns: i64,
    /// Client TPOT, ns.
    pub client_tpot_ns: Option<i64>,
    /// Client leg's TPOT, ns.
    pub kernel_tpot_ns: Option<i64>,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The replay's stamps.
    Client,
    /// The agent's stamps.
    Kernel,
}

/// A request whose outcome, framing or unit of time differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disagreement {
    /// Row of the schedule.
    pub index: u64,
    /// `outcome`, `framing` or `unit`.
    pub about: String,
    /// The client's word.
    pub client: String,
    /// The agent's word.
    pub kernel: String,
}

pub(super) fn flips(completed: &[&RequestRecord], legs: &Legs<'_>, judge: Judge) -> Vec<Flip> {
    let flip = |row: &&RequestRecord| {
        let kernel = legs.get(row.trace_id, Leg::Client)?;
        let (client_ttft_ns, kernel_ttft_ns) = (row.ttft_from_sent_ns?, kernel.ttft_ns()?);
        let client_tpot_ns = row.tpot_ns.and_then(|tpot| i64::try_from(tpot).ok());
        let kernel_tpot_ns = client_tpot_ns.and(kernel.tpot_ns());
        let client = judge.good(client_ttft_ns, client_tpot_ns);
        let good_by = if client { Side::Client } else { Side::Kernel };
        (client != judge.good(kernel_ttft_ns, kernel_tpot_ns)).then_some(Flip {
            index: row.index,
            good_by,
            client_ttft_ns,
            kernel_ttft_ns,
            client_tpot_ns,
            kernel_tpot_ns,
        })
    };
    completed.iter().filter_map(flip).collect()
}

pub(super) fn disagreements(requests: &[RequestRecord], legs: &Legs<'_>) -> Vec<Disagreement> {
    requests
        .iter()
        .filter_map(|row| legs.get(row.trace_id, Leg::Client).map(|kernel| (row, kernel)))
        .flat_map(|(row, kernel)| [outcome(row, kernel), framing(row, kernel), unit(row, kernel)])
        .flatten()
        .collect()
}

/// Timeouts, cancellation and connect errors are the client's alone; an agent that lacks evidence says
/// `unknown` or `opaque`, which contradicts nothing.
fn outcome(row: &RequestRecord, kernel: &KernelRow) -> Option<Disagreement> {
    let word = kernel.outcome.as_deref()?;
    let clients_alone = matches!(
        row.class,
        Class::CancelledByTool
            | Class::Lost
            | Class::ConnectError
            | Class::TimeoutSlow
            | Class::TimeoutStalled
    );
    let silent = matches!(word, "unknown" | "opaque" | "open");
    (!clients_alone && !silent && word != row.class.name())
        .then(|| disagreement(row, "outcome", row.class.name(), word))
}

fn framing(row: &RequestRecord, kernel: &KernelRow) -> Option<Disagreement> {
    let client = match row.framing {
        FramingVerdict::Valid => "valid",
        FramingVerdict::Invalid => "invalid",
        FramingVerdict::Unknown => return None,
    };
    let word = kernel.framing.as_deref().filter(|word| matches!(*word, "valid" | "invalid"))?;
    (word != client).then(|| disagreement(row, "framing", client, word))
}

fn unit(row: &RequestRecord, kernel: &KernelRow) -> Option<Disagreement> {
    let (client, kernel) = off_by_a_unit(row, kernel)?;
    Some(disagreement(row, "unit", &client, &kernel))
}

fn disagreement(row: &RequestRecord, about: &str, client: &str, kernel: &str) -> Disagreement {
    Disagreement {
        index: row.index,
        about: about.to_owned(),
        client: client.to_owned(),
        kernel: kernel.to_owned(),
    }
}
