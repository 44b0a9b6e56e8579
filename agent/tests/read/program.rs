//! The program, and what it printed.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A capture in a folder of its own.
pub(crate) struct CaptureFile {
    folder: TempDir,
    pub(crate) path: PathBuf,
}

impl CaptureFile {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture");
        std::fs::write(&path, bytes).unwrap();
        Self { folder, path }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// A further file beside it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Exit code and both outputs.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

fn read(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput-agent"));
    command.arg("read").args(arguments);
    command
}

fn printed(output: Output) -> Printed {
    Printed {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// `goodput-agent read` with these arguments.
pub(crate) fn run(arguments: &[&str]) -> Printed {
    printed(read(arguments).stdin(Stdio::null()).output().unwrap())
}

/// The same with a standard input that ends after `input`.
pub(crate) fn run_with_input(arguments: &[&str], input: &[u8]) -> Printed {
    let piped = || Stdio::piped();
    let mut child = read(arguments).stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // A program that refuses its input closes the pipe early.
        scope.spawn(move || drop(stdin.write_all(input)));
        printed(child.wait_with_output().unwrap())
    })
}

/// The message of a run that was refused: exit code 2, nothing on standard output.
pub(crate) fn refused(arguments: &[&str]) -> String {
    let printed = run(arguments);
    assert_eq!((printed.code, printed.stdout.as_str()), (Some(2), ""), "{}", printed.stderr);
    printed.stderr
}

/// The rows of `path` for `endpoint`, in the order of their connections and requests.
pub(crate) fn rows(path: &Path, endpoint: SocketAddr) -> Vec<Value> {
    let endpoint = format!("backend={endpoint}");
    let printed = run(&[path.to_str().unwrap(), "--endpoint", &endpoint, "--jsonl", "-"]);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    json_lines(&printed.stdout)
}

pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
