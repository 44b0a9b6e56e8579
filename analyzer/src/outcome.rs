//! Outcome classes of a request: the shared verdict on the response's bytes, and around it what only the
//! client can know.

use protocol::{StreamOutcome, TimelineRecord};
use serde::{Deserialize, Serialize};

/// Class of one attempted request. Declared in order of precedence: a request that fits several gets the
/// first; `ok` and `single_token` come last because they need the absence of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The tool was stopped before the request ended, or before it was sent.
    CancelledByTool,
    /// A row of the schedule without a line in `requests.jsonl`.
    Lost,
    /// No connection.
    ConnectError,
    /// The status is not 200.
    HttpStatus,
    /// An error inside a 200 stream.
    InbandError,
    /// HTTP framing was broken.
    Framing,
    /// A payload that cannot be read.
    BadPayload,
    /// The connection was reset.
    Reset,
    /// The stream ended before its end.
    Truncated,
    /// Past the deadline, and silent for the stall time.
    TimeoutStalled,
    /// Past the deadline, with body bytes within the stall time.
    TimeoutSlow,
    /// A complete stream without a token.
    NoToken,
    /// Delivered whole, with one output token.
    SingleToken,
    /// Delivered whole.
    Ok,
}

impl Class {
    /// Every class, in order of precedence.
    pub const ALL: [Self; 14] = [
        Self::CancelledByTool,
        Self::Lost,
        Self::ConnectError,
        Self::HttpStatus,
        Self::InbandError,
        Self::Framing,
        Self::BadPayload,
        Self::Reset,
        Self::Truncated,
        Self::TimeoutStalled,
        Self::TimeoutSlow,
        Self::NoToken,
        Self::SingleToken,
        Self::Ok,
    ];

    /// Delivered whole.
    #[must_use]
    pub fn is_delivered(self) -> bool {
        matches!(self, Self::Ok | Self::SingleToken)
    }

    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CancelledByTool => "cancelled_by_tool",
            Self::Lost => "lost",
            Self::ConnectError => "connect_error",
            Self::HttpStatus => "http_status",
            Self::InbandError => "inband_error",
            Self::Framing => "framing",
            Self::BadPayload => "bad_payload",
            Self::Reset => "reset",
            Self::Truncated => "truncated",
            Self::TimeoutStalled => "timeout_stalled",
            Self::TimeoutSlow => "timeout_slow",
            Self::NoToken => "no_token",
            Self::SingleToken => "single_token",
            Self::Ok => "ok",
        }
    }
}

/// Why the client stopped following a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The response reached its own end, or its framing broke.
    Response,
    /// The peer closed in order.
    Eof,
    /// The peer reset the connection, or the transport failed with this error.
    Reset(String),
    /// The connection could not be opened.
    Connect(String),
    /// The deadline passed; whether body bytes came within the stall time.
    Deadline {
        /// Body bytes came within the stall time.
        alive: bool,
    },
    /// The tool was stopped.
    Cancelled,
}

/// The class, and a short reason for people.
#[must_use]
pub fn classify(record: &TimelineRecord, ending: &Ending) -> (Class, String) {
    let shared = StreamOutcome::of(record);
    let by_content = by_content(shared, record);
    match ending {
        Ending::Cancelled => (Class::CancelledByTool, "stopped while in flight".to_owned()),
        Ending::Connect(why) => (Class::ConnectError, why.clone()),
        // An error that the server spoke out outranks the silence that followed it.
        Ending::Deadline { alive } => by_content.unwrap_or_else(|| deadline(*alive, record)),
        Ending::Response | Ending::Eof => {
            by_content.unwrap_or_else(|| by_end(shared, record, "the peer closed the connection"))
        }
        Ending::Reset(why) => by_content.unwrap_or_else(|| by_end(shared, record, why)),
    }
}

fn by_content(shared: StreamOutcome, record: &TimelineRecord) -> Option<(Class, String)> {
    match shared {
        StreamOutcome::HttpStatus(status) => {
            let message = record.http_error.as_ref().and_then(|error| error.message.clone());
            Some((Class::HttpStatus, with_message(format!("status {status}"), message)))
        }
        StreamOutcome::InbandError => {
            let error = record.inband_error.as_ref().map(|inband| &inband.error);
            let code = error.and_then(|error| error.code.clone().or(error.kind.clone()));
            let message = error.and_then(|error| error.message.clone());
            Some((Class::InbandError, with_message(code.unwrap_or_default(), message)))
        }
        StreamOutcome::Framing => Some((Class::Framing, "HTTP framing broke a rule".to_owned())),
        StreamOutcome::BadPayload => {
            Some((Class::BadPayload, "a payload is no chunk of the API".to_owned()))
        }
        // The client sees every byte and asked for no coding: a coded or tunnelled body is a bad payload.
        StreamOutcome::Unknown(why) => {
            Some((Class::BadPayload, format!("unreadable body ({why:?})")))
        }
        _ => None,
    }
}

fn by_end(shared: StreamOutcome, record: &TimelineRecord, why: &str) -> (Class, String) {
    match shared {
        StreamOutcome::Ok => (Class::Ok, String::new()),
        StreamOutcome::SingleToken => (Class::SingleToken, String::new()),
        StreamOutcome::NoToken => (Class::NoToken, "complete without a token".to_owned()),
        StreamOutcome::Reset => (Class::Reset, why.to_owned()),
        _ if record.framing_end.is_some() => {
            (Class::Truncated, "no finish reason and no [DONE]".to_owned())
        }
        _ => (Class::Truncated, format!("{why} before the end of the response")),
    }
}

fn deadline(alive: bool, record: &TimelineRecord) -> (Class, String) {
    let tokens = record.token_events;
    if alive {
        (Class::TimeoutSlow, format!("deadline passed after {tokens} token events"))
    } else {
        (Class::TimeoutStalled, format!("deadline passed in silence after {tokens} token events"))
    }
}

fn with_message(what: String, message: Option<String>) -> String {
    match message {
        Some(message) if what.is_empty() => message,
        Some(message) => format!("{what}: {message}"),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use protocol::cases::cases;

    use super::*;

    #[test]
    fn the_order_of_declaration_is_the_pinned_precedence() {
        assert!(Class::ALL.is_sorted());
        for class in Class::ALL {
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("\"{}\"", class.name()));
        }
    }

    #[test]
    fn delivered_responses_keep_the_shared_verdict() {
        for case in cases() {
            let record = case.replay();
            if case.expect.outcome.is_delivered() {
                let (class, _) = classify(&record, &Ending::Response);
                assert_eq!(class.name(), case.expect.outcome.class(), "{}", case.name);
            }
        }
    }

    #[test]
    fn cancellation_outranks_everything_and_a_spoken_error_outranks_a_timeout() {
        let case = cases()
            .into_iter()
            .find(|case| case.expect.outcome == StreamOutcome::InbandError)
            .unwrap();
        let record = case.replay();
        let class = |ending| classify(&record, &ending).0;
        assert_eq!(class(Ending::Cancelled), Class::CancelledByTool);
        assert_eq!(class(Ending::Deadline { alive: false }), Class::InbandError);
        let silent = TimelineRecord::default();
        assert_eq!(classify(&silent, &Ending::Deadline { alive: false }).0, Class::TimeoutStalled);
        assert_eq!(classify(&silent, &Ending::Deadline { alive: true }).0, Class::TimeoutSlow);
    }
}
