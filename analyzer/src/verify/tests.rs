//! Each gate and each verdict on a synthetic run that differs from a good one in one thing.

use protocol::Nanos;

use super::*;
use crate::analyze::analyze;
use crate::evidence::{Evidence, Repetition};
use crate::outcome::Class;
use crate::records::TokensSource;
use crate::rundir::{KernelRow, Leg, Override, ReadinessRow, Scrape, TargetKind};
use crate::testkit::{self, SIZE, evidence, failed, gateway, with_good};

fn judge(evidence: &Evidence) -> VerdictFile {
    verify(evidence, &analyze(evidence), "target/run")
}

/// Index of `aware` at 20 rps, repetition 1: a cell that claims use (its knee and its win).
const CLAIMED: usize = 15;

fn changed(change: impl FnOnce(&mut Repetition)) -> VerdictFile {
    let mut evidence = evidence();
    assert_eq!(evidence.repetitions[CLAIMED].run.arm, "aware");
    change(&mut evidence.repetitions[CLAIMED]);
    judge(&evidence)
}

#[track_caller]
fn assert_finding(verdict: &VerdictFile, code: Code, part: &str) {
    let found: Vec<&Finding> = verdict.findings.iter().filter(|f| f.code == code).collect();
    assert!(!found.is_empty(), "{} is absent from {:#?}", code.name(), verdict.findings);
    assert!(found.iter().any(|f| f.detail.contains(part)), "{part:?} is in none of {found:#?}");
}

#[test]
fn a_good_run_is_publishable_and_claims_its_win() {
    let verdict = judge(&evidence());
    assert_eq!(verdict.verdict, Verdict::Publishable, "{:#?}", verdict.findings);
    assert_eq!((verdict.kernel, verdict.calibration.as_str()), (KernelState::Observed, "declared"));
    assert_eq!(verdict.wins.len(), 1);
    assert_eq!((verdict.wins[0].arm.as_str(), verdict.wins[0].rate_rps), ("aware", 20.0));
    let cells: Vec<&str> = verdict.claim_cells.iter().map(String::as_str).collect();
    assert_eq!(cells, ["aware r20", "floor r10", "floor r20"]);
    assert_eq!(verdict.add_replicates, None);
}

type Change = fn(&mut Repetition);

/// Each change to the claimed repetition discards it with its code, and its cell asks for another one.
fn assert_discards(cases: &[(Code, &str, Change)]) {
    for (code, part, change) in cases {
        let verdict = changed(|rep| {
            change(rep);
            let legs = rep.requests.iter().flat_map(|row| testkit::legs(row, "127.0.0.1:3"));
            rep.observed[0].rows = legs.collect();
            testkit::recount_observations(rep);
        });
        assert_finding(&verdict, *code, part);
        assert_eq!(verdict.verdict, Verdict::AddReplicates, "{part}: {:#?}", verdict.findings);
        assert_finding(&verdict, Code::FewRepetitions, "4 valid of 5 recorded, 5 needed");
        let add = verdict.add_replicates.unwrap();
        assert_eq!((add.repetitions, add.to_add, add.requests), (6, 4, 400));
        assert!(add.command.contains("goodput run x/campaign.toml"), "{}", add.command);
        assert!(add.command.contains("--resume --repetitions 6"), "{}", add.command);
    }
}

#[test]
fn each_validity_rule_discards_its_repetition_with_its_code() {
    let cases: &[(Code, &str, Change)] = &[
        (Code::FramingInvalid, "1 responses", |rep| {
            rep.requests[0] = failed(&rep.requests[0], Class::Framing);
        }),
        (Code::HangOrTruncation, "1 requests", |rep| {
            rep.requests[0] = failed(&rep.requests[0], Class::Truncated);
        }),
        (Code::HangOrTruncation, "1 requests", |rep| {
            rep.requests[0] = failed(&rep.requests[0], Class::TimeoutStalled);
        }),
        (Code::BackendTimeout, "1 requests", |rep| {
            rep.requests[0] = failed(&rep.requests[0], Class::HttpStatus);
            rep.requests[0].status = Some(504);
        }),
        (Code::BackendTimeout, "1 requests", |rep| {
            rep.requests[0] = failed(&rep.requests[0], Class::InbandError);
            rep.requests[0].names_server_timeout = true;
        }),
        (Code::ZeroPaired, "0 of 100", |rep| {
            let none = rep.requests.iter().map(|row| failed(row, Class::HttpStatus)).collect();
            rep.requests = none;
        }),
        (Code::Incomplete, "without a record", |rep| {
            rep.requests.pop();
        }),
        (Code::Incomplete, "cancelled", |rep| {
            rep.requests[0] = failed(&rep.requests[0], Class::CancelledByTool);
        }),
        (Code::TornRecord, "requests.jsonl: 7 bytes", |rep| {
            rep.torn.push(("requests.jsonl".to_owned(), 7));
        }),
        (Code::Incomplete, "interrupted", |rep| rep.run.interrupted = true),
        (Code::AccountingBroken, "twice", |rep| rep.requests.push(rep.requests[0].clone())),
        (Code::AccountingBroken, "outside", |rep| rep.requests[0].index = SIZE + 1),
        (Code::ClientLag, "bound 3.000 ms", |rep| {
            for row in &mut rep.requests[..2] {
                row.dispatched_ns = Some(Nanos::new(row.planned_ns.get() + 3_000_001));
            }
            testkit::sum_up(rep);
        }),
        (Code::ClientLag, "achieved 18.00", |rep| {
            rep.requests[..10].iter_mut().for_each(|row| row.dispatched_ns = None);
            testkit::sum_up(rep);
        }),
        (Code::ScheduleMismatch, "another", |rep| rep.run.schedule_sha256 = "another".to_owned()),
        (Code::ScheduleMismatch, "the manifest registered", |rep| {
            rep.schedule[3].row += 1;
            testkit::sum_up(rep);
        }),
    ];
    assert_discards(cases);
}

