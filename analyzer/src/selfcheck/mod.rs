//! The rules behind a verdict against known answers, on any host and without any file.
//!
//! Expected figures are those of the reference vectors (scipy, numpy, statsmodels, R; origin inside the
//! embedded file) or follow from the rule's own words. A check that cannot be carried out fails.

mod bca;
mod good_mask;
mod knee;
mod stability;
mod tost;
mod validity;
mod vector;

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

/// One comparison with a known answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What must hold.
    pub name: String,
    /// Whether it does.
    pub passed: bool,
    /// What was found instead; empty when it holds.
    pub detail: String,
}

/// The checks of one module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its checks.
    pub checks: Vec<Check>,
}

impl Module {
    /// Checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed)
    }

    /// Every check holds, and there is one.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.checks.is_empty() && self.failed().next().is_none()
    }
}

/// What `goodput selfcheck --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Every module passed.
    pub passed: bool,
    /// The modules.
    pub modules: Vec<Module>,
}

impl Versioned for SelfCheck {
    const SCHEMA: &'static str = "goodput.selfcheck/1";
}

/// Runs every check.
#[must_use]
pub fn selfcheck() -> SelfCheck {
    let modules = vec![
        Module { name: "conjunction good-mask".to_owned(), checks: good_mask::checks() },
        Module { name: "TOST/delta".to_owned(), checks: tost::checks() },
        Module { name: "stability thresholds".to_owned(), checks: stability::checks() },
        Module { name: "BCa".to_owned(), checks: bca::checks() },
        Module { name: "knee".to_owned(), checks: knee::checks() },
        Module { name: "validity rules".to_owned(), checks: validity::checks() },
    ];
    SelfCheck {
        schema: SelfCheck::SCHEMA.to_owned(),
        passed: modules.iter().all(Module::passed),
        modules,
    }
}

/// The lines that a person reads: one per module, and every failure.
#[must_use]
pub fn lines(result: &SelfCheck) -> String {
    let mut text = String::new();
    for module in &result.modules {
        let (all, failed) = (module.checks.len(), module.failed().count());
        let word = if module.passed() { "pass" } else { "FAIL" };
        text.push_str(&format!(
            "{:<24}{:>3} of {all:>3} checks  {word}\n",
            module.name,
            all - failed
        ));
        for check in module.failed() {
            text.push_str(&format!("  {}: {}\n", check.name, check.detail));
        }
    }
    let all: usize = result.modules.iter().map(|module| module.checks.len()).sum();
    let word = if result.passed { "pass" } else { "FAIL: do not use this build" };
    text.push_str(&format!("selfcheck: {all} checks, {word}\n"));
    text
}

/// Two things that must be equal.
fn equal<T: PartialEq + std::fmt::Debug>(
    name: impl Into<String>,
    actual: &T,
    expected: &T,
) -> Check {
    let passed = actual == expected;
    let detail = if passed { String::new() } else { format!("{actual:?}, expected {expected:?}") };
    Check { name: name.into(), passed, detail }
}

/// A figure against its vector; what is absent or no number fails.
fn close(name: impl Into<String>, actual: Option<f64>, expected: f64, tolerance: f64) -> Check {
    let scale = if expected == 0.0 { 1.0 } else { expected.abs() };
    let passed = actual.is_some_and(|actual| (actual - expected).abs() <= tolerance * scale);
    let detail = if passed { String::new() } else { format!("{actual:?}, expected {expected}") };
    Check { name: name.into(), passed, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_build_passes_every_module() {
        let result = selfcheck();
        assert!(result.passed, "{}", lines(&result));
        let names: Vec<&str> = result.modules.iter().map(|module| module.name.as_str()).collect();
        let wanted = [
            "conjunction good-mask",
            "TOST/delta",
            "stability thresholds",
            "BCa",
            "knee",
            "validity rules",
        ];
        assert_eq!(names, wanted);
        assert!(result.modules.iter().all(|module| module.checks.len() >= 5), "{}", lines(&result));
    }

    #[test]
    fn a_failed_check_fails_its_module_and_is_named() {
        let wrong =
            vec![close("a figure", None, 1.0, 0.1), close("no number", Some(f64::NAN), 1.0, 0.1)];
        let module = Module { name: "m".to_owned(), checks: wrong };
        assert_eq!(module.failed().count(), 2);
        let result = SelfCheck { schema: String::new(), passed: false, modules: vec![module] };
        let text = lines(&result);
        assert!(
            text.contains("  a figure: None, expected 1") && text.contains("do not use"),
            "{text}"
        );
        assert!(!Module { name: "empty".to_owned(), checks: Vec::new() }.passed());
    }
}
