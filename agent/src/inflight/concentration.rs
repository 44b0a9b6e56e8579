//! How unevenly requests are spread over the backends of a role (`docs/methodology.md`).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocol::Nanos;
use serde::Serialize;

use super::interval::{Interval, Intervals};
use crate::endpoint::{Leg, Role};

/// Name and version of a window's concentration.
pub const CONCENTRATION_SCHEMA: &str = "goodput.concentration/1";

/// Requests in flight at one moment, or their means over one time, over the backends of a role; keys
/// are written in this order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Backends of the role.
    pub backends: usize,
    /// Mean over the backends.
    pub requests_mean: f64,
    /// The largest of them.
    pub requests_max: f64,
    /// Largest over mean: 1 when all are equal, the number of backends when one has everything.
    /// `None` when nothing is in flight.
    pub ratio: Option<f64>,
    /// Nothing is in flight.
    pub idle: bool,
}

impl Spread {
    /// The spread of `loads`, one per backend.
    #[must_use]
    pub fn of(loads: &[f64]) -> Self {
        let requests_max = loads.iter().copied().fold(0.0, f64::max);
        let requests_mean =
            if loads.is_empty() { 0.0 } else { loads.iter().sum::<f64>() / loads.len() as f64 };
        let idle = requests_mean <= 0.0;
        let ratio = (!idle).then(|| requests_max / requests_mean);
        Self { backends: loads.len(), requests_mean, requests_max, ratio, idle }
    }
}

/// Spread of a role now; keys are written in this order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoleSpread {
    /// The role.
    pub role: Role,
    /// Its spread.
    #[serde(flatten)]
    pub spread: Spread,
}

/// The ratios of single moments, one at the end of each interval; quantiles are of type 1 (an observed
/// value). Keys are written in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ticks {
    /// Moments with a mean of at least 1: those that the quantiles are of.
    pub counted: usize,
    /// Moments at which nothing was in flight.
    pub idle: usize,
    /// Moments with a mean below 1, at which even the best spread is uneven.
    pub below_one: usize,
    /// Smallest ratio.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest ratio.
    pub max: Option<f64>,
}

impl Ticks {
    fn of(moments: &[Spread]) -> Self {
        let mut ratios: Vec<f64> = moments
            .iter()
            .filter(|moment| moment.requests_mean >= 1.0)
            .filter_map(|moment| moment.ratio)
            .collect();
        ratios.sort_by(f64::total_cmp);
        let idle = moments.iter().filter(|moment| moment.idle).count();
        // Rank ceil(n * percent / 100), counted from 1 (Hyndman and Fan, type 1).
        let quantile = |percent: usize| {
            let rank = (ratios.len() * percent).div_ceil(100).max(1);
            ratios.get(rank - 1).copied()
        };
        Self {
            counted: ratios.len(),
            idle,
            below_one: moments.len() - idle - ratios.len(),
            min: ratios.first().copied(),
            p50: quantile(50),
            p90: quantile(90),
            p99: quantile(99),
            max: ratios.last().copied(),
        }
    }
}

/// Requests in flight at one backend over a window; keys are written in this order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BackendLoad {
    /// The backend.
    pub endpoint: SocketAddr,
    /// Time-weighted mean.
    pub requests_mean: f64,
    /// Highest number, however short.
    pub requests_peak: u64,
}

/// One role's concentration over a window; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoleConcentration {
    /// The role; prefill and decode are different work and are never mixed.
    pub role: Role,
    /// The headline: spread of the backends' time-weighted means over the window.
    #[serde(flatten)]
    pub spread: Spread,
    /// Distribution of the ratio over single moments.
    pub ticks: Ticks,
    /// Every backend.
    pub endpoints: Vec<BackendLoad>,
}

/// A window's concentration; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Concentration {
    /// [`CONCENTRATION_SCHEMA`].
    pub schema: &'static str,
    /// The window.
    pub window_id: String,
    /// Start of what is covered; `None` before the first interval has ended.
    pub start_ns: Option<Nanos>,
    /// End of what is covered.
    pub end_ns: Option<Nanos>,
    /// Length of an interval, in nanoseconds.
    pub interval_ns: u64,
    /// By role; only roles that have backends.
    pub roles: Vec<RoleConcentration>,
}

/// One backend's requests over a window.
pub(super) type Load<'a> = (SocketAddr, Role, &'a [Interval]);

/// Backends by role: what is in flight at a VIP is spread by the gateway, not over VIPs.
pub(super) fn by_role<T>(loads: impl Iterator<Item = (Role, T)>) -> BTreeMap<Role, Vec<T>> {
    let mut roles: BTreeMap<Role, Vec<T>> = BTreeMap::new();
    for (role, load) in loads.filter(|(role, _)| role.leg() == Leg::Backend) {
        roles.entry(role).or_default().push(load);
    }
    roles
}

/// The concentration over all intervals of `loads`, which all have the same bounds.
pub(super) fn concentration(
    window_id: String,
    interval_ns: u64,
    loads: &[Load<'_>],
) -> Concentration {
    let rows = loads.first().map(|(_, _, rows)| *rows).unwrap_or_default();
    let roles = by_role(loads.iter().map(|(endpoint, role, rows)| (*role, (*endpoint, *rows))));
    Concentration {
        schema: CONCENTRATION_SCHEMA,
        window_id,
        start_ns: rows.first().map(|row| row.start),
        end_ns: rows.last().map(|row| row.end),
        interval_ns,
        roles: roles.into_iter().map(|(role, loads)| of_role(role, &loads)).collect(),
    }
}

fn of_role(role: Role, loads: &[(SocketAddr, &[Interval])]) -> RoleConcentration {
    let endpoints: Vec<_> = loads
        .iter()
        .map(|(endpoint, rows)| BackendLoad {
            endpoint: *endpoint,
            requests_mean: Intervals::mean_of(rows),
            requests_peak: rows.iter().map(|row| row.peak).max().unwrap_or(0),
        })
        .collect();
    let means: Vec<f64> = endpoints.iter().map(|load| load.requests_mean).collect();
    let ticks = loads.iter().map(|(_, rows)| rows.len()).min().unwrap_or(0);
    let moment = |tick: usize| {
        let rows = loads.iter().filter_map(|(_, rows)| rows.get(tick));
        Spread::of(&rows.map(|row| row.last as f64).collect::<Vec<_>>())
    };
    let moments: Vec<Spread> = (0..ticks).map(moment).collect();
    RoleConcentration { role, spread: Spread::of(&means), ticks: Ticks::of(&moments), endpoints }
}
