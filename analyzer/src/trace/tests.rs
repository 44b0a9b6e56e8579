use std::path::Path;

use proptest::prelude::*;

use super::{Content, LoadOptions, Trace, TraceError, TraceFormat, load, parse};

const MOONCAKE: &str =
    r#"{"timestamp": 27000, "input_length": 513, "output_length": 52, "hash_ids": [46, 47]}"#;
const CHAT: &str =
    r#"{"timestamp_ms": 1.5, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}"#;
const COMPLETION: &str = r#"{"timestamp_ms": 0, "prompt": "once", "max_tokens": 4}"#;

fn read(text: &str, options: &LoadOptions) -> Result<Trace, TraceError> {
    parse(text.as_bytes(), Path::new("t.jsonl"), options)
}

fn rows(text: &str) -> Trace {
    read(text, &LoadOptions::default()).unwrap()
}

fn message(text: &str) -> String {
    read(text, &LoadOptions::default()).unwrap_err().to_string()
}

#[test]
fn formats_are_recognised_by_their_keys() {
    assert_eq!(rows(MOONCAKE).format(), TraceFormat::Mooncake);
    assert_eq!(rows(CHAT).format(), TraceFormat::Prompt);
    let both = rows(&[CHAT, COMPLETION].join("\n"));
    assert_eq!(both.rows()[0].content, Content::Prompt("once".into()));
    assert_eq!((both.rows()[1].line, both.rows()[1].arrival_ns), (1, 1_500_000));
    assert!(message("{\"TIMESTAMP\": 1}").contains("convert the trace"));
}

#[test]
fn rows_are_ordered_by_time_and_ties_keep_the_order_of_the_file() {
    let row = |time: u64, id: u64| {
        format!(
            r#"{{"timestamp": {time}, "input_length": 1, "output_length": 1, "hash_ids": [{id}]}}"#
        )
    };
    let trace = rows(&[row(5, 1), row(3, 2), row(5, 3), row(3, 4)].join("\r\n"));
    let lines: Vec<usize> = trace.rows().iter().map(|row| row.line).collect();
    assert_eq!(lines, [2, 4, 1, 3]);
}

#[test]
fn a_divisor_shortens_lengths_and_blocks_alike() {
    let options = LoadOptions { length_divisor: 8, ..LoadOptions::default() };
    let trace = read(MOONCAKE, &options).unwrap();
    let row = &trace.rows()[0];
    assert_eq!((row.input_tokens(), row.output_tokens), (Some(64), 6));
    // 513 tokens had two blocks; 64 fill exactly one of 64.
    let content = Content::Blocks { hash_ids: vec![46], block_tokens: 64, input_tokens: 64 };
    assert_eq!(row.content, content);
    let tiny = MOONCAKE.replace("513", "2").replace("52", "0").replace("46, 47", "46");
    let trace = read(&tiny, &options).unwrap();
    assert_eq!((trace.rows()[0].input_tokens(), trace.rows()[0].output_tokens), (Some(1), 1));
}

