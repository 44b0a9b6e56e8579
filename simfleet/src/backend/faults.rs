//! A backend's faults, at the two places where a request can go wrong.

use std::io;

use super::completion::Job;
use super::session::{Next, Session, reply};
use crate::clock::monotonic_now;
use crate::fault::BackendFault;
use crate::openai::error_body;

/// Faults that keep a request from the engine.
pub(super) async fn before_engine(
    job: &Job<'_>,
    session: &mut Session,
) -> io::Result<Option<Next>> {
    let next = match &job.fault {
        Some(BackendFault::Status(status)) => {
            let body = error_body(*status, "InternalServerError", "simulated fault");
            reply(session, job.http, *status, "application/json", &body).await?
        }
        Some(BackendFault::HalfDead) => {
            session.input.gone().await;
            Next::Close
        }
        Some(BackendFault::Refuse) => Next::Reset,
        Some(BackendFault::CloseReused) if session.served > 1 => Next::Close,
        Some(BackendFault::Script(name)) => {
            let keep = session.keeps(job.http);
            crate::script::serve(name, session, keep).await?
        }
        _ => return Ok(None),
    };
    job.log_refused(monotonic_now()?.get());
    Ok(Some(next))
}

/// Faults that strike once `tokens` tokens were written.
pub(super) async fn after_tokens(
    job: &Job<'_>,
    session: &mut Session,
    tokens: u64,
) -> io::Result<Option<Next>> {
    Ok(match job.fault {
        Some(BackendFault::StallAfter(n)) if n == tokens => {
            session.input.gone().await;
            Some(Next::Close)
        }
        Some(BackendFault::ResetAfter(n)) if n == tokens => Some(Next::Reset),
        Some(BackendFault::TruncateAfter(n)) if n == tokens => Some(Next::Close),
        _ => None,
    })
}
