//! A client over `protocol`, and prompts built from block numbers.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part of this module")]

use std::net::SocketAddr;

use protocol::http1::{Close, Method};
use protocol::{Nanos, ResponseTimeline, TimelineRecord};
use serde_json::json;
use simfleet::{EngineConfig, RequestRecord, monotonic_now};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of one block with the default engine: 64 tokens of 4 bytes.
pub const BLOCK_BYTES: usize = 256;

/// What a client saw of one request.
pub struct Reply {
    /// Just before the request was written.
    pub sent: Nanos,
    pub record: TimelineRecord,
    pub text: String,
}

/// An engine fast enough to serve a trace one request after the other in no time.
pub fn fast_engine() -> EngineConfig {
    EngineConfig {
        prefill_tokens_per_s: 1_000_000_000,
        decode_interval_us: 1,
        ..EngineConfig::default()
    }
}

/// A `traceparent` whose trace-id is the number `n`.
pub fn traceparent(n: u64) -> String {
    format!("00-{n:032x}-00000000000000aa-00")
}

/// The bytes of a chat request.
pub fn chat(model: &str, prompt: &str, max_tokens: u64, n: u64) -> Vec<u8> {
    let body = json!({
        "model": model, "max_tokens": max_tokens, "stream": true,
        "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": prompt }],
    })
    .to_string();
    let (length, parent) = (body.len(), traceparent(n));
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\ncontent-type: application/json\r\n\
         traceparent: {parent}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Sends `request` on a fresh connection and reads until its answer ends.
pub async fn call(addr: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(addr).await.expect("connect");
    stream.set_nodelay(true).expect("nodelay");
    let sent = monotonic_now().expect("clock");
    stream.write_all(request).await.expect("send");
    let mut timeline = ResponseTimeline::new(Method::Post);
    let (mut text, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    while !timeline.is_complete() {
        let read = stream.read(&mut buffer).await;
        let now = monotonic_now().expect("clock");
        match read {
            Ok(0) => timeline.close(Close::Eof, now),
            Err(_) => timeline.close(Close::Reset, now),
            Ok(n) => {
                text.extend_from_slice(&buffer[..n]);
                let report = timeline.feed(&buffer[..n], now);
                timeline.excess((n - report.consumed) as u64);
                continue;
            }
        }
        break;
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    Reply { sent, record: timeline.into_record(), text }
}

/// A connection that is kept from one request to the next.
pub struct Line {
    pub stream: TcpStream,
    ahead: Vec<u8>,
}

impl Line {
    pub async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.expect("connect");
        stream.set_nodelay(true).expect("nodelay");
        Self { stream, ahead: Vec::new() }
    }

    /// Sends a request and reads its answer.
    pub async fn ask(&mut self, request: &[u8]) -> TimelineRecord {
        self.stream.write_all(request).await.expect("send");
        self.answer().await
    }

    /// Reads one answer, by its framing; what follows it is kept.
    pub async fn answer(&mut self) -> TimelineRecord {
        let mut timeline = ResponseTimeline::new(Method::Post);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let now = monotonic_now().expect("clock");
            let used = timeline.feed(&self.ahead, now).consumed;
            self.ahead.drain(..used);
            if timeline.is_complete() {
                return timeline.into_record();
            }
            match self.stream.read(&mut buffer).await {
                Ok(n) if n > 0 => self.ahead.extend_from_slice(&buffer[..n]),
                other => {
                    let close = if other.is_ok() { Close::Eof } else { Close::Reset };
                    timeline.close(close, now);
                    return timeline.into_record();
                }
            }
        }
    }

    /// Whether the peer closes without another byte, within 20 s.
    pub async fn ended(&mut self) -> bool {
        let limit = std::time::Duration::from_secs(20);
        let read = tokio::time::timeout(limit, self.stream.read(&mut [0; 1])).await;
        self.ahead.is_empty() && !matches!(read.expect("an end"), Ok(n) if n > 0)
    }
}

/// The body of a page.
pub async fn page(addr: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(addr).await.expect("connect");
    stream.write_all(request.as_bytes()).await.expect("send");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("read");
    text.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

/// The value of a series, 0 when it is absent.
pub fn series(page: &str, name: &str) -> u64 {
    let rows = page.lines().filter(|l| l.starts_with(name));
    rows.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// A request of a trace: its block numbers and its prompt tokens.
pub struct Row {
    pub hash_ids: Vec<u64>,
    pub tokens: u64,
    pub output: u64,
}

impl Row {
    /// Text in which two rows share a block exactly where they share its number.
    pub fn prompt(&self) -> String {
        let text: String = self.hash_ids.iter().map(|id| format!("{id:>BLOCK_BYTES$}")).collect();
        text[..usize::try_from(self.tokens).unwrap() * 4].to_owned()
    }

    /// The numbers of the blocks that are full.
    pub fn full_blocks(&self) -> &[u64] {
        &self.hash_ids[..usize::try_from(self.tokens / 64).unwrap()]
    }
}

/// The demo's trace with its lengths divided by 8, so that a block is 512 / 8 = 64 tokens.
pub fn demo_trace() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/trace.jsonl");
    let text = std::fs::read_to_string(path).expect("demo/trace.jsonl");
    let number = |v: &serde_json::Value, key: &str| v[key].as_u64().expect("a number");
    let row = |line: &str| {
        let v: serde_json::Value = serde_json::from_str(line).expect("a JSON row");
        let ids = v["hash_ids"].as_array().expect("hash_ids").iter();
        Row {
            hash_ids: ids.map(|id| id.as_u64().expect("a number")).collect(),
            tokens: number(&v, "input_length") / 8,
            output: (number(&v, "output_length") / 8).max(1),
        }
    };
    text.lines().map(row).collect()
}

/// A least-recently-used prefix cache over block numbers, written without the crate's own: a list
/// with the most recently used block first.
pub struct NaiveLru {
    pub capacity: usize,
    pub list: Vec<u64>,
}

impl NaiveLru {
    /// Serves one prompt and tells how many of its tokens were cached.
    pub fn serve(&mut self, blocks: &[u64]) -> u64 {
        let hits = blocks.iter().take_while(|b| self.list.contains(b)).count();
        // The prompt's blocks go to the front in their own order, so the head is the most recent.
        self.list.retain(|b| !blocks.contains(b));
        self.list.splice(0..0, blocks.iter().copied());
        self.list.truncate(self.capacity);
        hits as u64 * 64
    }
}

/// Waits until `done` holds; panics when it does not within 20 s.
pub async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !done() {
        assert!(std::time::Instant::now() < deadline, "{what} did not happen within 20 s");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// Every line of a request log.
pub fn records(path: &std::path::Path) -> Vec<RequestRecord> {
    let text = std::fs::read_to_string(path).expect("request log");
    text.lines().map(|l| serde_json::from_str(l).expect("a record")).collect()
}
