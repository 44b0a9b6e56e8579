//! Many comparisons at once: every candidate tried counts, the discarded ones too.

/// Holm's adjusted p in the given order: the largest over j <= i of min(1, (m - j + 1) p(j)) (Holm 1979).
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (passed, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - passed) as f64;
        largest = largest.max((left * p_values[index]).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

/// Bonferroni's adjusted p: m p, at most 1.
#[must_use]
pub fn bonferroni(p_values: &[f64]) -> Vec<f64> {
    p_values.iter().map(|p| (p * p_values.len() as f64).min(1.0)).collect()
}

/// Confidence of each of `comparisons` intervals that hold together with `confidence`.
#[must_use]
pub fn simultaneous_confidence(confidence: f64, comparisons: usize) -> f64 {
    1.0 - (1.0 - confidence) / comparisons.max(1) as f64
}
