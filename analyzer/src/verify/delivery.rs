//! Delivery proof: the kernel saw every completed request on both legs.

use serde::{Deserialize, Serialize};

use super::code::{Code, Finding};
use super::decision::Proof;
use crate::analyze::{ArmAnalysis, place};
use crate::join::Receipts;

/// How far agents watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelState {
    /// Every window complete.
    Observed,
    /// A window was not.
    Incomplete,
    /// Nobody watched.
    NotObserved,
}

impl KernelState {
    /// As printed on the verdict line.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Incomplete => "incomplete",
            Self::NotObserved => "not observed",
        }
    }
}

/// Which backends got an arm's requests, by the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryProof {
    /// Name of the arm.
    pub arm: String,
    /// Whether it holds.
    pub proof: Proof,
    /// Share of completed requests without both legs.
    pub unpaired_share: Option<f64>,
    /// Receipts by what they are worth; empty where no response bears one.
    #[serde(default)]
    pub receipts: std::collections::BTreeMap<String, u64>,
    /// Share of requests that each backend got.
    pub backend_shares: std::collections::BTreeMap<String, f64>,
}

impl DeliveryProof {
    pub(super) fn of(arm: &ArmAnalysis, kernel: KernelState, most_unpaired: f64) -> Self {
        let check = &arm.crosscheck;
        let total: u64 = check.backend_requests.values().sum();
        let share = |n: &u64| *n as f64 / total.max(1) as f64;
        let proof = match (kernel, check.unpaired_share) {
            (KernelState::NotObserved, _) | (_, None) => Proof::Unknown,
            (_, Some(share)) if share > most_unpaired => Proof::Unknown,
            _ if check.receipts.disagree > 0 => Proof::Failed,
            _ => Proof::Holds,
        };
        Self {
            arm: arm.name.clone(),
            proof,
            unpaired_share: (kernel != KernelState::NotObserved)
                .then_some(check.unpaired_share)
                .flatten(),
            receipts: receipts(&check.receipts),
            backend_shares: check
                .backend_requests
                .iter()
                .map(|(backend, n)| (backend.clone(), share(n)))
                .collect(),
        }
    }

    /// Absence of every agent has its own code; this one is for requests that agents missed.
    pub(super) fn finding(&self, kernel: KernelState) -> Option<Finding> {
        if self.proof != Proof::Unknown || kernel == KernelState::NotObserved {
            return None;
        }
        let share = self.unpaired_share.map_or("no request completed".to_owned(), |share| {
            format!("{:.2} % of completed requests lack a leg", share * 100.0)
        });
        Some(Finding::new(Code::DeliveryUnknown, place(&self.arm, None, None), share))
    }

    /// The shares as a clause of a sentence; empty without an agent.
    pub(super) fn words(&self) -> String {
        if self.backend_shares.is_empty() {
            return String::new();
        }
        let each: Vec<String> = self
            .backend_shares
            .iter()
            .map(|(backend, share)| format!("{backend} {:.1} %", share * 100.0))
            .collect();
        let receipts: Vec<String> =
            self.receipts.iter().map(|(verdict, n)| format!("{n} {verdict}")).collect();
        let receipts = match receipts.is_empty() {
            true => String::new(),
            false => format!("; the gateway's receipts: {}", receipts.join(", ")),
        };
        format!("; the kernel's per-backend shares: {}{receipts}", each.join(", "))
    }
}

fn receipts(receipts: &Receipts) -> std::collections::BTreeMap<String, u64> {
    let Receipts { agree, disagree, absent, not_observable, .. } = receipts;
    if agree + disagree + not_observable == 0 {
        return std::collections::BTreeMap::new();
    }
    [
        ("agree", agree),
        ("disagree", disagree),
        ("absent", absent),
        ("not observable", not_observable),
    ]
    .into_iter()
    .map(|(verdict, n)| (verdict.to_owned(), *n))
    .collect()
}
