//! Stability of a cell that a claim uses.

use super::code::{Code, Finding};
use crate::analyze::{CellAnalysis, place};
use crate::campaign::Campaign;
use crate::stats::{Cv, requests_needed};

/// Findings of one cell: too few repetitions, or a good-fraction that varies too much.
pub(super) fn stability(campaign: &Campaign, arm: &str, cell: &CellAnalysis) -> Vec<Finding> {
    let keys = campaign.keys();
    let (need, cap) =
        (keys.load.published_repetitions() as usize, keys.load.max_repetitions as usize);
    let recorded = cell.repetitions.len();
    let place = place(arm, Some(cell.rate_rps), None);
    if cell.valid < need {
        let detail = format!("{} valid of {recorded} recorded, {need} needed", cell.valid);
        let code = if recorded >= cap { Code::FewValidAtCap } else { Code::FewRepetitions };
        return vec![Finding::new(code, place, detail)];
    }
    if cell.cv.within(keys.statistics.cv_bound) {
        return Vec::new();
    }
    let code = if recorded >= cap { Code::CvOverBoundAtCap } else { Code::CvOverBound };
    vec![Finding::new(code, place, variation(campaign, cell))]
}

fn variation(campaign: &Campaign, cell: &CellAnalysis) -> String {
    let bound = campaign.keys().statistics.cv_bound;
    let text = match cell.cv {
        Cv::Value { cv } => {
            format!(
                "CV {:.1} % over {} repetitions, bound {:.0} %",
                cv * 100.0,
                cell.valid,
                bound * 100.0
            )
        }
        Cv::ZeroMean => "CV undefined: no request was good".to_owned(),
        Cv::TooFew => "CV undefined: one repetition".to_owned(),
    };
    match (cell.cv_binomial_floor, cell.good_fraction) {
        (Some(floor), Some(p)) if floor > bound => match requests_needed(p, bound) {
            Some(requests) => format!(
                "{text}; binomial noise alone gives {:.1} %: use at least {requests} requests a repetition, not more repetitions",
                floor * 100.0
            ),
            None => text,
        },
        _ => text,
    }
}
