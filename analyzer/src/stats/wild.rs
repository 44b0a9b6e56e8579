//! The wild cluster bootstrap, enumerated. It is not offered: with Rademacher signs five repetitions cannot go
//! below 2/32, and the permutation test assumes less. It stands here for its reference values.

use super::moments::moments;

/// Webb's six-point weights.
pub(super) fn webb() -> [f64; 6] {
    let (large, small) = (1.5_f64.sqrt(), 0.5_f64.sqrt());
    [-large, -1.0, -small, small, 1.0, large]
}

/// t of the mean against 0.
pub(super) fn t_statistic(values: &[f64]) -> f64 {
    let summary = moments(values).unwrap();
    summary.mean / summary.standard_error().unwrap()
}

/// Share of all weightings, null imposed, whose |t| is at least that of the data.
pub(super) fn wild_p(differences: &[f64], weights: &[f64]) -> (f64, usize) {
    let observed = t_statistic(differences).abs();
    let total = weights.len().pow(u32::try_from(differences.len()).unwrap());
    let extreme = (0..total).filter(|code| {
        let mut rest = *code;
        let weighted: Vec<f64> = differences
            .iter()
            .map(|value| {
                let weight = weights[rest % weights.len()];
                rest /= weights.len();
                value * weight
            })
            .collect();
        let t = t_statistic(&weighted).abs();
        t.is_nan() || t >= observed - 1e-12
    });
    (extreme.count() as f64 / total as f64, total)
}
