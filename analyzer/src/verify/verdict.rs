//! The verdict: the worst of what the findings say about the cells that a claim uses.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::caveats::caveats;
use super::code::{Code, Effect, Finding};
use super::decision::{DecisionProof, Proof};
use super::delivery::{DeliveryProof, KernelState};
use super::preconditions::preconditions;
use super::recomputation::Recomputation;
use super::replicates::Replicates;
use super::stability::stability;
use crate::analyze::{AnalysisFile, ArmAnalysis, CellAnalysis, KneeOutcome, Outcome, place};
use crate::evidence::{Evidence, Repetition};
use crate::records::Versioned;
use crate::stats::Interval;

/// What may be done with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// Every gate passed.
    Publishable,
    /// Passed, with reservations that must be published too.
    PublishableWithFootnote,
    /// More repetitions are needed.
    AddReplicates,
    /// Nothing may be published.
    Discarded,
}

impl Verdict {
    /// As printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Publishable => "PUBLISHABLE",
            Self::PublishableWithFootnote => "PUBLISHABLE_WITH_FOOTNOTE",
            Self::AddReplicates => "ADD_REPLICATES",
            Self::Discarded => "DISCARDED",
        }
    }

    fn of(findings: &[Finding]) -> Self {
        let worst = findings.iter().map(|finding| finding.effect).filter(|effect| {
            // A discarded repetition shows in the counts of its cell.
            *effect != Effect::DiscardRepetition
        });
        match worst.max() {
            Some(Effect::Discard) => Self::Discarded,
            Some(Effect::AddReplicates) => Self::AddReplicates,
            Some(Effect::Footnote) => Self::PublishableWithFootnote,
            _ => Self::Publishable,
        }
    }
}

/// A win that the evidence supports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WinClaim {
    /// The arm that wins.
    pub arm: String,
    /// The floor arm.
    pub floor: String,
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// Difference in good-fraction.
    pub difference: f64,
    /// Its interval.
    pub interval: Interval,
}

/// How far an imported measurement carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedVerdict {
    /// The tool that measured.
    pub tool: String,
    /// What the gates and the statistics that could be applied say. It is no leave to publish.
    pub on_what_is_there: Verdict,
    /// Evidence that a publication needs and the export lacks.
    pub lacks: Vec<String>,
}

/// An equivalence within the registered margin that the evidence supports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EquivalenceClaim {
    /// The arm.
    pub arm: String,
    /// The floor arm.
    pub floor: String,
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// Difference in good-fraction, and the margin that was registered.
    pub difference: f64,
    /// Largest difference that counts as none.
    pub delta: f64,
    /// Level of each one-sided test.
    pub alpha: f64,
    /// The 1 - 2 alpha interval, which lies inside the margin.
    pub interval: Interval,
}

/// `verdict.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Name of the campaign.
    pub campaign: String,
    /// What may be done with the result.
    pub verdict: Verdict,
    /// How far it carries when another tool measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedVerdict>,
    /// Where the backends' capacity comes from.
    pub calibration: String,
    /// How far agents watched.
    pub kernel: KernelState,
    /// Wins; none unless the verdict allows publication or asks for repetitions only.
    pub wins: Vec<WinClaim>,
    /// Equivalences with the floor; none unless the verdict allows wins.
    #[serde(default)]
    pub equivalences: Vec<EquivalenceClaim>,
    /// Cells that a claim uses, as `arm r<rate>`.
    pub claim_cells: BTreeSet<String>,
    /// Per arm: the gateway's counters.
    pub decision: Vec<DecisionProof>,
    /// Per arm: who got the requests.
    pub delivery: Vec<DeliveryProof>,
    /// Every finding: of the campaign, of claim cells, and of repetitions.
    pub findings: Vec<Finding>,
    /// What to add.
    pub add_replicates: Option<Replicates>,
}