#[test]
fn what_the_records_do_not_bear_out_discards_the_repetition() {
    assert_discards(&[
        (Code::RecordsDisagree, "run.json is of arm floor", |rep| rep.run.arm = "floor".to_owned()),
        (Code::RecordsDisagree, "run.json is of 10 rps", |rep| rep.run.rate_rps = 10.0),
        (Code::RecordsDisagree, "run.json is of repetition 2", |rep| rep.run.repetition = 2),
        (Code::RecordsDisagree, "salt none", |rep| rep.run.salt = None),
        (Code::RecordsDisagree, "attempted is 101", |rep| rep.run.attempted = 101),
        (Code::RecordsDisagree, "lag_p99_ns is 1 in run.json", |rep| rep.run.lag_p99_ns = Some(1)),
        (Code::RecordsDisagree, "achieved_rps is 21", |rep| rep.run.achieved_rps = 21.0),
        (Code::RecordsDisagree, "schedule_length_ns is 1", |rep| rep.run.schedule_length_ns = 1),
        (Code::RecordsDisagree, "window_end_ns is", |rep| {
            rep.run.window_end_ns = Nanos::new(u64::MAX);
        }),
        (Code::RecordsDisagree, "request 0: ttft_ns", |rep| rep.requests[0].ttft_ns = Some(-5)),
        (Code::RecordsDisagree, "request 0: planned_ns", |rep| {
            let row = &rep.requests[0];
            let later = Nanos::new(row.planned_ns.get() + 50_000_000);
            let ttft = row.ttft_ns.map(|ns| ns - 50_000_000);
            (rep.requests[0].planned_ns, rep.requests[0].ttft_ns) = (later, ttft);
        }),
        (Code::RecordsDisagree, "request 0: trace_id", |rep| {
            rep.requests[0].trace_id = testkit::trace_id("other", 1.0, 1, 1);
        }),
        (Code::ModeMismatch, "sel is 0", |rep| {
            rep.gateway.as_mut().unwrap().mismatches = vec!["sel is 0".to_owned()];
        }),
        (Code::ModeMismatch, "no readback", |rep| rep.gateway = None),
    ]);
}

#[test]
fn slow_and_refused_requests_are_misses_and_keep_the_repetition() {
    for class in [Class::TimeoutSlow, Class::ConnectError, Class::Reset, Class::HttpStatus] {
        let verdict = changed(|rep| {
            rep.requests[99] = failed(&rep.requests[99], class);
            rep.observed[0].rows.retain(|row| row.trace_id != Some(rep.requests[99].trace_id));
            testkit::recount_observations(rep);
        });
        assert_eq!(verdict.verdict, Verdict::Publishable, "{class:?}: {:#?}", verdict.findings);
    }
}

fn readiness(target: &str, kind: TargetKind, failures: &[bool]) -> Evidence {
    let mut evidence = evidence();
    let start = evidence.repetitions[CLAIMED].run.window_start_ns.get();
    let mut rows = evidence.readiness.take().unwrap();
    rows.retain(|row| row.target != target);
    let probes = (1..).zip(failures).map(|(second, failed)| ReadinessRow {
        schema: "goodput.readiness/1".to_owned(),
        at_ns: start + second * 300_000_000,
        target: target.to_owned(),
        kind,
        ok: !failed,
        status: (!failed).then_some(200),
        detail: failed.then(|| "connection refused".to_owned()),
    });
    rows.extend(probes);
    evidence.readiness = Some(rows);
    evidence
}

#[test]
fn down_means_two_failures_in_a_row_of_the_arms_own_vip_or_of_any_backend() {
    let vip = "http://127.0.0.1:2";
    let once = judge(&readiness(vip, TargetKind::Vip, &[true, false, true]));
    assert_eq!(once.verdict, Verdict::Publishable, "{:#?}", once.findings);
    let twice = judge(&readiness(vip, TargetKind::Vip, &[false, true, true]));
    assert_finding(&twice, Code::VipDown, "connection refused");
    assert!(twice.findings.iter().all(|f| !(f.code == Code::VipDown && f.place.contains("floor"))));
    let backend = judge(&readiness("127.0.0.1:3", TargetKind::Backend, &[true, true]));
    assert_finding(&backend, Code::BackendDown, "127.0.0.1:3");
}

#[test]
fn a_target_without_a_probe_in_the_window_is_unknown_and_not_up() {
    for target in ["http://127.0.0.1:2", "127.0.0.1:3"] {
        let mut evidence = evidence();
        let rows = evidence.readiness.as_mut().unwrap();
        rows.retain(|row| row.target != target || row.at_ns > 11_000_000_000);
        let verdict = judge(&evidence);
        assert_finding(&verdict, Code::ReadinessUnknown, &format!("no probe of {target}"));
        assert_eq!(verdict.verdict, Verdict::Discarded);
    }
}

