//! Every reason a verdict can have: code, meaning, remedy and effect. `docs/methodology.md` carries the
//! same table, and a test compares the two.

use serde::{Deserialize, Serialize};

/// What a finding does to the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Printed, nothing more.
    Info,
    /// `PUBLISHABLE` becomes `PUBLISHABLE_WITH_FOOTNOTE`.
    Footnote,
    /// The verdict is `ADD_REPLICATES`.
    AddReplicates,
    /// This repetition is left out of every statistic.
    DiscardRepetition,
    /// The verdict is `DISCARDED`.
    Discard,
}

impl Effect {
    /// Its name in the documentation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Footnote => "footnote",
            Self::AddReplicates => "add replicates",
            Self::DiscardRepetition => "discards the repetition",
            Self::Discard => "discards the campaign",
        }
    }
}

macro_rules! codes {
    ($($variant:ident, $name:literal, $effect:ident, $text:literal, $remedy:literal;)+) => {
        /// A coded reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $text] #[serde(rename = $name)] $variant,)+
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name in files and on the terminal.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What it means.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// What to do.
            #[must_use]
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)+ }
            }

            /// What it does to the verdict.
            #[must_use]
            pub fn effect(self) -> Effect {
                match self { $(Self::$variant => Effect::$effect,)+ }
            }
        }
    };
}

