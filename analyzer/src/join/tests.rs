//! Two records of known difference, joined.

use super::*;
use crate::outcome::Class;
use crate::testkit::{account, delivered, failed, legs, trace_id};

const JUDGE: Judge = Judge { ttft_ns: 300_000_000, tpot_ns: 20_000_000 };

fn requests(n: u64) -> Vec<RequestRecord> {
    (0..n).map(|i| delivered(trace_id("a", 1.0, 1, i), i, 100_000_000)).collect()
}

fn observe(requests: &[RequestRecord]) -> Observed {
    let backend = |i: usize| if i.is_multiple_of(4) { "b:1" } else { "b:2" };
    let rows = requests.iter().enumerate().flat_map(|(i, row)| legs(row, backend(i))).collect();
    Observed { account: account(), rows }
}

#[test]
fn ttft_is_split_into_the_parts_that_were_put_in() {
    let requests = requests(100);
    let check = join(&requests, &[observe(&requests)], JUDGE);
    // The client leg is 50 us shorter at each end; the backend leg 200 us + 300 us shorter than that.
    assert_eq!(check.ttft_difference.n, 100);
    assert_eq!(
        (check.ttft_difference.min_us, check.ttft_difference.max_us),
        (Some(100.0), Some(100.0))
    );
    assert_eq!(check.ttft_magnitude_p99_us, Some(100.0));
    assert_eq!(check.tpot_difference.p50_us, Some(0.0));
    assert_eq!(check.split.client.p50_us, Some(100.0));
    assert_eq!(check.split.gateway.p50_us, Some(500.0));
    assert_eq!(check.split.gateway_request_path.p50_us, Some(200.0));
    assert_eq!(check.split.gateway_response_path.p50_us, Some(300.0));
    assert_eq!(check.split.backend.p50_us, Some(98_400.0));
}

#[test]
fn completeness_shares_and_packets_are_counted() {
    let requests = requests(100);
    let check = join(&requests, &[observe(&requests)], JUDGE);
    assert_eq!((check.completed, check.on_client_leg, check.on_backend_leg), (100, 100, 100));
    assert_eq!(check.unpaired_share, Some(0.0));
    assert_eq!(check.backend_requests["b:1"], 25);
    assert_eq!(check.backend_requests["b:2"], 75);
    assert_eq!((check.packets_counted, check.packets_expected), (Some(5_000), 4_000));
    assert!(check.complete && check.verdict_flips.is_empty() && check.disagreements.is_empty());
}

#[test]
fn a_missing_leg_is_unpaired_and_a_failed_request_needs_none() {
    let mut requests = requests(100);
    requests[3] = failed(&requests[3], Class::ConnectError);
    let mut observed = observe(&requests);
    observed.rows.retain(|row| row.trace_id != Some(requests[3].trace_id));
    observed
        .rows
        .retain(|row| row.trace_id != Some(requests[9].trace_id) || row.leg == Leg::Client);
    let check = join(&requests, &[observed], JUDGE);
    assert_eq!((check.completed, check.on_client_leg, check.on_backend_leg), (99, 99, 98));
    assert_eq!(check.unpaired_share, Some(1.0 / 99.0));
}

#[test]
fn flips_and_disagreements_are_listed_with_both_sides() {
    let mut requests = requests(10);
    // From sent the client sees exactly 300.05 ms, the kernel 299.95 ms: good by the kernel only.
    requests[2] = delivered(requests[2].trace_id, 2, 301_050_000);
    let mut observed = observe(&requests);
    observed.rows[0].outcome = Some("truncated".to_owned());
    observed.rows[2].framing = Some("invalid".to_owned());
    observed.rows[4 + 4].outcome = Some("unknown".to_owned());
    let check = join(&requests, &[observed], JUDGE);
    assert_eq!(check.verdict_flips.len(), 1);
    assert_eq!(
        (check.verdict_flips[0].index, check.verdict_flips[0].client_ttft_ns),
        (2, 300_050_000)
    );
    let about: Vec<_> = check
        .disagreements
        .iter()
        .map(|found| (found.index, found.about.as_str(), found.kernel.as_str()))
        .collect();
    assert_eq!(about, [(0, "outcome", "truncated"), (1, "framing", "invalid")]);
}

#[test]
fn a_timeout_is_the_clients_alone() {
    let mut requests = requests(2);
    let observed = observe(&requests);
    requests[0] = failed(&requests[0], Class::TimeoutSlow);
    assert!(join(&requests, &[observed], JUDGE).disagreements.is_empty());
}

#[test]
fn legs_may_come_from_two_agents_and_only_durations_are_compared() {
    let requests = requests(20);
    let Observed { account, rows } = observe(&requests);
    let (client, backend): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.leg == Leg::Client);
    // The backend's host has a clock of its own.
    let backend = backend
        .into_iter()
        .map(|row| KernelRow {
            request_end_ns: row.request_end_ns.map(|ns| ns + 7_000_000_000),
            first_token_ns: row.first_token_ns.map(|ns| ns + 7_000_000_000),
            ..row
        })
        .collect();
    let observed =
        [Observed { account: account.clone(), rows: client }, Observed { account, rows: backend }];
    let check = join(&requests, &observed, JUDGE);
    assert_eq!(check.unpaired_share, Some(0.0));
    assert_eq!(check.split.gateway.p50_us, Some(500.0));
    assert_eq!(check.split.gateway_request_path.n, 0, "clocks of two hosts were subtracted");
}

