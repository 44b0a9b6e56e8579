//! Progress of a campaign: phases as lines, the current cell as a bar with the time left.

use analyzer::records::RequestRecord;
use analyzer::replay::ProgressSink;
use analyzer::run::{Reporter, Step};

use super::progress::ReplayBar;

/// Prints to stderr, so that `--json` on stdout stays clean.
pub(crate) struct CampaignProgress;

struct CellBar(ReplayBar);

impl ProgressSink for CellBar {
    fn ended(&mut self, record: &RequestRecord) {
        self.0.ended(record);
    }

    fn tick(&mut self) {
        self.0.tick();
    }
}

impl Drop for CellBar {
    fn drop(&mut self) {
        self.0.clear();
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
        Box::new(CellBar(ReplayBar::new(&format!("{label}, {number} of {of}{left}"), requests)))
    }

    fn note(&mut self, text: &str) {
        eprintln!("goodput: {text}");
    }
}
