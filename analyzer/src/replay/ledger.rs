//! The books of a run: every row of the schedule ends in exactly one line.

use std::collections::BTreeMap;

use super::error::ReplayError;
use crate::outcome::Class;
use crate::records::RequestRecord;

/// Counts records as they are written.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    seen: Vec<bool>,
    classes: BTreeMap<Class, u64>,
    recorded: u64,
}

impl Ledger {
    /// Books for `attempted` rows.
    pub(super) fn new(attempted: usize) -> Self {
        Self { seen: vec![false; attempted], classes: BTreeMap::new(), recorded: 0 }
    }

    /// Books a record; a row booked twice, or one that was never scheduled, is an error.
    pub(super) fn book(&mut self, record: &RequestRecord) -> Result<(), ReplayError> {
        let index = usize::try_from(record.index).unwrap_or(usize::MAX);
        self.recorded += 1;
        match self.seen.get_mut(index) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(self.error(format!("row {index} ended twice"))),
            None => return Err(self.error(format!("row {index} was never scheduled"))),
        }
        *self.classes.entry(record.class).or_insert(0) += 1;
        Ok(())
    }

    /// Checks that ok + single-token + errors = attempted, and gives the counts.
    pub(super) fn close(self) -> Result<BTreeMap<Class, u64>, ReplayError> {
        let missing = self.seen.iter().position(|seen| !seen);
        if let Some(index) = missing {
            return Err(self.error(format!("row {index} has no record")));
        }
        let sum: u64 = self.classes.values().sum();
        if sum == self.attempted() {
            Ok(self.classes)
        } else {
            Err(self.error(format!("the classes add up to {sum}")))
        }
    }

    fn attempted(&self) -> u64 {
        u64::try_from(self.seen.len()).unwrap_or(u64::MAX)
    }

    fn error(&self, detail: String) -> ReplayError {
        ReplayError::Accounting { recorded: self.recorded, attempted: self.attempted(), detail }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Nanos, TraceId};

    use super::super::record::without_connection;
    use super::*;

    fn record(index: u64, class: Class) -> RequestRecord {
        let key = (index, TraceId::new([1; 16]).unwrap(), Nanos::new(0));
        without_connection(key, None, Nanos::new(1), class, "")
    }

    #[test]
    fn the_books_close_only_when_every_row_has_ended_once() {
        let mut ledger = Ledger::new(2);
        ledger.book(&record(1, Class::Ok)).unwrap();
        let message = ledger.clone().close().unwrap_err().to_string();
        assert!(message.contains("1 records for 2") && message.contains("row 0"), "{message}");
        ledger.book(&record(0, Class::Reset)).unwrap();
        let classes = ledger.clone().close().unwrap();
        assert_eq!(classes, BTreeMap::from([(Class::Reset, 1), (Class::Ok, 1)]));
        assert!(ledger.clone().book(&record(0, Class::Ok)).is_err());
        assert!(ledger.book(&record(2, Class::Ok)).is_err());
    }
}
