//! One completion request: into the engine, and its tokens out as they fall due.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::AsyncWriteExt;

use super::session::{Next, Session, reply};
use super::{Backend, faults};
use crate::config::RoleChunk;
use crate::engine::Ticket;
use crate::fault::{BackendFault, FAULT_MODEL_PREFIX};
use crate::http::{Request, chunk, fixed, stream_head};
use crate::model::{Arrival, OutputKind, Start};
use crate::openai::{Answer, Api, CompletionRequest, Usage, error_body};
use crate::request_log::{Outcome, RequestRecord};

/// Bytes of a request id that are answered.
const MOST_ID: usize = 256;

/// A request that passed every check.
pub(super) struct Job<'a> {
    pub(super) backend: &'a Backend,
    pub(super) http: &'a Request,
    pub(super) wanted: CompletionRequest,
    pub(super) fault: Option<BackendFault>,
    api: Api,
    prompt_tokens: u64,
}

/// What became of a job so far.
#[derive(Default)]
struct Progress {
    start: Option<Start>,
    tokens: u64,
    text: String,
}

pub(super) async fn serve(
    backend: &Backend,
    session: &mut Session,
    http: &Request,
    api: Api,
) -> io::Result<Next> {
    let wanted = match check(backend, http) {
        Ok(wanted) => wanted,
        Err((status, body)) => {
            return reply(session, http, status, "application/json", &body).await;
        }
    };
    let fault = requested_fault(&wanted).or_else(|| backend.fault());
    let prompt = wanted.prompt().unwrap_or_default().into_bytes();
    let tokenizer = backend.config.engine.tokenizer();
    let prompt_tokens = tokenizer.tokens(&prompt);
    let job = Job { backend, http, wanted, fault, api, prompt_tokens };
    if let Some(next) = faults::before_engine(&job, session).await? {
        return Ok(next);
    }
    let output_tokens = job.wanted.max_tokens();
    let arrival = match job.wanted.prefilled() {
        true => Arrival { prompt_tokens: 0, blocks: Vec::new(), output_tokens },
        false => Arrival { prompt_tokens, blocks: tokenizer.blocks(&prompt), output_tokens },
    };
    let ticket = backend.engine.submit(arrival)?;
    generate(&job, session, ticket).await
}

/// The request, or the status and body that refuse it as vLLM would.
fn check(backend: &Backend, http: &Request) -> Result<CompletionRequest, (u16, String)> {
    let bad = |why: &str| (400, error_body(400, "BadRequestError", why));
    let wanted: CompletionRequest =
        serde_json::from_slice(&http.body).map_err(|e| bad(&format!("request body: {e}")))?;
    let prompt = wanted.prompt().ok_or_else(|| bad("neither messages nor a prompt string"))?;
    let engine = &backend.config.engine;
    let model = wanted.model.as_deref().unwrap_or(&engine.model);
    if model != engine.model && requested_fault(&wanted).is_none() && !gateway_fault(model) {
        let why = format!("The model `{model}` does not exist.");
        return Err((404, error_body(404, "NotFoundError", &why)));
    }
    let prompt_tokens = engine.tokenizer().tokens(prompt.as_bytes());
    let output = wanted.max_tokens();
    if output == 0 {
        return Err(bad("max_tokens must be at least 1, got 0."));
    }
    if prompt_tokens.saturating_add(output) > engine.max_model_len {
        let limit = engine.max_model_len;
        return Err(bad(&format!(
            "{prompt_tokens} prompt and {output} output tokens exceed {limit}"
        )));
    }
    Ok(wanted)
}

fn requested_fault(wanted: &CompletionRequest) -> Option<BackendFault> {
    wanted.model.as_deref()?.strip_prefix(FAULT_MODEL_PREFIX)?.parse().ok()
}

/// A fault that the gateway has committed already: to a backend it is a normal request.
fn gateway_fault(model: &str) -> bool {
    let name = model.strip_prefix(FAULT_MODEL_PREFIX);
    name.is_some_and(|n| n.parse::<crate::fault::GatewayFault>().is_ok())
}

async fn generate(job: &Job<'_>, session: &mut Session, mut ticket: Ticket) -> io::Result<Next> {
    let mut progress = Progress::default();
    let result = run(job, session, &mut ticket, &mut progress).await;
    let outcome = match &result {
        Err(_) => Outcome::Cancelled,
        Ok(_) if progress.tokens < job.wanted.max_tokens() => match job.fault {
            Some(_) => Outcome::Fault,
            None => Outcome::Cancelled,
        },
        Ok(_) => Outcome::Finished,
    };
    job.backend.log.append(&record(job, &ticket, &progress, outcome));
    result
}

