//! Isotonic regression: the decreasing curve nearest to a ladder of good-fractions (pool adjacent violators).

use super::proportion::Counts;

/// Good-fractions of ascending rates made non-increasing, weighted by attempted requests.
///
/// Pools are sums of integers divided once. `None` where a rung attempted nothing.
#[must_use]
pub fn isotonic_decreasing(rungs: &[Counts]) -> Option<Vec<f64>> {
    let mut pools: Vec<(Counts, usize)> = Vec::new();
    for rung in rungs {
        rung.fraction()?;
        let mut pool = (*rung, 1);
        while let Some((before, width)) = pools.last().filter(|(before, _)| below(*before, pool.0))
        {
            pool = (before.plus(pool.0), pool.1 + width);
            pools.pop();
        }
        pools.push(pool);
    }
    let spread = pools
        .iter()
        .flat_map(|(pool, width)| std::iter::repeat_n(pool.fraction().unwrap_or_default(), *width));
    Some(spread.collect())
}

/// Compares fractions as integers.
fn below(a: Counts, b: Counts) -> bool {
    u128::from(a.good) * u128::from(b.attempted) < u128::from(b.good) * u128::from(a.attempted)
}

/// True when no rung's good-fraction exceeds that of a lower rate.
#[must_use]
pub fn is_decreasing(rungs: &[Counts]) -> bool {
    rungs.windows(2).all(|pair| !below(pair[0], pair[1]))
}