impl VerdictFile {
    /// The verdict after a second computation of its figures.
    #[must_use]
    pub fn with(self, recomputation: &Recomputation) -> Self {
        let findings: Vec<Finding> =
            self.findings.into_iter().chain(recomputation.finding()).collect();
        let verdict = Verdict::of(&findings);
        let discarded = verdict == Verdict::Discarded;
        let imported = self.imported.map(|imported| ImportedVerdict {
            on_what_is_there: on_what_is_there(&findings),
            ..imported
        });
        Self {
            imported,
            verdict,
            wins: if discarded { Vec::new() } else { self.wins },
            equivalences: if discarded { Vec::new() } else { self.equivalences },
            add_replicates: self.add_replicates.filter(|_| !discarded),
            findings,
            ..self
        }
    }
}

impl Versioned for VerdictFile {
    const SCHEMA: &'static str = "goodput.verdict/1";
}

/// Judges an analysis against its evidence. `run_dir` only enters the command that continues.
#[must_use]
pub fn verify(evidence: &Evidence, analysis: &AnalysisFile, run_dir: &str) -> VerdictFile {
    let kernel = kernel_state(evidence, analysis);
    let most_unpaired = evidence.campaign.keys().thresholds.unpaired_share;
    let delivery: Vec<DeliveryProof> =
        analysis.arms.iter().map(|arm| DeliveryProof::of(arm, kernel, most_unpaired)).collect();
    let decision = decisions(evidence);
    let claims = claim_cells(evidence, analysis, &decision);
    let mut findings = preconditions(evidence, kernel);
    findings.extend(caveats(analysis));
    findings.extend(proofs(&decision, &delivery, kernel));
    findings.extend(cells(evidence, analysis, &claims));
    findings.extend(repetitions(analysis, &claims));
    if claims.is_empty() {
        findings.push(Finding::new(Code::NothingValid, "", "no cell supports any claim"));
    }
    let verdict = Verdict::of(&findings);
    VerdictFile {
        schema: VerdictFile::SCHEMA.to_owned(),
        campaign: analysis.campaign.clone(),
        verdict,
        imported: evidence.import.as_ref().map(|import| ImportedVerdict {
            tool: import.tool.clone(),
            on_what_is_there: on_what_is_there(&findings),
            lacks: lacking(&findings),
        }),
        calibration: "declared".to_owned(),
        kernel,
        wins: wins(analysis, &decision, verdict),
        equivalences: equivalences(analysis, &decision, verdict),
        claim_cells: claims,
        add_replicates: (verdict == Verdict::AddReplicates)
            .then(|| Replicates::of(evidence, analysis, &findings, run_dir))
            .flatten(),
        decision,
        delivery,
        findings,
    }
}

/// The verdict without what every export lacks.
fn on_what_is_there(findings: &[Finding]) -> Verdict {
    let rest: Vec<Finding> = findings.iter().filter(|it| !lacks(it)).cloned().collect();
    Verdict::of(&rest)
}

fn lacks(finding: &Finding) -> bool {
    finding.code == Code::EvidenceLacks && finding.effect == Effect::Discard
}

fn lacking(findings: &[Finding]) -> Vec<String> {
    findings.iter().filter(|it| lacks(it)).map(|it| it.detail.clone()).collect()
}

fn kernel_state(evidence: &Evidence, analysis: &AnalysisFile) -> KernelState {
    if evidence.manifest.without_agent || evidence.campaign.keys().agent.is_empty() {
        return KernelState::NotObserved;
    }
    let cells = analysis.arms.iter().flat_map(|arm| &arm.cells);
    let incomplete = cells
        .flat_map(|cell| &cell.repetitions)
        .flat_map(|rep| &rep.findings)
        .any(|finding| finding.code == Code::KernelIncomplete);
    let complete = analysis.arms.iter().all(|arm| arm.crosscheck.complete);
    if complete && !incomplete { KernelState::Observed } else { KernelState::Incomplete }
}