#[test]
fn each_flaw_is_named_with_file_line_and_mend() {
    let cases = [
        (MOONCAKE.replace("27000", "-1"), "timestamp is -1: give milliseconds"),
        (MOONCAKE.replace("27000", "NaN"), "NaN and Infinity are no JSON"),
        (MOONCAKE.replace("27000", "1e999"), "number out of range"),
        (MOONCAKE.replace("27000", "1e300"), "finite and at or above 0"),
        (MOONCAKE.replace("27000", "null"), "write one JSON object a line"),
        (MOONCAKE.replace(r#", "hash_ids": [46, 47]"#, ""), "missing field `hash_ids`"),
        (MOONCAKE.replace("46, 47", "46"), "1 hash_ids for input_length 513: give 2"),
        (MOONCAKE.replace("46, 47", "46, 47, 48"), "3 hash_ids for input_length 513: give 2"),
        (MOONCAKE.replace("513", "0"), "input_length is 0: give at least 1 token"),
        (MOONCAKE.replace("52", "-52"), "invalid value: integer `-52`"),
        (MOONCAKE.replace("52", "999999999"), "give at most 100000000 tokens"),
        (MOONCAKE.replace("output_length", "outptu_length"), "unknown field `outptu_length`"),
        ("{not json".to_owned(), "write one JSON object a line"),
        (CHAT.replace("1.5", "-0.5"), "timestamp_ms is -0.5"),
        (CHAT.replace(": 4}", ": 0}"), "max_tokens is 0"),
        (CHAT.replace(r#""hi""#, r#""""#), "the first message is empty"),
        (CHAT.replace(r#"{"role": "user", "content": "hi"}"#, ""), "messages is empty"),
        (CHAT.replace("max_tokens", r#"prompt": "x", "max_tokens"#), "both messages and prompt"),
        (COMPLETION.replace(r#""prompt": "once", "#, ""), "neither messages and prompt"),
        (COMPLETION.replace("once", ""), "prompt is empty"),
    ];
    for (row, expected) in cases {
        let first = if row.contains("timestamp_ms") { COMPLETION } else { MOONCAKE };
        let text = format!("{first}\n\n{row}\n");
        let message = message(&text);
        assert!(message.starts_with("t.jsonl:3: ") && message.contains(expected), "{message}");
    }
}

#[test]
fn what_concerns_the_whole_file_is_named_too() {
    for empty in ["", "\n  \n"] {
        assert!(message(empty).contains("the file is empty"));
    }
    let skip = LoadOptions { skip: 1, ..LoadOptions::default() };
    assert!(read(MOONCAKE, &skip).unwrap_err().to_string().contains("the selection left none"));
    for length_divisor in [0, 3, 1024] {
        let options = LoadOptions { length_divisor, ..LoadOptions::default() };
        assert!(read(MOONCAKE, &options).unwrap_err().to_string().contains("divisor of 512"));
    }
    let options = LoadOptions { length_divisor: 2, ..LoadOptions::default() };
    assert!(read(CHAT, &options).unwrap_err().to_string().contains("use 1"));
    let missing = load(Path::new("does/not/exist"), &LoadOptions::default()).unwrap_err();
    assert!(missing.to_string().contains("check the path"));
    let latin = parse(b"{\"timestamp\": \xe9}", Path::new("t"), &LoadOptions::default());
    assert!(latin.unwrap_err().to_string().contains("save the trace as UTF-8"));
}

#[test]
fn a_forced_format_is_not_guessed() {
    let options = LoadOptions { format: Some(TraceFormat::Prompt), ..LoadOptions::default() };
    assert!(
        read(MOONCAKE, &options).unwrap_err().to_string().contains("unknown field `timestamp`")
    );
}

#[test]
fn a_selection_keeps_a_stretch_of_the_ordered_rows() {
    let options = LoadOptions { skip: 1, limit: Some(1), ..LoadOptions::default() };
    let trace = read(&[CHAT, COMPLETION].join("\n"), &options).unwrap();
    assert_eq!(trace.rows().len(), 1);
    assert_eq!(trace.rows()[0].line, 1);
}

#[test]
fn the_trace_of_the_demo_loads_whole() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo/trace.jsonl");
    let options = LoadOptions { length_divisor: 8, ..LoadOptions::default() };
    let trace = load(&path, &options).unwrap();
    assert_eq!(trace.rows().len(), 200);
    let largest = trace.rows().iter().map(|row| row.output_tokens).max();
    assert_eq!(Some(trace.largest_output()), largest);
}

proptest! {
    #[test]
    fn a_materialised_trace_reads_back_the_same(
        arrivals in prop::collection::vec(0_u64..1_000_000_000_000_000, 1..20),
        length_divisor in prop::sample::select(vec![1_u64, 2, 8, 512]),
        input_length in 1_u64..5000,
    ) {
        let ids: Vec<u64> = (0..input_length.div_ceil(512)).collect();
        let text: Vec<String> = arrivals
            .iter()
            .map(|ns| format!(
                r#"{{"timestamp": {}.{:06}, "input_length": {input_length}, "output_length": 9, "hash_ids": {ids:?}}}"#,
                ns / 1_000_000, ns % 1_000_000,
            ))
            .collect();
        let options = LoadOptions { length_divisor, ..LoadOptions::default() };
        let trace = read(&text.join("\n"), &options).unwrap();
        let written = trace.to_jsonl().unwrap();
        let again = parse(&written, Path::new("t"), &LoadOptions::default()).unwrap();
        prop_assert_eq!(again.to_jsonl().unwrap(), written);
        let content = |trace: &Trace| -> Vec<(u64, u64, Content)> {
            let rows = trace.rows().iter();
            rows.map(|row| (row.arrival_ns, row.output_tokens, row.content.clone())).collect()
        };
        prop_assert_eq!(content(&again), content(&trace));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, Path::new("t"), &LoadOptions::default());
    }

    #[test]
    fn no_damaged_row_makes_the_reader_panic(at in 0_usize..80, byte: u8) {
        let mut bytes = MOONCAKE.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = parse(&bytes, Path::new("t"), &LoadOptions::default());
    }
}
