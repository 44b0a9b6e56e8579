//! Files that people and other programs write: campaign, trace, records, settings.

use std::path::Path;

use agent::config::Settings;
use analyzer::audit::{PrefixRow, RequestRow};
use analyzer::campaign::Campaign;
use analyzer::records::{RequestRecord, ScheduleRecord, check_lines};
use analyzer::rundir::KernelRow;
use analyzer::trace::{self, LoadOptions};
use simfleet::FleetConfig;

/// Named in messages, never opened.
const PATH: &str = "input";
const CAMPAIGN: &[u8] = include_bytes!("../../../demo/campaign.toml");
const TRACE: &[u8] = include_bytes!("../../../demo/trace.jsonl");
const SETTINGS: &[u8] = include_bytes!("../../../deploy/agent.toml");
/// Rows of the trace in a seed.
const ROWS: usize = 4;

pub(super) fn campaign(bytes: &[u8]) {
    if let Err(error) = Campaign::parse(bytes.to_vec(), Path::new(PATH)) {
        names_the_file(&error.to_string());
    }
}

pub(super) fn campaign_seeds() -> Vec<Vec<u8>> {
    vec![CAMPAIGN.to_vec()]
}

/// The first byte chooses the divisor of lengths.
pub(super) fn trace(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let length_divisor = 1 << (first % 10);
    let options = LoadOptions { length_divisor, ..LoadOptions::default() };
    match trace::parse(bytes, Path::new(PATH), &options) {
        Err(error) => names_the_file(&error.to_string()),
        Ok(trace) => {
            assert!(!trace.rows().is_empty(), "a trace without a row");
            if let Ok(text) = trace.to_jsonl() {
                let again = trace::parse(&text, Path::new(PATH), &LoadOptions::default());
                assert_eq!(again.ok().map(|it| it.rows().len()), Some(trace.rows().len()));
            }
        }
    }
}

pub(super) fn trace_seeds() -> Vec<Vec<u8>> {
    let prompts = b"\0{\"timestamp\":0,\"prompt\":\"hello\",\"output_length\":3}\n\
        {\"timestamp\":10.5,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"output_length\":2}\n";
    let lines: Vec<&[u8]> = TRACE.split_inclusive(|byte| *byte == b'\n').take(ROWS).collect();
    vec![prompts.to_vec(), [&[3][..], &lines.concat()].concat()]
}

pub(super) fn records(bytes: &[u8]) {
    let path = Path::new(PATH);
    let results = [
        check_lines::<RequestRecord>(bytes, path),
        check_lines::<ScheduleRecord>(bytes, path),
        check_lines::<KernelRow>(bytes, path),
        check_lines::<RequestRow>(bytes, path),
        check_lines::<PrefixRow>(bytes, path),
    ];
    results
        .into_iter()
        .filter_map(Result::err)
        .for_each(|error| names_the_file(&error.to_string()));
}

pub(super) fn record_seeds() -> Vec<Vec<u8>> {
    const LINES: [&str; 4] = [
        "{\"schema\":\"goodput.prefix/1\",\"endpoint\":\"10.0.0.1:8000\",\"connection\":1,\"request_index\":0,\
         \"prompt_bytes\":1024,\"prompt_end\":\"cut\",\"prefixes\":[\"00\",null,null,null]}\n",
        "{\"schema\":\"goodput.schedule/1\",\"index\":0,\"row\":0,\"planned_offset_ns\":0,\
         \"input_tokens\":5,\"output_tokens\":2,\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}\n",
        "{\"schema\":\"goodput.kernel/1\",\"trace_id\":null,\"endpoint\":\"10.0.0.1:8000\",\
         \"leg\":\"client\",\"role\":\"vip\",\"token_ns\":[5,1,1],\"token_events\":3}\n",
        "{\"schema\":\"goodput.request/1\",\"index\":0,\
         \"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"conn_id\":0,\"planned_ns\":1}\n",
    ];
    LINES.iter().map(|line| line.as_bytes().to_vec()).collect()
}

/// Settings of the agent and of the simulated fleet.
pub(super) fn settings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(settings) = toml::from_str::<Settings>(text) {
        // A value that is refused is an error with its mend, never a panic.
        drop(settings.complete("host"));
    }
    drop(FleetConfig::from_toml(text));
}

pub(super) fn settings_seeds() -> Vec<Vec<u8>> {
    const FLEET: &str = "[engine]\nslots = 3\ndecode_slowdown_per_active = 0.5\n[[backend]]\nname = 'b'\n\
        keep_alive = { max_requests = 3 }\n[[gateway]]\nname = 'g'\nvip = '127.0.0.1:0'\n\
        policy = { algorithm = 'bounded_load_hash', hash_key = 'session' }\n";
    vec![SETTINGS.to_vec(), FLEET.as_bytes().to_vec()]
}

/// People must be able to find what an error speaks of.
fn names_the_file(message: &str) {
    assert!(message.contains(PATH), "an error that does not name its file: {message}");
}
