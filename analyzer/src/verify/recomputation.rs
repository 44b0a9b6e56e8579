//! The second computation: `goodput-crosscheck`, a program that shares no code with this one.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::code::{Code, Finding};

/// Name of the program.
const PROGRAM: &str = "goodput-crosscheck";

/// What it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recomputation {
    /// Every figure is the same.
    Agrees,
    /// Some are not.
    Disagrees {
        /// How many, and the first of them.
        detail: String,
    },
    /// It did not run, or not to its end.
    NotRun {
        /// Why.
        why: String,
    },
}

impl Recomputation {
    /// What it means for the verdict.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        match self {
            Self::Agrees => None,
            Self::Disagrees { detail } => {
                Some(Finding::new(Code::RecomputationDisagrees, "", detail.clone()))
            }
            Self::NotRun { why } => Some(Finding::new(Code::RecomputationNotRun, "", why.clone())),
        }
    }
}

/// Who computes a second time.
pub trait SecondComputation {
    /// Compares the figures in `run_dir` with its own.
    fn compute(&self, run_dir: &Path) -> Recomputation;
}

/// The program, beside this one or on the PATH.
#[derive(Clone, Copy, Debug, Default)]
pub struct CrosscheckProgram;

impl SecondComputation for CrosscheckProgram {
    fn compute(&self, run_dir: &Path) -> Recomputation {
        match Command::new(program()).arg("--json").arg(run_dir).output() {
            Err(error) => Recomputation::NotRun { why: format!("{PROGRAM}: {error}") },
            Ok(output) => read(output.status.code(), &output.stdout, &output.stderr),
        }
    }
}

/// One that lies beside this program is of the same build.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PROGRAM.into())
}

/// Exit code 0 agrees, 1 disagrees; anything else is no answer.
fn read(code: Option<i32>, stdout: &[u8], stderr: &[u8]) -> Recomputation {
    let report: Value = serde_json::from_slice(stdout).unwrap_or_default();
    let first = &report["disagreements"][0];
    let text = |key: &str| first[key].as_str().unwrap_or("?").to_owned();
    match (code, report["agrees"].as_bool()) {
        (Some(0), Some(true)) => Recomputation::Agrees,
        (Some(1), Some(false)) => Recomputation::Disagrees {
            detail: format!(
                "{} of {} figures; the first is {}, {}: {} here, {} there",
                report["disagreeing"],
                report["compared"],
                text("place"),
                text("rule"),
                text("said"),
                text("found")
            ),
        },
        _ => Recomputation::NotRun {
            why: format!("{PROGRAM} gave no answer: {}", String::from_utf8_lossy(stderr).trim()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_counts() {
        assert_eq!(read(Some(0), br#"{"agrees": true}"#, b""), Recomputation::Agrees);
        let said = br#"{"agrees": false, "disagreeing": 2, "compared": 9, "disagreements": [
            {"place": "a r1", "rule": "good", "said": "3", "found": "4"}]}"#;
        let Recomputation::Disagrees { detail } = read(Some(1), said, b"") else { panic!() };
        assert_eq!(detail, "2 of 9 figures; the first is a r1, good: 3 here, 4 there");
        for (code, out) in [
            (Some(0), &br#"{"agrees": false}"#[..]),
            (Some(1), br#"{"agrees": true}"#),
            (Some(0), b""),
            (Some(2), b""),
            (None, br#"{"agrees": true}"#),
        ] {
            let NotRun { why } = read(code, out, b"why\n") else { panic!("{code:?}") };
            assert!(why.ends_with("why"), "{why}");
        }
    }

    use Recomputation::NotRun;
}
