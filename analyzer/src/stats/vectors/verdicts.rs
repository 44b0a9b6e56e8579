//! Equivalence, power, the CV gate, multiplicity.

use super::super::*;
use super::{Vector, close, number, vector_tests};

fn unknown() -> HalfWidth {
    HalfWidth::NotAttainable { reason: "no baseline".to_owned() }
}

fn adjusted(v: &Vector, of: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    of(&v.inputs("p"))
}

vector_tests! {
    tost_means => |v| {
        let (a, b) = (v.inputs("A"), v.inputs("B"));
        for row in v.rows() {
            let margin = Margin { delta: row.number("delta"), alpha: number(v.input("alpha")) };
            let unpaired = tost_welch(&a, &b, margin, &unknown());
            row.close("welch_p", unpaired.p_value().unwrap());
            row.ends("welch_ci90", &unpaired.interval);
            let blocked = tost_paired(&a, &b, margin, &unknown());
            row.close("paired_p", blocked.p_value().unwrap());
            row.ends("paired_ci90", &blocked.interval);
            for (key, test) in [("welch_equiv", unpaired), ("paired_equiv", blocked)] {
                let equivalent = test.outcome == Equivalence::Equivalent;
                assert_eq!(Some(equivalent), row.value(key).as_bool());
                assert_eq!(equivalent, test.p_value().unwrap() < margin.alpha);
            }
        }
    };
    tost_power_true_diff_zero => |v| {
        let alpha = number(v.input("alpha"));
        for row in v.rows() {
            let n = u32::try_from(row.count("n")).unwrap();
            let (sd, delta) = (row.number("sd"), row.number("delta"));
            row.close("power", tost_power(Design::TwoSample, n, sd, delta, alpha, 0.0).unwrap());
        }
    };
    cv_pitfalls => |v| {
        for row in v.rows() {
            let values = row.floats("values");
            let misses: Vec<f64> = values.iter().map(|value| 1.0 - value).collect();
            let summary = moments(&values).unwrap();
            row.close("mean", summary.mean);
            row.close("sd_ddof1", summary.sd.unwrap());
            row.close("cv_of_miss", cv(&misses).value().unwrap());
            let (ratio, small) = (row.number("cv"), row.number("cv_small_sample"));
            let spread = row.floats("sd_ci95");
            if ratio.is_nan() {
                assert!(small.is_nan() && row.value("cv_ci95_vangel").is_null());
                assert_eq!((cv(&values), cv_small_sample(&values)), (Cv::ZeroMean, None));
                assert!(!cv(&values).within(10.0), "an undefined ratio must never pass the gate");
                // Where the vector has a width of 0 there is no interval: nothing would be uncertain.
                assert_eq!(spread, [0.0, 0.0]);
                assert!(matches!(sd_interval(&values, 0.95), Interval::Degenerate { .. }));
                assert!(matches!(cv_interval(&values, 0.95), Interval::Degenerate { .. }));
                continue;
            }
            close(cv(&values).value().unwrap(), ratio, v.tolerance());
            close(cv_small_sample(&values).unwrap(), small, v.tolerance());
            row.ends("sd_ci95", &sd_interval(&values, 0.95));
            row.ends("cv_ci95_vangel", &cv_interval(&values, 0.95));
        }
    };
    cv_binomial_floor => |v| {
        for (p, expected) in v.inputs("p").into_iter().zip(v.matrix()) {
            let sizes = v.input("n").as_array().unwrap().iter().map(|n| n.as_u64().unwrap());
            let floors = sizes.map(|n| super::super::cv_binomial_floor(p, n).unwrap());
            v.all_close(&floors.collect::<Vec<_>>(), &expected);
        }
    };
    multiple_testing => |v| {
        let row = v.expected();
        row.all_close("holm", &adjusted(v, holm));
        row.all_close("bonferroni", &adjusted(v, bonferroni));
    };
    holm_ties_unsorted => |v| v.all_close(&adjusted(v, holm), &v.list());
}
