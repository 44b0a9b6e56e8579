//! One line of `requests.jsonl`: what is evidence in it, what is claimed, and what follows.

use serde_json::Value;

/// Instants and counts of one request. Nanoseconds of one monotonic clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Place in the schedule.
    pub index: u64,
    /// When the schedule wanted it sent.
    pub planned: i128,
    /// First token-bearing event.
    pub first_token: Option<i128>,
    /// Last token-bearing event.
    pub last_token: Option<i128>,
    /// End of the response by its framing.
    pub framing_end: Option<i128>,
    /// Whether the framing was seen to its own end without fault.
    pub framing_valid: bool,
    /// `[DONE]` or a finish reason other than abort and error.
    pub said_end: bool,
    /// An error object, a payload that cannot be read, or a finish reason that names an error.
    pub said_error: bool,
    /// The class of an imported record: its export says that the response was delivered, and holds no framing.
    pub export_delivered: bool,
    /// Status of the response.
    pub status: Option<u64>,
    /// Output tokens.
    pub tokens: u64,
    /// Instants in the order in which they must lie, those that exist.
    pub order: Vec<(&'static str, i128)>,
}

/// What the record says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims {
    /// Its class.
    pub class: String,
    /// TTFT from planned, ns.
    pub ttft: Option<i128>,
    /// TPOT, ns, rounded down.
    pub tpot: Option<i128>,
}

/// How a response ended, from its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Delivered whole, with several tokens at different instants.
    Whole,
    /// Delivered whole; there is no TPOT, for there is one token, or all came at once.
    WithoutTpot,
    /// Not delivered.
    Failed,
}

const INSTANTS: [&str; 8] = [
    "planned_ns",
    "dispatched_ns",
    "sent_ns",
    "first_byte_ns",
    "first_event_ns",
    "first_token_ns",
    "last_token_ns",
    "end_ns",
];

/// Reads one line of a run that another tool measured or not; `Err` names the key that is absent or of another type.
pub fn read(line: &Value, imported: bool) -> Result<(Evidence, Claims), &'static str> {
    let whole = |key: &'static str| instant(line, key).ok_or(key);
    let text = |key: &str| line.get(key).and_then(Value::as_str);
    let finish = text("finish_reason");
    let finish_failed = matches!(finish, Some("abort" | "error"));
    let flag = |key: &str| line.get(key).and_then(Value::as_bool).unwrap_or(false);
    let order = INSTANTS.iter().filter_map(|key| Some((*key, instant(line, key)?))).collect();
    let evidence = Evidence {
        index: line.get("index").and_then(Value::as_u64).ok_or("index")?,
        planned: whole("planned_ns")?,
        first_token: instant(line, "first_token_ns"),
        last_token: instant(line, "last_token_ns"),
        framing_end: instant(line, "framing_end_ns"),
        framing_valid: text("framing").ok_or("framing")? == "valid",
        said_end: instant(line, "done_ns").is_some() || (finish.is_some() && !finish_failed),
        said_error: finish_failed || flag("error_event") || flag("unreadable_payload"),
        export_delivered: imported && flag("export_delivered"),
        status: line.get("status").and_then(Value::as_u64),
        tokens: line.get("completion_tokens").and_then(Value::as_u64).unwrap_or(0),
        order,
    };
    let claims = Claims {
        class: text("class").ok_or("class")?.to_owned(),
        ttft: instant(line, "ttft_ns"),
        tpot: instant(line, "tpot_ns"),
    };
    Ok((evidence, claims))
}

