//! Enumerated bootstraps, accelerations, and the closed forms for quantiles.

use super::super::*;
use super::{Row, Vector, close, vector_tests};

fn bootstrap(vector: &Vector) -> Bootstrap {
    let data = vector.inputs("data");
    match vector.input("statistic").as_str().unwrap() {
        "mean" => Bootstrap::of_mean(&data).unwrap(),
        "median" => Bootstrap::of_median(&data).unwrap(),
        other => panic!("no statistic {other}"),
    }
}

fn common(v: &Vector, boot: &Bootstrap, row: &Row<'_>) {
    assert_eq!(boot.law.total(), row.value("n_resamples").as_u64().unwrap());
    row.close("theta_hat", boot.estimate);
    let (below, up_to) = boot.law.shares(boot.estimate);
    row.close("p_lt", below);
    row.close("p_le", up_to);
    close(
        normal_quantile(f64::midpoint(below, up_to)).unwrap(),
        row.number("z0_midrank"),
        v.tolerance(),
    );
    // What the strict rule would give, so that the data show the difference.
    close(normal_quantile(below).unwrap(), row.number("z0_strict"), v.tolerance());
    row.all_close("jackknife", &boot.jackknife);
    row.close("se_boot_population", boot.law.sd());
    let confidence = v.confidence();
    row.ends("pct_ci_type7", &boot.percentile(confidence, QuantileType::Linear));
    row.ends("pct_ci_type1", &boot.percentile(confidence, QuantileType::InverseEcdf));
    row.ends("basic_ci_type7", &boot.basic(confidence));
}

fn exact(v: &Vector) {
    let (boot, row) = (bootstrap(v), v.expected());
    common(v, &boot, &row);
    let correction = boot.correction(v.confidence()).unwrap();
    row.close("z0_midrank", correction.z0);
    row.close("a", correction.acceleration);
    row.close("alpha1", correction.levels.0);
    row.close("alpha2", correction.levels.1);
    row.ends("bca_ci_type7", &boot.bca(v.confidence(), QuantileType::Linear));
    row.ends("bca_ci_type1", &boot.bca(v.confidence(), QuantileType::InverseEcdf));
}

fn without_one(data: &[f64], statistic: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    (0..data.len())
        .map(|out| {
            let rest: Vec<f64> = [&data[..out], &data[out + 1..]].concat();
            statistic(&rest)
        })
        .collect()
}

fn mean(data: &[f64]) -> f64 {
    data.iter().sum::<f64>() / data.len() as f64
}

vector_tests! {
    bca_mean_n5_exact => exact;
    bca_mean_n6_exact => exact;
    bca_median_n5_exact => exact;
    bca_median_n6_exact => exact;
    bca_median_ties_degenerate => |v| {
        let (boot, row) = (bootstrap(v), v.expected());
        common(v, &boot, &row);
        assert!(row.number("a").is_nan());
        assert_eq!(boot.correction(v.confidence()), None);
        let bca = boot.bca(v.confidence(), QuantileType::Linear);
        assert!(matches!(bca, Interval::Degenerate { .. }));
    };
    accel_two_sample_diff_mean => |v| {
        let first = without_one(&v.inputs("x"), mean);
        // The second mean is subtracted, so its leave-one-out values enter with the other sign.
        let second: Vec<f64> =
            without_one(&v.inputs("y"), mean).into_iter().map(|value| -value).collect();
        v.expected().close("a", acceleration_two_sample(&first, &second).unwrap());
    };
    accel_mean_equals_skew => |v| {
        let data = v.inputs("data");
        let row = v.expected();
        row.close("a_jackknife", acceleration(&without_one(&data, mean)).unwrap());
        row.close("skew_over_6sqrtn", acceleration_of_mean(&data).unwrap());
    };
    accel_quantile_type1_closed_form => |v| {
        for row in v.rows() {
            let (n, p) = (row.count("n"), row.number("p"));
            let data: Vec<f64> = (1..=n).map(|i| (i * i) as f64).collect();
            let rank = |n: usize| bca_ranks(n, p, 0.95).unwrap().rank;
            assert_eq!(rank(n), row.count("k"));
            assert_eq!(rank(n - 1), row.count("k_after_delete"));
            let left_out = without_one(&data, |rest| quantile_type1(rest, p).unwrap());
            // Differences of large squares: the jackknife itself holds 11 digits.
            close(acceleration(&left_out).unwrap(), row.number("a_jackknife"), 1e-11);
            close(
                quantile_acceleration_jackknife(n, p).unwrap(),
                row.number("a_closed"),
                v.tolerance(),
            );
            row.close("a_influence", quantile_acceleration(n, p).unwrap());
        }
    };
    exact_bootstrap_cdf_order_stat => |v| {
        let cdf = (1..=5).map(|j| order_statistic_cdf(5, 3, j).unwrap());
        v.all_close(&cdf.collect::<Vec<_>>(), &v.list());
        // And equal to the share over all 5^5 resamples.
        let law = Bootstrap::of_median(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap().law;
        let shares = (1..=5).map(|j| law.shares(f64::from(j)).1);
        v.all_close(&shares.collect::<Vec<_>>(), &v.list());
    };
    quantile_ci_analytic_ranks => |v| {
        for row in v.rows() {
            let (n, p) = (row.count("n"), row.number("p"));
            let (low, high) = percentile_ranks(n, p, v.confidence()).unwrap();
            assert_eq!(vec![low as f64, high as f64], row.floats("pct_ranks"));
            let bca = bca_ranks(n, p, v.confidence()).unwrap();
            assert_eq!(bca.rank, row.count("k"));
            // z0 is a quantile near one half: absolute digits are what a double holds there.
            assert!((bca.z0 - row.number("z0")).abs() < 1e-11, "{} {}", bca.z0, row.number("z0"));
            row.close("a", bca.acceleration);
            row.close("alpha1", bca.levels.0);
            row.close("alpha2", bca.levels.1);
            let ends = vec![bca.ends.0 as f64, bca.ends.1 as f64];
            assert_eq!(ends, row.floats("bca_ranks"));
        }
    };
}