#[test]
fn reservations_of_a_claimed_cell_become_footnotes() {
    type Change = fn(&mut Repetition);
    let cases: &[(Code, &str, Change)] = &[
        (Code::ClockStep, "1 steps", |rep| rep.run.clock_steps = 1),
        (Code::KernelIncomplete, "ring_full", |rep| {
            rep.observed[0].account.complete = false;
            rep.observed[0].account.reasons = vec!["ring_full".to_owned()];
        }),
        (Code::TokensFromChunks, "1 requests", |rep| {
            rep.requests[0].tokens_from = Some(TokensSource::Chunks);
        }),
        (Code::PacketsShort, "4 counted, 4000 expected", |rep| {
            let few = serde_json::json!(4);
            rep.observed[0].account.counters.insert("endpoint_packets".to_owned(), few);
        }),
        (Code::VerdictFlips, "1 requests", |rep| {
            let row = &mut rep.requests[0];
            let first = row.first_token_ns.unwrap().get();
            row.sent_ns = Some(Nanos::new(first - 300_000_001));
            row.ttft_from_sent_ns = Some(300_000_001);
        }),
        (Code::KernelIncomplete, "198 observations in kernel.jsonl, 200 in the agent's", |rep| {
            rep.observed[0].rows.truncate(198);
        }),
        (Code::KernelIncomplete, "agent host gave no account", |rep| {
            rep.observed[0].account.name = "another".to_owned();
        }),
        (Code::UsageImplausible, "1 requests with fewer tokens", |rep| {
            claims_tokens(&mut rep.requests[0], 5);
        }),
        (Code::UsageImplausible, "1 requests with more than twice", |rep| {
            claims_tokens(&mut rep.requests[0], u64::MAX);
        }),
    ];
    for (code, part, change) in cases {
        let verdict = changed(change);
        assert_finding(&verdict, *code, part);
        assert_eq!(verdict.verdict, Verdict::PublishableWithFootnote, "{}", code.name());
        assert_eq!(verdict.wins.len(), 1, "{}", code.name());
    }
    let incomplete = changed(cases[1].2);
    assert_eq!(incomplete.kernel, KernelState::Incomplete);
}

/// The server's usage says `tokens`, and TPOT follows from it.
fn claims_tokens(row: &mut crate::records::RequestRecord, tokens: u64) {
    row.completion_tokens = Some(tokens);
    row.tpot_ns = Some((100_000_000 / (tokens - 1)).max(1));
}

#[test]
fn sides_that_disagree_discard_what_is_claimed_of_their_cell() {
    let mut evidence = evidence();
    evidence.repetitions[CLAIMED].observed[0].rows[0].outcome = Some("truncated".to_owned());
    let verdict = judge(&evidence);
    assert_finding(&verdict, Code::CrosscheckDisagrees, "request 0");
    assert_eq!((verdict.verdict, verdict.wins.len()), (Verdict::Discarded, 0));
    let mut evidence = self::evidence();
    // `aware` at 10 rps: neither its knee nor a win.
    evidence.repetitions[10].observed[0].rows[0].outcome = Some("truncated".to_owned());
    let elsewhere = judge(&evidence);
    assert_finding(&elsewhere, Code::CrosscheckDisagrees, "request 0");
    assert_eq!(elsewhere.verdict, Verdict::Publishable, "{:#?}", elsewhere.findings);
}

#[test]
fn a_receipt_that_the_kernel_contradicts_discards_what_is_claimed_of_its_cell() {
    let named = "chatcmpl-___prefill_addr_127.0.0.1:9___decode_addr_127.0.0.1:3_0";
    let mut evidence = evidence();
    let rep = &mut evidence.repetitions[CLAIMED];
    rep.requests[0].response_id = Some(named.to_owned());
    let decode = rep.observed[0].rows.iter_mut().find(|row| row.leg == Leg::Backend).unwrap();
    decode.role = Some("decode".to_owned());
    let prefill = KernelRow {
        role: Some("prefill".to_owned()),
        endpoint: "127.0.0.2:8".to_owned(),
        ..decode.clone()
    };
    rep.observed[0].rows.push(prefill);
    let rows = rep.observed[0].rows.len() as u64;
    rep.observed[0].account.observations = Some(rows);
    let verdict = judge(&evidence);
    assert_finding(
        &verdict,
        Code::ReceiptDisagrees,
        "request 0: prefill 127.0.0.1:9 and decode 127.0.0.1:3",
    );
    assert_eq!((verdict.verdict, verdict.wins.len()), (Verdict::Discarded, 0));
    assert_finding(&verdict, Code::TopologyDiffers, "disaggregated: aware; aggregated: floor");
    let delivery = verdict.delivery.iter().find(|proof| !proof.receipts.is_empty()).unwrap();
    assert_eq!((delivery.proof, delivery.receipts["disagree"]), (Proof::Failed, 1));
}

