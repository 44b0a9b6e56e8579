//! Reads requests from a client's socket.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Largest request head in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Largest request body in bytes.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// Most header fields in one head.
const MAX_FIELDS: usize = 100;
/// Bytes kept of what a client sends before its answer is complete.
const MAX_PIPELINED: usize = 64 * 1024;

/// Why no request could be read.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    /// The client closed before the first byte of a request.
    #[error("closed")]
    Closed,
    /// The bytes are no acceptable request; the status says which.
    #[error("{1}")]
    Bad(u16, &'static str),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A request head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) target: String,
    /// HTTP minor version: 0 or 1.
    pub(crate) minor: u8,
    /// Header fields in the order received.
    pub(crate) fields: Vec<(String, Bytes)>,
}

/// A request with its whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) head: Head,
    pub(crate) body: Bytes,
    /// The body came with chunked transfer coding.
    pub(crate) chunked: bool,
}

impl Head {
    /// The value of a field, if it is there and is text.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.and_then(|(_, v)| std::str::from_utf8(v).ok()).map(str::trim)
    }

    /// The target without its query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }

    /// Whether the connection may carry another request.
    pub(crate) fn keep_alive(&self) -> bool {
        let listed = |token: &str| {
            let value = self.field("connection").unwrap_or("");
            value.split(',').any(|t| t.trim().eq_ignore_ascii_case(token))
        };
        !listed("close") && (self.minor == 1 || listed("keep-alive"))
    }

    /// The 32 hexadecimal digits of the trace-id in `traceparent` (W3C Trace Context 3.2).
    pub(crate) fn trace_id(&self) -> Option<&str> {
        let id = self.field("traceparent")?.split('-').nth(1)?;
        (id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
    }
}

/// A client's connection, with what was read ahead of the current request.
pub(crate) struct Connection<R> {
    input: R,
    ahead: BytesMut,
}

impl<R: AsyncRead + Unpin> Connection<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, ahead: BytesMut::new() }
    }

    /// Reads one request; `output` is told to go on when the client waits for that.
    pub(crate) async fn request<W>(&mut self, output: &mut W) -> Result<Request, ReadError>
    where
        W: AsyncWrite + Unpin,
    {
        let head = self.head().await?;
        if head.field("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue")) {
            output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let chunked = head.field("transfer-encoding").is_some();
        let body = match (chunked, head.field("content-length")) {
            (true, Some(_)) => return Err(ReadError::Bad(400, "two kinds of body length")),
            (true, None) => self.chunked_body(&head).await?,
            (false, None) => Bytes::new(),
            (false, Some(length)) => self.exactly(length_of(length)?).await?,
        };
        Ok(Request { head, body, chunked })
    }

    /// Waits for the first byte of a request; false when the client has gone or `limit` passes before it.
    pub(crate) async fn begins(&mut self, limit: Option<Duration>) -> bool {
        if !self.ahead.is_empty() {
            return true;
        }
        let first = self.input.read_buf(&mut self.ahead);
        match limit {
            None => matches!(first.await, Ok(n) if n > 0),
            Some(limit) => matches!(timeout(limit, first).await, Ok(Ok(n)) if n > 0),
        }
    }

    /// Returns when the client has closed or reset its side; what it sends meanwhile is kept.
    pub(crate) async fn gone(&mut self) {
        loop {
            if self.ahead.len() >= MAX_PIPELINED {
                // Reading on would let a client fill memory; its reset then shows on writing.
                std::future::pending::<()>().await;
            }
            if !matches!(self.input.read_buf(&mut self.ahead).await, Ok(n) if n > 0) {
                return;
            }
        }
    }

    async fn fill(&mut self) -> Result<(), ReadError> {
        match self.input.read_buf(&mut self.ahead).await? {
            0 => Err(ReadError::Bad(400, "the request ended early")),
            _ => Ok(()),
        }
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        loop {
            if let Some((head, used)) = parse_head(&self.ahead)? {
                self.ahead.advance(used);
                return Ok(head);
            }
            if self.ahead.len() >= MAX_HEAD {
                return Err(ReadError::Bad(431, "the request head is too large"));
            }
            let fresh = self.ahead.is_empty();
            match self.fill().await {
                Err(ReadError::Bad(..)) if fresh => return Err(ReadError::Closed),
                other => other?,
            }
        }
    }

    async fn exactly(&mut self, n: usize) -> Result<Bytes, ReadError> {
        if n > MAX_BODY {
            return Err(ReadError::Bad(413, "the request body is too large"));
        }
        while self.ahead.len() < n {
            self.fill().await?;
        }
        Ok(self.ahead.split_to(n).freeze())
    }

    async fn line(&mut self) -> Result<Bytes, ReadError> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|w| w == b"\r\n") {
                let line = self.ahead.split_to(end).freeze();
                self.ahead.advance(2);
                return Ok(line);
            }
            if self.ahead.len() >= MAX_HEAD {
                return Err(ReadError::Bad(400, "a line of the chunked body is too long"));
            }
            self.fill().await?;
        }
    }

    async fn chunked_body(&mut self, head: &Head) -> Result<Bytes, ReadError> {
        let coding = head.field("transfer-encoding").unwrap_or("");
        if !coding.eq_ignore_ascii_case("chunked") {
            return Err(ReadError::Bad(501, "only the chunked transfer coding is supported"));
        }
        let mut body = BytesMut::new();
        loop {
            let size = chunk_size(&self.line().await?)?;
            if size == 0 {
                while !self.line().await?.is_empty() {}
                return Ok(body.freeze());
            }
            if body.len().saturating_add(size) > MAX_BODY {
                return Err(ReadError::Bad(413, "the request body is too large"));
            }
            body.extend_from_slice(&self.exactly(size).await?);
            if !self.line().await?.is_empty() {
                return Err(ReadError::Bad(400, "a chunk is longer than its size says"));
            }
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, ReadError> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let used = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(ReadError::Bad(400, "not an HTTP/1.1 request")),
    };
    let owned = |f: &httparse::Header<'_>| (f.name.to_owned(), Bytes::copy_from_slice(f.value));
    let head = Head {
        method: parsed.method.unwrap_or("").to_owned(),
        target: parsed.path.unwrap_or("").to_owned(),
        minor: parsed.version.unwrap_or(1),
        fields: parsed.headers.iter().map(owned).collect(),
    };
    Ok(Some((head, used)))
}

