//! What can be wrong with a campaign file; every message names file, line and mend.

use std::path::{Path, PathBuf};

/// A campaign that cannot be used. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The file is absent or unreadable.
    #[error("{path}: {source}; name an existing campaign file (demo/campaign.toml is an example)")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not UTF-8.
    #[error("{path}: not UTF-8; save the file as UTF-8")]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// Not TOML, an unknown key, a missing key or a value of the wrong type.
    #[error("{path}: {source}correct the line above; docs/campaign.md lists every key")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, column and what is wrong.
        source: Box<toml::de::Error>,
    },
    /// A value that makes no sense.
    #[error("{path} line {line}: {key}: {problem}; {mend}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Line of the key, or of its table when the key is absent.
        line: usize,
        /// The key with its table.
        key: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        mend: String,
    },
}

/// A bad value before its line is known.
#[derive(Debug)]
pub(super) struct Fault {
    /// Table name, empty for the top level; for arrays of tables with the position from 0.
    pub(super) table: (&'static str, usize),
    pub(super) key: &'static str,
    pub(super) problem: String,
    pub(super) mend: String,
}

impl Fault {
    pub(super) fn at(self, path: &Path, text: &str) -> CampaignError {
        let key = match self.table {
            ("", _) => self.key.to_owned(),
            (table, _) => format!("[{table}] {}", self.key),
        };
        CampaignError::Value {
            path: path.to_owned(),
            line: line_of(text, self.table, self.key),
            key,
            problem: self.problem,
            mend: self.mend,
        }
    }
}

/// Line of `key` in the `nth` table of that name, from 1; the table's own line when the key is absent.
fn line_of(text: &str, (table, nth): (&str, usize), key: &str) -> usize {
    let (mut inside, mut header, mut seen) = (table.is_empty(), 1, 0);
    for (index, raw) in text.lines().enumerate() {
        let line = raw.trim();
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_start_matches('[').split(']').next().unwrap_or("").trim();
            let named = name == table;
            inside = named && seen == nth;
            seen += usize::from(named);
            if inside {
                header = index + 1;
            }
        } else if inside && line.split('=').next().is_some_and(|name| name.trim() == key) {
            return index + 1;
        }
    }
    header
}
