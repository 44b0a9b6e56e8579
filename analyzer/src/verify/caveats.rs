//! What the method warns of before a verdict is quoted, found in the evidence.

use super::code::{Code, Finding};
use crate::analyze::{AnalysisFile, ArmAnalysis, Comparison, Outcome};
use crate::rundir::SloOrigin;

/// Every caveat that holds.
pub(super) fn caveats(analysis: &AnalysisFile) -> Vec<Finding> {
    let all = [slo_origin(analysis), topology(analysis)].into_iter().flatten();
    all.chain(load_dependence(analysis)).collect()
}

fn slo_origin(analysis: &AnalysisFile) -> Option<Finding> {
    match &analysis.slo.origin {
        SloOrigin::Fixed { origin } => Some(Finding::new(
            Code::SloNotFromBaseline,
            "",
            format!("fixed by the campaign; its stated origin: {origin}"),
        )),
        SloOrigin::MultipleOfBaseline { .. } => None,
    }
}

/// Receipts show which arms split prefill from decode.
fn topology(analysis: &AnalysisFile) -> Option<Finding> {
    let split = |arm: &&ArmAnalysis| arm.crosscheck.receipts.disaggregated > 0;
    let served = |arm: &&ArmAnalysis| arm.crosscheck.completed > 0;
    let names = |arms: Vec<&ArmAnalysis>| {
        arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (apart, whole): (Vec<_>, Vec<_>) = analysis.arms.iter().filter(served).partition(split);
    (!apart.is_empty() && !whole.is_empty()).then(|| {
        let detail = format!("disaggregated: {}; aggregated: {}", names(apart), names(whole));
        Finding::new(Code::TopologyDiffers, "", detail)
    })
}

/// Per arm: the rates at which it wins, when there are others at which it does not.
fn load_dependence(analysis: &AnalysisFile) -> Vec<Finding> {
    let of_arm = |arm: &ArmAnalysis| {
        let rates = |is: fn(&Comparison) -> bool| -> Vec<String> {
            let of_arm = analysis.comparisons.iter().filter(|it| it.arm == arm.name && is(it));
            of_arm.map(|it| it.rate_rps.to_string()).collect()
        };
        let wins = rates(|it| it.outcome == Outcome::Win);
        let others = rates(|it| matches!(it.outcome, Outcome::Loss | Outcome::Inconclusive));
        (!wins.is_empty() && !others.is_empty()).then(|| {
            let detail =
                format!("a win at {} rps, none at {} rps", wins.join(", "), others.join(", "));
            Finding::new(Code::LoadDependent, arm.name.clone(), detail)
        })
    };
    analysis.arms.iter().filter_map(of_arm).collect()
}