#[test]
fn caveats_of_a_good_run_are_told_and_do_not_block() {
    let verdict = judge(&evidence());
    assert_finding(&verdict, Code::SloNotFromBaseline, "its stated origin: synthetic");
    assert_finding(&verdict, Code::LoadDependent, "a win at 20 rps, none at 10 rps");
    assert!(verdict.findings.iter().all(|it| it.code != Code::TopologyDiffers));
    assert_eq!(verdict.verdict, Verdict::Publishable);
    let own = judge(&derived());
    assert!(own.findings.iter().all(|it| it.code != Code::SloNotFromBaseline));
}

#[test]
fn equivalences_within_a_registered_margin_are_claimed_unless_all_is_discarded() {
    let mut evidence = evidence();
    let text = format!("{}[statistics]\ndelta = 0.05\n", testkit::CAMPAIGN);
    evidence.campaign = testkit::campaign(&text);
    evidence.manifest.campaign_sha256 = crate::records::sha256_hex(text.as_bytes());
    let verdict = judge(&evidence);
    let [claim] = verdict.equivalences.as_slice() else { panic!("{:?}", verdict.equivalences) };
    assert_eq!((claim.arm.as_str(), claim.floor.as_str()), ("aware", "floor"));
    assert_eq!((claim.rate_rps, claim.delta, claim.alpha), (10.0, 0.05, 0.05));
    let (low, high) = claim.interval.ends().unwrap();
    assert!(-0.05 < low && high < 0.05 && verdict.wins.len() == 1);
    assert!(verdict.claim_cells.contains("aware r10"));
    assert_eq!(judge(&self::evidence()).equivalences, []);
    evidence.slo.ttft_ns += 1;
    let discarded = judge(&evidence);
    assert_eq!((discarded.verdict, discarded.equivalences.len()), (Verdict::Discarded, 0));
}

#[test]
fn a_copied_repetition_is_found_in_both_places() {
    let mut evidence = evidence();
    let copy = evidence.repetitions[CLAIMED].clone();
    let place = evidence.repetitions[CLAIMED + 1].place.clone();
    evidence.repetitions[CLAIMED + 1] = Repetition { place, ..copy };
    let verdict = judge(&evidence);
    for (place, other) in [("rep1", "aware r20 rep2"), ("rep2", "aware r20 rep1")] {
        let found = verdict.findings.iter().any(|finding| {
            finding.code == Code::RecordsDisagree
                && finding.place == format!("aware r20 {place}")
                && finding.detail.contains(&format!("100 trace ids are also in {other}"))
        });
        assert!(found, "{place}: {:#?}", verdict.findings);
    }
    assert_eq!(verdict.verdict, Verdict::AddReplicates);
}

#[test]
fn below_the_lowest_rate_is_a_claim_about_the_lowest_rung() {
    let low = with_good(|_, _, number| 40 + u64::from(number % 2));
    let verdict = judge(&low);
    let cells: Vec<&str> = verdict.claim_cells.iter().map(String::as_str).collect();
    assert_eq!(cells, ["aware r10", "floor r10"]);
    assert_eq!(verdict.verdict, Verdict::Publishable, "{:#?}", verdict.findings);
    let mut few = low;
    few.repetitions.retain(|rep| rep.place.repetition <= 2);
    let verdict = judge(&few);
    assert_eq!(verdict.verdict, Verdict::AddReplicates);
    assert_finding(&verdict, Code::FewRepetitions, "2 valid of 2 recorded, 5 needed");
    let mut noisy = with_good(|_, _, number| 10 * u64::from(number));
    noisy.campaign = testkit::campaign(testkit::CAMPAIGN);
    assert_finding(&judge(&noisy), Code::CvOverBound, "CV");
}

#[test]
fn a_cell_or_a_repetition_that_is_gone_is_noticed_and_asked_for() {
    type Gone = fn(&Repetition) -> bool;
    let cases: &[(Gone, &str, &str)] = &[
        (|rep| rep.place.arm == "floor" && rep.place.rate_rps < 15.0, "floor r10", "no repetition"),
        (|rep| rep.place.arm == "aware" && rep.place.rate_rps < 15.0, "aware r10", "no repetition"),
        (|rep| rep.place.arm == "aware" && rep.place.repetition == 2, "aware r10", "rep2 without"),
    ];
    for (gone, place, part) in cases {
        let mut evidence = evidence();
        evidence.repetitions.retain(|rep| !gone(rep));
        let verdict = judge(&evidence);
        assert_eq!(verdict.verdict, Verdict::AddReplicates, "{place}: {:#?}", verdict.findings);
        assert_finding(&verdict, Code::MissingCell, part);
        assert!(verdict.findings.iter().any(|f| f.code == Code::MissingCell && f.place == *place));
        let add = verdict.add_replicates.unwrap();
        assert_eq!(add.requests, add.to_add * SIZE, "{place}");
        assert!(add.to_add > 0 && add.command.contains("--resume"), "{add:?}");
    }
}

#[test]
fn the_same_reservation_in_an_unclaimed_cell_is_only_information() {
    let mut evidence = evidence();
    // `aware` at 10 rps: neither its knee nor a win.
    evidence.repetitions[10].run.clock_steps = 1;
    let verdict = judge(&evidence);
    assert_finding(&verdict, Code::ClockStep, "1 steps");
    assert_eq!(verdict.verdict, Verdict::Publishable);
}

