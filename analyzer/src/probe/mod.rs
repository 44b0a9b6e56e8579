//! Phase 2: how a burst of cache-keyed requests lies on the backends.

use std::collections::BTreeMap;

use crate::rundir::{Concentration, InflightRow};

/// Concentration per role: largest over mean of the backends' time-weighted mean requests in flight.
///
/// `expected` are the backends with their roles: one that never got a request has a mean of 0 and counts.
/// Rows of VIPs are left out.
#[must_use]
pub fn concentration(
    rows: &[InflightRow],
    expected: &[(String, String)],
    observed: bool,
) -> BTreeMap<String, Concentration> {
    let mut weighted = BTreeMap::<&str, (f64, f64)>::new();
    for row in rows {
        let seconds = row.end_ns.saturating_sub(row.start_ns) as f64;
        let slot = weighted.entry(row.endpoint.as_str()).or_default();
        slot.0 += row.requests_mean * seconds;
        slot.1 += seconds;
    }
    let mean = |address: &str| match weighted.get(address) {
        Some((sum, seconds)) if *seconds > 0.0 => sum / seconds,
        _ => 0.0,
    };
    let mut by_role = BTreeMap::<String, BTreeMap<String, f64>>::new();
    for (address, role) in expected {
        by_role.entry(role.clone()).or_default().insert(address.clone(), mean(address));
    }
    by_role.into_iter().map(|(role, means)| (role, ratio(means, observed))).collect()
}

fn ratio(means: BTreeMap<String, f64>, observed: bool) -> Concentration {
    if !observed {
        return Concentration::NotObserved;
    }
    let mean = means.values().sum::<f64>() / means.len().max(1) as f64;
    let peak = means.values().copied().fold(0.0, f64::max);
    if mean > 0.0 {
        Concentration::Ratio { ratio: peak / mean, means }
    } else {
        Concentration::Idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Versioned as _;

    fn row(endpoint: &str, start_ns: u64, end_ns: u64, requests_mean: f64) -> InflightRow {
        InflightRow {
            schema: InflightRow::SCHEMA.to_owned(),
            start_ns,
            end_ns,
            endpoint: endpoint.to_owned(),
            role: "backend".to_owned(),
            requests_mean,
            requests_peak: requests_mean,
            source: "tracepoint".to_owned(),
        }
    }

    fn backends() -> Vec<(String, String)> {
        ["a", "b"].map(|name| (name.to_owned(), "backend".to_owned())).to_vec()
    }

    fn headline(rows: &[InflightRow]) -> Concentration {
        concentration(rows, &backends(), true)["backend"].clone()
    }

    #[test]
    fn means_are_weighted_by_time_and_vips_do_not_count() {
        // a: 4 for 1 of 4 units and 0 for 3 = 1; b: 3 throughout. Peak 3 over mean 2.
        let rows =
            [row("a", 0, 1, 4.0), row("a", 1, 4, 0.0), row("b", 0, 4, 3.0), row("v", 0, 4, 9.0)];
        let Concentration::Ratio { ratio, means } = headline(&rows) else { panic!("no ratio") };
        assert!((ratio - 1.5).abs() < 1e-12, "{ratio}");
        assert_eq!(means.keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn all_on_one_is_the_number_of_backends_and_none_is_idle() {
        let Concentration::Ratio { ratio, .. } = headline(&[row("a", 0, 4, 2.0)]) else {
            panic!("no ratio")
        };
        assert!((ratio - 2.0).abs() < 1e-12, "{ratio}");
        assert_eq!(headline(&[row("a", 0, 4, 0.0)]), Concentration::Idle);
        let unseen = concentration(&[], &backends(), false);
        assert_eq!(unseen["backend"], Concentration::NotObserved);
    }
}
