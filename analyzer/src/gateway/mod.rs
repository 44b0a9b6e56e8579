//! What a gateway says of itself: configuration by REST, mode by its log, decisions by its counters.

mod log;
mod metrics;
mod mismatch;
mod rules;

pub use log::mode_line;
pub use metrics::parse as parse_metrics;
pub use mismatch::mismatches;
pub use rules::readback as parse_rules;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::campaign::ArmKeys;
use crate::control::{Call, Control};
use crate::records::Versioned as _;
use crate::rundir::{GatewayFile, Readback, Scrape};

/// One arm's gateway.
#[derive(Clone, Copy, Debug)]
pub struct Gateway<'a> {
    /// The arm.
    pub arm: &'a ArmKeys,
    /// Address that the VIP resolves to.
    pub vip: SocketAddr,
    /// Base of a relative log file.
    pub directory: &'a Path,
}

/// Readback and counters at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// What the rule and the log say.
    pub readback: Readback,
    /// Counters.
    pub scrape: Scrape,
}

impl Gateway<'_> {
    /// Reads everything once. What cannot be read is named in the readback, never an error: it is
    /// evidence too.
    #[must_use]
    pub fn snapshot(&self, control: &Control) -> Snapshot {
        // Counters of LoxiLB's data plane are refreshed by a tick.
        std::thread::sleep(Duration::from_secs_f64(self.arm.metrics_settle_s));
        Snapshot { readback: self.readback(control), scrape: self.scrape(control) }
    }

    /// `gateway.json` from the two snapshots around a repetition.
    #[must_use]
    pub fn file(&self, before: Snapshot, after: Snapshot, repeated: Option<u64>) -> GatewayFile {
        let expected = self.arm.expected.clone();
        GatewayFile {
            schema: GatewayFile::SCHEMA.to_owned(),
            arm: self.arm.name.clone(),
            mismatches: mismatches(&expected, &before.readback, &after.readback),
            expected,
            readback: before.readback,
            readback_after: after.readback,
            before: before.scrape,
            after: after.scrape,
            repeated_prefix_requests: repeated,
        }
    }

    fn readback(&self, control: &Control) -> Readback {
        let mut readback = match &self.arm.rest {
            None => Readback::default(),
            Some(rest) => self.rules(control, rest),
        };
        match self.log(control) {
            Ok(Some(text)) => (readback.lb_mode, readback.log_line) = mode_line(&text).unzip(),
            Ok(None) => {}
            Err(problem) => readback.problems.push(problem),
        }
        readback
    }

    fn rules(&self, control: &Control, rest: &str) -> Readback {
        let url = format!("{}/config/loadbalancer/all", rest.trim_end_matches('/'));
        match control.json(&Call::get(url)) {
            Ok(rules) => parse_rules(&rules, self.vip),
            Err(error) => Readback { problems: vec![error.to_string()], ..Readback::default() },
        }
    }

    fn log(&self, control: &Control) -> Result<Option<String>, String> {
        let Some(log) = &self.arm.log else { return Ok(None) };
        if log.starts_with("http://") {
            let text = control.expect_ok(&Call::get(log.clone()));
            return text.map(Some).map_err(|error| error.to_string());
        }
        let path = self.directory.join(log);
        match crate::input::read_regular(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn scrape(&self, control: &Control) -> Scrape {
        let Some(url) = &self.arm.metrics else {
            return Scrape::Unavailable { reason: "no metrics URL in the campaign".to_owned() };
        };
        match control.expect_ok(&Call::get(url.clone())) {
            Ok(text) => parse_metrics(&text),
            Err(error) => Scrape::Unavailable { reason: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests;
