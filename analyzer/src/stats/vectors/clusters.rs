//! Repetitions as clusters: bootstraps, sandwich errors, dispersion, permutations.

use super::super::wild::{t_statistic, webb, wild_p};
use super::super::*;
use super::{Vector, close, floats, vector_tests};

fn repetitions(vector: &Vector) -> Vec<Counts> {
    let list = |key| vector.input(key).as_array().unwrap().iter().map(|n| n.as_u64().unwrap());
    let pairs = list("good").zip(list("attempted"));
    pairs.map(|(good, attempted)| Counts { good, attempted }).collect()
}

fn shares(good: &[f64]) -> Vec<f64> {
    good.iter().map(|good| good / 100.0).collect()
}

vector_tests! {
    cluster_bootstrap_ratio_exact => |v| {
        let row = v.expected();
        let boot = cluster_bootstrap(&repetitions(v)).unwrap();
        row.close("theta", boot.estimate);
        let percentile = boot.percentile(v.confidence(), QuantileType::Linear);
        row.ends("pct_ci_type7", &percentile);
        row.ends("pct_ci_type1", &boot.percentile(v.confidence(), QuantileType::InverseEcdf));
        row.close("half_width_pct", percentile.half_width().unwrap());
        let correction = boot.correction(v.confidence()).unwrap();
        row.close("z0", correction.z0);
        row.close("a", correction.acceleration);
        row.close("alpha1", correction.levels.0);
        row.close("alpha2", correction.levels.1);
        row.ends("bca_ci_type7", &boot.bca(v.confidence(), QuantileType::Linear));
        row.all_close("jackknife", &boot.jackknife);
        row.close("se_boot_population", boot.law.sd());
        let spread = moments(&boot.jackknife).unwrap().sd.unwrap();
        row.close("se_jackknife", spread * 4.0 / 5.0_f64.sqrt());
    };
    noise_floor_boot_vs_t => |v| {
        for row in v.rows() {
            let reps = row.floats("reps");
            let summary = moments(&reps).unwrap();
            row.close("mean", summary.mean);
            row.close("sd", summary.sd.unwrap());
            let half = t_interval(&reps, v.confidence()).half_width().unwrap();
            row.close("t_half_width", half);
            let floor = noise_floor_bootstrap(&reps, v.confidence()).value().unwrap();
            row.close("boot_half_width_type7", floor);
            row.close("ratio", floor / half);
            let n = reps.len() as f64;
            let z = normal_quantile(0.975).unwrap() / t_quantile(0.975, n - 1.0).unwrap();
            row.close("asymptotic_ratio", z * ((n - 1.0) / n).sqrt());
            let resolvable = resolvable_difference_t(&reps, v.confidence()).value().unwrap();
            close(resolvable, half * 2.0_f64.sqrt(), 1e-12);
        }
    };
    overdispersion_chi2 => |v| {
        let row = v.expected();
        let dispersion = overdispersion(&repetitions(v)).unwrap();
        let pooled = repetitions(v).iter().fold(Counts::default(), |sum, rep| sum.plus(*rep));
        row.close("p", pooled.fraction().unwrap());
        row.close("chi2", dispersion.chi2);
        row.close("df", f64::from(dispersion.df));
        row.close("p_value", dispersion.p_upper);
        row.close("dispersion_phi", dispersion.phi);
        assert_eq!(dispersion.word, DispersionWord::Overdispersed);
    };
    cluster_robust_proportion => |v| {
        let row = v.expected();
        let reps = repetitions(v);
        let error = |kind| cluster_robust(&reps, kind).unwrap();
        row.close("p", error(ClusterRobust::Cr0).estimate);
        row.close("CR0_se", error(ClusterRobust::Cr0).standard_error);
        row.close("CR1_se", error(ClusterRobust::Cr1).standard_error);
        row.close("CR2_se", error(ClusterRobust::Cr2).standard_error);
        row.ends("CR1_t_ci_Gminus1", &error(ClusterRobust::Cr1).interval(4.0, 0.95));
        let p = error(ClusterRobust::Cr0).estimate;
        row.close("naive_binom_se", (p * (1.0 - p) / 498.0).sqrt());
        let fractions: Vec<f64> = reps.iter().map(|rep| rep.fraction().unwrap()).collect();
        let summary = moments(&fractions).unwrap();
        row.close("unweighted_rep_mean", summary.mean);
        row.close("unweighted_rep_se", summary.standard_error().unwrap());
        row.ends("unweighted_t_ci", &t_interval(&fractions, 0.95));
    };
    two_arm_rep_level => |v| {
        let (a, b) = (shares(&v.inputs("good_A")), shares(&v.inputs("good_B")));
        let row = v.expected();
        let unpaired = welch(&a, &b, v.confidence()).unwrap();
        row.close("diff_B_minus_A", unpaired.estimate);
        row.close("welch_se", unpaired.standard_error.unwrap());
        row.close("welch_df", unpaired.df.unwrap());
        row.close("welch_p", unpaired.p_value.unwrap());
        row.ends("welch_ci", &unpaired.interval);
        let blocked = paired(&a, &b, v.confidence()).unwrap();
        row.close("paired_p", blocked.p_value.unwrap());
        row.ends("paired_ci", &blocked.interval);
    };
    exact_permutation_5v5 => |v| {
        let row = v.expected();
        let (a, b) = (shares(&v.inputs("A")), shares(&v.inputs("B")));
        let test = permutation_test(&a, &b).unwrap();
        row.close("n_perm", test.relabellings as f64);
        row.close("p_two_sided", test.p);
        row.close("min_attainable_two_sided_p", test.attainable);
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        let flips = sign_flip_test(&differences).unwrap();
        row.close("signflip_n", flips.relabellings as f64);
        row.close("signflip_p_two_sided", flips.p);
        row.close("signflip_min_two_sided_p", flips.attainable);
    };
    wild_cluster_bootstrap_enumerated => |v| {
        let row = v.expected();
        let differences = v.inputs("paired_diffs");
        row.close("t", t_statistic(&differences));
        let (p, n) = wild_p(&differences, &[-1.0, 1.0]);
        row.close("rademacher_p", p);
        assert_eq!(n, row.count("rademacher_n"));
        let (p, n) = wild_p(&differences, &webb());
        row.close("webb6_p", p);
        assert_eq!(n, row.count("webb6_n"));
        let t_test = paired(&[0.0; 5], &differences, 0.95).unwrap();
        row.close("t_test_p", t_test.p_value.unwrap());
    };
    cluster_vs_pooled_halfwidth_ratio_band => |v| {
        for (groups, expected) in v.inputs("G").into_iter().zip(v.matrix()) {
            let groups = format!("{groups}").parse().unwrap();
            v.all_close(&half_width_ratio_band(groups, v.confidence()).unwrap(), &expected);
        }
    };
    cluster_robust_r "cluster_robust_R" => |v| {
        let row = v.expected();
        let one = &v.input("one_arm");
        let list = |key: &str| one[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap());
        let reps: Vec<Counts> = list("good")
            .zip(list("attempted"))
            .map(|(good, attempted)| Counts { good, attempted })
            .collect();
        for (key, kind) in [
            ("one_CR0_se_df", ClusterRobust::Cr0),
            ("one_CR1_se_df", ClusterRobust::Cr1),
            ("one_CR1S_se_df", ClusterRobust::Cr1S),
            ("one_CR2_se_df", ClusterRobust::Cr2),
            ("one_CR3_se_df", ClusterRobust::Cr3),
        ] {
            let error = cluster_robust(&reps, kind).unwrap();
            row.all_close(key, &[error.standard_error, error.df]);
        }
        let second = cluster_robust(&reps, ClusterRobust::Cr2).unwrap();
        row.ends("one_CR2_ci", &second.interval(second.df, 0.95));
        let first = cluster_robust(&reps, ClusterRobust::Cr1).unwrap();
        row.all_close("one_vcovCL_HC1", &[first.standard_error]);
        // With equal sizes CR2 of the difference is Welch's error, and the paired one's over shared clusters.
        let two = v.input("two_arm");
        let (a, b) = (shares(&floats(&two["A"])), shares(&floats(&two["B"])));
        let unpaired = welch(&a, &b, 0.95).unwrap();
        close(unpaired.standard_error.unwrap(), row.floats("two_cl_CR2_se_df_p")[0], 1e-9);
        let blocked = paired(&a, &b, 0.95).unwrap();
        let expected = row.floats("two_rep_CR2_se_df_p");
        v.all_close(
            &[blocked.standard_error.unwrap(), blocked.df.unwrap(), blocked.p_value.unwrap()],
            &expected,
        );
        let ninety = welch(&a, &b, 0.9).unwrap();
        let (low, high) = ninety.interval.ends().unwrap();
        row.all_close("R_welch90_df", &[low, high, ninety.df.unwrap()]);
        influence_and_quantiles(v);
    };
}

