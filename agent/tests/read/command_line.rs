//! Arguments, exit codes, and where things are printed.

use serde_json::Value;

use crate::conversation::plain;
use crate::program::{CaptureFile, json_lines, refused, run, run_with_input};

const ENDPOINT: [&str; 2] = ["--endpoint", "backend=10.0.0.1:8000"];

fn with<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[file][..], more].concat()
}

#[test]
fn what_is_no_capture_is_refused_with_its_mend() {
    for (bytes, mend) in [
        (&b"hello, this is a text"[..], "editcap -F pcapng"),
        (b"", "SIGINT"),
        (b"\x1f\x8b\x08\x00\x00\x00", "gzip -dc FILE | goodput-agent read -"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "copy it again"),
    ] {
        let file = CaptureFile::new(bytes);
        for arguments in [&[][..], &ENDPOINT, &["--endpoint", "auto"]] {
            let message = refused(&with(file.name(), arguments));
            assert!(message.contains(mend) && message.contains(file.name()), "{message}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_and_a_folder_are_named() {
    let file = CaptureFile::new(b"");
    let missing = file.beside("missing");
    assert!(refused(&[missing.to_str().unwrap()]).contains("missing: check the name"));
    let folder = file.path.parent().unwrap().to_str().unwrap();
    assert!(refused(&[folder]).contains("is a folder: name a pcap or pcapng file"));
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let (bytes, _) = plain();
    let file = CaptureFile::new(&bytes);
    let message = |arguments: &[&str]| refused(&with(file.name(), arguments));
    assert!(message(&["--endpoint", "boss=10.0.0.1:8000"]).contains("vip, backend"));
    assert!(message(&["--jsonl", "-"]).contains("--endpoint"));
    let unwritable = file.path.join("rows.jsonl");
    let unwritable = [&ENDPOINT[..], &["--jsonl", unwritable.to_str().unwrap()]].concat();
    assert!(message(&unwritable).contains("choose a writable file"));
    assert!(refused(&["-", "--endpoint", "auto"]).contains("name the endpoint"));
}

#[test]
fn without_an_endpoint_the_servers_are_listed() {
    let (bytes, _) = plain();
    let file = CaptureFile::new(&bytes);
    let text = run(&[file.name()]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(text.stdout.contains("--endpoint backend=10.0.0.1:8000"), "{}", text.stdout);
    let json = run(&[file.name(), "--json"]);
    let listing: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(listing["schema"], "goodput.listeners/1");
    let server =
        serde_json::json!({"address": "10.0.0.1:8000", "accepted": 2, "http_responses": 4});
    assert_eq!(listing["listeners"], serde_json::json!([server]));
}

#[test]
fn rows_on_standard_output_leave_the_summary_to_standard_error() {
    let (bytes, _) = plain();
    let file = CaptureFile::new(&bytes);
    let printed = run(&[&[file.name()][..], &ENDPOINT, &["--json", "--jsonl", "-"]].concat());
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let rows = json_lines(&printed.stdout);
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_eq!((&row["schema"], &row["clock"]), (&"goodput.kernel/1".into(), &"file".into()));
    }
    let report: Value = serde_json::from_str(&printed.stderr).unwrap();
    assert_eq!(report["schema"], "goodput.read/1");
    assert_eq!(
        (&report["complete"], &report["endpoints"][0]["requests"]),
        (&true.into(), &4.into())
    );
}

#[test]
fn standard_input_gives_the_rows_of_the_file() {
    let (bytes, _) = plain();
    let file = CaptureFile::new(&bytes);
    let rows = with(file.name(), &[&ENDPOINT[..], &["--jsonl", "-"]].concat()).join(" ");
    let from_file = run(&rows.split(' ').collect::<Vec<_>>());
    let arguments = [&["-"][..], &ENDPOINT, &["--jsonl", "-"]].concat();
    let from_input = run_with_input(&arguments, &bytes);
    assert_eq!((from_input.code, from_file.code), (Some(0), Some(0)), "{}", from_input.stderr);
    assert_eq!(json_lines(&from_input.stdout).len(), 4);
    assert_eq!(from_input.stdout, from_file.stdout);
    let refused = run_with_input(&arguments, b"\x1f\x8b\x08\x00");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("gzip -dc"), "{}", refused.stderr);
}

#[test]
fn auto_takes_the_servers_that_send_responses_and_says_which() {
    let (bytes, _) = plain();
    let file = CaptureFile::new(&bytes);
    let rows = |endpoint| run(&[file.name(), "--endpoint", endpoint, "--jsonl", "-"]);
    let (auto, named) = (rows("auto"), rows("backend=10.0.0.1:8000"));
    assert_eq!(auto.code, Some(0), "{}", auto.stderr);
    assert!(auto.stderr.contains("auto: --endpoint backend=10.0.0.1:8000"), "{}", auto.stderr);
    assert_eq!(auto.stdout, named.stdout);
}

#[test]
fn auto_finds_nothing_where_nothing_answers() {
    let (bytes, _) = plain();
    // The header and the first record: a SYN.
    let file = CaptureFile::new(&bytes[..24 + 16 + 14 + 40]);
    let message = refused(&[file.name(), "--endpoint", "auto"]);
    assert!(message.contains("run without --endpoint"), "{message}");
}

#[test]
fn a_torn_file_gives_its_rows_and_says_that_it_is_torn() {
    let (bytes, _) = plain();
    let file = CaptureFile::new(&bytes[..bytes.len() - 1]);
    let printed = run(&[&[file.name()][..], &ENDPOINT].concat());
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(printed.stdout.contains("complete: false"), "{}", printed.stdout);
    assert!(printed.stdout.contains("torn_record") && printed.stdout.contains("mend: "));
}