/// Writes tokens as they fall due, until the last one, a fault, or the client's leaving.
async fn run(
    job: &Job<'_>,
    session: &mut Session,
    ticket: &mut Ticket,
    progress: &mut Progress,
) -> io::Result<Next> {
    let answer = Answer::new(job.api, &job.id(ticket), job.model(), unix_seconds());
    let keep = session.keeps(job.http);
    if job.wanted.stream() {
        session.output.write_all(&stream_head(keep)).await?;
    }
    loop {
        if let Some(next) = faults::after_tokens(job, session, progress.tokens).await? {
            return Ok(next);
        }
        let output = tokio::select! {
            output = ticket.next() => output,
            () = session.input.gone() => return Ok(Next::Close),
        };
        match output.map(|o| o.kind) {
            None => break,
            Some(OutputKind::Started(start)) => {
                progress.start = Some(start);
                role(job, session, &answer, RoleChunk::AtPrefillStart).await?;
            }
            Some(OutputKind::Token { index, last }) => {
                token(job, session, &answer, progress, index, last).await?;
                if last {
                    break;
                }
            }
        }
    }
    finish(job, session, &answer, progress).await?;
    Ok(if keep { Next::Request } else { Next::Close })
}

async fn role(
    job: &Job<'_>,
    session: &mut Session,
    answer: &Answer,
    now: RoleChunk,
) -> io::Result<()> {
    let due = job.wanted.stream() && job.backend.config.engine.role_chunk == now;
    match answer.role_event().filter(|_| due) {
        Some(event) => session.output.write_all(&chunk(&event)).await,
        None => Ok(()),
    }
}

async fn token(
    job: &Job<'_>,
    session: &mut Session,
    answer: &Answer,
    progress: &mut Progress,
    index: u64,
    last: bool,
) -> io::Result<()> {
    if index == 0 {
        role(job, session, answer, RoleChunk::WithFirstToken).await?;
    }
    progress.tokens = index + 1;
    progress.text.push_str(word(index));
    // The first chunk holds one token whatever the stream interval is, as vLLM's does.
    let full = index.is_multiple_of(job.backend.config.engine.tokens_per_chunk);
    if job.wanted.stream() && (full || last) {
        let event = answer.text_event(&progress.text);
        progress.text.clear();
        session.output.write_all(&chunk(&event)).await?;
    }
    Ok(())
}

async fn finish(
    job: &Job<'_>,
    session: &mut Session,
    answer: &Answer,
    progress: &Progress,
) -> io::Result<()> {
    let cached = progress.start.map_or(0, |s| s.hit_tokens);
    let usage = Usage::new(job.prompt_tokens, progress.tokens, cached);
    if !job.wanted.stream() {
        let body = answer.whole(&progress.text, usage);
        let keep = session.keeps(job.http);
        return session.output.write_all(&fixed(200, "application/json", "", keep, &body)).await;
    }
    session.output.write_all(&chunk(&answer.finish_event())).await?;
    if job.wanted.include_usage() {
        session.output.write_all(&chunk(&answer.usage_event(usage))).await?;
    }
    session.output.write_all(&chunk("data: [DONE]\n\n")).await?;
    session.output.write_all(&chunk("")).await
}

impl Job<'_> {
    fn model(&self) -> &str {
        self.wanted.model.as_deref().unwrap_or(&self.backend.config.engine.model)
    }

    /// The request's own id, as vLLM answers; else the trace-id, so that an answer can be found in a
    /// capture.
    fn id(&self, ticket: &Ticket) -> String {
        let unnamed = || format!("{}-{}", self.backend.config.name, ticket.arrived.get());
        let given = self.http.head.field("x-request-id").filter(|id| id.len() <= MOST_ID);
        given.or_else(|| self.http.head.trace_id()).map_or_else(unnamed, str::to_owned)
    }

    /// The log line of a request that never reached the engine.
    pub(super) fn log_refused(&self, arrival_ns: u64) {
        self.backend.log.append(&RequestRecord {
            trace_id: self.http.head.trace_id().map(str::to_owned),
            backend: self.backend.config.name.clone(),
            arrival_ns,
            prompt_tokens: self.prompt_tokens,
            hit_tokens: None,
            queue_ns: None,
            model_ttft_ns: None,
            output_tokens: 0,
            outcome: Outcome::Fault,
            fault: self.fault.as_ref().map(ToString::to_string),
        });
    }
}

fn record(job: &Job<'_>, ticket: &Ticket, progress: &Progress, outcome: Outcome) -> RequestRecord {
    let start = progress.start;
    RequestRecord {
        trace_id: job.http.head.trace_id().map(str::to_owned),
        backend: job.backend.config.name.clone(),
        arrival_ns: ticket.arrived.get(),
        prompt_tokens: job.prompt_tokens,
        hit_tokens: start.map(|s| s.hit_tokens),
        queue_ns: start.map(|s| s.queue_ns),
        model_ttft_ns: start.map(|s| s.queue_ns.saturating_add(s.prefill_ns)),
        output_tokens: progress.tokens,
        outcome,
        fault: job.fault.as_ref().map(ToString::to_string),
    }
}

/// The text of token `index`: plain words, so that an answer can be read.
fn word(index: u64) -> &'static str {
    const WORDS: [&str; 8] =
        [" one", " two", " three", " four", " five", " six", " seven", " eight"];
    usize::try_from(index % 8).ok().and_then(|i| WORDS.get(i)).copied().unwrap_or(" more")
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