#[test]
fn a_run_without_agents_says_so_and_keeps_a_footnote() {
    let mut evidence = evidence();
    let (text, _) = testkit::CAMPAIGN.split_once("[[agent]]").unwrap();
    evidence.campaign = testkit::campaign(text);
    evidence.manifest.campaign_sha256 = crate::records::sha256_hex(text.as_bytes());
    evidence.repetitions.iter_mut().for_each(|rep| rep.observed.clear());
    let verdict = judge(&evidence);
    assert_eq!(
        (verdict.verdict, verdict.kernel.words()),
        (Verdict::PublishableWithFootnote, "not observed")
    );
    assert_finding(&verdict, Code::KernelNotObserved, "no agent");
    // Leaving out the agents that a campaign registers is an override.
    let mut left_out = self::evidence();
    left_out.manifest.without_agent = true;
    left_out.repetitions.iter_mut().for_each(|rep| rep.observed.clear());
    let overridden = judge(&left_out);
    assert_finding(&overridden, Code::Override, "--without-agent; the campaign lists 1 agents");
    assert_eq!(overridden.verdict, Verdict::Discarded);
    assert!(verdict.delivery.iter().all(|proof| proof.proof == Proof::Unknown));
}

#[test]
fn more_than_one_percent_without_a_leg_makes_delivery_unknown() {
    let mut evidence = evidence();
    for rep in evidence.repetitions.iter_mut().filter(|rep| rep.run.arm == "aware") {
        rep.observed[0].rows.truncate(2 * 98);
        testkit::recount_observations(rep);
    }
    let verdict = judge(&evidence);
    assert_finding(&verdict, Code::DeliveryUnknown, "2.00 %");
    assert_eq!(verdict.verdict, Verdict::PublishableWithFootnote);
}

/// Every repetition of `aware` with these counters.
fn counted(hits: Option<f64>, misses: Option<f64>) -> VerdictFile {
    let mut evidence = evidence();
    for rep in evidence.repetitions.iter_mut().filter(|rep| rep.run.arm == "aware") {
        rep.gateway = Some(gateway("aware", hits, misses));
    }
    judge(&evidence)
}

#[test]
fn a_silent_fallback_claims_no_win_and_names_the_mismatch() {
    for hits in [Some(0.0), None] {
        let verdict = counted(hits, Some(100.0));
        assert_eq!(verdict.verdict, Verdict::Discarded);
        assert!(verdict.wins.is_empty());
        let detail = "arm aware: the gateway reports LB mode hard, but tier-1.5 hits";
        assert_finding(&verdict, Code::DecisionFailed, detail);
        assert_finding(
            &verdict,
            Code::DecisionFailed,
            "misses climbed by 1000 of 1000: it fell back",
        );
        assert_finding(&verdict, Code::DecisionFailed, "per-backend shares: 127.0.0.1:3 100.0 %");
    }
}

#[test]
fn frozen_counters_fail_and_are_called_so() {
    let verdict = counted(Some(0.0), Some(0.0));
    assert_eq!(verdict.verdict, Verdict::Discarded);
    assert_finding(&verdict, Code::DecisionFailed, "frozen counters prove no routing");
}

#[test]
fn decision_proof_holds_fails_on_either_bound_and_is_unknown_without_series() {
    assert_eq!(counted(Some(40.0), Some(50.0)).decision[1].proof, Proof::Holds);
    assert_eq!(counted(Some(39.0), Some(50.0)).decision[1].proof, Proof::Failed);
    assert_eq!(counted(Some(40.0), Some(51.0)).decision[1].proof, Proof::Failed);
    let unknown = counted(None, Some(50.0));
    assert_eq!(unknown.decision[1].proof, Proof::Unknown);
    assert_eq!(unknown.verdict, Verdict::PublishableWithFootnote);
    assert_eq!(unknown.decision[0].proof, Proof::NotAsked);
    let mut off = evidence();
    for rep in &mut off.repetitions {
        let reason = "503".to_owned();
        rep.gateway.as_mut().unwrap().after = Scrape::Unavailable { reason };
    }
    assert_finding(&judge(&off), Code::DecisionUnknown, "never appeared");
}

#[test]
fn one_repetition_without_counters_leaves_the_decision_unknown_and_never_counts_as_zero() {
    for (hits, misses) in [(None, Some(50.0)), (Some(40.0), None)] {
        let mut evidence = evidence();
        evidence.repetitions[CLAIMED].gateway = Some(gateway("aware", hits, misses));
        let verdict = judge(&evidence);
        let detail = "are absent from 1 of 10 repetitions";
        assert_finding(&verdict, Code::DecisionUnknown, detail);
        assert_eq!(verdict.decision[1].proof, Proof::Unknown);
        assert_eq!(verdict.verdict, Verdict::PublishableWithFootnote, "{:#?}", verdict.findings);
    }
    // 0.7 of the prefixes hit where it was counted: with 0 for the rest it would be far below 0.5.
    let mut half = evidence();
    for rep in half.repetitions.iter_mut().filter(|rep| rep.place.repetition <= 3) {
        rep.gateway = Some(gateway(&rep.place.arm, None, Some(20.0)));
    }
    assert_eq!(judge(&half).decision[1].proof, Proof::Unknown);
}

