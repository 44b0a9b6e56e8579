//! The folder: written, read back, damaged.

use std::path::Path;

use super::*;
use crate::records::LineWriter;

fn lines<T: serde::Serialize>(path: &Path, rows: &[T]) {
    let mut writer = LineWriter::create(path).unwrap();
    rows.iter().for_each(|row| writer.append(row).unwrap());
}

/// Writes the scene as a recorder does.
fn write(scene: &Scene, folder: &Path) {
    let agent = &scene.agent;
    let file = AuditFile {
        schema: AuditFile::SCHEMA.to_owned(),
        state: scene.state,
        asked_ns: 60_000_000_000,
        prefix_sizes: PREFIX_SIZES.to_vec(),
        agents: vec![agent.part.clone()],
    };
    write_file(folder, &file).unwrap();
    lines(&folder.join("kernel.jsonl"), &agent.requests);
    lines(&folder.join("prefixes.jsonl"), &agent.prefixes);
    std::fs::write(folder.join("inflight.jsonl"), "").unwrap();
}

fn scene() -> Scene {
    Scene::new(3, &traffic(400, 12, |_, document| document % 3))
}

#[test]
fn a_folder_gives_what_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    write(&scene(), dir.path());
    let report = analyze(&read(dir.path()).unwrap());
    assert_eq!(report, scene().report());
    assert!(report.is_judged());
    let again = analyze(&read(dir.path()).unwrap());
    assert_eq!(serde_json::to_vec(&again).unwrap(), serde_json::to_vec(&report).unwrap());
    let account = read(dir.path()).unwrap().agents[0].part.account.clone().unwrap();
    assert_eq!(account.rest["counters"]["gaps"], 0, "keys that are not read are kept");
}

#[test]
fn a_torn_last_line_is_left_out_and_said() {
    let dir = tempfile::tempdir().unwrap();
    write(&scene(), dir.path());
    let path = dir.path().join("kernel.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let report = analyze(&read(dir.path()).unwrap());
    assert_eq!(report.roles[0].requests, 399);
    assert_eq!(codes(&report.reasons), ["loss"]);
    assert!(report.reasons[0].detail.contains("torn_file"), "{}", report.reasons[0].detail);
    assert!(report.reasons[0].detail.contains("rows_disagree"));
}

#[test]
fn missing_rows_are_said_and_damaged_ones_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(&scene(), dir.path());
    std::fs::remove_file(dir.path().join("prefixes.jsonl")).unwrap();
    let report = analyze(&read(dir.path()).unwrap());
    assert!(report.reasons[0].detail.contains("rows_missing"));
    assert_eq!(report.roles[0].prefixes[0].unseen, 400);
    std::fs::write(dir.path().join("kernel.jsonl"), "{\"schema\":\"goodput.kernel/1\"}\n").unwrap();
    let error = read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("kernel.jsonl:1"), "{error}");
}

#[test]
fn what_is_no_audit_folder_is_refused_with_the_mend() {
    let dir = tempfile::tempdir().unwrap();
    let error = read(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("no audit folder") && error.contains("goodput audit --agent"),
        "{error}"
    );
    write(&scene(), dir.path());
    let path = dir.path().join("audit.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for (from, to, says) in [
        ("goodput.audit/1", "goodput.audit/2", "schema"),
        ("\"kernel.jsonl\"", "\"../kernel.jsonl\"", "no plain file name"),
        ("\"kernel.jsonl\"", "\"/etc/passwd\"", "no plain file name"),
        ("65536", "65537", "prefix_sizes"),
        ("\"complete\"", "\"finished\"", "unknown variant"),
    ] {
        assert!(text.contains(from));
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn nothing_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let error = check_new(dir.path()).unwrap_err().to_string();
    assert!(error.contains("exists") && error.contains("--out"), "{error}");
    let new = dir.path().join("a/b");
    check_new(&new).unwrap();
    assert!(new.is_dir());
}

#[test]
fn salts_are_read_checked_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("salt");
    let secret = "00112233445566778899aabbccddeeff";
    std::fs::write(&path, format!("{secret}\n")).unwrap();
    let salt = Salt::read(&path).unwrap();
    assert_eq!((salt.expose(), format!("{salt:?}").as_str()), (secret, "Salt(secret)"));
    for wrong in [&secret[1..], "00112233445566778899aabbccddeefg", ""] {
        std::fs::write(&path, wrong).unwrap();
        let error = Salt::read(&path).unwrap_err().to_string();
        assert!(
            error.contains("openssl") && (wrong.is_empty() || !error.contains(wrong)),
            "{error}"
        );
    }
    assert!(Salt::read(&dir.path().join("none")).unwrap_err().to_string().contains("--salt-file"));
    let random = Salt::random().unwrap();
    assert_eq!(random.expose().len(), 32);
    assert_ne!(random, Salt::random().unwrap());
}

/// Every code is in the documentation that people look it up in.
#[test]
fn codes_are_documented() {
    let text = include_str!("../../../../docs/audit.md");
    for reason in Reason::ALL {
        let code = reason.code();
        assert!(text.contains(&format!("`{code}`")), "{code}");
        assert_eq!(serde_json::to_value(reason).unwrap(), code);
    }
}
