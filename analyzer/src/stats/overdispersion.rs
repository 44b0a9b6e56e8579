//! Do repetitions scatter as requests alone would make them? What "agrees with the pooled bootstrap" can mean.

use serde::{Deserialize, Serialize};

use super::distribution::{chi2_quantile, chi2_upper, normal_quantile, t_quantile, upper_tail};
use super::proportion::Counts;

/// Confidence of the band in which a dispersion counts as agreement.
pub const DISPERSION_CONFIDENCE: f64 = 0.99;

/// What the scatter of the repetitions says about pooled intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DispersionWord {
    /// As independent requests would scatter.
    Agrees,
    /// More: pooled intervals are too narrow by sqrt(phi).
    Overdispersed,
    /// Less: every repetition asks the same requests, and pooled intervals are too wide.
    Underdispersed,
}

impl DispersionWord {
    /// The word as printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "AGREES",
            Self::Overdispersed => "OVERDISPERSED",
            Self::Underdispersed => "UNDERDISPERSED",
        }
    }
}

/// Dispersion of good counts over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    /// Chi-square of the 2 x G table good, not good.
    pub chi2: f64,
    /// Repetitions minus one.
    pub df: u32,
    /// P(chi-square > the observed one) when requests are independent.
    pub p_upper: f64,
    /// chi2 / df, an estimate of the design effect.
    pub phi: f64,
    /// Where phi lies in 99 % of cases when requests are independent.
    pub band: (f64, f64),
    /// What that says.
    pub word: DispersionWord,
}

/// Chi-square over phi's band; `None` below two repetitions with requests, or when all or no requests are good.
#[must_use]
pub fn overdispersion(repetitions: &[Counts]) -> Option<Dispersion> {
    let used: Vec<&Counts> = repetitions.iter().filter(|rep| rep.attempted > 0).collect();
    let pooled = used.iter().fold(Counts::default(), |sum, rep| sum.plus(**rep));
    let p = pooled.fraction()?;
    let df = u32::try_from(used.len().checked_sub(1)?).ok().filter(|df| *df > 0)?;
    if p <= 0.0 || p >= 1.0 {
        return None;
    }
    let terms = used.iter().map(|rep| {
        let expected = rep.attempted as f64 * p;
        (rep.good as f64 - expected).powi(2) / (expected * (1.0 - p))
    });
    let chi2: f64 = terms.sum();
    let degrees = f64::from(df);
    let upper = upper_tail(DISPERSION_CONFIDENCE);
    let band =
        (chi2_quantile(1.0 - upper, degrees)? / degrees, chi2_quantile(upper, degrees)? / degrees);
    let phi = chi2 / degrees;
    let word = match phi {
        phi if phi < band.0 => DispersionWord::Underdispersed,
        phi if phi > band.1 => DispersionWord::Overdispersed,
        _ => DispersionWord::Agrees,
    };
    Some(Dispersion { chi2, df, p_upper: chi2_upper(chi2, degrees)?, phi, band, word })
}

/// Lower end, median and upper end of t half width / pooled half width over `groups` repetitions that are
/// truly exchangeable: what "agree" can mean at best.
#[must_use]
pub fn half_width_ratio_band(groups: usize, confidence: f64) -> Option<[f64; 3]> {
    let df = groups.checked_sub(1).filter(|df| *df > 0)? as f64;
    let upper = upper_tail(confidence);
    let widen = t_quantile(upper, df)? / normal_quantile(upper)?;
    let at = |q| Some(widen * (chi2_quantile(q, df)? / df).sqrt());
    Some([at(1.0 - upper)?, at(0.5)?, at(upper)?])
}