#[test]
fn less_than_registered_is_recorded_and_asked_for_until_it_is_made_up_for() {
    let reduced = || {
        let mut evidence = evidence();
        let settings = Override::Repetitions { asked: 1, registered: 5 };
        evidence.manifest.overrides = vec![settings];
        evidence
    };
    let mut quick = reduced();
    quick.repetitions.retain(|rep| rep.place.repetition == 1);
    let verdict = judge(&quick);
    assert_finding(&verdict, Code::ReducedRun, "1 repetitions, the campaign says 5");
    assert_eq!(verdict.verdict, Verdict::AddReplicates);
    assert_eq!(judge(&reduced()).verdict, Verdict::Publishable);
    let mut short = reduced();
    short.probes.get_mut("aware").unwrap().seconds = 2.0;
    let verdict = judge(&short);
    assert_finding(&verdict, Code::ReducedRun, "a probe of 2 s, the campaign says 10 s");
    assert_eq!(verdict.verdict, Verdict::PublishableWithFootnote);
}

#[test]
fn an_slo_that_does_not_follow_from_campaign_and_baseline_discards_everything() {
    let mut loose = evidence();
    loose.slo.ttft_ns *= 10;
    let verdict = judge(&loose);
    assert_finding(&verdict, Code::PreregChanged, "slo.json says TTFT 3000000000 ns");
    assert_eq!(verdict.verdict, Verdict::Discarded);
    let mut late = evidence();
    late.slo.deadline_ns += 1;
    assert_finding(&judge(&late), Code::PreregChanged, "deadline 1000000001 ns");
    let mut absent = evidence();
    absent.slo_recorded = false;
    assert_finding(&judge(&absent), Code::MissingPhase, "slo.json");
}

#[test]
fn what_is_gone_from_the_disk_is_reported_with_its_code() {
    let dir = tempfile::tempdir().unwrap();
    testkit::write(&evidence(), dir.path());
    let verdict = || crate::run::analyze_dir(dir.path(), &testkit::Agreeing).unwrap().verdict;
    assert_eq!(verdict().verdict, Verdict::Publishable, "{:#?}", verdict().findings);
    let cell = dir.path().join("aware-r20");
    std::fs::rename(cell.join("rep5"), cell.join("rep7")).unwrap();
    assert_finding(&verdict(), Code::RecordsDisagree, "run.json is of repetition 5");
    assert_finding(&verdict(), Code::MissingCell, "rep5, rep6 without a record, rep7 has one");
    std::fs::remove_file(cell.join("rep1/kernel.jsonl")).unwrap();
    assert_finding(&verdict(), Code::KernelIncomplete, "0 observations in kernel.jsonl, 200");
    for (file, part) in [("slo.json", "slo.json"), ("health.jsonl", "health.jsonl")] {
        std::fs::remove_file(dir.path().join(file)).unwrap();
        assert_finding(&verdict(), Code::MissingPhase, part);
    }
}

/// The run with an SLO of 3 x TTFT and 2 x TPOT of 100 baseline requests of 100 ms and 10 ms.
fn derived() -> Evidence {
    let mut evidence = evidence();
    let multiple = "multiple_of_baseline = { ttft_multiple = 3.0, tpot_multiple = 2.0 }";
    let fixed = testkit::CAMPAIGN.lines().find(|line| line.starts_with("fixed")).unwrap();
    let text = testkit::CAMPAIGN.replace(fixed, multiple);
    evidence.campaign = testkit::campaign(&text);
    evidence.manifest.campaign_sha256 = crate::records::sha256_hex(text.as_bytes());
    let id = |i| testkit::trace_id("baseline", 0.0, 0, i);
    let records: Vec<_> = (0..100).map(|i| testkit::delivered(id(i), i, 100_000_000)).collect();
    evidence.slo = crate::slo::derive(&evidence.campaign, 11, Some(&records), None).unwrap();
    evidence.baseline = Some(records);
    evidence
}

#[test]
fn a_derived_slo_needs_its_baseline_whole() {
    let good = derived();
    assert_eq!((good.slo.ttft_ns, good.slo.tpot_ns), (300_000_000, 20_000_000));
    assert_eq!(judge(&good).verdict, Verdict::Publishable, "{:#?}", judge(&good).findings);
    let mut gone = derived();
    gone.baseline = None;
    assert_finding(&judge(&gone), Code::MissingPhase, "baseline/requests.jsonl");
    let mut short = derived();
    short.baseline.as_mut().unwrap().pop();
    assert_finding(&judge(&short), Code::PreregChanged, "99 records, 100 requests were registered");
    let mut edited = derived();
    for row in edited.baseline.as_mut().unwrap() {
        row.ttft_ns = Some(400_000_000);
    }
    assert_finding(&judge(&edited), Code::PreregChanged, "ttft_ns is not first_token_ns");
}

