//! LoxiLB's hand-off receipt of prefill/decode disaggregation, and whether the wire bears it out.
//!
//! Form (LoxiLB inference gateway, `sockproxy_http.c`): the gateway gives the engine the request id
//! `___prefill_addr_<ip:port>___decode_addr_<ip:port>_<32 hex>`, which comes back in the `id` of the
//! response's chunks, behind `chatcmpl-` or `cmpl-`, and in `X-Request-Id` where the engine echoes it. The
//! port is the endpoint's transfer port (`nixl_port`) where one is set, else its HTTP port.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::Nanos;

const PREFILL: &str = "___prefill_addr_";
const DECODE: &str = "___decode_addr_";
/// The longest text that is looked at, in bytes; a receipt behind vLLM's prefix has at most 115.
const MAX_LOOKED_AT: usize = 1024;

/// The backends that a receipt names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Receipt {
    /// Backend that computed the prompt.
    pub prefill: SocketAddr,
    /// Backend that generated the tokens.
    pub decode: SocketAddr,
}

impl Receipt {
    /// The first receipt in `text`, wherever in it that is.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let cut = text.floor_char_boundary(MAX_LOOKED_AT);
        let (_, rest) = text[..cut].split_once(PREFILL)?;
        let (prefill, rest) = rest.split_once(DECODE)?;
        let end = rest.find('_').unwrap_or(rest.len());
        Some(Self { prefill: address(prefill)?, decode: address(&rest[..end])? })
    }

    /// The receipt as a request id that ends in `suffix`.
    #[must_use]
    pub fn request_id(&self, suffix: &str) -> String {
        format!("{PREFILL}{}{DECODE}{}_{suffix}", self.prefill, self.decode)
    }
}

fn address(text: &str) -> Option<SocketAddr> {
    text.parse().ok().filter(|address: &SocketAddr| address.port() != 0)
}

/// The half of a disaggregated request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Computes the prompt.
    Prefill,
    /// Generates the tokens.
    Decode,
}

/// A request of one correlation that was seen at a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The backend.
    pub backend: SocketAddr,
    /// Its phase where its role is known.
    pub role: Option<Phase>,
    /// When the request began.
    pub began: Option<Nanos>,
    /// The backend answered 200.
    pub answered: bool,
}

/// Phases of `contacts`, in their order. Backends without a role: of those that answered, the last that
/// was asked decodes and the others prefill; one that did not answer has no phase.
#[must_use]
pub fn phases(contacts: &[Contact]) -> Vec<Option<Phase>> {
    let without_role = |contact: &Contact| contact.role.is_none() && contact.answered;
    let decodes =
        contacts.iter().any(|contact| contact.role == Some(Phase::Decode) && contact.answered);
    let last = contacts
        .iter()
        .enumerate()
        .filter(|(_, contact)| without_role(contact))
        .max_by_key(|(place, contact)| (contact.began, *place))
        .map(|(place, _)| place)
        .filter(|_| !decodes);
    let phase = |(place, contact): (usize, &Contact)| match contact.role {
        Some(role) => Some(role),
        None if !contact.answered => None,
        None if last == Some(place) => Some(Phase::Decode),
        None => Some(Phase::Prefill),
    };
    contacts.iter().enumerate().map(phase).collect()
}

/// What an observer on the wire knows about one request.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Where it was seen.
    pub contacts: &'a [Contact],
    /// Backends that were watched all the time.
    pub watched: &'a [SocketAddr],
    /// Nothing was lost, and requests of both phases carry the correlation: where nothing was seen,
    /// nothing was sent.
    pub whole: bool,
}

/// How receipt and wire compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Both backends that it names got the request in that phase.
    Agree,
    /// A backend that it names did not get it.
    Disagree,
    /// The response bears no receipt.
    Absent,
    /// The wire does not show enough.
    NotObservable,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Agree, Self::Disagree, Self::Absent, Self::NotObservable];

    /// Its name in rows and labels.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Disagree => "disagree",
            Self::Absent => "absent",
            Self::NotObservable => "not_observable",
        }
    }
}

/// Why a receipt does not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Another backend than the named one got the prefill.
    PrefillElsewhere,
    /// Another backend than the named one got the decode.
    DecodeElsewhere,
    /// No backend got the prefill, although all that was sent was seen.
    PrefillNotSent,
    /// No backend got the decode, although all that was sent was seen.
    DecodeNotSent,
    /// The named backend is not watched.
    BackendNotWatched,
    /// Several watched backends share the named address with other ports.
    AddressAmbiguous,
    /// No request of the phase was seen, and something may have been missed.
    LegMissing,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// How they compare.
    pub verdict: Verdict,
    /// Why they do not agree; sorted, empty otherwise.
    pub reasons: Vec<Reason>,
}

