//! How a caller follows a campaign.

use crate::replay::{ProgressSink, Silent};

/// Where a campaign stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is being done, for people.
    pub label: String,
    /// Number of this step, from 1.
    pub number: usize,
    /// Steps in all.
    pub of: usize,
    /// Seconds of schedule left, this step included.
    pub seconds_left: f64,
}

/// Told of every phase and cell.
pub trait Reporter {
    /// A phase begins.
    fn phase(&mut self, name: &str);
    /// A cell begins; what it returns is told of its requests.
    fn step<'a>(&'a mut self, step: &Step, requests: u64) -> Box<dyn ProgressSink + 'a>;
    /// Something that people should know.
    fn note(&mut self, text: &str);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentReporter;

impl Reporter for SilentReporter {
    fn phase(&mut self, _: &str) {}
    fn step<'a>(&'a mut self, _: &Step, _: u64) -> Box<dyn ProgressSink + 'a> {
        Box::new(Silent)
    }
    fn note(&mut self, _: &str) {}
}
