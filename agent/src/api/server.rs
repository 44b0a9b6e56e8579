//! Connections to the API, within limits: however many come and however slow they are, the agent
//! keeps its memory and answers others.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Access;

/// Bounds on what clients of the API may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiLimits {
    /// Connections served at a time; one more is answered 503 and closed.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Time for a request's head, counted from the end of the one before: also what an idle
    /// connection may last.
    pub head_timeout: Duration,
    /// Time for a request's body.
    pub body_timeout: Duration,
    /// Time for which a client may leave sent bytes unacknowledged.
    pub send_timeout: Duration,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            head_bytes: 16 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            send_timeout: Duration::from_secs(30),
        }
    }
}

/// How long to wait after a failed accept: the usual cause is that no descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
    connection: close\r\ncontent-length: 100\r\n\r\n\
    {\"error\":\"as many connections are open as are served\",\"mend\":\"close some, or try again in a while\"}\n";

/// Serves connections until the future is dropped.
pub async fn serve(listener: TcpListener, router: Router, access: Arc<Access>, limits: ApiLimits) {
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "an API connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match Arc::clone(&room).try_acquire_owned() {
            Ok(permit) => {
                tokio::spawn(connection(stream, router.clone(), limits, permit));
            }
            Err(_) => {
                access.count_refused_connection();
                // Best effort: this must never wait for the client.
                let _ = stream.try_write(BUSY);
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    limits: ApiLimits,
    _permit: OwnedSemaphorePermit,
) {
    // A reader that has stopped would hold its connection for ever.
    if let Err(error) =
        socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(limits.send_timeout))
    {
        tracing::debug!(%error, "no send timeout on an API connection");
    }
    let service = TowerToHyperService::new(router);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_bytes)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an API connection ended early");
    }
}
