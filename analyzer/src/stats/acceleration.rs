//! The acceleration of BCa intervals: a sixth of the skewness of a statistic's influence values.

use super::moments::moments;

/// sum U^3 / (6 (sum U^2)^1.5) with U = mean - leave-one-out value.
///
/// `None` where every leave-one-out value is the same: 0/0.
#[must_use]
pub fn acceleration(jackknife: &[f64]) -> Option<f64> {
    let (squares, cubes) = powers(jackknife, 1.0)?;
    ratio(cubes, squares)
}

/// The same for a statistic of two samples, from the leave-one-out values of each: the influence of a value
/// is (n-1) U / n of its own sample.
#[must_use]
pub fn acceleration_two_sample(first: &[f64], second: &[f64]) -> Option<f64> {
    let scale = |values: &[f64]| (values.len() as f64 - 1.0) / values.len() as f64;
    let (squares_a, cubes_a) = powers(first, scale(first))?;
    let (squares_b, cubes_b) = powers(second, scale(second))?;
    ratio(cubes_a + cubes_b, squares_a + squares_b)
}

/// Of a mean: skewness / (6 sqrt(n)), which is the jackknife's value without a jackknife.
#[must_use]
pub fn acceleration_of_mean(values: &[f64]) -> Option<f64> {
    let centre = moments(values)?.mean;
    let power = |n: i32| values.iter().map(|value| (value - centre).powi(n)).sum::<f64>();
    ratio(power(3), power(2))
}

fn ratio(cubes: f64, squares: f64) -> Option<f64> {
    Some(cubes / (6.0 * squares.powf(1.5))).filter(|acceleration| acceleration.is_finite())
}

fn powers(jackknife: &[f64], scale: f64) -> Option<(f64, f64)> {
    let centre = moments(jackknife)?.mean;
    let sum = |n| jackknife.iter().map(|value| (scale * (centre - value)).powi(n)).sum::<f64>();
    Some((sum(2), sum(3)))
}
