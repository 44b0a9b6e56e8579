//! Series over time: trends, steady state, dependence, arrivals.

use super::super::*;
use super::{close, vector_tests};

fn positions(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64).collect()
}

/// x_t = 0.6 x_{t-1} + ((7919 t) mod 101) / 101 - 0.5, as the vector words it.
fn autoregressive() -> Vec<f64> {
    let steps = (0..200_u32).scan(0.0, |x, t| {
        *x = 0.6 * *x + f64::from(7919 * t % 101) / 101.0 - 0.5;
        Some(*x)
    });
    steps.collect()
}

vector_tests! {
    mann_kendall => |v| {
        for (input, key) in [("q1", "q1"), ("q2_ties", "q2")] {
            let row = v.expected().sub(key);
            let trend = super::super::mann_kendall(&v.inputs(input)).unwrap();
            row.close("S", trend.s as f64);
            row.close("var", trend.variance);
            row.close("z", trend.z);
            row.close("p_two", trend.p_two_sided);
            row.close("kendall_tau_b", trend.tau_b.unwrap());
            if key == "q1" {
                row.close("p_up", trend.p_up);
            }
        }
    };
    slope_tests => |v| {
        let y = v.inputs("y");
        let (x, row) = (positions(y.len()), v.expected());
        let line = ols(&x, &y).unwrap();
        row.close("slope", line.slope);
        row.close("intercept", line.intercept);
        row.close("slope_se", line.slope_error);
        row.close("p_two", line.p_two_sided.unwrap());
        row.close("newey_west_se_lag2", newey_west_error(&x, &y, 2).unwrap());
        let robust = theil_sen(&x, &y, 0.95).unwrap();
        row.close("theil_sen", robust.slope);
        row.close("theil_sen_intercept", robust.intercept);
        row.ends("theil_sen_ci", &robust.interval);
    };
    mser5 => |v| {
        let row = v.expected();
        let y = v.inputs("y");
        let found = super::super::mser5(&y).unwrap();
        row.all_close("batch_means", &found.batch_means);
        assert_eq!(found.criterion.len(), 6);
        for (actual, expected) in found.criterion.iter().zip(row.floats("mser_first6")) {
            close(*actual, expected, 1e-12);
        }
        assert_eq!(found.batches, row.count("truncate_batches"));
        assert_eq!(found.values, row.count("truncate_obs"));
        row.close("mean_after", found.mean_after);
        row.close("mean_all", moments(&y).unwrap().mean);
    };
    autocorrelation => |v| {
        let (x, row) = (v.inputs("x"), v.expected());
        row.all_close("acf_0_4", &autocorrelations(&x, 4).unwrap());
        let test = ljung_box(&x, 3).unwrap();
        row.all_close("ljung_box_3", &[test.q, test.p]);
        row.close("von_neumann_ratio", von_neumann_ratio(&x).unwrap());
        row.close("ess_ar1", effective_sample_size(&x).unwrap());
    };
    optimal_block_length => |v| {
        let length = super::super::optimal_block_length(&autoregressive()).unwrap();
        v.expected().close("stationary", length.stationary);
        v.expected().close("circular", length.circular);
    };
    circular_block_bootstrap_var_mean => |v| {
        let x = v.inputs("x");
        let actual = (1..=4).map(|length| circular_block_variance(&x, length).unwrap());
        v.all_close(&actual.collect::<Vec<_>>(), &v.list());
    };
    poisson_arrival_checks => |v| {
        let row = v.expected();
        row.close("cv2_gaps", gap_cv2(&v.inputs("gaps")).unwrap());
        let counts = v.inputs("counts");
        row.close("fano", fano_factor(&counts).unwrap());
        let test = dispersion_test(&counts).unwrap();
        row.close("dispersion_chi2", test.chi2);
        row.close("dispersion_p_upper", test.p_upper);
    };
}
