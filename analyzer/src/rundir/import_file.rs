//! `import.json`: which export the records come from, and what it cannot prove.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

macro_rules! lacks {
    ($($variant:ident, $name:literal, $discards:literal, $why:literal;)+) => {
        /// Evidence that a run of this tool has and an export may lack.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Lack {
            $(#[doc = $why] $variant,)+
        }

        impl Lack {
            /// Every kind, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// As written in files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What follows from it.
            #[must_use]
            pub fn why(self) -> &'static str {
                match self { $(Self::$variant => $why,)+ }
            }

            /// Nothing may be published without it.
            #[must_use]
            pub fn discards(self) -> bool {
                match self { $(Self::$variant => $discards,)+ }
            }
        }
    };
}

lacks! {
    Registration, "registration", true,
        "the SLO and the bounds were named after the measurement: the result is exploratory";
    Framing, "framing", true,
        "no HTTP framing is recorded, and the count of violations must be 0";
    TerminalEvents, "terminal_events", true,
        "no finish reason, `[DONE]` or end of the message is recorded: a cut stream can look delivered";
    Phases, "phases", true,
        "no health check, mechanism probe or readiness during the run is recorded";
    PlannedInstants, "planned_instants", false,
        "no schedule is recorded: TTFT runs from the instant that stands in, and the client's lateness against its plan is unseen";
    OpenLoop, "open_loop", false,
        "a cap on concurrent requests held arrivals back: under load fewer requests are offered than the rate says";
    GatewayCounters, "gateway_counters", false,
        "no counter or mode of the gateway is recorded: its decisions are unproved";
    Kernel, "kernel", false,
        "no kernel stamp is recorded: client stamps and delivery are unproved";
    Repetitions, "repetitions", false,
        "seeds, salts and schedules of repetitions and arms are not recorded: prefixes cached by one may have served the next, and arms were sent different schedules";
    Prompts, "prompts", false,
        "neither prompts nor the asked output lengths are recorded: the workload and its prefix hits cannot be checked";
    TokenCounts, "token_counts", false,
        "output tokens may come from the client's tokenizer instead of the server's usage: TPOT is divided by them";
}

impl Lack {
    /// What no export of another tool can hold, whatever its file says.
    pub const OF_EVERY_EXPORT: [Self; 8] = [
        Self::Registration,
        Self::Framing,
        Self::TerminalEvents,
        Self::Phases,
        Self::GatewayCounters,
        Self::Kernel,
        Self::Repetitions,
        Self::Prompts,
    ];
}

/// One piece of evidence that lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LackEntry {
    /// Which.
    pub evidence: Lack,
    /// What follows from it.
    pub why: String,
}

/// One file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// As named on the command line.
    pub path: PathBuf,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Repetitions that it became, as `<arm>-r<rate>/rep<N>`.
    pub repetitions: Vec<String>,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// The tool that measured.
    pub tool: String,
    /// Its version, where the export names one.
    pub tool_version: Option<String>,
    /// The shape that was read.
    pub shape: String,
    /// Files in the order in which they were named.
    pub files: Vec<ImportedFile>,
    /// What the export cannot prove.
    pub lacks: Vec<LackEntry>,
}

impl ImportFile {
    /// Its name in the run directory.
    pub const NAME: &'static str = "import.json";
}

impl Versioned for ImportFile {
    const SCHEMA: &'static str = "goodput.import/1";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_file_and_the_documentation() {
        let page = include_str!("../../../docs/import.md");
        for lack in Lack::ALL {
            let text = serde_json::to_string(lack).unwrap();
            assert_eq!(text, format!("\"{}\"", lack.name()));
            let effect = if lack.discards() { "discards" } else { "footnote" };
            let row = format!("| `{}` | {effect} | {} |", lack.name(), lack.why());
            assert!(page.contains(&row), "{row}");
        }
    }
}
