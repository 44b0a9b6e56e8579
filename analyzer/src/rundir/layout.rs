//! Paths inside a run directory.

use std::path::{Path, PathBuf};

/// A run directory by its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    root: PathBuf,
}

/// `<arm>-r<rate>`, the rate written as short as it round-trips.
#[must_use]
pub fn cell_name(arm: &str, rate_rps: f64) -> String {
    format!("{arm}-r{rate_rps}")
}

impl RunDir {
    /// The run directory at `root`, existing or not.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Its root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file directly below the root.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A file of `baseline/`.
    #[must_use]
    pub fn baseline(&self, name: &str) -> PathBuf {
        self.root.join("baseline").join(name)
    }

    /// `probe/<arm>.json`.
    #[must_use]
    pub fn probe(&self, arm: &str) -> PathBuf {
        self.root.join("probe").join(format!("{arm}.json"))
    }

    /// `<arm>-r<rate>/rep<N>`, or `rep0-warmup` for repetition 0.
    #[must_use]
    pub fn repetition(&self, arm: &str, rate_rps: f64, repetition: u32) -> PathBuf {
        let name = match repetition {
            0 => "rep0-warmup".to_owned(),
            n => format!("rep{n}"),
        };
        self.root.join(cell_name(arm, rate_rps)).join(name)
    }

    /// Numbers of the measured repetitions of a cell that hold a `run.json`, ascending.
    #[must_use]
    pub fn recorded(&self, arm: &str, rate_rps: f64) -> Vec<u32> {
        let cell = self.root.join(cell_name(arm, rate_rps));
        let Ok(entries) = std::fs::read_dir(&cell) else { return Vec::new() };
        let mut found: Vec<u32> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().join("run.json").is_file())
            .filter_map(|entry| number(entry.file_name().to_str()?))
            .collect();
        found.sort_unstable();
        found
    }
}

/// The number of `rep<N>`. Only the spelling that the replay writes counts: `rep1` and `rep01` would be one
/// repetition twice.
fn number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("rep")?.parse().ok()?;
    (number > 0 && name == format!("rep{number}")).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_has_one_spelling() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["rep1", "rep01", "rep+1", "rep2", "rep0-warmup", "rep0", "repx", "rep10"] {
            let rep = dir.path().join("a-r10").join(name);
            std::fs::create_dir_all(&rep).unwrap();
            std::fs::write(rep.join("run.json"), "{}").unwrap();
        }
        assert_eq!(RunDir::new(dir.path()).recorded("a", 10.0), [1, 2, 10]);
    }
}