/// The same run with the SLO in a file that `goodput slo derive` would have written.
fn derived_before() -> Evidence {
    let mut evidence = derived();
    let digest = crate::records::sha256_hex(b"records");
    let origin = crate::rundir::DerivedOrigin {
        arm: "floor".to_owned(),
        vip: "http://127.0.0.1:1".to_owned(),
        model: "m".to_owned(),
        api: crate::campaign::Api::Chat,
        trace_sha256: crate::records::sha256_hex(testkit::TRACE),
        requests: 100,
        warmup: 5,
        quantile: "p50, type 1".to_owned(),
        baseline_ttft_ns: 100_000_000,
        baseline_tpot_ns: 10_000_000,
        ttft_multiple: 3.0,
        tpot_multiple: 2.0,
        unloaded_share_over_slo: 0.0,
        began_unix_ms: 1,
        took_ms: 1,
        records: "slo.requests.jsonl".to_owned(),
        records_sha256: digest.clone(),
        goodput_version: "test".to_owned(),
    };
    let slo = crate::rundir::DerivedSlo {
        schema: String::new(),
        ttft_ns: 300_000_000,
        tpot_ns: 20_000_000,
        origin,
    };
    let sha256 = crate::records::sha256_hex(b"slo.json");
    let key = format!("derived = {{ file = \"slo.json\", sha256 = \"{sha256}\" }}");
    let fixed = testkit::CAMPAIGN.lines().find(|line| line.starts_with("fixed")).unwrap();
    let text = testkit::CAMPAIGN.replace(fixed, &key);
    evidence.campaign = testkit::campaign(&text);
    evidence.manifest.campaign_sha256 = crate::records::sha256_hex(text.as_bytes());
    evidence.derived = Some(crate::rundir::ReadDerivedSlo { slo, sha256, records_sha256: digest });
    evidence
}

type ChangeOrigin = fn(&mut crate::rundir::ReadDerivedSlo);

#[test]
fn an_slo_from_a_file_holds_only_with_its_origin_whole_and_on_the_scored_path() {
    let good = judge(&derived_before());
    assert_eq!(good.verdict, Verdict::Publishable, "{:#?}", good.findings);
    let changes: [(&str, ChangeOrigin); 7] = [
        ("hashes to", |it| it.sha256 = "0".repeat(64)),
        ("its records hash to", |it| it.records_sha256 = "0".repeat(64)),
        ("measured through", |it| it.slo.origin.vip = "http://127.0.0.1:9".to_owned()),
        ("measured model", |it| it.slo.origin.model = "other".to_owned()),
        ("measured api", |it| it.slo.origin.api = crate::campaign::Api::Completions),
        ("its records give", |it| it.slo.ttft_ns += 1),
        ("derived on trace", |it| it.slo.origin.trace_sha256 = "0".repeat(64)),
    ];
    for (part, change) in changes {
        let mut evidence = derived_before();
        change(evidence.derived.as_mut().unwrap());
        assert_finding(&judge(&evidence), Code::SloWithoutOrigin, part);
        assert_eq!(judge(&evidence).verdict, Verdict::Discarded, "{part}");
    }
    let mut gone = derived_before();
    gone.derived = None;
    assert_finding(&judge(&gone), Code::SloWithoutOrigin, "slo.json is absent");
}

#[test]
fn a_baseline_that_misses_its_own_slo_is_told() {
    let with_slow = |slow: usize| {
        let mut evidence = derived();
        for row in evidence.baseline.as_mut().unwrap().iter_mut().take(slow) {
            // 30 ms a token, above 2 x 10 ms; TTFT is as before.
            let first = row.first_token_ns.unwrap().get();
            row.last_token_ns = Some(Nanos::new(first + 300_000_000));
            row.tpot_ns = Some(30_000_000);
        }
        judge(&evidence)
    };
    assert!(with_slow(0).findings.iter().all(|it| it.code != Code::BaselineOverSlo));
    let few = with_slow(5);
    assert_finding(&few, Code::BaselineOverSlo, "5.0 % of the unloaded requests");
    assert_eq!(few.verdict, Verdict::Publishable, "{:#?}", few.findings);
    assert_eq!(with_slow(20).verdict, Verdict::PublishableWithFootnote);
}

#[test]
fn bounds_without_an_origin_are_refused_with_their_code() {
    let dir = tempfile::tempdir().unwrap();
    testkit::write(&evidence(), dir.path());
    let path = dir.path().join("slo.json");
    let slo: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for origin in [serde_json::Value::Null, serde_json::json!({"kind": "fixed", "origin": " "})] {
        let mut slo = slo.clone();
        slo["origin"] = origin;
        std::fs::write(&path, slo.to_string()).unwrap();
        let error =
            crate::run::analyze_dir(dir.path(), &testkit::Agreeing).unwrap_err().to_string();
        assert!(error.contains("SLO_WITHOUT_ORIGIN") && error.contains("slo derive"), "{error}");
    }
}

#[test]
fn too_few_repetitions_ask_for_more_and_publish_nothing_yet() {
    let mut evidence = evidence();
    evidence.repetitions.retain(|rep| rep.run.repetition == 1);
    let verdict = judge(&evidence);
    assert_eq!(verdict.verdict, Verdict::AddReplicates);
    let add = verdict.add_replicates.unwrap();
    // Four more in each of four cells; 100 requests at 10 or 20 rps.
    assert_eq!((add.repetitions, add.to_add, add.requests), (5, 16, 1600));
    assert!((add.minutes - (8.0 * 10.0 + 8.0 * 5.0) / 60.0).abs() < 1e-9, "{}", add.minutes);
}

