//! Building a schedule from a trace, a rate and a seed.

use std::collections::BTreeSet;

use protocol::TraceId;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};

use super::arrivals::{Arrivals, burstiness, offsets};
use super::{Planned, Schedule, ScheduleError};
use crate::trace::Trace;

const MAX_RATE_RPS: f64 = 1e6;
const NS_PER_SECOND: f64 = 1e9;
/// Keeps every instant within 63 bits.
const MAX_LENGTH_S: f64 = 4e9;

/// What one (arm, rate, repetition) is to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<'a> {
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// Arrival process.
    pub arrivals: Arrivals,
    /// Requests; `None` sends every row of the trace.
    pub requests: Option<usize>,
    /// The campaign's seed.
    pub seed: u64,
    /// Repetition; arrivals use `seed + repetition`.
    pub repetition: u32,
    /// The arm; it enters the trace ids alone, so that every arm replays the same arrivals.
    pub arm: &'a str,
}

/// Fixes the schedule.
///
/// # Errors
/// Every [`ScheduleError`].
pub fn build(trace: &Trace, plan: &Plan<'_>) -> Result<Schedule, ScheduleError> {
    let wanted = plan.requests.unwrap_or(trace.rows().len());
    let rows = trace
        .rows()
        .get(..wanted)
        .ok_or(ScheduleError::TooFewRows { wanted, rows: trace.rows().len() })?;
    let length_ns = length_ns(wanted, plan.rate_rps)?;
    let seed = plan.seed.wrapping_add(u64::from(plan.repetition));
    let order = offsets(plan.arrivals, rows, length_ns, seed)?;
    let mut ids = TraceIds::new(plan);
    let requests: Vec<Planned> = (0_u64..)
        .zip(order)
        .map(|(index, (row, offset_ns))| Planned {
            index,
            row,
            offset_ns,
            input_tokens: rows[row].input_tokens(),
            output_tokens: rows[row].output_tokens,
            trace_id: ids.next(),
        })
        .collect();
    let times: Vec<u64> = requests.iter().map(|request| request.offset_ns).collect();
    Ok(Schedule { burstiness: burstiness(&times), requests, rate_rps: plan.rate_rps, length_ns })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the range is checked first"
)]
pub(crate) fn length_ns(requests: usize, rate_rps: f64) -> Result<u64, ScheduleError> {
    if requests == 0 {
        return Err(ScheduleError::NoRequests);
    }
    if !(rate_rps > 0.0 && rate_rps <= MAX_RATE_RPS) {
        return Err(ScheduleError::Rate(rate_rps));
    }
    let seconds = requests as f64 / rate_rps;
    if seconds > MAX_LENGTH_S {
        return Err(ScheduleError::TooLong(seconds));
    }
    Ok((seconds * NS_PER_SECOND).round() as u64)
}

/// Distinct trace ids, from a seed of their own per (arm, rate, repetition).
struct TraceIds {
    rng: ChaCha8Rng,
    seen: BTreeSet<TraceId>,
}

impl TraceIds {
    fn new(plan: &Plan<'_>) -> Self {
        let Plan { seed, arm, rate_rps, repetition, .. } = plan;
        let text = format!("goodput trace id\n{seed}\n{arm}\n{rate_rps}\n{repetition}");
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        Self { rng: ChaCha8Rng::from_seed(digest), seen: BTreeSet::new() }
    }

    fn next(&mut self) -> TraceId {
        loop {
            let mut bytes = [0; 16];
            self.rng.fill_bytes(&mut bytes);
            if let Ok(id) = TraceId::new(bytes)
                && self.seen.insert(id)
            {
                return id;
            }
        }
    }
}
