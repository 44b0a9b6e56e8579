//! Kernel instants in another unit than the client's.

use crate::records::RequestRecord;
use crate::rundir::KernelRow;

/// Steps between units of time.
const STEPS: [f64; 2] = [1e3, 1e6];
/// How far a ratio may lie from a step: no network is a thousand times slower than both the first token and the
/// time between tokens, give or take this factor.
const SLACK: f64 = 2.0;

/// Both durations in words, when the kernel's are off by a step of units, TTFT and TPOT alike.
pub(super) fn off_by_a_unit(row: &RequestRecord, kernel: &KernelRow) -> Option<(String, String)> {
    let (client, seen) = (row.ttft_from_sent_ns?, kernel.ttft_ns()?);
    let ttft = step(client, seen)?;
    let tpot = step(i64::try_from(row.tpot_ns?).ok()?, kernel.tpot_ns()?)?;
    let words = |ns: i64| format!("TTFT {ns} ns");
    (ttft == tpot).then(|| (words(client), format!("{} (another unit?)", words(seen))))
}

/// Which step of units lies between the two, as a power of ten; nothing when none does.
fn step(client: i64, kernel: i64) -> Option<i8> {
    let ratio = client as f64 / kernel as f64;
    let near = |step: &f64| (step / SLACK..=step * SLACK).contains(&ratio.max(1.0 / ratio));
    let power = STEPS.iter().position(near)?;
    let power = if power == 0 { 3 } else { 6 };
    Some(if ratio > 1.0 { power } else { -power })
}
