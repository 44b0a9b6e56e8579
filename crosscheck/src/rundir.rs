//! What is read of a run directory.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::request::{self, Claims, Evidence};

/// Why a run directory could not be read. The message names the mend.
#[derive(Debug)]
pub struct ReadError {
    path: PathBuf,
    problem: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {}; run `goodput analyze` there, or name another run directory",
            self.path.display(),
            self.problem
        )
    }
}

impl std::error::Error for ReadError {}

fn error(path: &Path, problem: impl fmt::Display) -> ReadError {
    ReadError { path: path.to_owned(), problem: problem.to_string() }
}

/// The target of a campaign that names none.
const USUAL_TARGET: (u64, u64) = (9, 10);

/// A run directory by its root.
#[derive(Clone, Debug)]
pub struct RunDir {
    root: PathBuf,
}

/// One arm as the campaign registers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// The floor.
    pub floor: bool,
    /// Accelerators behind it.
    pub accelerators: u64,
}

/// What the campaign registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Good-fraction that a rate must reach, as a fraction of integers.
    pub target: (u64, u64),
    /// Two-sided.
    pub confidence: f64,
    /// Margin of equivalence, when one is registered.
    pub delta: Option<f64>,
    /// Level of each of its one-sided tests.
    pub alpha: f64,
    /// Repetition i of both arms is a block.
    pub paired: bool,
    /// A response without TPOT is judged by its TTFT alone.
    pub without_tpot_counts: bool,
    /// Offered rates, requests per second, ascending.
    pub rates: Vec<f64>,
    /// Another tool measured.
    pub imported: bool,
    /// Every arm.
    pub arms: Vec<Arm>,
}

/// The two bounds of the SLO, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// On TTFT from planned.
    pub ttft: i128,
    /// On TPOT.
    pub tpot: i128,
}

/// One repetition as recorded.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// Its number.
    pub number: u64,
    /// Start of the window, ns.
    pub window_start: i128,
    /// Index and planned offset, ns, of each row of the schedule.
    pub planned: Vec<(u64, i128)>,
    /// Lines of `requests.jsonl`.
    pub requests: Vec<(Evidence, Claims)>,
}

impl RunDir {
    /// The directory at `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// A JSON file of the root.
    ///
    /// # Errors
    /// [`ReadError`] when it is absent or no JSON.
    pub fn json(&self, name: &str) -> Result<Value, ReadError> {
        json(&self.root.join(name))
    }

    /// The campaign.
    ///
    /// # Errors
    /// [`ReadError`] when it is absent, no TOML, or a key that decides is missing.
    pub fn campaign(&self) -> Result<Campaign, ReadError> {
        let path = self.root.join("campaign.toml");
        let text = std::fs::read_to_string(&path).map_err(|cause| error(&path, cause))?;
        let table = text.parse::<toml::Table>().map_err(|cause| error(&path, cause))?;
        campaign(&table).ok_or_else(|| error(&path, "no target, rates or arms"))
    }

    /// The bounds of `slo.json`.
    ///
    /// # Errors
    /// [`ReadError`] when the file is absent or lacks one.
    pub fn bounds(&self) -> Result<Bounds, ReadError> {
        let slo = self.json("slo.json")?;
        let bound = |key: &str| slo.get(key).and_then(Value::as_u64).map(i128::from);
        bound("ttft_ns")
            .zip(bound("tpot_ns"))
            .map(|(ttft, tpot)| Bounds { ttft, tpot })
            .ok_or_else(|| error(&self.root.join("slo.json"), "no ttft_ns or tpot_ns"))
    }

    /// Every whole repetition of a cell, ascending.
    ///
    /// # Errors
    /// [`ReadError`] when a file of one is absent or bad.
    pub fn repetitions(
        &self,
        arm: &str,
        rate: f64,
        imported: bool,
    ) -> Result<Vec<Repetition>, ReadError> {
        let cell = self.root.join(format!("{arm}-r{rate}"));
        let Ok(entries) = std::fs::read_dir(&cell) else { return Ok(Vec::new()) };
        let number = |entry: std::fs::DirEntry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix("rep")?.parse::<u64>().ok()?;
            (number > 0 && entry.path().join("run.json").is_file()).then_some(number)
        };
        let mut numbers: Vec<u64> = entries.filter_map(Result::ok).filter_map(number).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| repetition(&cell, number, imported)).collect()
    }
}

