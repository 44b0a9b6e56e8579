//! Reading files that somebody else wrote.

use std::io;
use std::path::Path;

/// The content of a regular file. A device or a pipe has no end that could be waited for.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    std::fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read_regular(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
        let dir = tempfile::tempdir().unwrap();
        assert!(read_regular(dir.path()).is_err());
        let path = dir.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_regular(&path).unwrap(), b"text");
    }
}