/// What R gives for figures that other vectors hold too.
fn influence_and_quantiles(v: &Vector) {
    let row = v.expected();
    let boot = Bootstrap::of_mean(&[1.0, 2.0, 4.0, 8.0, 16.0]).unwrap();
    // R's influence values centre on the estimate: (n-1) (theta - theta without i).
    let influence: Vec<f64> = boot.jackknife.iter().map(|x| 4.0 * (boot.estimate - x)).collect();
    row.all_close("R_usual_jack_L", &influence);
    row.all_close("R_a", &[boot.correction(0.9).unwrap().acceleration]);
    row.all_close("R_w", &[normal_quantile(boot.law.shares(boot.estimate).0).unwrap()]);
    row.all_close("R_iso_holm", &holm(&[0.03, 0.01, 0.01, 0.2, 1.0]));
    let data = [12.0, 15.0, 17.0, 21.0, 22.0, 30.0, 41.0, 55.0, 80.0, 200.0];
    let quantiles = |definition| -> Vec<f64> {
        [0.5, 0.9, 0.95, 0.99].map(|p| quantile(&data, p, definition).unwrap()).to_vec()
    };
    let all = [
        QuantileType::InverseEcdf,
        QuantileType::AveragedInverseEcdf,
        QuantileType::NearestRank,
        QuantileType::LinearEcdf,
        QuantileType::Hazen,
        QuantileType::Weibull,
        QuantileType::Linear,
        QuantileType::MedianUnbiased,
        QuantileType::NormalUnbiased,
    ];
    for (number, definition) in all.into_iter().enumerate() {
        row.all_close(&format!("R_q_type{}", number + 1), &quantiles(definition));
    }
    row.all_close("R_quantile_type_check", &quantiles(QuantileType::Linear));
}
