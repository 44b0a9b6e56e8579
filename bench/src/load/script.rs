//! The bytes of requests and answers.

use protocol::{TraceId, TraceParent};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Fixed bytes of every answer.
pub(crate) struct Script {
    pub(crate) head: Vec<u8>,
    pub(crate) event: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    pub(crate) events: u64,
}

fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// An event with `padding` bytes of content.
fn event(padding: usize) -> Vec<u8> {
    let content = "t".repeat(padding);
    chunk(&format!(
        "data: {{\"id\":\"bench\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}}}}]}}\n\n"
    ))
}

impl Script {
    /// Answers of `events` events of `event_bytes` bytes each, or the smallest event's if that is more.
    pub(crate) fn new(event_bytes: usize, events: u64) -> Self {
        let mut padding = event_bytes.saturating_sub(event(1).len()) + 1;
        while padding > 1 && event(padding).len() > event_bytes {
            padding -= 1;
        }
        let finish = "data: {\"id\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let usage = format!(
            "data: {{\"id\":\"bench\",\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":{events}}}}}\n\n"
        );
        let tail = [chunk(finish), chunk(&usage), chunk("data: [DONE]\n\n"), b"0\r\n\r\n".to_vec()];
        Self { head: HEAD.into(), event: event(padding), tail: tail.concat(), events }
    }

    /// Bytes of an answer.
    pub(crate) fn answer_len(&self) -> u64 {
        let fixed = self.head.len() + self.tail.len();
        fixed as u64 + self.event.len() as u64 * self.events
    }
}

/// The request number `number` of connection `connection`; always of the same length.
pub(crate) fn request(connection: u64, number: u64) -> anyhow::Result<Vec<u8>> {
    let id = u128::from(connection + 1) << 64 | u128::from(number);
    let parent = TraceParent::unsampled(TraceId::new(id.to_be_bytes())?, [1; 8])?;
    let body = r#"{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\ncontent-type: application/json\r\n\
         {}: {parent}\r\ncontent-length: {}\r\n\r\n",
        TraceParent::HEADER,
        body.len()
    );
    Ok((head + body).into_bytes())
}

#[cfg(test)]
mod tests {
    use protocol::Nanos;
    use protocol::StreamOutcome;
    use protocol::http1::Method;
    use protocol::timeline::ResponseTimeline;

    use super::*;

    #[test]
    fn an_answer_is_a_good_stream_of_its_declared_size() {
        for (bytes, events) in [(200, 3), (4096, 2), (1, 1)] {
            let script = Script::new(bytes, events);
            let mut timeline = ResponseTimeline::new(Method::Post);
            timeline.feed(&script.head, Nanos::new(1));
            for at in 0..events {
                timeline.feed(&script.event, Nanos::new(2 + at));
            }
            timeline.feed(&script.tail, Nanos::new(99));
            let record = timeline.into_record();
            assert!(StreamOutcome::of(&record).is_delivered(), "{record:?}");
            assert_eq!((record.token_events, record.bytes), (events, script.answer_len()));
            assert!(
                bytes == 1 || script.event.len().abs_diff(bytes) <= 1,
                "{}",
                script.event.len()
            );
        }
    }

    #[test]
    fn requests_have_one_length_and_ids_of_their_own() {
        let first = request(0, 0).unwrap();
        assert_eq!(first.len(), request(9_999, 99).unwrap().len());
        assert_ne!(first, request(0, 1).unwrap());
    }
}
