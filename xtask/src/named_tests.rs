//! Decision 0007 rests on tests that it names: each must exist, or the promise behind its row is gone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const RECORD: &str = "docs/decisions/0007-ebpf-cases.md";
/// Words that a test's name has at least; identifiers of the code that rows mention have fewer.
const LEAST_WORDS: usize = 4;
/// Folders that hold no source of the workspace.
const FOREIGN: [&str; 3] = ["target", ".git", "node_modules"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

fn is_path(name: &str) -> bool {
    name.contains('/') && (name.ends_with('/') || name.ends_with(".rs"))
}

fn is_test(name: &str) -> bool {
    let letters = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    name.chars().all(letters) && name.split('_').count() >= LEAST_WORDS
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // A link leads out of the workspace or back into it.
        if path.is_symlink() || FOREIGN.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            sources(&path, into);
        } else if name.ends_with(".rs") {
            into.push(path);
        }
    }
}

/// Names of the functions that follow a `#[test]`, with other attributes in between or not.
fn tests_in(source: &str) -> impl Iterator<Item = &str> {
    source.split("#[test]").skip(1).filter_map(|after| {
        let name = after.split_once("fn ")?.1;
        name.split_once('(').map(|(name, _)| name)
    })
}

/// Every test of the workspace.
fn tests() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    texts.flat_map(|text| tests_in(&text).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn every_test_and_file_that_decision_0007_names_exists() {
    let record = fs::read_to_string(root().join(RECORD)).unwrap();
    let tests = tests();
    let exists = |name: &&str| match is_path(name) {
        true => root().join(name).exists(),
        false => !is_test(name) || tests.contains(*name),
    };
    let missing: Vec<_> = quoted(&record).filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "{RECORD} names what is not there: {missing:?}");
    let named = quoted(&record).filter(|name| is_path(name) || is_test(name)).count();
    assert!(named > 50, "only {named} names were recognised");
}

#[test]
fn every_row_of_decision_0007_says_why_it_holds() {
    let record = fs::read_to_string(root().join(RECORD)).unwrap();
    let rows: Vec<Vec<_>> = record
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| row"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.len() == 3 && row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}

#[test]
fn names_are_told_from_words_of_the_code() {
    assert!(is_test("a_byte_cannot_be_read") && !is_test("tcp_retransmit_skb"));
    assert!(!is_test("SEGMENTS_FAILED") && !is_test("capture::tcx"));
    let source = "#[test]\n#[ignore]\nfn one_two() {}\nfn helper() {}\n#[test]\nfn three(a: u8) {}";
    assert_eq!(tests_in(source).collect::<Vec<_>>(), ["one_two", "three"]);
}
