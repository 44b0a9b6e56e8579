//! One GET, bounded in time and bytes. Without threads: the first one comes before capabilities are dropped.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use protocol::http1::{Close, Framing, Method, ResponseDecoder, ResponseEvent};

use super::target::Target;

/// Bytes of an answer that are read at most: thousands of rules.
pub const MAX_BODY: usize = 4 * 1024 * 1024;

/// No answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No connection, or it broke.
    #[error(
        "{target}: {source}; check that LoxiLB's API runs there and discovery.loxilb_url is right"
    )]
    NoAnswer {
        /// Whom was asked.
        target: Target,
        /// What happened.
        source: io::Error,
    },
    /// It answered something else than 200.
    #[error("{target} answered status {status}; check discovery.loxilb_url and LoxiLB's log")]
    Status {
        /// Whom was asked.
        target: Target,
        /// The status.
        status: u16,
    },
    /// The answer is too large.
    #[error(
        "{target} answered more than {MAX_BODY} bytes; name the endpoints in the configuration"
    )]
    TooLarge {
        /// Whom was asked.
        target: Target,
    },
    /// The answer broke off, or is no HTTP.
    #[error("{target} gave no whole HTTP answer; check that discovery.loxilb_url is LoxiLB's API")]
    Broken {
        /// Whom was asked.
        target: Target,
    },
}

/// The body of `target`'s rules, read within `patience`.
///
/// # Errors
/// [`FetchError`].
pub fn fetch(target: &Target, patience: Duration) -> Result<Vec<u8>, FetchError> {
    let end = Instant::now() + patience;
    let no_answer = |source| FetchError::NoAnswer { target: target.clone(), source };
    let mut stream = TcpStream::connect_timeout(&target.address(), patience).map_err(no_answer)?;
    stream.set_write_timeout(Some(patience)).map_err(no_answer)?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\nConnection: close\r\n\r\n",
        target.path(),
        target.address()
    );
    stream.write_all(request.as_bytes()).map_err(no_answer)?;
    let mut answer = Answer::new(target);
    let mut buffer = vec![0; 16 * 1024];
    while !answer.decoder.is_complete() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(no_answer(io::ErrorKind::TimedOut.into()));
        }
        stream.set_read_timeout(Some(left)).map_err(no_answer)?;
        match stream.read(&mut buffer).map_err(no_answer)? {
            0 => break,
            read => answer.take(&buffer[..read])?,
        }
    }
    answer.finish()
}

struct Answer<'a> {
    target: &'a Target,
    decoder: ResponseDecoder,
    status: Option<u16>,
    body: Vec<u8>,
}

impl<'a> Answer<'a> {
    fn new(target: &'a Target) -> Self {
        let decoder = ResponseDecoder::new(Method::from_token("GET"));
        Self { target, decoder, status: None, body: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        let Self { decoder, status, body, target } = self;
        decoder.feed(bytes, |event| match event {
            ResponseEvent::Head(head) => *status = Some(head.status),
            ResponseEvent::Body { bytes, .. } if body.len() <= MAX_BODY => {
                body.extend_from_slice(bytes);
            }
            _ => {}
        });
        let target = || (*target).clone();
        if body.len() > MAX_BODY {
            return Err(FetchError::TooLarge { target: target() });
        }
        match decoder.framing() {
            Framing::Invalid { .. } => Err(FetchError::Broken { target: target() }),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Vec<u8>, FetchError> {
        if !self.decoder.is_complete() {
            self.decoder.close(Close::Eof);
        }
        let target = self.target.clone();
        match (self.decoder.framing(), self.status) {
            (Framing::Valid, Some(200)) => Ok(self.body),
            (Framing::Valid, Some(status)) => Err(FetchError::Status { target, status }),
            _ => Err(FetchError::Broken { target }),
        }
    }
}
