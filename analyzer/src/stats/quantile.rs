//! Sample quantiles. Type 1 (a value that occurred) scores; type 7 (interpolated) is for display.

/// Type 1, the inverse of the empirical distribution: `sorted[ceil(n p) - 1]`.
///
/// `sorted` must be ascending. `None` when it is empty or `p` lies outside 0..=1.
#[must_use]
pub fn quantile_type1<T: Copy>(sorted: &[T], p: f64) -> Option<T> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    // Without the slack 0.95 x 20 would round to 19.000000000000004 and pick the next rank.
    let exact = sorted.len() as f64 * p;
    let rank = index((exact - 1e-9).ceil()).max(1);
    sorted.get(rank - 1).copied()
}

/// Type 7, linear interpolation at (n-1) p: numpy's, R's and vLLM's default.
///
/// `sorted` must be ascending. `None` when it is empty or `p` lies outside 0..=1.
#[must_use]
pub fn quantile_type7(sorted: &[f64], p: f64) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    let position = (sorted.len() - 1) as f64 * p;
    let below = sorted.get(index(position.floor()))?;
    let above = sorted.get(index(position.ceil()))?;
    Some(below + (above - below) * position.fract())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers pass a rank between 0 and the length of a slice"
)]
fn index(rank: f64) -> usize {
    rank as usize
}
