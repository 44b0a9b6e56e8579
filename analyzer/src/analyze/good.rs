//! The good mask: TTFT within its SLO and TPOT within its SLO, failures in the denominator.

use crate::campaign::SingleTokenPolicy;
use crate::outcome::Class;
use crate::records::{RequestRecord, ScheduleRecord};
use crate::rundir::SloFile;
use crate::stats::Counts;

/// The two bounds, ns. A request on a bound is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest TTFT from the planned instant.
    pub ttft_ns: u64,
    /// Largest time per output token.
    pub tpot_ns: u64,
}

impl From<&SloFile> for Bounds {
    fn from(slo: &SloFile) -> Self {
        Self { ttft_ns: slo.ttft_ns, tpot_ns: slo.tpot_ns }
    }
}

/// Whether a request is good.
#[must_use]
pub fn good(row: &RequestRecord, bounds: Bounds, policy: SingleTokenPolicy) -> bool {
    let ttft = row.ttft_ns.is_some_and(|ttft| i128::from(ttft) <= i128::from(bounds.ttft_ns));
    let tpot = match row.tpot_ns {
        Some(tpot) => tpot <= bounds.tpot_ns,
        None => row.tpot_undefined.is_some() && policy == SingleTokenPolicy::TtftOnly,
    };
    matches!(row.class, Class::Ok | Class::SingleToken) && ttft && tpot
}

/// Good counts of one repetition under both policies for requests without a TPOT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Requests without a TPOT judged by TTFT alone.
    pub ttft_only: Counts,
    /// Requests without a TPOT counted as misses.
    pub miss: Counts,
}

impl Mask {
    /// Counts over the schedule: a row without a record is attempted and not good.
    #[must_use]
    pub fn of(schedule: &[ScheduleRecord], requests: &[RequestRecord], bounds: Bounds) -> Self {
        let attempted = schedule.len() as u64;
        let counts = |policy| {
            let good = requests.iter().filter(|row| good(row, bounds, policy)).count() as u64;
            Counts { good: good.min(attempted), attempted }
        };
        Self {
            ttft_only: counts(SingleTokenPolicy::TtftOnly),
            miss: counts(SingleTokenPolicy::Miss),
        }
    }

    /// The counts under `policy`.
    #[must_use]
    pub fn by(self, policy: SingleTokenPolicy) -> Counts {
        match policy {
            SingleTokenPolicy::TtftOnly => self.ttft_only,
            SingleTokenPolicy::Miss => self.miss,
        }
    }
}
