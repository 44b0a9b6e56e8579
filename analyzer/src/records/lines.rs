//! JSON Lines: one write per line, a schema on each, a torn tail found and left out.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// A record with a name and version.
pub trait Versioned {
    /// Value of its `schema` key.
    const SCHEMA: &'static str;
}

/// Why a file of records could not be read or written. Every message names the mend.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file system said no.
    #[error("{path}: {source}: check the path, its permissions and the space left", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is no record.
    #[error("{path}:{line}: {source}: the file was changed or is of another version; record it anew", path = path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// Another schema.
    #[error("{path}:{line}: schema is {found}, expected {expected}: use the version of goodput that wrote it", path = path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is there.
        found: String,
        /// What this version reads.
        expected: &'static str,
    },
}

impl RecordError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// Appends records; each line is one `write`, so that a killed process leaves whole lines behind.
#[derive(Debug)]
pub struct LineWriter<T> {
    file: File,
    path: PathBuf,
    line: Vec<u8>,
    kind: PhantomData<T>,
}

impl<T: Serialize> LineWriter<T> {
    /// Creates the file; one that exists is an error, so that no run overwrites another.
    ///
    /// # Errors
    /// [`RecordError::Io`].
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|source| RecordError::io(path, source))?;
        Ok(Self { file, path: path.to_owned(), line: Vec::new(), kind: PhantomData })
    }

    /// Appends one record.
    ///
    /// # Errors
    /// [`RecordError::Io`] or [`RecordError::Json`].
    pub fn append(&mut self, record: &T) -> Result<(), RecordError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record).map_err(|source| RecordError::Json {
            path: self.path.clone(),
            line: 0,
            source,
        })?;
        self.line.push(b'\n');
        self.file.write_all(&self.line).map_err(|source| RecordError::io(&self.path, source))
    }

    /// Waits until all lines are on the disk.
    ///
    /// # Errors
    /// [`RecordError::Io`].
    pub fn sync(&self) -> Result<(), RecordError> {
        self.file.sync_data().map_err(|source| RecordError::io(&self.path, source))
    }
}

/// Records read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines<T> {
    /// Whole records, in file order.
    pub records: Vec<T>,
    /// Bytes of a last line without its line end: the writer was killed while writing it.
    pub torn_bytes: usize,
}

/// Reads every whole line of `path`.
///
/// # Errors
/// Every [`RecordError`]. A torn last line is no error.
pub fn read_lines<T: DeserializeOwned + Versioned>(path: &Path) -> Result<Lines<T>, RecordError> {
    let bytes = std::fs::read(path).map_err(|source| RecordError::io(path, source))?;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let mut records = Vec::new();
    for (index, line) in bytes[..whole].split_inclusive(|&byte| byte == b'\n').enumerate() {
        records.push(parse_line(line, path, index + 1)?);
    }
    Ok(Lines { records, torn_bytes: bytes.len() - whole })
}

pub(super) fn parse_line<T: DeserializeOwned + Versioned>(
    bytes: &[u8],
    path: &Path,
    line: usize,
) -> Result<T, RecordError> {
    let json = |source| RecordError::Json { path: path.to_owned(), line, source };
    // The schema is judged first: another version's fields would only confuse the message.
    let value: Value = serde_json::from_slice(bytes).map_err(json)?;
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or("missing");
    if schema != T::SCHEMA {
        return Err(RecordError::Schema {
            path: path.to_owned(),
            line,
            found: schema.to_owned(),
            expected: T::SCHEMA,
        });
    }
    serde_json::from_value(value).map_err(json)
}
