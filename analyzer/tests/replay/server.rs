//! A real HTTP server whose every step a test decides, and a trace to send to it.

use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use analyzer::clock::{Clock as _, SystemClock};
use analyzer::trace::{LoadOptions, Trace};
use protocol::Nanos;
use serde_json::Value;

/// One request as the server received it.
pub(crate) struct Exchange {
    /// The connection.
    pub(crate) stream: TcpStream,
    /// Request head, as text.
    pub(crate) head: String,
    /// Request body.
    pub(crate) body: Value,
    /// When the last byte had been read.
    pub(crate) received: Nanos,
}

/// Instants around one write of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) before: Nanos,
    pub(crate) after: Nanos,
}

impl Exchange {
    /// Writes in one piece.
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) -> Written {
        let before = SystemClock.now();
        // The client may have hung up: what that means for it is what the test is about.
        let _ = self.stream.write_all(bytes.as_ref());
        Written { before, after: SystemClock.now() }
    }

    /// The prompt of a completions body.
    pub(crate) fn prompt(&self) -> String {
        self.body["prompt"].as_str().unwrap_or_default().to_owned()
    }

    /// Blocks until the client has closed.
    pub(crate) fn wait_for_close(&mut self) {
        let mut rest = [0; 1024];
        while matches!(self.stream.read(&mut rest), Ok(1..)) {}
    }

    /// Sends a reset instead of an orderly end.
    pub(crate) fn reset(self) {
        let socket = socket2::Socket::from(self.stream);
        socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    }
}

/// Head of a chunked event stream.
pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// Finish reason, usage of two tokens, `[DONE]` and the last chunk.
pub(crate) fn tail() -> String {
    [
        chunk(r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}"#),
        chunk(r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#),
        chunk("[DONE]"),
        "0\r\n\r\n".to_owned(),
    ]
    .concat()
}

/// One event in one chunk.
pub(crate) fn chunk(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

/// One token in one chunk.
pub(crate) fn token() -> String {
    chunk(r#"{"choices":[{"index":0,"text":"tok","finish_reason":null}]}"#)
}

/// Starts a server that hands every request to `handle` in a thread of its own.
pub(crate) fn serve(handle: impl Fn(Exchange) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let handle = Arc::new(handle);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let handle = Arc::clone(&handle);
            std::thread::spawn(move || {
                if let Some(exchange) = receive(stream) {
                    handle(exchange);
                }
            });
        }
    });
    address
}

/// Starts a server that hands every request to `handle` with the number of its connection and its place
/// on it; the stream that comes back waits for the next one.
pub(crate) fn serve_kept(
    handle: impl Fn(usize, usize, Exchange) -> Option<TcpStream> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let handle = Arc::new(handle);
    std::thread::spawn(move || {
        for (connection, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let handle = Arc::clone(&handle);
            std::thread::spawn(move || {
                let mut next = Some(stream);
                for place in 0.. {
                    let Some(exchange) = next.take().and_then(receive) else { return };
                    next = handle(connection, place, exchange);
                }
            });
        }
    });
    address
}

fn receive(mut stream: TcpStream) -> Option<Exchange> {
    stream.set_nodelay(true).unwrap();
    let mut bytes = Vec::new();
    let mut buffer = [0; 64 * 1024];
    loop {
        if let Some((head, length)) = head(&bytes)
            && bytes.len() >= head.len() + length
        {
            let received = SystemClock.now();
            let body = serde_json::from_slice(&bytes[head.len()..]).unwrap();
            return Some(Exchange { stream, head, body, received });
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            // The reachability check opens and closes a connection without a request.
            _ => return None,
        }
    }
}

fn head(bytes: &[u8]) -> Option<(String, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .and_then(|length| length.parse().ok())
        .unwrap();
    Some((head, length))
}

/// A trace of completions, one per prompt, a millisecond apart.
pub(crate) fn trace<S: AsRef<str>>(prompts: &[S]) -> Trace {
    let options = LoadOptions::default();
    analyzer::trace::parse(trace_text(prompts).as_bytes(), Path::new("trace"), &options).unwrap()
}

/// The text of such a trace.
pub(crate) fn trace_text<S: AsRef<str>>(prompts: &[S]) -> String {
    let row = |(at, prompt): (usize, &S)| {
        let prompt = prompt.as_ref();
        format!("{{\"timestamp_ms\": {at}, \"prompt\": \"{prompt}\", \"max_tokens\": 2}}\n")
    };
    prompts.iter().enumerate().map(row).collect()
}

/// What handlers leave for the test.
pub(crate) type Log<T> = Arc<Mutex<Vec<T>>>;

/// An empty log.
pub(crate) fn log<T>() -> Log<T> {
    Arc::new(Mutex::new(Vec::new()))
}
