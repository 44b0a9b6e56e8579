//! Do arrivals look Poisson? Figures that let a claim of it be checked.
//!
//! No Kolmogorov-Smirnov test: with a fitted mean its p is wrong (Lilliefors).

use super::distribution::chi2_upper;
use super::moments::moments;

/// Squared coefficient of variation of the gaps: 1 for Poisson arrivals, more for bursts, 0 for a metronome.
///
/// `None` below two gaps or at mean 0.
#[must_use]
pub fn gap_cv2(gaps: &[f64]) -> Option<f64> {
    let summary = moments(gaps).filter(|summary| summary.mean != 0.0)?;
    Some((summary.sd? / summary.mean).powi(2)).filter(|ratio| ratio.is_finite())
}

/// Variance of counts in equal windows over their mean: 1 for Poisson arrivals.
#[must_use]
pub fn fano_factor(counts: &[f64]) -> Option<f64> {
    let summary = moments(counts).filter(|summary| summary.mean != 0.0)?;
    Some(summary.sd?.powi(2) / summary.mean).filter(|ratio| ratio.is_finite())
}

/// The dispersion test of counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DispersionTest {
    /// sum (count - mean)^2 / mean.
    pub chi2: f64,
    /// P(chi-square with n-1 degrees of freedom > it): small means burstier than Poisson.
    pub p_upper: f64,
}

/// Tests counts in equal windows against a Poisson process of constant rate.
#[must_use]
pub fn dispersion_test(counts: &[f64]) -> Option<DispersionTest> {
    let df = (counts.len() as f64) - 1.0;
    let chi2 = fano_factor(counts)? * df;
    Some(DispersionTest { chi2, p_upper: chi2_upper(chi2, df)? })
}
