//! Distribution functions and their inverses.

use super::super::*;
use super::{Vector, floats, vector_tests};

fn t_quantiles(vector: &Vector) {
    for (df, expected) in vector.inputs("df").into_iter().zip(vector.matrix()) {
        let actual = vector.inputs("p").into_iter().map(|p| t_quantile(p, df).unwrap());
        vector.all_close(&actual.collect::<Vec<_>>(), &expected);
    }
}

fn each(vector: &Vector, key: &str, of: impl Fn(&[f64]) -> Option<f64>) {
    let rows = vector.input(key).as_array().unwrap();
    assert_eq!(rows.len(), vector.list().len());
    for (row, expected) in rows.iter().zip(vector.list()) {
        vector.close(of(&floats(row)).unwrap(), expected);
    }
}

vector_tests! {
    norm_ppf => |v| {
        let actual = v.inputs("p").into_iter().map(|p| normal_quantile(p).unwrap());
        v.all_close(&actual.collect::<Vec<_>>(), &v.list());
    };
    norm_cdf => |v| {
        let actual = v.inputs("z").into_iter().map(|z| normal_cdf(z).unwrap());
        v.all_close(&actual.collect::<Vec<_>>(), &v.list());
    };
    t_ppf => t_quantiles;
    t_ppf_fractional_df => t_quantiles;
    t_cdf => |v| each(v, "t_df", |row| super::super::t_cdf(row[0], row[1]));
    betainc => |v| each(v, "x_a_b", |row| beta_cdf(row[0], row[1], row[2]));
    beta_ppf => |v| each(v, "q_a_b", |row| beta_quantile(row[0], row[1], row[2]));
    chi2_ppf => |v| each(v, "p_df", |row| chi2_quantile(row[0], row[1]));
}
