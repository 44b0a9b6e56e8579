//! What a user is told whose fleet cannot be started.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use e2e::binaries::binary;
use e2e::refusal::{Refusal, assert_refused};

const BACKEND: &str = "[[backend]]\nname = 'b0'\n";

#[test]
fn a_fleet_that_cannot_be_started_says_why() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let texts: [(&str, String, &[&str]); 4] = [
        ("unknown key", format!("sped = 1\n{BACKEND}"), &["sped", "fleet.toml"]),
        ("unknown fault", format!("{BACKEND}fault = 'nope'\n"), &["nope", "list of faults"]),
        ("port in use", format!("{BACKEND}listen = '{address}'\n"), &[&address, "another port"]),
        ("no backend", String::new(), &["add at least one [[backend]]"]),
    ];
    for (what, text, says) in texts {
        let path = folder.path().join("fleet.toml");
        fs::write(&path, text)?;
        let mut command = Command::new(binary("simfleet")?);
        command.arg("run").arg(path);
        assert_refused(folder.path(), vec![Refusal { what, command, says }])?;
    }
    let mut command = Command::new(binary("simfleet")?);
    command.arg("run").arg(folder.path().join("absent.toml"));
    let says: &[&str] = &["absent.toml", "cannot read"];
    assert_refused(folder.path(), vec![Refusal { what: "no file", command, says }])
}