fn repetition(cell: &Path, number: u64, imported: bool) -> Result<Repetition, ReadError> {
    let dir = cell.join(format!("rep{number}"));
    let path = dir.join("run.json");
    let start = json(&path)?.get("window_start_ns").and_then(Value::as_u64);
    let requests = dir.join("requests.jsonl");
    let schedule = dir.join("schedule.jsonl");
    let row = |line: Value| {
        Some((line.get("index")?.as_u64()?, i128::from(line.get("planned_offset_ns")?.as_u64()?)))
    };
    Ok(Repetition {
        number,
        window_start: start.map(i128::from).ok_or_else(|| error(&path, "no window_start_ns"))?,
        planned: lines(&schedule, |line| row(line).ok_or("index or planned_offset_ns"))?,
        requests: lines(&requests, |line| request::read(&line, imported))?,
    })
}

fn json(path: &Path) -> Result<Value, ReadError> {
    let bytes = std::fs::read(path).map_err(|cause| error(path, cause))?;
    serde_json::from_slice(&bytes).map_err(|cause| error(path, cause))
}

/// Every whole line; a last one without its end was being written when the writer died.
fn lines<T>(
    path: &Path,
    read: impl Fn(Value) -> Result<T, &'static str>,
) -> Result<Vec<T>, ReadError> {
    let text = std::fs::read(path).map_err(|cause| error(path, cause))?;
    let whole = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let parse = |(place, line): (usize, &[u8])| {
        let value = serde_json::from_slice(line)
            .map_err(|cause| error(path, format!("line {}: {cause}", place + 1)))?;
        read(value).map_err(|key| error(path, format!("line {}: {key} is missing", place + 1)))
    };
    whole.enumerate().map(parse).collect()
}

fn campaign(table: &toml::Table) -> Option<Campaign> {
    let of = |name: &str| table.get(name).and_then(toml::Value::as_table);
    let word = |name: &str, key: &str| of(name)?.get(key)?.as_str();
    let mut rates: Vec<f64> =
        of("load")?.get("rates_rps")?.as_array()?.iter().filter_map(number).collect();
    rates.sort_by(f64::total_cmp);
    let confidence = of("statistics").and_then(|table| number(table.get("confidence")?));
    let target = of("slo").and_then(|slo| slo.get("target"));
    Some(Campaign {
        target: target.map_or(Some(USUAL_TARGET), |target| decimal(&target.to_string()))?,
        confidence: confidence.unwrap_or(0.95),
        delta: of("statistics").and_then(|table| number(table.get("delta")?)),
        alpha: of("statistics").and_then(|table| number(table.get("alpha")?)).unwrap_or(0.05),
        paired: word("statistics", "comparison") == Some("paired"),
        without_tpot_counts: word("statistics", "single_token") != Some("miss"),
        rates,
        imported: of("imported").is_some(),
        arms: table.get("arm")?.as_array()?.iter().filter_map(arm).collect(),
    })
}

fn arm(value: &toml::Value) -> Option<Arm> {
    Some(Arm {
        name: value.get("name")?.as_str()?.to_owned(),
        floor: value.get("floor").and_then(toml::Value::as_bool).unwrap_or(false),
        accelerators: u64::try_from(value.get("accelerators")?.as_integer()?).ok()?,
    })
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// `0.9` as 9 / 10: the number that was written, not the nearest binary one.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let denominator = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    Some((format!("{whole}{part}").parse().ok()?, denominator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_is_a_fraction_of_integers() {
        assert_eq!(decimal("0.9"), Some((9, 10)));
        assert_eq!(decimal("1"), Some((1, 1)));
        assert_eq!(decimal("0.925"), Some((925, 1000)));
        assert_eq!(decimal("1e-1"), None);
    }

    #[test]
    fn a_campaign_without_a_target_has_the_usual_one() {
        let text = "[load]\nrates_rps = [40]\n[[arm]]\nname = 'a'\naccelerators = 1\n";
        let read = |text: &str| campaign(&text.parse().unwrap()).unwrap().target;
        assert_eq!(read(text), (9, 10));
        assert_eq!(read(&format!("{text}[slo]\ntarget = 0.95")), (95, 100));
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("requests.jsonl");
        std::fs::write(&path, "{\"index\": 0}\n{\"torn").unwrap();
        let error = lines(&path, |line| request::read(&line, false)).unwrap_err().to_string();
        assert!(error.contains("line 1: planned_ns is missing"), "{error}");
        assert!(
            RunDir::new(dir.path()).campaign().unwrap_err().to_string().contains("campaign.toml")
        );
    }
}