fn decisions(evidence: &Evidence) -> Vec<DecisionProof> {
    let arms = &evidence.campaign.keys().arm;
    arms.iter()
        .map(|arm| {
            let reps: Vec<&Repetition> =
                evidence.repetitions.iter().filter(|rep| rep.place.arm == arm.name).collect();
            DecisionProof::of(arm, &reps)
        })
        .collect()
}

fn proofs(
    decision: &[DecisionProof],
    delivery: &[DeliveryProof],
    kernel: KernelState,
) -> Vec<Finding> {
    let decided = decision.iter().filter_map(|proof| {
        let shares = delivery.iter().find(|other| other.arm == proof.arm);
        proof.finding(&shares.map(DeliveryProof::words).unwrap_or_default())
    });
    decided.chain(delivery.iter().filter_map(|proof| proof.finding(kernel))).collect()
}

/// What each arm's knee is read from, and every rate of a win or of an equivalence.
fn claim_cells(
    evidence: &Evidence,
    analysis: &AnalysisFile,
    decision: &[DecisionProof],
) -> BTreeSet<String> {
    let need = evidence.campaign.keys().load.published_repetitions() as usize;
    let knees = analysis.arms.iter().flat_map(|arm| {
        let rates = knee_rates(arm, need);
        rates.into_iter().map(|rate| place(&arm.name, Some(rate), None))
    });
    let wins = analysis.comparisons.iter().filter(|comparison| {
        let equivalent = comparison.equivalence.as_ref().is_some_and(|test| test.holds());
        (comparison.outcome == Outcome::Win || equivalent) && !failed(decision, &comparison.arm)
    });
    let of_win = wins.flat_map(|win| {
        [place(&win.arm, Some(win.rate_rps), None), place(&win.floor, Some(win.rate_rps), None)]
    });
    knees.chain(of_win).collect()
}

/// The rung of the knee. "Below the lowest rate" is a claim about the lowest rung. Where the knee cannot be
/// told, the claim waits for every cell that lacks repetitions.
fn knee_rates(arm: &ArmAnalysis, need: usize) -> Vec<f64> {
    match arm.knee.tested {
        KneeOutcome::Bracketed { rung } | KneeOutcome::AtLeast { rung } => vec![rung.rate_rps],
        KneeOutcome::Below { rate_rps } => vec![rate_rps],
        KneeOutcome::NoCandidate => {
            let lacking = arm.cells.iter().filter(|cell| cell.valid < need);
            let rates: Vec<f64> = lacking.map(|cell| cell.rate_rps).collect();
            match (rates.is_empty(), arm.cells.first()) {
                (true, Some(lowest)) => vec![lowest.rate_rps],
                _ => rates,
            }
        }
    }
}

fn failed(decision: &[DecisionProof], arm: &str) -> bool {
    decision.iter().any(|proof| proof.arm == arm && proof.proof == Proof::Failed)
}

fn cells(evidence: &Evidence, analysis: &AnalysisFile, claims: &BTreeSet<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for arm in &analysis.arms {
        if arm.cells.iter().all(|cell| cell.valid == 0) {
            found.push(nothing_valid(evidence, arm));
        }
        found.extend(arm.cells.iter().filter_map(|cell| missing(arm, cell)));
        if !arm.knee.monotone {
            let detail = match arm.knee.conservative_rps {
                Some(rate) => format!("the last rate before the first failure is {rate} rps"),
                None => "the lowest rate already fails".to_owned(),
            };
            found.push(Finding::new(Code::NonMonotone, arm.name.clone(), detail));
        }
        let claimed = arm
            .cells
            .iter()
            .filter(|cell| claims.contains(&place(&arm.name, Some(cell.rate_rps), None)));
        found.extend(claimed.flat_map(|cell| stability(&evidence.campaign, &arm.name, cell)));
    }
    found
}

