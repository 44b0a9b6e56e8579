//! The gateway's log: kept for the REST port, and in a file when one is configured.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::FleetError;

/// Lines kept for the REST port.
const KEPT_LINES: usize = 10_000;

/// LoxiLB's line that names its prefix routing mode, written at the first lookup.
const MODE_LINE: &str = "[KV_INV] LB mode = \"hard\" (LOXILB_KV_LB_MODE)";

pub(super) struct GatewayLog {
    lines: Mutex<VecDeque<String>>,
    file: Option<Mutex<File>>,
    mode_named: AtomicBool,
}

impl GatewayLog {
    /// Starts an empty log; a file is truncated, as a fresh container's log is empty.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, FleetError> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).write(true).truncate(true).open(path);
            file.map(Mutex::new).map_err(|source| FleetError::Log { path: path.to_owned(), source })
        };
        let file = path.map(open).transpose()?;
        Ok(Self { lines: Mutex::default(), file, mode_named: AtomicBool::new(false) })
    }

    /// Appends a line, stamped with Unix time in seconds.
    pub(super) fn line(&self, level: &str, text: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = format!("{}.{:06} {level} {text}", now.as_secs(), now.subsec_micros());
        if let Some(file) = &self.file {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(e) = writeln!(file, "{line}") {
                tracing::warn!("gateway log: {e}");
            }
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Names the mode once, lazily, as LoxiLB does.
    pub(super) fn mode_line_once(&self) {
        if !self.mode_named.swap(true, Ordering::Relaxed) {
            self.line("INFO", MODE_LINE);
        }
    }

    /// All lines kept.
    pub(super) fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}