#[test]
fn an_agent_that_lost_something_names_why() {
    let requests = requests(2);
    let mut observed = observe(&requests);
    observed.account.complete = false;
    observed.account.reasons = vec!["ring_full".to_owned()];
    observed.account.observations = Some(4);
    let check = join(&requests, &[observed], JUDGE);
    assert_eq!(
        (check.complete, check.incomplete_reasons.as_slice()),
        (false, ["host: ring_full".to_owned()].as_slice())
    );
    let mut cut = observe(&requests);
    cut.account.observations = Some(5);
    let check = join(&requests, &[cut], JUDGE);
    let reason = "host: 4 observations in kernel.jsonl, 5 in the agent's account".to_owned();
    assert_eq!((check.complete, check.incomplete_reasons), (false, vec![reason]));
    let nobody = join(&requests, &[], JUDGE);
    assert_eq!((nobody.complete, nobody.packets_counted, nobody.on_client_leg), (false, None, 0));
}

/// Legs of a disaggregated request: prefill at `prefill`, decode at `decode`, and the receipt that the
/// client got.
fn disaggregated(row: &mut RequestRecord, seen: [&str; 2], named: [&str; 2]) -> Vec<KernelRow> {
    let receipt = protocol::receipt::Receipt {
        prefill: named[0].parse().unwrap(),
        decode: named[1].parse().unwrap(),
    };
    row.response_id = Some(format!("chatcmpl-{}", receipt.request_id("0")));
    let mut rows = legs(row, seen[1]);
    rows[1].role = Some("decode".to_owned());
    let prefill = KernelRow {
        endpoint: seen[0].to_owned(),
        role: Some("prefill".to_owned()),
        first_token_ns: None,
        ..rows[1].clone()
    };
    rows.push(prefill);
    rows
}

const PREFILLS: [&str; 2] = ["10.0.1.1:1", "10.0.1.2:1"];
const DECODE: &str = "10.0.2.1:1";

#[test]
fn receipts_that_tell_the_truth_agree_and_a_lie_is_listed() {
    let mut requests = requests(10);
    let mut rows = Vec::new();
    for (i, row) in requests.iter_mut().enumerate() {
        let seen = PREFILLS[i % 2];
        let named = if i == 3 { PREFILLS[0] } else { seen };
        rows.extend(disaggregated(row, [seen, DECODE], [named, DECODE]));
    }
    let check = join(&requests, &[Observed { account: account(), rows: rows.clone() }], JUDGE);
    let receipts = &check.receipts;
    assert_eq!((receipts.agree, receipts.disagree, receipts.disaggregated), (9, 1, 10));
    let wrong = &receipts.disagreements[0];
    assert_eq!((wrong.index, wrong.named.prefill), (3, PREFILLS[0].parse().unwrap()));
    assert!(wrong.seen.contains(&PREFILLS[1].parse().unwrap()));
    // A prefill that nobody got, in a record that lost nothing.
    let id = requests[0].trace_id;
    rows.retain(|row| row.trace_id != Some(id) || row.role.as_deref() != Some("prefill"));
    let mut account = account();
    let whole =
        join(&requests, &[Observed { account: account.clone(), rows: rows.clone() }], JUDGE);
    assert_eq!((whole.receipts.agree, whole.receipts.disagree), (8, 2));
    account.complete = false;
    let lossy = join(&requests, &[Observed { account, rows }], JUDGE);
    assert_eq!((lossy.receipts.disagree, lossy.receipts.not_observable), (1, 1));
}

#[test]
fn requests_without_a_receipt_are_absent() {
    let requests = requests(4);
    let receipts = join(&requests, &[observe(&requests)], JUDGE).receipts;
    assert_eq!((receipts.absent, receipts.disaggregated), (4, 0));
}

#[test]
fn a_kernel_record_in_another_unit_disagrees_and_a_slow_network_does_not() {
    let requests = requests(4);
    let scaled = |factor: fn(u64) -> u64| {
        let mut observed = observe(&requests);
        for row in &mut observed.rows {
            for instant in
                [&mut row.request_end_ns, &mut row.first_token_ns, &mut row.last_token_ns]
            {
                *instant = instant.map(factor);
            }
        }
        let found = join(&requests, &[observed], JUDGE).disagreements;
        found.iter().filter(|it| it.about == "unit").count()
    };
    assert_eq!(scaled(|ns| ns), 0);
    assert_eq!(scaled(|ns| ns / 1_000), 4);
    assert_eq!(scaled(|ns| ns * 1_000), 4);
    assert_eq!(scaled(|ns| ns / 1_000_000), 4);
    assert_eq!(scaled(|ns| ns / 100), 0);
    // 100 ms by the client of which the gateway's host saw 0.1 ms: far away, but not in another unit.
    let mut observed = observe(&requests);
    for row in &mut observed.rows {
        row.request_end_ns = row.first_token_ns.map(|ns| ns - 100_000);
    }
    assert_eq!(join(&requests, &[observed], JUDGE).disagreements, []);
}
