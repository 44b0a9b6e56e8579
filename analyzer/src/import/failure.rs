//! Outcome classes from the words in which other tools report a failure.

use crate::outcome::Class;

/// Why a request was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: Class,
    /// Status of the response, where the export names it.
    pub status: Option<u16>,
    /// The tool's words, cut.
    pub detail: String,
    /// It names a prefill or processing timeout, or is a 504.
    pub names_server_timeout: bool,
}

/// Characters of the tool's words that are kept.
const KEPT_CHARS: usize = 200;

/// Words of an exception, in lower case, by the class that they tell. The first that occurs decides.
const WORDS: [(Class, &[&str]); 6] = [
    (Class::CancelledByTool, &["cancelled", "canceled", "cancellation"]),
    (
        Class::ConnectError,
        &[
            "cannot connect",
            "connection refused",
            "clientconnector",
            "connecterror",
            "connecttimeout",
        ],
    ),
    (
        Class::TimeoutStalled,
        &["timeouterror", "readtimeout", "timed out", "sockettimeout", "servertimeout"],
    ),
    (
        Class::Truncated,
        &[
            "payload is not completed",
            "clientpayload",
            "incomplete chunked read",
            "transferencoding",
            "contentlength",
        ],
    ),
    (
        Class::Reset,
        &[
            "connection reset",
            "connectionreset",
            "server disconnected",
            "serverdisconnected",
            "readerror",
            "remoteprotocol",
        ],
    ),
    (Class::NoToken, &["never received a valid chunk", "no token", "no content"]),
];

impl Failure {
    /// From the tool's words and, where it tells one, the status. Words that tell nothing may stand for a hang or a cut
    /// stream, and count as one.
    pub(super) fn of(words: &str, status: Option<u16>) -> Self {
        let text = words.to_lowercase();
        let status = status.filter(|status| (100..600).contains(status) && *status != 200);
        let told = WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
        let class = match (status.filter(|status| *status >= 400), told) {
            // AIPerf books its own cancellations under a status that no server sends.
            (Some(499), _) => Class::CancelledByTool,
            (Some(_), _) => Class::HttpStatus,
            (None, Some((class, _))) => *class,
            (None, None) if reason_phrase(&text) => Class::HttpStatus,
            (None, None) => Class::Truncated,
        };
        let timeout = text.contains("timeout") || text.contains("timed out");
        let server = text.contains("gateway time")
            || (timeout && (text.contains("prefill") || text.contains("processing")));
        Self {
            class,
            status,
            detail: words
                .trim()
                .chars()
                .rev()
                .take(KEPT_CHARS)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect(),
            names_server_timeout: status == Some(504) || server,
        }
    }

    /// Stopped by the tool itself before its end.
    pub(super) fn cancelled(words: &str) -> Self {
        Self { class: Class::CancelledByTool, ..Self::of(words, None) }
    }
}

/// vLLM keeps of a refused request only the reason phrase of its status line.
fn reason_phrase(text: &str) -> bool {
    const PHRASES: [&str; 12] = [
        "bad gateway",
        "bad request",
        "forbidden",
        "gateway time-out",
        "gateway timeout",
        "internal server error",
        "not found",
        "payload too large",
        "service unavailable",
        "too many requests",
        "unauthorized",
        "unprocessable",
    ];
    PHRASES.iter().any(|phrase| text.starts_with(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_status_give_the_class() {
        for (words, status, class) in [
            ("Service Unavailable", None, Class::HttpStatus),
            ("boom", Some(503), Class::HttpStatus),
            ("Request was cancelled after 0.000 seconds", Some(499), Class::CancelledByTool),
            (
                "Traceback ...\naiohttp.client_exceptions.ClientConnectorError: Cannot connect",
                None,
                Class::ConnectError,
            ),
            ("Traceback ...\nasyncio.exceptions.TimeoutError", None, Class::TimeoutStalled),
            ("ClientPayloadError: Response payload is not completed", None, Class::Truncated),
            ("ServerDisconnectedError: Server disconnected", None, Class::Reset),
            ("Never received a valid chunk to calculate TTFT.", None, Class::NoToken),
            ("Traceback ...\nKeyError: 'choices'", None, Class::Truncated),
        ] {
            assert_eq!(Failure::of(words, status).class, class, "{words}");
        }
        assert!(Failure::of("Gateway Timeout", None).names_server_timeout);
        assert!(Failure::of("x", Some(504)).names_server_timeout);
        assert!(Failure::of("prefill timed out", Some(500)).names_server_timeout);
        assert!(!Failure::of("TimeoutError", None).names_server_timeout);
        assert_eq!(Failure::of(&"é".repeat(900), None).detail.chars().count(), KEPT_CHARS);
    }
}
