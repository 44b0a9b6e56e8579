//! The program as a user runs it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn simfleet() -> Command {
    Command::new(env!("CARGO_BIN_EXE_simfleet"))
}

fn run_file(text: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.toml");
    std::fs::write(&file, text).unwrap();
    simfleet().arg("run").arg(&file).output().unwrap()
}

#[test]
fn one_line_says_where_everything_listens_and_sigterm_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.toml");
    let example = simfleet().arg("example").output().unwrap().stdout;
    std::fs::write(&file, example).unwrap();
    let mut child = simfleet()
        .arg("run")
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&ready["ready"], &ready["simulator"]), (&true.into(), &true.into()));
    assert_eq!(ready["backends"].as_array().unwrap().len(), 4);
    for gateway in ready["gateways"].as_array().unwrap() {
        for key in ["vip", "rest"] {
            std::net::TcpStream::connect(gateway[key].as_str().unwrap()).unwrap();
        }
    }
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_port_in_use_is_named_with_its_mend() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    for key in ["vip", "rest"] {
        let text = format!(
            "[[backend]]\nname='b'\n[[gateway]]\nname='g'\n{key}='{addr}'\n\
             policy={{algorithm='round_robin'}}\n"
        );
        let output = run_file(&text);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(
            error.contains(&addr.to_string()) && error.contains(&format!("gateway \"g\".{key}")),
            "{error}"
        );
        assert!(error.contains("another port"), "{error}");
        assert!(output.stdout.is_empty(), "no ready line");
    }
}

#[test]
fn bad_files_exit_with_2_and_one_message() {
    for (text, word) in
        [("nonsense", "fleet.toml"), ("[[backend]]\nname='b'\nfoo=1", "foo"), ("", "nothing")]
    {
        let output = run_file(text);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with("simfleet: ") && error.contains(word), "{error}");
    }
    let missing = simfleet().args(["run", "/no/such/fleet.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("/no/such/fleet.toml"));
}

#[test]
fn a_mistake_is_named_with_file_and_line() {
    let text = "[[backend]]\nname='b'\n\n[[gateway]]\nname='g'\nendpoints=['x']\n\
                policy={algorithm='round_robin'}\n";
    let error = String::from_utf8(run_file(text).stderr).unwrap();
    assert!(error.contains("fleet.toml: line 4: gateway \"g\".endpoints"), "{error}");
}

#[test]
fn help_tells_exit_codes_and_the_list_of_faults_its_codes() {
    let help = simfleet().arg("--help").output().unwrap().stdout;
    assert!(String::from_utf8(help).unwrap().contains("Exit codes: 0"));
    let faults = simfleet().arg("faults").output().unwrap().stdout;
    assert!(String::from_utf8(faults).unwrap().ends_with(&format!("{}\n", simfleet::FAULT_CODES)));
}