codes! {
    FramingInvalid, "FRAMING_INVALID", DiscardRepetition,
        "A response broke HTTP framing.", "Fix the path that broke it; the rule and the offset are in requests.jsonl.";
    HangOrTruncation, "HANG_OR_TRUNCATION", DiscardRepetition,
        "A request stalled past its deadline or was cut off.", "Find out who closed or went silent: client leg and backend leg in kernel.jsonl.";
    BackendTimeout, "BACKEND_TIMEOUT", DiscardRepetition,
        "A 504, or a prefill or processing timeout, shaped the result.", "Raise the gateway's and the engine's timeouts above the longest prefill.";
    VipDown, "VIP_DOWN", DiscardRepetition,
        "A VIP failed two readiness probes in a row during the repetition.", "Bring the gateway back and repeat.";
    BackendDown, "BACKEND_DOWN", DiscardRepetition,
        "A backend failed two readiness probes in a row during the repetition.", "Bring the backend back and repeat.";
    ReadinessUnknown, "READINESS_UNKNOWN", DiscardRepetition,
        "The VIP or a backend was not probed during the repetition: whether it was up is unknown.", "Keep health.jsonl whole; repeat the repetition.";
    ZeroPaired, "ZERO_PAIRED", DiscardRepetition,
        "No request has both a TTFT and a TPOT.", "Look at the error classes: nothing was measured.";
    Incomplete, "INCOMPLETE", DiscardRepetition,
        "A scheduled request was never sent, was cancelled by the tool, or has no record.", "Let the repetition finish; run it again.";
    AccountingBroken, "ACCOUNTING_BROKEN", DiscardRepetition,
        "ok + single_token + errors is not the number attempted, or a record belongs to no row of the schedule.", "Do not edit records; report it if nobody did.";
    TornRecord, "TORN_RECORD", DiscardRepetition,
        "The last line of a file of records has no end: it was cut off, and is left out.", "Keep the files whole (a full disk, a copy that was cut short?); run the repetition again.";
    ClientLag, "CLIENT_LAG", DiscardRepetition,
        "The client sent too late or too little: p99 of dispatched - planned, or achieved / offered.", "Give the client more CPU, or lower the rate.";
    RecordsDisagree, "RECORDS_DISAGREE", DiscardRepetition,
        "run.json contradicts its directory, the seed or the records, a record contradicts itself, or two repetitions share trace ids.", "Do not edit or copy records; report it if nobody did.";
    ScheduleMismatch, "SCHEDULE_MISMATCH", DiscardRepetition,
        "schedule.jsonl is not what run.json and the manifest hashed, or the arms did not replay the same schedule.", "Run the repetition again for every arm.";
    ModeMismatch, "MODE_MISMATCH", DiscardRepetition,
        "The gateway does not report the mode that the arm expects.", "Recreate the gateway in the arm's mode, or correct `expected`.";
    CrosscheckDisagrees, "CROSSCHECK_DISAGREES", Discard,
        "Client and kernel judge the outcome or the framing of a request differently, or their durations differ by a unit.", "Compare both records of the request; one of them is wrong.";
    RecomputationDisagrees, "RECOMPUTATION_DISAGREES", Discard,
        "goodput-crosscheck, which shares no code with goodput, gets other figures from the same records.", "Do not edit files of a run; `goodput-crosscheck DIR` lists what differs; report it if nobody did.";
    RecomputationNotRun, "RECOMPUTATION_NOT_RUN", Footnote,
        "The figures were not computed a second time.", "Install goodput-crosscheck beside goodput, then `goodput verify DIR`.";
    ReceiptDisagrees, "RECEIPT_DISAGREES", Discard,
        "The gateway's receipt of a disaggregated request names another backend than the kernel saw answer it.", "Compare receipt_prefill and receipt_decode with the backend legs in kernel.jsonl: the gateway does not deliver as it says.";
    ReceiptAbsent, "RECEIPT_ABSENT", Footnote,
        "Requests went to a prefill and a decode backend, and their responses bear no receipt.", "Let the engine answer the gateway's request id; some engines (SGLang) give none.";
    ClockStep, "CLOCK_STEP", Footnote,
        "CLOCK_REALTIME stepped by more than 50 us against CLOCK_MONOTONIC while kernel stamps were taken.", "Keep clock daemons from stepping during runs.";
    KernelIncomplete, "KERNEL_INCOMPLETE", Footnote,
        "An agent lost, could not parse, or adopted something in the window, or did not answer, or kernel.jsonl does not hold what it observed.", "See the agent's reasons; enlarge its ring or start it before the traffic.";
    KernelNotObserved, "KERNEL_NOT_OBSERVED", Footnote,
        "No agent watched: client stamps and delivery are unproved.", "Run goodput-agent on the gateway and backend hosts (`goodput-agent doctor` says what is missing).";
    PacketsShort, "PACKETS_SHORT", Footnote,
        "The agents counted fewer packets than their own observations are made of.", "Report it: the agent's counters are wrong.";
    DeliveryUnknown, "DELIVERY_UNKNOWN", Footnote,
        "Too many completed requests lack a leg in the kernel's record.", "Let the gateway forward `traceparent` (`goodput-agent doctor --vip URL` tests it).";
    DecisionUnknown, "DECISION_UNKNOWN", Footnote,
        "The gateway's routing counters are absent, so its decisions are unproved.", "Turn the gateway's metrics on; absent series are never taken for 0.";
    DecisionFailed, "DECISION_FAILED", Discard,
        "The gateway's counters contradict the arm: it did not route as it says.", "Fix the routing (publishers, subscribers, mode), then measure again.";
    VerdictFlips, "VERDICT_FLIPS", Footnote,
        "Requests are good by the client's or the kernel's stamps only.", "They are listed in analysis.json; an SLO this close to the stamps' difference needs a better client.";
    TokensFromChunks, "TOKENS_FROM_CHUNKS", Footnote,
        "Output tokens were counted from chunks because usage was missing.", "Make the engine send usage, or pre-register tokens_from_chunks.";
    UsageImplausible, "USAGE_IMPLAUSIBLE", Footnote,
        "Usage names fewer output tokens than token events arrived, or more than twice max_tokens: TPOT cannot be trusted.", "Mend the engine's usage; TPOT is divided by it.";
    WorkloadMismatch, "WORKLOAD_MISMATCH", Info,
        "Mean prompt or output tokens depart from the trace.", "Check the tokenizer (bytes_per_token) and the length control.";
    SingleTokens, "SINGLE_TOKENS", Info,
        "Requests without a TPOT exist; both policies' figures are in analysis.json.", "Nothing to do.";
    NonMonotone, "NON_MONOTONE", Info,
        "A rate fails the target below one that meets it.", "Read the conservative knee too; add repetitions around it.";
    SloNotFromBaseline, "SLO_NOT_FROM_BASELINE", Info,
        "The SLO is fixed by the campaign, not a multiple of the scored path's own unloaded baseline.", "Quote its origin with the result, or register multiple_of_baseline.";
    TopologyDiffers, "TOPOLOGY_DIFFERS", Footnote,
        "Some arms split prefill from decode and others do not: their difference mixes topology with routing.", "Serve every arm through the same topology, or name the difference in the claim.";
    LoadDependent, "LOAD_DEPENDENT", Info,
        "An arm wins at one rate and not at another.", "Quote the rate with the win.";
    PreregChanged, "PREREG_CHANGED", Discard,
        "campaign.toml or trace.jsonl is not what the manifest hashed before the first send, or slo.json is not what they and the baseline give.", "Restore the file, or run the changed campaign anew.";
    SloWithoutOrigin, "SLO_WITHOUT_ORIGIN", Discard,
        "The SLO names no origin, or the baseline that it names is not one of the scored path.", "Measure it with `goodput slo derive` through the floor arm, on the same trace, and name the file in [slo] derived.";
    BaselineOverSlo, "BASELINE_OVER_SLO", Footnote,
        "Unloaded requests of the baseline already miss the SLO: a footnote beyond what the target allows, otherwise information.", "Raise the multiples, or mend the path: routing cannot win what an empty system loses.";
    MissingPhase, "MISSING_PHASE", Discard,
        "The artefact of an earlier phase is absent.", "Run the campaign whole.";
    EvidenceLacks, "EVIDENCE_LACKS", Discard,
        "Another tool measured, and its export cannot prove this. What only limits the proof is a footnote; what a publication needs discards.", "Measure with `goodput run`; docs/import.md lists what each export lacks.";
    Override, "OVERRIDE", Discard,
        "The command line left out something that the campaign registers.", "Run the campaign as it stands, or register what was meant.";
    ReducedRun, "REDUCED_RUN", AddReplicates,
        "The command line asked for fewer repetitions, or a shorter probe, than the campaign registers.", "Continue the campaign; the command is printed. A short probe stays a footnote.";
    MissingCell, "MISSING_CELL", AddReplicates,
        "A cell of the campaign, or a repetition before its last one, has no record.", "Continue the campaign; the command is printed.";
    FewRepetitions, "FEW_REPETITIONS", AddReplicates,
        "A cell that a claim uses has fewer valid repetitions than pre-registered.", "Continue the campaign; the command is printed.";
    CvOverBound, "CV_OVER_BOUND", AddReplicates,
        "The good-fraction of a cell that a claim uses varies more than the bound.", "Continue the campaign; the command is printed.";
    CvOverBoundAtCap, "CV_OVER_BOUND_AT_CAP", Footnote,
        "The good-fraction still varies more than the bound at the largest number of repetitions.", "Publish with the variance stated, or use more requests per repetition.";
    FewValidAtCap, "FEW_VALID_AT_CAP", Discard,
        "At the largest number of repetitions fewer than pre-registered are valid.", "Mend what discards repetitions, then run anew.";
    NothingValid, "NOTHING_VALID", Discard,
        "An arm has no valid repetition at all.", "Mend what discards its repetitions, then run anew.";
}

/// A code with where it was found and the figures that made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which rule.
    pub code: Code,
    /// What it does to the verdict.
    pub effect: Effect,
    /// Where: `arm`, `arm r40` or `arm r40 rep3`; empty for the whole campaign.
    pub place: String,
    /// The figures.
    pub detail: String,
}

impl Finding {
    /// A finding at `place`.
    #[must_use]
    pub fn new(code: Code, place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { code, effect: code.effect(), place: place.into(), detail: detail.into() }
    }
}