/// RFC 9110 8.6: digits only.
fn length_of(text: &str) -> Result<usize, ReadError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let length = digits.then(|| text.parse().ok()).flatten();
    length.ok_or(ReadError::Bad(400, "Content-Length is not a number"))
}

/// RFC 9112 7.1: hexadecimal digits, then extensions that mean nothing here.
fn chunk_size(line: &[u8]) -> Result<usize, ReadError> {
    let digits = line.split(|b| *b == b';').next().unwrap_or(&[]);
    let text = std::str::from_utf8(digits).unwrap_or("").trim_end();
    let hex = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let size = hex.then(|| usize::from_str_radix(text, 16).ok()).flatten();
    size.ok_or(ReadError::Bad(400, "a chunk size is not a number"))
}

#[cfg(test)]
mod tests {
    use super::{Connection, ReadError, Request};

    async fn read(bytes: &[u8]) -> Result<Request, ReadError> {
        Connection::new(bytes).request(&mut Vec::new()).await
    }

    #[tokio::test]
    async fn both_kinds_of_body_give_the_same_bytes() {
        let fixed =
            read(b"POST /a?q=1 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloNEXT").await.unwrap();
        let chunked = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
        let chunked = read(chunked).await.unwrap();
        assert_eq!((fixed.body, fixed.head.path()), (chunked.body, "/a"));
        assert!(chunked.chunked && !fixed.chunked);
    }

    #[tokio::test]
    async fn bad_requests_get_a_status_and_never_a_panic() {
        let cases: [(&[u8], u16); 7] = [
            (b"\x16\x03\x01\x02", 400),
            (b"GET / HTTP/1.1\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", 400),
        ];
        for (bytes, status) in cases {
            let got = read(bytes).await;
            assert!(matches!(got, Err(ReadError::Bad(s, _)) if s == status), "{bytes:?}: {got:?}");
        }
        assert!(matches!(read(b"").await, Err(ReadError::Closed)));
    }

    #[tokio::test]
    async fn the_trace_id_is_read_from_a_well_formed_traceparent_only() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        let with = |v: &str| format!("GET / HTTP/1.1\r\ntraceparent: {v}\r\n\r\n");
        let good = read(with(&format!("00-{id}-b7ad6b7169203331-00")).as_bytes()).await.unwrap();
        assert_eq!(good.head.trace_id(), Some(id));
        let bad = read(with("00-short-b7ad6b7169203331-00").as_bytes()).await.unwrap();
        assert_eq!(bad.head.trace_id(), None);
    }
}