impl Comparison {
    /// Compares a response's receipt with what the wire showed.
    #[must_use]
    pub fn of(receipt: Option<&Receipt>, evidence: Evidence<'_>) -> Self {
        let Some(receipt) = receipt else {
            return Self { verdict: Verdict::Absent, reasons: Vec::new() };
        };
        let phases = phases(evidence.contacts);
        let of = |phase, named| half(phase, named, evidence, &phases);
        let halves = [of(Phase::Prefill, receipt.prefill), of(Phase::Decode, receipt.decode)];
        let worst = |verdict| halves.iter().any(|half| half.is_err_and(|(it, _)| it == verdict));
        let verdict = [Verdict::Disagree, Verdict::NotObservable].into_iter().find(|it| worst(*it));
        let reasons = halves.iter().filter_map(|half| half.err());
        let mut reasons: Vec<Reason> = reasons.map(|(_, reason)| reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        Self { verdict: verdict.unwrap_or(Verdict::Agree), reasons }
    }
}

/// The watched backends that an address of a receipt can mean: the one with that address, or, since the
/// port may be a transfer port, those with its IP.
fn meant(named: SocketAddr, watched: &[SocketAddr]) -> Vec<SocketAddr> {
    if watched.contains(&named) {
        return vec![named];
    }
    watched.iter().copied().filter(|backend| backend.ip() == named.ip()).collect()
}

fn half(
    phase: Phase,
    named: SocketAddr,
    evidence: Evidence<'_>,
    phases: &[Option<Phase>],
) -> Result<(), (Verdict, Reason)> {
    let (elsewhere, not_sent) = match phase {
        Phase::Prefill => (Reason::PrefillElsewhere, Reason::PrefillNotSent),
        Phase::Decode => (Reason::DecodeElsewhere, Reason::DecodeNotSent),
    };
    let seen: Vec<SocketAddr> = evidence
        .contacts
        .iter()
        .zip(phases)
        .filter(|(contact, it)| **it == Some(phase) && contact.answered)
        .map(|(contact, _)| contact.backend)
        .collect();
    let meant = meant(named, evidence.watched);
    let hit = seen.iter().any(|backend| meant.contains(backend));
    match (meant.len(), hit, seen.is_empty()) {
        (1, true, _) => Ok(()),
        (_, true, _) => Err((Verdict::NotObservable, Reason::AddressAmbiguous)),
        (_, false, false) => Err((Verdict::Disagree, elsewhere)),
        (0, false, true) => Err((Verdict::NotObservable, Reason::BackendNotWatched)),
        (_, false, true) if evidence.whole => Err((Verdict::Disagree, not_sent)),
        (_, false, true) => Err((Verdict::NotObservable, Reason::LegMissing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn receipt() -> Receipt {
        Receipt { prefill: at("10.0.1.1:8000"), decode: at("10.0.2.1:8000") }
    }

    fn contact(backend: &str, role: Option<Phase>, began: u64) -> Contact {
        Contact { backend: at(backend), role, began: Some(Nanos::new(began)), answered: true }
    }

    const WATCHED: [&str; 3] = ["10.0.1.1:8000", "10.0.1.2:8000", "10.0.2.1:8000"];

    fn compare(contacts: &[Contact], watched: &[&str], whole: bool) -> (Verdict, Vec<Reason>) {
        let watched: Vec<_> = watched.iter().map(|it| at(it)).collect();
        let evidence = Evidence { contacts, watched: &watched, whole };
        let comparison = Comparison::of(Some(&receipt()), evidence);
        (comparison.verdict, comparison.reasons)
    }

    #[test]
    fn a_receipt_is_found_behind_the_engines_prefix_and_in_a_header() {
        let id = receipt().request_id(ID);
        let expected = format!("___prefill_addr_10.0.1.1:8000___decode_addr_10.0.2.1:8000_{ID}");
        assert_eq!(id, expected);
        for text in [id.clone(), format!("chatcmpl-{id}"), format!("cmpl-{id}-0")] {
            assert_eq!(Receipt::find(&text), Some(receipt()), "{text}");
        }
        let v6 = Receipt { prefill: at("[2001:db8::1]:1"), decode: at("[2001:db8::2]:2") };
        assert_eq!(Receipt::find(&v6.request_id(ID)), Some(v6));
    }

    #[test]
    fn what_is_no_receipt_is_none() {
        for text in [
            "",
            "chatcmpl-0123456789abcdef0123456789abcdef",
            "___prefill_addr_10.0.1.1:8000",
            "___prefill_addr_10.0.1.1___decode_addr_10.0.2.1_x",
            "___prefill_addr_10.0.1.1:0___decode_addr_10.0.2.1:8000_x",
            "___prefill_addr_10.0.1.1:8000___decode_addr_10.0.2.1:99999_x",
            "___prefill_addr_10.0.1.1:8000___decode_addr_",
            "___decode_addr_10.0.2.1:8000___prefill_addr_10.0.1.1:8000_x",
            "___prefill_addr____decode_addr__",
        ] {
            assert_eq!(Receipt::find(text), None, "{text}");
        }
        // A text of any length costs no more than its first part.
        let far = format!("{}é{}", "x".repeat(MAX_LOOKED_AT - 1), receipt().request_id(ID));
        assert_eq!(Receipt::find(&far), None);
    }

    #[test]
    fn both_backends_must_have_got_their_phase() {
        let (prefill, decode) = (Some(Phase::Prefill), Some(Phase::Decode));
        let good = [contact("10.0.1.1:8000", prefill, 1), contact("10.0.2.1:8000", decode, 2)];
        assert_eq!(compare(&good, &WATCHED, false), (Verdict::Agree, vec![]));
        let other = [contact("10.0.1.2:8000", prefill, 1), good[1]];
        let elsewhere = (Verdict::Disagree, vec![Reason::PrefillElsewhere]);
        assert_eq!(compare(&other, &WATCHED, false), elsewhere);
        let swapped = [contact("10.0.2.1:8000", prefill, 1), contact("10.0.1.1:8000", decode, 2)];
        let both = vec![Reason::PrefillElsewhere, Reason::DecodeElsewhere];
        assert_eq!(compare(&swapped, &WATCHED, true), (Verdict::Disagree, both));
    }

    #[test]
    fn without_roles_the_order_tells_the_phases() {
        let good = [contact("10.0.1.1:8000", None, 1), contact("10.0.2.1:8000", None, 2)];
        assert_eq!(compare(&good, &WATCHED, false), (Verdict::Agree, vec![]));
        let swapped = [contact("10.0.2.1:8000", None, 1), contact("10.0.1.1:8000", None, 2)];
        assert_eq!(compare(&swapped, &WATCHED, false).0, Verdict::Disagree);
    }

    #[test]
    fn a_failed_attempt_is_no_delivery() {
        let failed = Contact { answered: false, ..contact("10.0.1.2:8000", None, 1) };
        let retried =
            [failed, contact("10.0.1.1:8000", None, 2), contact("10.0.2.1:8000", None, 3)];
        assert_eq!(compare(&retried, &WATCHED, true), (Verdict::Agree, vec![]));
        let lie = [Contact { answered: false, ..retried[1] }, retried[2]];
        let not_sent = (Verdict::Disagree, vec![Reason::PrefillNotSent]);
        assert_eq!(compare(&lie, &WATCHED, true), not_sent);
    }

    #[test]
    fn what_was_not_watched_or_may_be_lost_contradicts_nothing() {
        let decode_only = [contact("10.0.2.1:8000", Some(Phase::Decode), 2)];
        let missing = (Verdict::NotObservable, vec![Reason::LegMissing]);
        assert_eq!(compare(&decode_only, &WATCHED, false), missing);
        let unwatched = (Verdict::NotObservable, vec![Reason::BackendNotWatched]);
        assert_eq!(compare(&decode_only, &["10.0.2.1:8000"], true), unwatched);
        let absent = Comparison::of(None, Evidence { contacts: &[], watched: &[], whole: true });
        assert_eq!(absent.verdict, Verdict::Absent);
    }

    #[test]
    fn a_transfer_port_means_the_only_backend_of_its_address() {
        let prefill = [contact("10.0.1.1:9000", None, 1), contact("10.0.2.1:8000", None, 2)];
        assert_eq!(compare(&prefill, &["10.0.1.1:9000", "10.0.2.1:8000"], true).0, Verdict::Agree);
        let two = ["10.0.1.1:9000", "10.0.1.1:9001", "10.0.2.1:8000"];
        let ambiguous = (Verdict::NotObservable, vec![Reason::AddressAmbiguous]);
        assert_eq!(compare(&prefill, &two, true), ambiguous);
    }
}
