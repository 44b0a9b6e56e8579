//! Intervals of p50 and p99 of one sample, in closed form and by scipy's resampling.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, LogNormal};
use serde::{Deserialize, Serialize};

use analyzer::stats::quantile_interval;

const CONFIDENCE: f64 = 0.95;
const SCRIPT: &str = include_str!("scipy_bca.py");
/// Timed this often; the fastest is what the work takes.
const ROUNDS: u32 = 5;

/// One quantile.
#[derive(Serialize)]
pub(crate) struct Quantile {
    pub(crate) p: f64,
    pub(crate) samples: usize,
    /// Sorting included.
    pub(crate) seconds: f64,
    pub(crate) ends: (f64, f64),
    /// `null` without a Python that has scipy.
    pub(crate) scipy: Option<Scipy>,
    /// scipy's time divided by ours.
    pub(crate) speedup: Option<f64>,
    /// The larger distance of two ends, as a share of the interval's width.
    pub(crate) ends_apart: Option<f64>,
}

/// What scipy's `bootstrap(method="BCa")` gave.
#[derive(Serialize, Deserialize)]
pub(crate) struct Scipy {
    pub(crate) version: String,
    pub(crate) resamples: u32,
    pub(crate) seconds: f64,
    pub(crate) ends: (f64, f64),
}

/// Both quantiles of a log-normal sample.
pub(crate) fn measure(
    python: Option<&Path>,
    folder: &Path,
    quick: bool,
) -> anyhow::Result<Vec<Quantile>> {
    let count = if quick { 10_000 } else { 100_000 };
    let resamples = if quick { 999 } else { 9_999 };
    let law = LogNormal::new(5.0, 0.5)?;
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let sample: Vec<f64> = (0..count).map(|_| law.sample(&mut rng)).collect();
    let file = folder.join("sample.f64");
    fs::write(&file, sample.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
    [0.5, 0.99]
        .into_iter()
        .map(|p| {
            let (seconds, ends) = ours(&sample, p)?;
            let scipy = python.map(|python| theirs(python, &file, p, resamples)).transpose()?;
            Ok(Quantile {
                p,
                samples: count,
                seconds,
                ends,
                speedup: scipy.as_ref().map(|scipy| scipy.seconds / seconds),
                ends_apart: scipy.as_ref().map(|scipy| apart(ends, scipy.ends)),
                scipy,
            })
        })
        .collect()
}

fn ours(sample: &[f64], p: f64) -> anyhow::Result<(f64, (f64, f64))> {
    let mut best = f64::INFINITY;
    let mut ends = None;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut sorted = black_box(sample).to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        ends = quantile_interval(&sorted, p, CONFIDENCE).and_then(|interval| interval.ends());
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok((best, ends.context("the sample has no such interval")?))
}

fn theirs(python: &Path, file: &Path, p: f64, resamples: u32) -> anyhow::Result<Scipy> {
    let out = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(file)
        .args([p.to_string(), CONFIDENCE.to_string(), resamples.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(out.status.success(), "{}: {}", python.display(), out.status);
    Ok(serde_json::from_slice(&out.stdout)?)
}

fn apart(ours: (f64, f64), theirs: (f64, f64)) -> f64 {
    let larger = (ours.0 - theirs.0).abs().max((ours.1 - theirs.1).abs());
    larger / (theirs.1 - theirs.0)
}