#[test]
fn variation_over_the_bound_asks_for_more_and_at_the_cap_is_a_footnote() {
    let noisy = |arm: &str, rate: f64, number: u32| match (arm, rate > 15.0) {
        ("floor", true) => 30 + 8 * u64::from(number),
        (_, _) => 95 + u64::from(number % 2),
    };
    let verdict = judge(&with_good(noisy));
    assert_eq!(verdict.verdict, Verdict::AddReplicates, "{:#?}", verdict.findings);
    assert_finding(&verdict, Code::CvOverBound, "CV 23.4 % over 5 repetitions, bound 10 %");
    assert_eq!(verdict.add_replicates.unwrap().repetitions, 8);
    let mut capped = with_good(noisy);
    let text = testkit::CAMPAIGN.replace("[load]", "[load]\nmax_repetitions = 5");
    capped.campaign = testkit::campaign(&text);
    capped.manifest.campaign_sha256 = crate::records::sha256_hex(text.as_bytes());
    let verdict = judge(&capped);
    assert_eq!(verdict.verdict, Verdict::PublishableWithFootnote, "{:#?}", verdict.findings);
    assert_finding(&verdict, Code::CvOverBoundAtCap, "CV 23.4 %");
    capped.repetitions[CLAIMED].requests.pop();
    let verdict = judge(&capped);
    assert_eq!(verdict.verdict, Verdict::Discarded);
    assert_finding(&verdict, Code::FewValidAtCap, "4 valid of 5");
}

#[test]
fn a_mean_of_zero_never_passes_and_noise_of_the_count_is_named() {
    let verdict = judge(&with_good(|arm, rate, number| match (arm, rate > 15.0) {
        ("floor", true) => u64::from(number % 3),
        (_, _) => 95 + u64::from(number % 2),
    }));
    assert_finding(&verdict, Code::CvOverBound, "binomial noise alone");
    let zero = judge(&with_good(|arm, rate, number| match (arm, rate > 15.0) {
        ("floor", true) => 0,
        (_, _) => 95 + u64::from(number % 2),
    }));
    assert_finding(&zero, Code::CvOverBound, "no request was good");
}

#[test]
fn what_changed_after_registration_or_is_missing_discards_everything() {
    let mut other = evidence();
    other.manifest.campaign_sha256 = "0".repeat(64);
    let verdict = judge(&other);
    assert_eq!((verdict.verdict, verdict.wins.len()), (Verdict::Discarded, 0));
    assert_finding(&verdict, Code::PreregChanged, "campaign.toml");
    let mut other = evidence();
    other.trace_sha256 = "0".repeat(64);
    assert_finding(&judge(&other), Code::PreregChanged, "trace.jsonl");
    let mut other = evidence();
    other.health = None;
    assert_finding(&judge(&other), Code::MissingPhase, "phase 0");
    let mut other = evidence();
    other.readiness = None;
    assert_finding(&judge(&other), Code::MissingPhase, "health.jsonl");
    let mut other = evidence();
    other.probes.remove("aware");
    assert_finding(&judge(&other), Code::MissingPhase, "probe/aware.json");
    let mut other = evidence();
    for rep in other.repetitions.iter_mut().filter(|rep| rep.run.arm == "floor") {
        rep.run.interrupted = true;
    }
    let verdict = judge(&other);
    assert_eq!(verdict.verdict, Verdict::Discarded);
    assert_finding(&verdict, Code::NothingValid, "0 of 10");
}

#[test]
fn workload_departures_are_reported_and_do_not_block() {
    let verdict = changed(|rep| {
        for row in &mut rep.requests {
            row.prompt_tokens = Some(106);
        }
    });
    assert_finding(&verdict, Code::WorkloadMismatch, "prompt tokens +6.0 %");
    assert_eq!(verdict.verdict, Verdict::Publishable);
}

#[test]
fn the_documentation_holds_exactly_the_codes_with_their_effects() {
    let docs = include_str!("../../../docs/methodology.md");
    let rows: Vec<&str> = docs.lines().filter(|line| line.starts_with("| `")).collect();
    let documented: Vec<&str> = rows
        .iter()
        .filter(|row| {
            Code::ALL.iter().any(|code| row.starts_with(&format!("| `{}` |", code.name())))
        })
        .copied()
        .collect();
    let expected: Vec<String> = Code::ALL
        .iter()
        .map(|code| {
            let (name, effect) = (code.name(), code.effect().name());
            format!("| `{name}` | {effect} | {} | {} |", code.text(), code.remedy())
        })
        .collect();
    assert_eq!(documented, expected);
}

#[test]
fn figures_that_come_out_differently_a_second_time_discard_everything() {
    let evidence = evidence();
    let judged = || verify(&evidence, &analyze(&evidence), "x");
    assert_eq!(judged().with(&Recomputation::Agrees), judged());
    let missing = judged().with(&Recomputation::NotRun { why: "absent".to_owned() });
    assert_eq!(missing.verdict, Verdict::PublishableWithFootnote);
    assert_eq!(missing.wins, judged().wins);
    let differs = judged().with(&Recomputation::Disagrees { detail: "1 of 9".to_owned() });
    assert_eq!(differs.verdict, Verdict::Discarded);
    assert!(differs.wins.is_empty() && differs.add_replicates.is_none());
    let last = differs.findings.last().unwrap();
    assert_eq!((last.code, last.detail.as_str()), (Code::RecomputationDisagrees, "1 of 9"));
}
