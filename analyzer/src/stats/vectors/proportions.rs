//! Intervals of proportions and their differences.

use super::super::*;
use super::{Row, close, vector_tests};

fn counts(row: &Row<'_>, good: &str, attempted: &str) -> Counts {
    Counts { good: row.count(good) as u64, attempted: row.count(attempted) as u64 }
}

fn table(cells: &[f64]) -> PairedCounts {
    let count = |i: usize| format!("{}", cells[i]).parse::<u64>().unwrap();
    PairedCounts { both: count(0), first_only: count(1), second_only: count(2), neither: count(3) }
}

vector_tests! {
    proportion_ci => |v| {
        for row in v.rows() {
            let counts = counts(&row, "k", "n");
            let (low, high) = wilson(counts, v.confidence()).ends().unwrap();
            // At 0 and n the closed form leaves a rounding of 1e-17.
            for (actual, expected) in [low, high].into_iter().zip(row.floats("wilson")) {
                close(actual, expected, v.tolerance());
            }
            row.ends("beta", &clopper_pearson(counts, v.confidence()));
        }
    };
    newcombe_diff_ci => |v| {
        for row in v.rows() {
            let (first, second) = (counts(&row, "k1", "n1"), counts(&row, "k2", "n2"));
            // The vectors hold arm 1 minus arm 2; `newcombe` gives its second argument minus the first.
            row.ends("newcomb", &newcombe(second, first, v.confidence()));
        }
    };
    newcombe_paired_ci => |v| {
        let cells = v.input("cells_efgh").as_array().unwrap();
        for (cells, expected) in cells.iter().zip(v.matrix()) {
            let table = table(&super::floats(cells));
            let n = table.both + table.first_only + table.second_only + table.neither;
            let estimate = (table.first_only as f64 - table.second_only as f64) / n as f64;
            let (low, high) = newcombe_paired(table, v.confidence()).ends().unwrap();
            v.all_close(&[estimate, low, high], &expected);
        }
    };
    mcnemar => |v| {
        let row = v.expected();
        let rows: Vec<f64> =
            v.input("table").as_array().unwrap().iter().flat_map(super::floats).collect();
        let test = super::super::mcnemar(table(&rows)).unwrap();
        row.close("exact_p", test.exact_p);
        row.close("chi2_cc", test.chi2);
        row.close("p_cc", test.p);
    };
    tost_proportions => |v| {
        for row in v.rows() {
            let (first, second) = (counts(&row, "k1", "n1"), counts(&row, "k2", "n2"));
            let margin = Margin { delta: row.number("delta"), alpha: super::number(v.input("alpha")) };
            let test = tost_newcombe(second, first, margin);
            row.ends("newcombe_ci90", &test.interval);
            let equivalent = test.outcome == Equivalence::Equivalent;
            assert_eq!(Some(equivalent), row.value("newcombe_equiv").as_bool());
        }
    };
}
