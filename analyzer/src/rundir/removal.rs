//! Removing a run without touching anything that is not part of one.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Files directly below the root.
const FILES: [&str; 12] = [
    "analysis.json",
    "campaign.toml",
    "crosscheck.json",
    "health.json",
    "health.jsonl",
    "import.json",
    "manifest.json",
    "report.html",
    "slo.json",
    "trace.jsonl",
    "trace.origin.json",
    "verdict.json",
];
/// Directories directly below the root, besides the cells.
const DIRECTORIES: [&str; 3] = ["baseline", "calibration", "probe"];

/// Removes what a run has written, and the directory itself.
///
/// # Errors
/// When something cannot be removed; a directory that holds [`strangers`] is never emptied of them.
pub fn remove_run(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if !is_part(&entry)? {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(root)
}

/// What a run directory holds that no run writes there, sorted.
///
/// # Errors
/// When a directory cannot be read.
pub fn strangers(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut strangers = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if !is_part(&entry)? {
            strangers.push(entry.path());
        }
    }
    strangers.sort();
    Ok(strangers)
}

fn is_part(entry: &fs::DirEntry) -> io::Result<bool> {
    let name = entry.file_name();
    let Some(name) = name.to_str() else { return Ok(false) };
    // Not followed: a link may lead anywhere.
    let kind = entry.file_type()?;
    if kind.is_file() {
        let whole = name.strip_suffix(".partial").map(|stem| format!("{stem}.json"));
        return Ok(FILES.contains(&whole.as_deref().unwrap_or(name)));
    }
    Ok(kind.is_dir() && (DIRECTORIES.contains(&name) || is_cell(&entry.path())?))
}

/// A cell holds repetitions and nothing else.
fn is_cell(path: &Path) -> io::Result<bool> {
    let rate = path.file_name().and_then(|name| name.to_str()?.rsplit_once("-r"));
    if rate.is_none_or(|(_, rate)| rate.parse::<f64>().is_err()) {
        return Ok(false);
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("rep"));
        let repetition = number.is_some_and(|it| it == "0-warmup" || it.parse::<u32>().is_ok());
        if !repetition || !entry.file_type()?.is_dir() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for path in paths {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        dir
    }

    #[test]
    fn a_run_holds_no_strangers() {
        let run = tree(&[
            "manifest.json",
            "verdict.partial",
            "probe/floor.json",
            "baseline/requests.jsonl",
            "floor-r45/rep0-warmup/run.json",
            "floor-r45/rep12/run.json",
        ]);
        assert_eq!(strangers(run.path()).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn whatever_no_run_writes_is_a_stranger() {
        let project =
            tree(&["manifest.json", "src/main.js", "floor-r45/report.txt", "notes/rep1/text"]);
        fs::create_dir(project.path().join("empty")).unwrap();
        std::os::unix::fs::symlink("/", project.path().join("probe")).unwrap();
        let names: Vec<_> = strangers(project.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["empty", "floor-r45", "notes", "probe", "src"]);
    }
}
