//! Order statistics of what a test measured.

/// The smallest value that at least `share` of all are no larger than (type 1); none of nothing.
#[must_use]
pub fn quantile(values: &[i64], per_cent: usize) -> Option<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// The lower median.
#[must_use]
pub fn median(values: &[i64]) -> Option<i64> {
    quantile(values, 50)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values = [50, 10, 40, 20, 30];
        let at = |per_cent| quantile(&values, per_cent).unwrap();
        assert_eq!([at(0), at(20), at(21), at(50), at(99), at(100)], [10, 10, 20, 30, 50, 50]);
        assert_eq!(quantile(&[], 50), None);
    }
}
