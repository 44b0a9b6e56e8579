//! The figures, for machines and for people (docs/testing.md).

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::programs::Costs;
use crate::quantiles::Quantile;

/// A bound from the design and whether it is kept.
#[derive(Serialize)]
struct Target {
    name: &'static str,
    value: f64,
    bound: f64,
    met: bool,
}

/// Everything measured; keys are written in this order.
#[derive(Serialize)]
pub(crate) struct Report {
    schema: &'static str,
    quick: bool,
    cpus: usize,
    requests: u64,
    run_dir_bytes: u64,
    analyze_seconds: f64,
    verify_seconds: f64,
    cpu_seconds: f64,
    verdict: String,
    read_mb_per_s: f64,
    requests_per_s: f64,
    peak_rss_mib: f64,
    quantile_bca_speedup_vs_scipy: Option<f64>,
    quantile_bca_ends_apart: Option<f64>,
    quantiles: Vec<Quantile>,
    targets: Vec<Target>,
}

impl Report {
    pub(crate) fn new(
        quick: bool,
        requests: u64,
        bytes: u64,
        costs: Costs,
        quantiles: Vec<Quantile>,
    ) -> Self {
        let verify_seconds = costs.verify.as_secs_f64();
        let fold = |of: fn(&Quantile) -> Option<f64>, better: fn(f64, f64) -> f64| {
            quantiles.iter().filter_map(of).reduce(better)
        };
        let mut report = Self {
            schema: "goodput.bench-analyze/1",
            quick,
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            requests,
            run_dir_bytes: bytes,
            analyze_seconds: costs.analyze.as_secs_f64(),
            verify_seconds,
            cpu_seconds: costs.cpu.as_secs_f64(),
            verdict: costs.verdict,
            read_mb_per_s: bytes as f64 / 1e6 / verify_seconds,
            requests_per_s: requests as f64 / verify_seconds,
            peak_rss_mib: costs.peak_rss_kib as f64 / 1024.0,
            quantile_bca_speedup_vs_scipy: fold(|it| it.speedup, f64::min),
            quantile_bca_ends_apart: fold(|it| it.ends_apart, f64::max),
            quantiles,
            targets: Vec::new(),
        };
        report.judge();
        report
    }

    fn judge(&mut self) {
        let at_least = |name, value, bound| Target { name, value, bound, met: value >= bound };
        self.targets = vec![
            at_least("read_mb_per_s", self.read_mb_per_s, 200.0),
            Target {
                name: "peak_rss_mib",
                value: self.peak_rss_mib,
                bound: 1024.0,
                met: self.peak_rss_mib < 1024.0,
            },
        ];
        if let Some(speedup) = self.quantile_bca_speedup_vs_scipy {
            self.targets.push(at_least("quantile_bca_speedup_vs_scipy", speedup, 1_000.0));
        }
    }

    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(fs::write(path, bytes)?)
    }

    pub(crate) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            println!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        println!("{} requests, {} bytes, {} CPUs", self.requests, self.run_dir_bytes, self.cpus);
        println!("analyze  {:8.2} s", self.analyze_seconds);
        println!("verify   {:8.2} s   {}", self.verify_seconds, self.verdict);
        println!("CPU      {:8.2} s", self.cpu_seconds);
        println!("requests {:8.0} a second", self.requests_per_s);
        for it in &self.quantiles {
            let scipy = it.scipy.as_ref().map_or("not measured".to_owned(), |scipy| {
                format!("{:.1} s, {:?}", scipy.seconds, scipy.ends)
            });
            let (p, seconds, ends) = (it.p, it.seconds, it.ends);
            println!("p{:<7} {:.4} s, {ends:?}; scipy: {scipy}", p * 100.0, seconds);
        }
        for Target { name, value, bound, met } in &self.targets {
            let verdict = if *met { "met" } else { "MISSED" };
            println!("target {name:<32} {value:>10.1}, bound {bound}: {verdict}");
        }
        Ok(())
    }
}
