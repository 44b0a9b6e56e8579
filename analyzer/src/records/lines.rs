//! JSON Lines: one write per line, a schema on each, a torn tail found and left out.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use crate::input::read_regular;
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
    #[error("{path}: {cause}: check the path, its permissions and the space left", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A line is no record.
    #[error("{path}:{line}: {cause}: the file was changed or is of another version; record it anew", path = path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Why.
        cause: serde_json::Error,
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
    pub(super) fn io(path: &Path, cause: io::Error) -> Self {
        Self::Io { path: path.to_owned(), cause }
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
            .map_err(|cause| RecordError::io(path, cause))?;
        Ok(Self { file, path: path.to_owned(), line: Vec::new(), kind: PhantomData })
    }

    /// Appends one record.
    ///
    /// # Errors
    /// [`RecordError::Io`] or [`RecordError::Json`].
    pub fn append(&mut self, record: &T) -> Result<(), RecordError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record).map_err(|cause| RecordError::Json {
            path: self.path.clone(),
            line: 0,
            cause,
        })?;
        self.line.push(b'\n');
        self.file.write_all(&self.line).map_err(|cause| RecordError::io(&self.path, cause))
    }

    /// Waits until all lines are on the disk.
    ///
    /// # Errors
    /// [`RecordError::Io`].
    pub fn sync(&self) -> Result<(), RecordError> {
        self.file.sync_data().map_err(|cause| RecordError::io(&self.path, cause))
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
    let bytes = read_regular(path).map_err(|cause| RecordError::io(path, cause))?;
    parse_lines(&bytes, path)
}

/// Whether `bytes`, which are to be written to `path`, could be read from there again.
///
/// # Errors
/// Every [`RecordError`] but [`RecordError::Io`].
pub fn check_lines<T: DeserializeOwned + Versioned>(
    bytes: &[u8],
    path: &Path,
) -> Result<(), RecordError> {
    parse_lines::<T>(bytes, path).map(drop)
}

fn parse_lines<T: DeserializeOwned + Versioned>(
    bytes: &[u8],
    path: &Path,
) -> Result<Lines<T>, RecordError> {
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
    let json = |cause| RecordError::Json { path: path.to_owned(), line, cause };
    // Every writer puts the schema first; a second one later in the line is a duplicate field of `T`.
    if begins_with_schema(bytes, T::SCHEMA) {
        return serde_json::from_slice(bytes).map_err(json);
    }
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

fn begins_with_schema(bytes: &[u8], schema: &str) -> bool {
    let rest = bytes.strip_prefix(br#"{"schema":""#);
    let rest = rest.and_then(|rest| rest.strip_prefix(schema.as_bytes()));
    rest.is_some_and(|rest| rest.starts_with(b"\""))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        schema: String,
        n: u64,
    }

    impl Versioned for Sample {
        const SCHEMA: &'static str = "goodput.sample/1";
    }

    fn sample(n: u64) -> Sample {
        Sample { schema: Sample::SCHEMA.to_owned(), n }
    }

    fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        std::fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    #[test]
    fn a_file_cut_anywhere_gives_its_whole_lines_and_reports_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let mut writer = LineWriter::create(&path).unwrap();
        for n in 0..3 {
            writer.append(&sample(n)).unwrap();
        }
        writer.sync().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let line = bytes.len() / 3;
        for cut in 0..=bytes.len() {
            let (_dir, path) = file(&bytes[..cut]);
            let read = read_lines::<Sample>(&path).unwrap();
            assert_eq!((read.records.len(), read.torn_bytes), (cut / line, cut % line));
        }
    }

    #[test]
    fn a_run_never_writes_over_another() {
        let (_dir, path) = file(b"");
        assert!(LineWriter::<Sample>::create(&path).is_err());
    }

    #[test]
    fn another_schema_or_a_damaged_line_is_named_with_its_line() {
        let good = serde_json::to_string(&sample(1)).unwrap();
        let read = |second: &str| {
            let (_dir, path) = file(format!("{good}\n{second}\n").as_bytes());
            read_lines::<Sample>(&path).unwrap_err().to_string()
        };
        let message = read(&good.replace("/1", "/2"));
        assert!(message.contains(":2: schema is goodput.sample/2, expected goodput.sample/1"));
        assert!(read("{\"n\": 1}").contains(":2: schema is missing"));
        assert!(read("{\"n\": ").contains(":2: "));
        assert!(read(&good.replace('1', "-1")).contains(":2: "));
        let twice = good.replace('}', r#","schema":"goodput.sample/2"}"#);
        assert!(read(&twice).contains("duplicate field"), "{}", read(&twice));
    }

    #[test]
    fn the_schema_may_stand_anywhere_in_a_line() {
        let (_dir, path) = file(b"{ \"n\": 4, \"schema\": \"goodput.sample/1\" }\n");
        assert_eq!(read_lines::<Sample>(&path).unwrap().records, [sample(4)]);
    }
}
