//! Progress of a campaign: phases as lines, the current cell as a bar with the time left. Where stderr is no
//! terminal each cell is a line when it ends, so that a log shows where the campaign stands.

use std::io::IsTerminal as _;

use analyzer::records::RequestRecord;
use analyzer::replay::ProgressSink;
use analyzer::run::{Reporter, Step};

use super::progress::ReplayBar;

/// Prints to stderr, so that `--json` on stdout stays clean.
pub(crate) struct CampaignProgress;

struct CellBar {
    bar: ReplayBar,
    label: String,
}

impl ProgressSink for CellBar {
    fn ended(&mut self, record: &RequestRecord) {
        self.bar.ended(record);
    }

    fn tick(&mut self) {
        self.bar.tick();
    }
}

impl Drop for CellBar {
    fn drop(&mut self) {
        self.bar.clear();
        if !std::io::stderr().is_terminal() {
            eprintln!("goodput: {}: {}", self.label, self.bar.line());
        }
    }
}

impl Reporter for CampaignProgress {
    fn phase(&mut self, name: &str) {
        eprintln!("goodput: {name}");
    }

    fn step<'a>(&'a mut self, step: &Step, requests: u64) -> Box<dyn ProgressSink + 'a> {
        let Step { label, number, of, seconds_left } = step;
        let left =
            if *seconds_left > 0.0 { format!(", {seconds_left:.0} s left") } else { String::new() };
        let label = format!("{label}, {number} of {of}{left}");
        Box::new(CellBar { bar: ReplayBar::new(&label, requests), label })
    }

    fn note(&mut self, text: &str) {
        eprintln!("goodput: {text}");
    }
}