/// An integer of either sign; a number with a fraction is none.
fn instant(line: &Value, key: &str) -> Option<i128> {
    let number = line.get(key)?;
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

impl Evidence {
    /// How it ended.
    #[must_use]
    pub fn ending(&self) -> Ending {
        let whole = self.status == Some(200)
            && self.framing_valid
            && self.framing_end.is_some()
            && self.said_end
            && !self.said_error
            || self.export_delivered;
        match (whole, self.first_token, self.last_token) {
            (true, Some(first), Some(last)) if self.tokens > 1 && last > first => Ending::Whole,
            (true, Some(_), Some(_)) => Ending::WithoutTpot,
            _ => Ending::Failed,
        }
    }

    /// TTFT from planned, ns.
    #[must_use]
    pub fn ttft(&self) -> Option<i128> {
        Some(self.first_token? - self.planned)
    }

    /// Within both bounds, on one included. No quotient is formed: a TPOT rounded down is at most the bound exactly
    /// when the time between the tokens is below (bound + 1) x intervals.
    #[must_use]
    pub fn good(&self, ttft_bound: i128, tpot_bound: i128, without_tpot_counts: bool) -> bool {
        let in_time = self.first_token.is_some_and(|first| first <= self.planned + ttft_bound);
        let paced = match (self.ending(), self.first_token, self.last_token) {
            (Ending::Whole, Some(first), Some(last)) => {
                last - first < (tpot_bound + 1) * (i128::from(self.tokens) - 1)
            }
            (Ending::WithoutTpot, ..) => without_tpot_counts,
            _ => false,
        };
        in_time && paced
    }

    /// The first pair of instants that lies the wrong way round.
    #[must_use]
    pub fn disorder(&self) -> Option<(&'static str, &'static str)> {
        let wrong = self.order.windows(2).find(|pair| pair[0].1 > pair[1].1)?;
        Some((wrong[0].0, wrong[1].0))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line() -> Value {
        json!({
            "index": 3, "planned_ns": 1_000, "dispatched_ns": 1_001, "sent_ns": 1_010, "first_byte_ns": 1_050,
            "first_event_ns": 1_060, "first_token_ns": 1_060, "last_token_ns": 1_360, "framing_end_ns": 1_361,
            "end_ns": 1_400, "framing": "valid", "finish_reason": "stop", "status": 200, "completion_tokens": 4,
            "class": "ok", "ttft_ns": 60, "tpot_ns": 100,
        })
    }

    fn with(key: &str, value: Value) -> Evidence {
        let mut line = line();
        line[key] = value;
        read(&line, false).unwrap().0
    }

    #[test]
    fn a_request_on_both_bounds_is_good_and_beyond_either_is_not() {
        let evidence = read(&line(), false).unwrap().0;
        assert_eq!(evidence.ending(), Ending::Whole);
        assert!(evidence.good(60, 100, false));
        assert!(!evidence.good(59, 100, false));
        assert!(!evidence.good(60, 99, false));
        // 302 / 3 rounds down to 100, 303 / 3 is 101.
        assert!(with("last_token_ns", json!(1_362)).good(60, 100, false));
        assert!(!with("last_token_ns", json!(1_363)).good(60, 100, false));
    }

    #[test]
    fn every_flag_of_a_failure_is_heeded() {
        for (key, value) in [
            ("status", json!(500)),
            ("framing", json!("invalid")),
            ("framing_end_ns", json!(null)),
            ("finish_reason", json!("abort")),
            ("finish_reason", json!(null)),
            ("error_event", json!(true)),
            ("unreadable_payload", json!(true)),
            ("first_token_ns", json!(null)),
        ] {
            let evidence = with(key, value);
            assert_eq!(evidence.ending(), Ending::Failed, "{key}");
            assert!(!evidence.good(i128::MAX / 2, i128::MAX / 2, true), "{key}");
        }
        assert_eq!(with("completion_tokens", json!(1)).ending(), Ending::WithoutTpot);
        assert_eq!(with("last_token_ns", json!(1_060)).ending(), Ending::WithoutTpot);
        assert!(with("completion_tokens", json!(1)).good(60, 100, true));
        assert!(!with("completion_tokens", json!(1)).good(60, 100, false));
    }

    #[test]
    fn instants_in_another_unit_lie_in_the_wrong_order() {
        assert_eq!(read(&line(), false).unwrap().0.disorder(), None);
        let wrong = with("first_token_ns", json!(1)).disorder();
        assert_eq!(wrong, Some(("first_event_ns", "first_token_ns")));
        assert_eq!(read(&json!({"index": 1}), false).unwrap_err(), "planned_ns");
        assert_eq!(instant(&json!({"a": 1.5}), "a"), None);
    }
}
