//! What an operator is told whose agent cannot run.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use e2e::binaries::binary;
use e2e::refusal::{Refusal, assert_refused};
use e2e::require_kernel;

const ENDPOINT: &str = "[[endpoints]]\naddress = '127.0.0.1:9'\nrole = 'backend'\n";

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<std::path::PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    Ok(path)
}

fn agent(program: &Path, config: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("run").arg("--config").arg(config);
    command
}

#[test]
fn a_bad_configuration_is_refused_with_its_mend() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let program = binary("goodput-agent")?;
    let unknown =
        write(folder.path(), "unknown.toml", &format!("interfases = ['lo']\n{ENDPOINT}"))?;
    let cases = vec![
        Refusal {
            what: "unknown key",
            command: agent(&program, &unknown),
            says: &["unknown.toml", "interfases"],
        },
        Refusal {
            what: "no file",
            command: agent(&program, &folder.path().join("absent.toml")),
            says: &["absent.toml"],
        },
    ];
    assert_refused(folder.path(), cases)
}

#[test]
fn a_port_in_use_is_refused_with_its_mend() -> anyhow::Result<()> {
    require_kernel!();
    let folder = tempfile::tempdir()?;
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let text = format!("interfaces = ['lo']\napi = '{address}'\n{ENDPOINT}");
    let config = write(folder.path(), "agent.toml", &text)?;
    let command = agent(&binary("goodput-agent")?, &config);
    assert_refused(
        folder.path(),
        vec![Refusal { what: "port in use", command, says: &[&address, "api"] }],
    )
}

#[test]
fn without_privilege_the_line_that_gives_it_is_printed() -> anyhow::Result<()> {
    require_kernel!();
    let folder = tempfile::tempdir()?;
    // The build's own folder need not be readable by others.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let program = folder.path().join("goodput-agent");
    fs::copy(binary("goodput-agent")?, &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let text = format!("interfaces = ['lo']\napi = '127.0.0.1:0'\n{ENDPOINT}");
    let config = write(folder.path(), "agent.toml", &text)?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]);
    command.arg(program).arg("run").arg("--config").arg(config);
    let says: &[&str] = &["CAP_BPF", "CAP_NET_ADMIN", "sudo setcap"];
    assert_refused(folder.path(), vec![Refusal { what: "no privilege", command, says }])
}
