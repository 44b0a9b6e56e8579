//! Quantiles, their exact intervals, and why histograms do not score.

use super::super::*;
use super::{Row, close, vector_tests};

fn ranks_and_coverage(row: &Row<'_>, ends: (Option<usize>, Option<usize>)) {
    let expected = row.value("ranks").as_array().unwrap();
    let rank = |i: usize| expected[i].as_u64().map(|rank| usize::try_from(rank).unwrap());
    assert_eq!(ends, (rank(0), rank(1)));
}

vector_tests! {
    quantile_types_1_to_9 => |v| {
        let data = v.inputs("data");
        let row = v.expected();
        for (key, definition) in [
            ("type1_inverted_cdf", QuantileType::InverseEcdf),
            ("type2_averaged_inverted_cdf", QuantileType::AveragedInverseEcdf),
            ("type3_closest_observation", QuantileType::NearestRank),
            ("type4_interpolated_inverted_cdf", QuantileType::LinearEcdf),
            ("type5_hazen", QuantileType::Hazen),
            ("type6_weibull", QuantileType::Weibull),
            ("type7_linear", QuantileType::Linear),
            ("type8_median_unbiased", QuantileType::MedianUnbiased),
            ("type9_normal_unbiased", QuantileType::NormalUnbiased),
        ] {
            let actual = v.inputs("p").into_iter().map(|p| quantile(&data, p, definition).unwrap());
            row.all_close(key, &actual.collect::<Vec<_>>());
        }
    };
    harrell_davis => |v| {
        let data = v.inputs("data");
        let row = v.expected();
        let both: Vec<_> = v
            .inputs("p")
            .into_iter()
            .map(|p| super::super::harrell_davis(&data, p).unwrap())
            .collect();
        row.all_close("hd", &both.iter().map(|hd| hd.estimate).collect::<Vec<_>>());
        row.all_close("hd_var", &both.iter().map(|hd| hd.variance).collect::<Vec<_>>());
        for (p, expected) in v.inputs("p").into_iter().zip(row.floats("mjci_se")) {
            match maritz_jarrett(&data, p) {
                Some(error) => close(error, expected, v.tolerance()),
                None => assert!(expected.is_nan(), "p {p}: {expected}"),
            }
        }
    };
    quantile_ci_binomial_exact => |v| {
        for row in v.rows() {
            let (n, p) = (row.count("n"), row.number("p"));
            let (low, high) = order_statistic_ranks(n, p, v.confidence()).unwrap();
            assert_eq!(low.unwrap() as f64, row.number("lo_rank"));
            assert_eq!(high.unwrap() as f64, row.number("hi_rank"));
        }
    };
    min_n_for_two_sided_quantile_ci => |v| {
        let actual = v.inputs("p").into_iter().map(|p| min_n(p, v.confidence()).unwrap() as f64);
        assert_eq!(actual.collect::<Vec<_>>(), v.list());
    };
    quantile_interval_exact_coverage => |v| {
        for row in v.rows() {
            let (n, p) = (row.count("n"), row.number("p"));
            let bca = bca_ranks(n, p, v.confidence()).unwrap();
            assert_eq!(bca.rank, row.count("k"));
            assert!((bca.z0 - row.number("z0_midrank")).abs() < 1e-11);
            row.close("a", bca.acceleration);
            let (low, high) = percentile_ranks(n, p, v.confidence()).unwrap();
            let exact = order_statistic_ranks(n, p, v.confidence()).unwrap();
            for (key, ends) in [
                ("pct", (Some(low), Some(high))),
                ("bca_mid", (Some(bca.ends.0), Some(bca.ends.1))),
                ("binom", exact),
            ] {
                let sub = row.sub(key);
                ranks_and_coverage(&sub, ends);
                let covers = order_statistic_coverage(n, p, ends.0.unwrap_or(0), ends.1).unwrap();
                sub.close("coverage_exact", covers);
            }
        }
    };
    hdrhistogram_rounding => |v| {
        let row = v.expected();
        let mut histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        let values: Vec<u64> =
            v.input("values").as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        let each = |of: &dyn Fn(u64) -> u64| values.iter().map(|x| of(*x) as f64).collect::<Vec<_>>();
        row.all_close("lowest_equivalent", &each(&|x| histogram.lowest_equivalent(x)));
        row.all_close("highest_equivalent", &each(&|x| histogram.highest_equivalent(x)));
        row.close("p50", histogram.value_at_quantile(0.5) as f64);
        row.close("p90", histogram.value_at_quantile(0.9) as f64);
        row.close("p99", histogram.value_at_quantile(0.99) as f64);
        row.close("max", histogram.max() as f64);
        close(histogram.mean(), row.number("mean"), 1e-12);
        close(histogram.stdev(), row.number("stdev"), 1e-12);
        // The raw nanoseconds keep what the histogram loses: a bound of 60,000,000 is met.
        assert_eq!(quantile_type1(&values, 1.0), Some(59_999_999));
    };
}
