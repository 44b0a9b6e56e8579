//! MSER-5: where a warm-up would end if the data decided (White 1997).
//!
//! A check only. Truncating by it would change how many requests an arm attempted.

/// Values in a batch.
const BATCH: usize = 5;

/// Where the truncation that leaves the smallest standard error lies.
#[derive(Clone, Debug, PartialEq)]
pub struct Mser {
    /// Means of the whole batches.
    pub batch_means: Vec<f64>,
    /// The criterion for every number of batches left out, from 0 to half of them.
    pub criterion: Vec<f64>,
    /// Batches to leave out.
    pub batches: usize,
    /// Values to leave out.
    pub values: usize,
    /// Mean of the remaining batches.
    pub mean_after: f64,
}

/// argmin over d <= m/2 of sum_{i >= d} (Z_i - mean)^2 / (m - d)^2 over the m batch means.
///
/// `None` below two whole batches.
#[must_use]
pub fn mser5(values: &[f64]) -> Option<Mser> {
    let batches = values.chunks_exact(BATCH);
    let means: Vec<f64> = batches.map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if means.len() < 2 || means.iter().any(|mean| !mean.is_finite()) {
        return None;
    }
    let mean_of = |kept: &[f64]| kept.iter().sum::<f64>() / kept.len() as f64;
    let criterion: Vec<f64> = (0..=means.len() / 2)
        .map(|out| {
            let kept = &means[out..];
            let centre = mean_of(kept);
            let squares: f64 = kept.iter().map(|mean| (mean - centre).powi(2)).sum();
            squares / (kept.len() as f64).powi(2)
        })
        .collect();
    let smallest = criterion.iter().copied().fold(f64::INFINITY, f64::min);
    let out = criterion.iter().position(|value| *value == smallest)?;
    Some(Mser {
        batches: out,
        values: out * BATCH,
        mean_after: mean_of(&means[out..]),
        criterion,
        batch_means: means,
    })
}
