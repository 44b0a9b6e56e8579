//! One client connection of a backend.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use super::{Backend, Peer, completion, pages};
use crate::config::KeepAliveLimits;
use crate::http::{Connection, ReadError, Request, fixed};
use crate::openai::{Api, error_body};

/// Whether a connection goes on after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next request may follow.
    Request,
    /// Close in the normal way.
    Close,
    /// Close with a reset.
    Reset,
}

/// Both directions of the connection.
pub(crate) struct Session {
    pub(crate) input: Connection<tokio::net::tcp::OwnedReadHalf>,
    pub(crate) output: OwnedWriteHalf,
    /// Requests read, the present one included.
    pub(crate) served: u64,
    limits: KeepAliveLimits,
}

impl Session {
    /// Whether the connection may carry another request after this one.
    pub(crate) fn keeps(&self, request: &Request) -> bool {
        request.head.keep_alive() && !self.limits.last(self.served)
    }

    /// The next request; an idle connection that is closed counts as closed by the client.
    async fn next(&mut self) -> Result<Request, ReadError> {
        if self.served > 0 && !self.input.begins(self.limits.idle()).await {
            return Err(ReadError::Closed);
        }
        let request = self.input.request(&mut self.output).await?;
        self.served += 1;
        Ok(request)
    }
}

pub(super) async fn run(backend: Arc<Backend>, stream: TcpStream, peer: Peer) {
    if let Err(e) = serve(&backend, stream).await {
        tracing::debug!(backend = %backend.config.name, %peer, "connection ended: {e}");
    }
}

async fn serve(backend: &Backend, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (read, write) = stream.into_split();
    let mut session = Session {
        input: Connection::new(read),
        output: write,
        served: 0,
        limits: backend.config.keep_alive,
    };
    let next = loop {
        let next = match session.next().await {
            Ok(request) => answer(backend, &mut session, &request).await?,
            Err(error) => return refuse(&mut session, error).await,
        };
        if next != Next::Request {
            break next;
        }
    };
    if next == Next::Reset {
        session.output.as_ref().set_zero_linger()?;
        // Dropping the half would send an orderly end first.
        session.output.forget();
    }
    Ok(())
}

async fn answer(backend: &Backend, session: &mut Session, request: &Request) -> io::Result<Next> {
    match Api::of_path(request.head.path()) {
        Some(api) if request.head.method == "POST" => {
            completion::serve(backend, session, request, api).await
        }
        Some(_) => {
            let body = error_body(405, "MethodNotAllowed", "use POST");
            reply(session, request, 405, "application/json", &body).await
        }
        None => {
            let (status, kind, body) = pages::page(backend, request.head.path());
            reply(session, request, status, kind, &body).await
        }
    }
}

/// Writes a whole answer and keeps the connection if the client does.
pub(super) async fn reply(
    session: &mut Session,
    request: &Request,
    status: u16,
    content_type: &str,
    body: &str,
) -> io::Result<Next> {
    let keep = session.keeps(request);
    let extra = if matches!(status, 429 | 503) { "retry-after: 1\r\n" } else { "" };
    session.output.write_all(&fixed(status, content_type, extra, keep, body)).await?;
    Ok(if keep { Next::Request } else { Next::Close })
}

async fn refuse(session: &mut Session, error: ReadError) -> io::Result<()> {
    match error {
        ReadError::Closed => Ok(()),
        ReadError::Io(e) => Err(e),
        ReadError::Bad(status, why) => {
            let body = error_body(status, "BadRequestError", why);
            session.output.write_all(&fixed(status, "application/json", "", false, &body)).await
        }
    }
}
