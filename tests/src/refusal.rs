//! Bad input: exit code 2, a message that names the mend, and no files.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::run;

/// A command that must be refused.
pub struct Refusal<'a> {
    /// What is wrong, for people.
    pub what: &'a str,
    /// The command.
    pub command: Command,
    /// What the message must contain: the place and the mend.
    pub says: &'a [&'a str],
}

/// Runs every command; none may succeed, panic, keep running or leave anything in `folder` that
/// was not there before.
///
/// # Errors
/// When one is not refused as it should be; the error lists all of them.
pub fn assert_refused(folder: &Path, cases: Vec<Refusal<'_>>) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for case in cases {
        let before = files(folder)?;
        let mut faults = faults_of(case.command, case.says);
        let after = files(folder)?;
        if after != before {
            faults.push(format!("left {after:?}, before it were {before:?}"));
        }
        wrong.extend(faults.iter().map(|fault| format!("{}: {fault}", case.what)));
    }
    anyhow::ensure!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

fn faults_of(command: Command, says: &[&str]) -> Vec<String> {
    let finished = match run(command, Duration::from_secs(20)) {
        Ok(finished) => finished,
        Err(error) => return vec![format!("{error:#}")],
    };
    let said = &finished.stderr;
    let mut faults = Vec::new();
    if finished.status.code() != Some(2) {
        faults.push(format!("{} instead of exit code 2, saying: {said}", finished.status));
    }
    let missing = says.iter().filter(|word| !said.contains(*word));
    faults.extend(missing.map(|word| format!("the message lacks {word:?}: {said}")));
    faults
}

/// Every file and folder below `folder`.
fn files(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        found.push(path.display().to_string());
        if path.is_dir() {
            found.extend(files(&path)?);
        }
    }
    found.sort();
    Ok(found)
}
