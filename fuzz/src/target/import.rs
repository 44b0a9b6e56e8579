//! Exports of other tools.

use std::path::Path;

use analyzer::import::{Arm, Request, Slo, Tool, import_with};

/// Named in messages, never opened.
const PATH: &str = "input";

/// The first byte chooses the tool. What is imported must not contradict itself: no latency that its instants do not
/// give, and no delivery that the export does not claim.
pub(super) fn run(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let tool = Tool::ALL[usize::from(*first) % Tool::ALL.len()];
    let request = Request {
        tool,
        arms: vec![Arm { name: "a".to_owned(), files: vec![PATH.into()] }],
        name: "fuzz".to_owned(),
        slo: Slo { ttft_ms: 300.0, tpot_ms: 20.0, origin: "fuzz".to_owned() },
        target: 0.9,
        accelerators: 1,
        rate_rps: (tool == Tool::Aiperf).then_some(10.0),
    };
    match import_with(&request, &|_: &Path| Ok(bytes.to_vec())) {
        Err(error) => names_the_file(&error.to_string()),
        Ok(imported) => {
            for rep in &imported.repetitions {
                assert_eq!(rep.records.len(), rep.schedule.len(), "requests outside the schedule");
                for row in &rep.records {
                    assert_eq!(row.contradiction_in_import(), None, "{row:?}");
                }
            }
        }
    }
}

/// What is wrong with the campaign as a whole (its rates, its model) is of no one file.
fn names_the_file(message: &str) {
    let named = message.contains(PATH) || message.contains("campaign") || message.contains("SLO");
    assert!(named, "an error that does not name its file: {message}");
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    const AIPERF: &str = r#"{"metadata":{"credit_issued_ns":1790000000000000000,"request_start_ns":1790000000000000100,"request_end_ns":1790000000201000000,"benchmark_phase":"profiling","was_cancelled":false},"metrics":{"time_to_first_token":{"value":100.0,"unit":"ms"},"request_latency":{"value":200.0,"unit":"ms"},"inter_token_latency":{"value":10.0,"unit":"ms"},"output_sequence_length":{"value":11,"unit":"tokens"}},"error":null}
{"metadata":{"request_start_ns":1790000000100000000,"request_end_ns":1790000000101000000,"benchmark_phase":"profiling"},"metrics":{},"error":{"code":503,"type":"E","message":"no"}}
"#;
    const VLLM: &str = r#"{"model_id":"m","request_rate":10.0,"max_concurrency":null,"duration":0.5,"completed":2,"mean_ttft_ms":100.0,"mean_itl_ms":10.0,"input_lens":[5,5,5],"output_lens":[3,2,0],"ttfts":[0.1,0.1,0.0],"itls":[[0.01,0.01],[0.01],[]],"start_times":[5.0,5.1,5.2],"queue_times":[0.0,0.0,0.0],"errors":["","","Bad Gateway"]}"#;
    const GUIDELLM: &str = r#"{"metadata":{"version":1,"guidellm_version":"0.8.1"},"benchmarks":[{"config":{"strategy":{"type_":"poisson","rate":10.0}},"metrics":{"request_totals":{"successful":1,"incomplete":0,"errored":1}},"requests":{"successful":[{"prompt_tokens":5,"output_tokens":3,"time_to_first_token_ms":100.0,"inter_token_latency_ms":10.0,"info":{"timings":{"targeted_start":1790000000.0,"request_start":1790000000.0,"first_token_iteration":1790000000.1,"last_token_iteration":1790000000.12,"token_iterations":3,"request_end":1790000000.13}}}],"incomplete":[],"errored":[{"info":{"error":"TimeoutError","timings":{"request_start":1790000000.2,"resolve_end":1790000000.3}}}]}}]}"#;
    let seed = |tool: u8, text: &str| [&[tool], text.as_bytes()].concat();
    vec![seed(0, AIPERF), seed(1, VLLM), seed(2, GUIDELLM)]
}
