//! The terminal summary, as printed.

use super::summary;
use crate::analyze::analyze;
use crate::evidence::Evidence;
use crate::records::sha256_hex;
use crate::testkit::{CAMPAIGN, campaign, evidence, gateway};
use crate::verify::verify;

fn printed(evidence: &Evidence) -> String {
    let analysis = analyze(evidence);
    summary(&analysis, &verify(evidence, &analysis, "target/run"))
}

#[test]
fn a_publishable_run() {
    insta::assert_snapshot!(printed(&evidence()));
}

#[test]
fn a_silent_fallback() {
    let mut evidence = evidence();
    for rep in evidence.repetitions.iter_mut().filter(|rep| rep.run.arm == "aware") {
        rep.gateway = Some(gateway("aware", None, 100.0));
    }
    insta::assert_snapshot!(printed(&evidence));
}

#[test]
fn too_few_repetitions_without_an_agent() {
    let mut evidence = evidence();
    let (text, _) = CAMPAIGN.split_once("[[agent]]").unwrap();
    evidence.campaign = campaign(text);
    evidence.manifest.campaign_sha256 = sha256_hex(text.as_bytes());
    evidence.repetitions.retain(|rep| rep.run.repetition == 1);
    evidence.repetitions.iter_mut().for_each(|rep| rep.observed.clear());
    insta::assert_snapshot!(printed(&evidence));
}