/// A cell without any record, or with a gap before its last repetition: what is gone may be what failed.
fn missing(arm: &ArmAnalysis, cell: &CellAnalysis) -> Option<Finding> {
    let place = place(&arm.name, Some(cell.rate_rps), None);
    let recorded: BTreeSet<u32> = cell.repetitions.iter().map(|rep| rep.repetition).collect();
    let Some(last) = recorded.last() else {
        return Some(Finding::new(Code::MissingCell, place, "no repetition is recorded"));
    };
    let gaps: Vec<String> =
        (1..*last).filter(|n| !recorded.contains(n)).take(5).map(|n| format!("rep{n}")).collect();
    (!gaps.is_empty()).then(|| {
        let detail = format!("{} without a record, rep{last} has one", gaps.join(", "));
        Finding::new(Code::MissingCell, place, detail)
    })
}

/// Without any valid repetition the reasons are what counts; more repetitions may still mend it while
/// the campaign has not begun to fill its cells.
fn nothing_valid(evidence: &Evidence, arm: &ArmAnalysis) -> Finding {
    let recorded: usize = arm.cells.iter().map(|cell| cell.repetitions.len()).sum();
    let cells = arm.cells.len().max(1);
    let need = evidence.campaign.keys().load.published_repetitions();
    let detail =
        format!("0 of {recorded} repetitions in {cells} cells are valid; {need} needed in each");
    Finding::new(Code::NothingValid, arm.name.clone(), detail)
}

/// Findings of repetitions. Footnotes count only where a claim uses the cell; discards are listed all.
fn repetitions(analysis: &AnalysisFile, claims: &BTreeSet<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for arm in &analysis.arms {
        for cell in &arm.cells {
            let claimed = claims.contains(&place(&arm.name, Some(cell.rate_rps), None));
            for finding in cell.repetitions.iter().flat_map(|rep| &rep.findings) {
                let mut finding = finding.clone();
                finding.effect = match finding.effect {
                    Effect::Footnote if !claimed => Effect::Info,
                    // It discards what is claimed; elsewhere nothing is claimed of its repetition.
                    Effect::Discard if !claimed => Effect::DiscardRepetition,
                    effect => effect,
                };
                found.push(finding);
            }
        }
    }
    found
}

fn equivalences(
    analysis: &AnalysisFile,
    decision: &[DecisionProof],
    verdict: Verdict,
) -> Vec<EquivalenceClaim> {
    if verdict == Verdict::Discarded {
        return Vec::new();
    }
    let proved = analysis.comparisons.iter().filter(|it| !failed(decision, &it.arm));
    proved
        .filter_map(|comparison| {
            let tost = &comparison.equivalence.as_ref().filter(|test| test.holds())?.tost;
            Some(EquivalenceClaim {
                arm: comparison.arm.clone(),
                floor: comparison.floor.clone(),
                rate_rps: comparison.rate_rps,
                difference: tost.estimate?,
                delta: tost.margin.delta,
                alpha: tost.margin.alpha,
                interval: tost.interval.clone(),
            })
        })
        .collect()
}

fn wins(analysis: &AnalysisFile, decision: &[DecisionProof], verdict: Verdict) -> Vec<WinClaim> {
    if verdict == Verdict::Discarded {
        return Vec::new();
    }
    let supported = analysis.comparisons.iter().filter(|comparison| {
        comparison.outcome == Outcome::Win && !failed(decision, &comparison.arm)
    });
    supported
        .filter_map(|comparison| {
            let difference = comparison.difference.as_ref()?;
            let pooled = comparison.read_from == "pooled";
            let interval = if pooled { &comparison.pooled_interval } else { &difference.interval };
            Some(WinClaim {
                arm: comparison.arm.clone(),
                floor: comparison.floor.clone(),
                rate_rps: comparison.rate_rps,
                difference: difference.estimate,
                interval: interval.clone(),
            })
        })
        .collect()
}
