//! Every scripted case against its expectation.

use std::collections::BTreeSet;

use protocol::Nanos;
use protocol::cases::{Case, Expected, cases};

fn observed(case: &Case) -> Expected {
    let record = case.replay();
    let observed = Expected::observed(&record, Nanos::new(0));
    let retry_after = record.head.and_then(|head| head.retry_after);
    assert_eq!(retry_after.as_deref(), case.expect.retry_after, "{}", case.name);
    Expected { retry_after: case.expect.retry_after, ..observed }
}

fn check(id: &str) {
    let matching = cases().into_iter().filter(|case| case.ids.contains(&id)).collect::<Vec<_>>();
    assert!(!matching.is_empty(), "no case for {id}");
    for case in matching {
        assert_eq!(observed(&case), case.expect, "{}: {}", case.name, case.about);
    }
}

/// One test per report, so that a failure names what it reproduces.
macro_rules! reports {
    ($($test:ident $id:literal)*) => {$(
        #[test]
        fn $test() {
            check($id);
        }
    )*};
}

reports! {
    a1_role_only_chunk_is_no_token "A1"
    a2_first_interval_starts_at_the_first_content_token "A2"
    a3_any_chunk_with_choices_is_not_a_token "A3"
    a4_reasoning_starts_the_clock "A4"
    a5_reasoning_content_starts_the_clock "A5"
    a6_no_token_is_never_zero "A6"
    a7_reasoning_only_is_complete "A7"
    a8_reasoning_only_counts_by_usage "A8"
    a10_reasoning_is_in_count_and_window "A10"
    a13_absent_text_is_not_measured "A13"
    b1_space_after_colon_is_optional "B1"
    b2_no_space_has_a_first_token "B2"
    b3_any_line_end_any_number_of_events "B3"
    b4_comments_are_liveness "B4"
    b6_keep_alive_before_first_token "B6"
    b7_split_character "B7"
    b8_split_character_keeps_tokens "B8"
    b11_split_delimiter "B11"
    b12_split_event "B12"
    b15_full_field_parsing "B15"
    c1_inband_error_fails "C1"
    c2_terminal_evidence_is_required "C2"
    c2b_clean_eof_is_truncated "C2b"
    c3_death_without_terminal_evidence "C3"
    c6_done_alone_is_complete "C6"
    c7_zero_tokens_fail "C7"
    c8_error_events_are_kept "C8"
    c9_retry_after_is_recorded "C9"
    c10_status_classes "C10"
    c12_resets_are_their_own_class "C12"
    c14_end_comes_from_framing "C14"
    d1_multi_token_chunks "D1"
    d2_speculative_decoding "D2"
    d3_no_averaging "D3"
    d4_empty_chunks_and_counts "D4"
    d5_tool_calls_are_tokens "D5"
    d6_tpot_from_usage "D6"
    d7_only_token_chunks_are_timed "D7"
    d8_trailing_usage_does_not_count "D8"
    d9_usage_is_authoritative "D9"
    d10_usage_beats_chunks "D10"
    d13_single_token_has_no_tpot "D13"
    d14_coalesced_has_no_tpot "D14"
    d16_disagreeing_counts "D16"
    http_framing "F"
}

#[test]
fn every_case_gives_its_expectation() {
    for case in cases() {
        assert_eq!(observed(&case), case.expect, "{}: {}", case.name, case.about);
    }
}

#[test]
fn names_are_unique_and_fit_into_a_path() {
    let all = cases();
    let names = all.iter().map(|case| case.name).collect::<BTreeSet<_>>();
    assert_eq!(names.len(), all.len());
    let fits = |name: &str| {
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    assert!(names.into_iter().all(fits));
}

#[test]
fn steps_are_in_order_of_time() {
    for case in cases() {
        assert!(case.steps.is_sorted_by_key(|step| step.at_ms), "{}", case.name);
    }
}
