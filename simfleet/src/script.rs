//! Serves the byte scripts of `protocol::cases`: broken and unusual streams, write by write.

use std::io;

use protocol::Nanos;
use protocol::cases::{End, case, cases};
use tokio::io::AsyncWriteExt;

use crate::backend::{Next, Session};
use crate::clock::{Alarm, monotonic_now};

/// Nanoseconds in a millisecond.
const NS_PER_MS: u64 = 1_000_000;

/// Every script: its name and what it shows.
pub(crate) fn list() -> Vec<(String, String)> {
    let row = |c: protocol::cases::Case| {
        (c.name.to_owned(), format!("backend: {} ({})", c.about, c.ids.join(", ")))
    };
    cases().into_iter().map(row).collect()
}

/// Whether a script of this name exists.
pub(crate) fn exists(name: &str) -> bool {
    case(name).is_some()
}

/// Serves a script from now on, each step one write at its instant. A client that leaves ends it.
pub(crate) async fn serve(name: &str, session: &mut Session, keep_alive: bool) -> io::Result<Next> {
    let Some(case) = case(name) else { return Ok(Next::Close) };
    let (alarm, start) = (Alarm::new()?, monotonic_now()?);
    for step in &case.steps {
        if !wait(&alarm, start, step.at_ms, session).await? {
            return Ok(Next::Close);
        }
        session.output.write_all(&step.bytes).await?;
    }
    match case.end {
        End::KeepAlive if keep_alive => Ok(Next::Request),
        End::KeepAlive => {
            // The script leaves the connection open: closing it would be another case.
            session.input.gone().await;
            Ok(Next::Close)
        }
        End::Close(at_ms) => wait(&alarm, start, at_ms, session).await.map(|_| Next::Close),
        End::Reset(at_ms) => wait(&alarm, start, at_ms, session).await.map(|_| Next::Reset),
    }
}

/// Waits for an instant of the script; false when the client left before it.
async fn wait(alarm: &Alarm, start: Nanos, ms: u64, session: &mut Session) -> io::Result<bool> {
    let at = Nanos::new(start.get().saturating_add(ms.saturating_mul(NS_PER_MS)));
    tokio::select! {
        fired = alarm.wait_until(at) => fired.map(|()| true),
        () = session.input.gone() => Ok(false),
    }
}
