//! JSON files: written whole or not at all, read back with the schema checked.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::records::Versioned;

/// Why an artefact could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The file is absent or unreadable.
    #[error("{path}: {source}; run `goodput run` to produce it, or name another run directory", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not what its schema says.
    #[error("{path}: {source}; the file was changed or another version wrote it", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Another schema, or none.
    #[error("{path}: schema {found:?}, expected {expected:?}; use the version of goodput that wrote it", path = path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        found: String,
        /// The schema this version reads.
        expected: &'static str,
    },
    /// The file could not be written.
    #[error("{path}: {source}; free space or choose another run directory", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Reads a file of one object.
///
/// # Errors
/// [`JsonError`] when it is absent, not JSON, or of another schema.
pub fn read_json<T: DeserializeOwned + Versioned>(path: &Path) -> Result<T, JsonError> {
    let bytes = crate::input::read_regular(path)
        .map_err(|source| JsonError::Read { path: path.to_owned(), source })?;
    from_json(&bytes, path)
}

/// Reads a file of one object when it exists.
///
/// # Errors
/// As [`read_json`], but absence is `None`.
pub fn read_optional<T: DeserializeOwned + Versioned>(path: &Path) -> Result<Option<T>, JsonError> {
    if path.exists() { read_json(path).map(Some) } else { Ok(None) }
}

/// Parses one object; `path` is named in errors.
///
/// # Errors
/// [`JsonError::Parse`] or [`JsonError::Schema`].
pub fn from_json<T: DeserializeOwned + Versioned>(
    bytes: &[u8],
    path: &Path,
) -> Result<T, JsonError> {
    let bad = |source| JsonError::Parse { path: path.to_owned(), source };
    let value: Value = serde_json::from_slice(bytes).map_err(bad)?;
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or("missing");
    if schema != T::SCHEMA {
        let (path, found) = (path.to_owned(), schema.to_owned());
        return Err(JsonError::Schema { path, found, expected: T::SCHEMA });
    }
    serde_json::from_value(value).map_err(bad)
}

/// The bytes of a file of one object.
///
/// # Errors
/// [`serde_json::Error`] when a value cannot be written, which none of this crate's causes.
pub fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes a file of one object whole or not at all, with its directory.
///
/// # Errors
/// [`JsonError::Write`].
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), JsonError> {
    let failed = |source| JsonError::Write { path: path.to_owned(), source };
    let bytes = to_json(value).map_err(|error| failed(error.into()))?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes).map_err(failed)?;
    fs::rename(&partial, path).map_err(failed)
}
