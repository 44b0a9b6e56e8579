//! What `goodput replay` prints at the end.

use analyzer::replay::RunSummary;
use serde::Serialize;

const NS_PER_MS: f64 = 1e6;

/// Percentiles in nanoseconds, by nearest rank.
#[derive(Serialize)]
struct Percentiles {
    p50_ns: Option<i64>,
    p90_ns: Option<i64>,
    p99_ns: Option<i64>,
}

impl Percentiles {
    fn of(sorted: &[i64]) -> Self {
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied()
        };
        Self { p50_ns: at(50), p90_ns: at(90), p99_ns: at(99) }
    }

    fn line(&self) -> String {
        let [p50, p90, p99] = [self.p50_ns, self.p90_ns, self.p99_ns].map(ms);
        format!("p50 {p50}, p90 {p90}, p99 {p99}")
    }
}

/// The printed summary as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    schema: &'static str,
    run: &'a analyzer::records::RunRecord,
    classes: &'a std::collections::BTreeMap<analyzer::outcome::Class, u64>,
    ttft: Percentiles,
    tpot: Percentiles,
}

/// Prints the summary on stdout.
pub(crate) fn print(summary: &RunSummary, json: bool) -> anyhow::Result<()> {
    let tpot: Vec<i64> = summary.tpot_ns.iter().filter_map(|&ns| i64::try_from(ns).ok()).collect();
    let printed = Printed {
        schema: "goodput.replay-summary/1",
        run: &summary.run,
        classes: &summary.classes,
        ttft: Percentiles::of(&summary.ttft_ns),
        tpot: Percentiles::of(&tpot),
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&printed)?);
    } else {
        print_text(summary, &printed);
    }
    Ok(())
}

fn print_text(summary: &RunSummary, printed: &Printed<'_>) {
    let run = &summary.run;
    println!(
        "attempted {}, dispatched {}, delivered {}",
        run.attempted,
        run.dispatched,
        summary.delivered()
    );
    println!("offered {:.3} req/s, achieved {:.3} req/s", run.offered_rps, run.achieved_rps);
    println!("client lag p50 {}, p99 {}", ms(run.lag_p50_ns), ms(run.lag_p99_ns));
    println!("TTFT {}", printed.ttft.line());
    println!("TPOT {}", printed.tpot.line());
    for (class, count) in &summary.classes {
        println!("  {:<18} {count}", class.name());
    }
    for warning in warnings(run) {
        println!("warning: {warning}");
    }
}

fn warnings(run: &analyzer::records::RunRecord) -> Vec<String> {
    let mut warnings = Vec::new();
    if run.interrupted {
        warnings.push("interrupted: what was left is booked as cancelled_by_tool".to_owned());
    }
    if run.clock_steps > 0 {
        warnings.push(format!("CLOCK_STEP: CLOCK_REALTIME stepped {} times", run.clock_steps));
    }
    if run.stamp_fallbacks > 0 {
        warnings.push(format!("{} requests lack kernel receive stamps", run.stamp_fallbacks));
    }
    if run.oversized_bodies > 0 {
        warnings.push(format!(
            "{} bodies exceed 768 KiB, where LoxiLB stops inspecting",
            run.oversized_bodies
        ));
    }
    warnings
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
fn ms(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.2} ms", ns as f64 / NS_PER_MS))
}
