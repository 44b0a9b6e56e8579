//! A record against itself: the figures that its own instants and counts give.

use protocol::Tpot;

use super::request::{FramingVerdict, RequestRecord, TpotUndefined};
use crate::outcome::Class;

impl RequestRecord {
    /// What the record says of itself and its instants do not bear out. Nothing for a record that the
    /// replay wrote.
    #[must_use]
    pub fn contradiction(&self) -> Option<&'static str> {
        if self.export_delivered.is_some() {
            return Some("export_delivered belongs to imported records only");
        }
        self.contradiction_without(Self::bears_delivery)
    }

    /// The same of a record that another tool's export gave.
    #[must_use]
    pub fn contradiction_in_import(&self) -> Option<&'static str> {
        self.contradiction_without(Self::export_bears_delivery)
    }

    fn contradiction_without(&self, delivered: fn(&Self) -> bool) -> Option<&'static str> {
        let since = |from: Option<protocol::Nanos>| Some(self.first_token_ns?.since(from?));
        let (tpot_ns, tpot_undefined) = self.tpot_of_instants();
        if self.ttft_ns != since(Some(self.planned_ns)) {
            return Some("ttft_ns is not first_token_ns - planned_ns");
        }
        if self.ttft_from_sent_ns != since(self.sent_ns) {
            return Some("ttft_from_sent_ns is not first_token_ns - sent_ns");
        }
        if self.tpot_ns != tpot_ns || self.tpot_undefined != tpot_undefined {
            return Some("tpot_ns does not follow from its instants and tokens");
        }
        (self.class.is_delivered() && !delivered(self))
            .then_some("a delivered class without the evidence for it")
    }

    fn tpot_of_instants(&self) -> (Option<u64>, Option<TpotUndefined>) {
        let (Some(first), Some(last), true) =
            (self.first_token_ns, self.last_token_ns, self.class.is_delivered())
        else {
            return (None, None);
        };
        match Tpot::new(last.since(first), self.completion_tokens.unwrap_or(0)) {
            Tpot::Value(value) => (Some(value.floor_ns()), None),
            Tpot::SingleToken => (None, Some(TpotUndefined::SingleToken)),
            Tpot::Coalesced => (None, Some(TpotUndefined::Coalesced)),
            Tpot::NoToken => (None, None),
        }
    }

    /// The export says so, and nothing else that it tells contradicts it.
    fn export_bears_delivery(&self) -> bool {
        let single = self.tpot_undefined == Some(TpotUndefined::SingleToken);
        self.export_delivered == Some(true)
            && self.status.is_none_or(|status| status == 200)
            && self.framing == FramingVerdict::Unknown
            && self.first_token_ns.is_some()
            && single == (self.class == Class::SingleToken)
    }

    fn bears_delivery(&self) -> bool {
        let failed = matches!(self.finish_reason.as_deref(), Some("abort" | "error"));
        let finished = self.finish_reason.is_some() && !failed;
        let ended = (finished || self.done_ns.is_some()) && !failed;
        let clean = !self.error_event && !self.unreadable_payload;
        let single = self.tpot_undefined == Some(TpotUndefined::SingleToken);
        self.status == Some(200)
            && self.framing == FramingVerdict::Valid
            && self.first_token_ns.is_some()
            && ended
            && clean
            && single == (self.class == Class::SingleToken)
    }
}

#[cfg(test)]
mod tests {
    use crate::outcome::Class;
    use crate::records::RequestRecord;
    use crate::testkit::{delivered, failed, trace_id};

    #[test]
    fn a_record_that_was_edited_contradicts_itself() {
        let row = delivered(trace_id("a", 1.0, 1, 0), 0, 100_000_000);
        assert_eq!(row.contradiction(), None);
        assert_eq!(failed(&row, Class::Reset).contradiction(), None);
        let said = |change: &dyn Fn(&mut RequestRecord)| {
            let mut row = row.clone();
            change(&mut row);
            row.contradiction().unwrap_or("nothing")
        };
        assert!(said(&|row| row.ttft_ns = Some(-5)).contains("ttft_ns"));
        assert!(said(&|row| row.ttft_from_sent_ns = None).contains("sent_ns"));
        assert!(said(&|row| row.tpot_ns = Some(1)).contains("tpot_ns"));
        assert!(said(&|row| row.tpot_ns = None).contains("tpot_ns"));
        assert!(said(&|row| row.completion_tokens = Some(2)).contains("tpot_ns"));
        assert!(said(&|row| row.status = Some(500)).contains("delivered"));
        assert!(said(&|row| row.error_event = true).contains("delivered"));
        assert!(said(&|row| row.unreadable_payload = true).contains("delivered"));
        assert!(said(&|row| row.finish_reason = Some("abort".to_owned())).contains("delivered"));
        assert!(said(&|row| row.class = Class::SingleToken).contains("delivered"));
        assert!(said(&|row| row.export_delivered = Some(true)).contains("imported"));
        let mut forged = failed(&row, Class::HttpStatus);
        forged.class = Class::Ok;
        assert!(forged.contradiction().unwrap().contains("delivered"));
    }
}
