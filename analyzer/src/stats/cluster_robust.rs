//! Sandwich standard errors of one arm's good-fraction with repetitions as clusters.
//!
//! With equal sizes CR2 of a two-arm difference is Welch's standard error, so that no regression is
//! needed for a comparison.

use super::Interval;
use super::distribution::{t_quantile, upper_tail};
use super::proportion::Counts;

/// How a cluster's residual is scaled up for the part that the fit took away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterRobust {
    /// Not at all.
    Cr0,
    /// By sqrt(G / (G-1)).
    Cr1,
    /// By sqrt(G / (G-1) x (N-1) / (N-k)) with k = 1 coefficient: Stata's and statsmodels' rule.
    Cr1S,
    /// By 1 / sqrt(1 - share of the cluster) (Bell and McCaffrey 2002).
    Cr2,
    /// By 1 / (1 - share of the cluster), the jackknife's.
    Cr3,
}

/// A standard error with the degrees of freedom that go with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RobustError {
    /// Pooled good-fraction.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Satterthwaite's degrees of freedom under equal variances.
    pub df: f64,
}

impl RobustError {
    /// estimate +/- t standard errors, with the given degrees of freedom.
    #[must_use]
    pub fn interval(&self, df: f64, confidence: f64) -> Interval {
        if self.standard_error == 0.0 {
            return Interval::Degenerate { reason: "no variance between repetitions".to_owned() };
        }
        let Some(t) = t_quantile(upper_tail(confidence), df) else {
            return Interval::Degenerate { reason: format!("no t quantile at {df}") };
        };
        let half = t * self.standard_error;
        Interval::Interval { low: self.estimate - half, high: self.estimate + half, confidence }
    }
}

/// Standard error of pooled good / attempted; `None` below two repetitions with requests.
#[must_use]
pub fn cluster_robust(repetitions: &[Counts], kind: ClusterRobust) -> Option<RobustError> {
    let pooled = repetitions.iter().fold(Counts::default(), |sum, rep| sum.plus(*rep));
    let estimate = pooled.fraction()?;
    let used = repetitions.iter().filter(|rep| rep.attempted > 0);
    let clusters: Vec<(f64, f64)> =
        used.map(|rep| (rep.good as f64, rep.attempted as f64)).collect();
    if clusters.len() < 2 {
        return None;
    }
    let (n, groups) = (pooled.attempted as f64, clusters.len() as f64);
    let scale = |size: f64| match kind {
        ClusterRobust::Cr0 => 1.0,
        // With an intercept alone k = 1, and (N-1) / (N-k) is 1.
        ClusterRobust::Cr1 | ClusterRobust::Cr1S => (groups / (groups - 1.0)).sqrt(),
        ClusterRobust::Cr2 => 1.0 / (1.0 - size / n).sqrt(),
        ClusterRobust::Cr3 => 1.0 / (1.0 - size / n),
    };
    let squares =
        clusters.iter().map(|(good, size)| (scale(*size) * (good - size * estimate)).powi(2));
    let standard_error = squares.sum::<f64>().sqrt() / n;
    let sizes: Vec<f64> = clusters.iter().map(|(_, size)| *size).collect();
    Some(RobustError { estimate, standard_error, df: satterthwaite(&sizes, n, scale) })
}

/// (trace M)^2 / trace(M M) with M the covariance of the scaled cluster residuals under equal variances.
fn satterthwaite(sizes: &[f64], n: f64, scale: impl Fn(f64) -> f64) -> f64 {
    let entry = |i: usize, j: usize| {
        let own = if i == j { sizes[i] } else { 0.0 };
        scale(sizes[i]) * scale(sizes[j]) * (own - sizes[i] * sizes[j] / n)
    };
    let trace: f64 = (0..sizes.len()).map(|i| entry(i, i)).sum();
    let pairs = (0..sizes.len()).flat_map(|i| (0..sizes.len()).map(move |j| (i, j)));
    trace.powi(2) / pairs.map(|(i, j)| entry(i, j).powi(2)).sum::<f64>()
}
