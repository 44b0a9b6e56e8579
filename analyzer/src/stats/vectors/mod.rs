//! Every function against vectors made by scipy, numpy, statsmodels, arch and R (tests/data, origin inside).
//!
//! A vector may be forgotten neither whole nor in part: the ids tested must be those of the file, and every key of
//! a vector's expectation must be read by its test or be listed in [`LEFT_OUT`] with the reason.

mod bootstraps;
mod clusters;
mod goodput;
mod knees;
mod proportions;
mod quantiles;
mod series;
mod special;
mod verdicts;

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Interval;

/// Keys that no function of this project answers, and why.
const LEFT_OUT: &[(&str, &[&str], &str)] = &[
    (
        "proportion_ci",
        &["agresti_coull", "jeffreys", "normal", "wilson_cc_scipy"],
        "Wilson is the interval of a proportion; others would invite choosing",
    ),
    (
        "newcombe_diff_ci",
        &["wald", "agresti-caffo", "score"],
        "Newcombe's is closed-form and exists in every case",
    ),
    (
        "tost_proportions",
        &["agresti_caffo_p", "score_p"],
        "equivalence of proportions goes by Newcombe's interval",
    ),
    (
        "two_arm_rep_level",
        &["pooled_ci", "pooled_p", "CR1_se_10_clusters", "CR1_se_5_paired_clusters"],
        "equal variances are not assumed; a regression over clusters is not needed (Welch is its CR2)",
    ),
    ("tost_means", &["pooled_p"], "equal variances are not assumed"),
    (
        "multiple_testing",
        &["hommel", "simes-hochberg", "holm-sidak", "fdr_bh", "fdr_by"],
        "Holm holds without assumptions on dependence; false discovery rates answer another question",
    ),
    ("mann_kendall", &["kendall_exact_p"], "the normal p is printed, never a gate"),
    (
        "poisson_arrival_checks",
        &["ks_stat_vs_expon_fitted"],
        "its p is wrong with a fitted mean (Lilliefors)",
    ),
    (
        "cluster_robust_R",
        &[
            "two_cl_CR0_se_df_p",
            "two_rep_CR0_se_df_p",
            "two_cl_CR1_se_df_p",
            "two_rep_CR1_se_df_p",
            "two_cl_CR1S_se_df_p",
            "two_rep_CR1S_se_df_p",
            "two_cl_CR3_se_df_p",
            "two_rep_CR3_se_df_p",
            "two_unequal_CR2_est_se_df_p",
        ],
        "two-arm regressions: Welch and paired t are their CR2",
    ),
    (
        "cluster_robust_R",
        &["R_bca_D5_rank_and_ci"],
        "R's boot takes the strict z0 and quantiles on the normal scale; the project takes scipy's rule",
    ),
    (
        "bca_median_ties_degenerate",
        &["alpha1", "alpha2"],
        "the expected NaN is a typed outcome, asserted as such",
    ),
    (
        "quantile_interval_exact_coverage",
        &["bca_strict", "z0_strict"],
        "the strict share below is the mistake that the mid-rank avoids",
    ),
];

struct Vector {
    id: String,
    json: Value,
    read: RefCell<BTreeSet<String>>,
}

fn file() -> Value {
    serde_json::from_str(include_str!("../../../tests/data/stat-vectors.json")).unwrap()
}

fn vector(id: &str) -> Vector {
    let all = file();
    let found = all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id);
    let json = found.unwrap_or_else(|| panic!("no vector {id}")).clone();
    Vector { id: id.to_owned(), json, read: RefCell::default() }
}

impl Vector {
    fn input(&self, key: &str) -> &Value {
        let value = &self.json["input"][key];
        assert!(!value.is_null(), "{}: no input {key}", self.id);
        value
    }

    fn inputs(&self, key: &str) -> Vec<f64> {
        floats(self.input(key))
    }

    fn confidence(&self) -> f64 {
        number(self.input("confidence"))
    }

    fn tolerance(&self) -> f64 {
        number(&self.json["rel_tol"])
    }

    /// The expectation of a vector that is one list of figures.
    fn list(&self) -> Vec<f64> {
        floats(&self.json["expected"])
    }

    /// The expectation as nested lists.
    fn matrix(&self) -> Vec<Vec<f64>> {
        self.json["expected"].as_array().unwrap().iter().map(floats).collect()
    }

