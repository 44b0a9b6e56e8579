//! What the figures of a role are consistent with, in one sentence, and never more.

use super::affinity::{Affinity, SizeAffinity};
use super::judge::Finding;
use super::report::RoleReport;
use super::spread::Evenness;

/// Affinity over all prefix lengths: sticky when one is; not sticky when one is not, and the others
/// are silent only because prompts share no prefix that long.
pub(super) fn affinity(sizes: &[SizeAffinity]) -> Affinity {
    use super::judge::Reason::FewRepeats;
    let is = |affinity| sizes.iter().any(|size| size.judgement == affinity);
    let silent = |size: &&SizeAffinity| size.judgement == Affinity::Unknown;
    let short = |size: &SizeAffinity| size.reasons.iter().all(|it: &Finding| it.code == FewRepeats);
    if is(Affinity::Sticky) {
        Affinity::Sticky
    } else if is(Affinity::NotSticky) && sizes.iter().filter(silent).all(short) {
        Affinity::NotSticky
    } else {
        Affinity::Unknown
    }
}

/// The sentence, where the evidence bears one.
pub(super) fn reading(role: &RoleReport) -> Option<String> {
    if !role.reasons.is_empty() {
        return None;
    }
    let in_turn = role.in_turn.is_some_and(|it| it.in_turn);
    match (role.affinity, role.evenness) {
        (Affinity::Sticky, _) => sticky(role),
        (Affinity::NotSticky, _) if in_turn => Some(
            "requests go to the backends in turn, whatever their prompts begin with: consistent with \
             round robin"
                .to_owned(),
        ),
        (Affinity::Unknown, _) if in_turn => Some(
            "requests go to the backends in turn: consistent with round robin; whether prefixes \
             matter can't be told"
                .to_owned(),
        ),
        (Affinity::NotSticky, Evenness::Even) => Some(format!(
            "shares are equal within {:.1} points, and requests that share a prefix are spread as \
             chance would: consistent with random choice, round robin or least connections, not with \
             routing by prefix",
            role.equal_within.unwrap_or(1.0) * 100.0
        )),
        (Affinity::NotSticky, Evenness::Uneven) => Some(
            "shares differ, and requests that share a prefix are spread as chance would: consistent \
             with weights or with a choice by load, not with routing by prefix"
                .to_owned(),
        ),
        (Affinity::NotSticky, Evenness::Unknown) => Some(
            "requests that share a prefix are spread as chance would: not consistent with routing by \
             prefix"
                .to_owned(),
        ),
        (Affinity::Unknown, _) => None,
    }
}

/// Of the longest prefix that is sticky.
fn sticky(role: &RoleReport) -> Option<String> {
    let size = role.prefixes.iter().rev().find(|size| size.judgement == Affinity::Sticky)?;
    let (share, chance) = size.same_share.zip(size.chance)?;
    Some(format!(
        "{:.0} % of requests that share their first {} KiB return to the same backend, where chance \
         would give {:.0} %: consistent with routing by prefix, or by what goes with it (session, \
         client)",
        share * 100.0,
        size.prefix_bytes / 1024,
        chance * 100.0
    ))
}