    fn expected(&self) -> Row<'_> {
        Row { vector: self, map: self.json["expected"].as_object().unwrap() }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let rows = self.json["expected"].as_array().unwrap().iter();
        rows.map(|row| Row { vector: self, map: row.as_object().unwrap() }).collect()
    }

    #[track_caller]
    fn close(&self, actual: f64, expected: f64) {
        close(actual, expected, self.tolerance());
    }

    #[track_caller]
    fn all_close(&self, actual: &[f64], expected: &[f64]) {
        assert_eq!(actual.len(), expected.len());
        for (actual, expected) in actual.iter().zip(expected) {
            self.close(*actual, *expected);
        }
    }

    /// Nothing of the expectation may be left unread without a reason.
    fn assert_all_read(&self) {
        let mut keys = BTreeSet::new();
        collect_keys(&self.json["expected"], &mut keys);
        for (id, left_out, _) in LEFT_OUT {
            if *id == self.id {
                keys.retain(|key| !left_out.contains(&key.as_str()));
            }
        }
        let read = self.read.borrow();
        let unread: Vec<_> = keys.difference(&read).collect();
        assert!(unread.is_empty(), "{}: {unread:?} not tested", self.id);
    }
}

fn collect_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                keys.insert(key.clone());
                collect_keys(value, keys);
            }
        }
        Value::Array(rows) => rows.iter().for_each(|row| collect_keys(row, keys)),
        _ => {}
    }
}

/// An object of the expectation, which notes what was read.
struct Row<'a> {
    vector: &'a Vector,
    map: &'a Map<String, Value>,
}

impl<'a> Row<'a> {
    #[track_caller]
    fn value(&self, key: &str) -> &'a Value {
        self.vector.read.borrow_mut().insert(key.to_owned());
        self.map.get(key).unwrap_or_else(|| panic!("{}: no {key}", self.vector.id))
    }

    #[track_caller]
    fn number(&self, key: &str) -> f64 {
        number(self.value(key))
    }

    #[track_caller]
    fn floats(&self, key: &str) -> Vec<f64> {
        floats(self.value(key))
    }

    #[track_caller]
    fn count(&self, key: &str) -> usize {
        usize::try_from(self.value(key).as_u64().unwrap()).unwrap()
    }

    #[track_caller]
    fn sub(&self, key: &str) -> Row<'a> {
        Row { vector: self.vector, map: self.value(key).as_object().unwrap() }
    }

    #[track_caller]
    fn close(&self, key: &str, actual: f64) {
        close(actual, self.number(key), self.vector.tolerance());
    }

    #[track_caller]
    fn all_close(&self, key: &str, actual: &[f64]) {
        self.vector.all_close(actual, &self.floats(key));
    }

    #[track_caller]
    fn ends(&self, key: &str, actual: &Interval) {
        let (low, high) = actual.ends().unwrap();
        self.all_close(key, &[low, high]);
    }
}

/// A number; the strings "nan" and "inf" stand for what JSON lacks.
#[track_caller]
fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        value => value.as_f64().unwrap(),
    }
}

#[track_caller]
fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

#[track_caller]
fn close(actual: f64, expected: f64, tolerance: f64) {
    let scale = if expected == 0.0 { 1.0 } else { expected.abs() };
    assert!((actual - expected).abs() <= tolerance * scale, "{actual} is not {expected}");
}

/// One test per vector, named like it (or with its id beside the name), and the list of their ids.
macro_rules! vector_tests {
    (@id $name:ident) => { stringify!($name) };
    (@id $name:ident $id:literal) => { $id };
    ($($name:ident $($id:literal)? => $check:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let vector = super::vector(vector_tests!(@id $name $($id)?));
                let check: fn(&super::Vector) = $check;
                check(&vector);
                vector.assert_all_read();
            }
        )*
        pub(super) const TESTED: &[&str] = &[$(vector_tests!(@id $name $($id)?)),*];
    };
}
use vector_tests;

#[test]
fn every_vector_of_the_file_has_a_test() {
    let tested: Vec<&str> = [
        bootstraps::TESTED,
        clusters::TESTED,
        goodput::TESTED,
        knees::TESTED,
        proportions::TESTED,
        quantiles::TESTED,
        series::TESTED,
        special::TESTED,
        verdicts::TESTED,
    ]
    .concat();
    let file = file();
    let ids: BTreeSet<&str> =
        file["vectors"].as_array().unwrap().iter().map(|v| v["id"].as_str().unwrap()).collect();
    assert_eq!(tested.iter().copied().collect::<BTreeSet<_>>(), ids);
    assert_eq!((tested.len(), ids.len()), (55, 55));
}

#[test]
fn what_is_left_out_exists_and_has_a_reason() {
    for (id, keys, reason) in LEFT_OUT {
        let mut known = BTreeSet::new();
        collect_keys(&vector(id).json["expected"], &mut known);
        assert!(!reason.is_empty());
        for key in *keys {
            assert!(known.contains(*key), "{id} has no {key}");
        }
    }
}
