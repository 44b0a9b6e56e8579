//! The engine model of one backend: arrivals in, deadlines out, no I/O and no clock of its own.
//!
//! - Requests wait in one FIFO queue. A request starts when it is at the head, the prefill server is
//!   free and a batch slot is free; it holds the slot from there to its last token.
//! - Prefill takes `uncached tokens / prefill_tokens_per_s`. What is cached is looked up at its start;
//!   the prompt's full blocks enter the cache at its end. Since prefills never overlap, the hits of a
//!   request depend on the order of arrival alone, not on timing. Output tokens are not cached.
//! - Token 0 is due when prefill ends, token k+1 `decode_interval` after token k, stretched by the
//!   other requests that are decoding at that instant when a slowdown is set.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protocol::Nanos;

use crate::blocks::BlockHash;
use crate::cache::PrefixCache;
use crate::clock::NS_PER_S;

/// The constants of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelParams {
    /// Uncached prompt tokens prefilled per second, at least 1.
    pub prefill_tokens_per_s: u64,
    /// Nanoseconds between two tokens of one request.
    pub decode_interval_ns: u64,
    /// Millionths by which each *other* decoding request stretches the interval.
    pub slowdown_ppm: u64,
    /// Requests served at once, at least 1.
    pub slots: usize,
    /// Prompt tokens in one cache block.
    pub block_tokens: u64,
    /// Blocks that the prefix cache holds.
    pub cache_blocks: usize,
}

/// A request, named by its order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

/// What the model needs to know of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Prompt tokens, cached or not.
    pub prompt_tokens: u64,
    /// Chain hashes of the prompt's full blocks.
    pub blocks: Vec<BlockHash>,
    /// Tokens to generate, at least 1.
    pub output_tokens: u64,
}

/// Something that became due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// The request it belongs to.
    pub id: RequestId,
    /// The model's instant, which may lie before the instant at which the caller asked.
    pub at: Nanos,
    /// What happened.
    pub kind: OutputKind,
}

/// What became due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Prefill began.
    Started(Start),
    /// Token `index` (from 0) is due; `last` ends the request.
    Token {
        /// Position in the answer, from 0.
        index: u64,
        /// True for the last token.
        last: bool,
    },
}

/// What is known of a request once its prefill begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Prompt tokens found in the prefix cache: leading cached blocks x block size.
    pub hit_tokens: u64,
    /// Nanoseconds from arrival to the start of prefill.
    pub queue_ns: u64,
    /// Nanoseconds of prefill.
    pub prefill_ns: u64,
}

/// Totals since the model began, and its present load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelStats {
    /// Requests that hold a slot.
    pub running: usize,
    /// Requests in the queue.
    pub waiting: usize,
    /// Prompt tokens looked up in the prefix cache.
    pub queried_tokens: u64,
    /// Prompt tokens found there.
    pub hit_tokens: u64,
    /// Prompt tokens whose prefill has ended.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub generated_tokens: u64,
    /// Requests that got their last token.
    pub finished: u64,
    /// Requests cancelled before that.
    pub cancelled: u64,
    /// Blocks in the prefix cache.
    pub cached_blocks: usize,
}

#[derive(Debug)]
struct Waiting {
    id: RequestId,
    arrived: u64,
    arrival: Arrival,
}

#[derive(Debug)]
struct Prefilling {
    id: RequestId,
    ends: u64,
    arrival: Arrival,
}

#[derive(Debug)]
struct Decoding {
    next_index: u64,
    output_tokens: u64,
    due: u64,
}

/// One engine's state.
#[derive(Debug)]
pub struct EngineModel {
    params: ModelParams,
    now: u64,
    next_id: u64,
    cache: PrefixCache,
    queue: VecDeque<Waiting>,
    prefill: Option<Prefilling>,
    decoding: BTreeMap<RequestId, Decoding>,
    due: BTreeSet<(u64, RequestId)>,
    stats: ModelStats,
}

impl EngineModel {
    /// An idle engine with an empty cache.
    #[must_use]
    pub fn new(params: ModelParams) -> Self {
        Self {
            params,
            now: 0,
            next_id: 0,
            cache: PrefixCache::new(params.cache_blocks),
            queue: VecDeque::new(),
            prefill: None,
            decoding: BTreeMap::new(),
            due: BTreeSet::new(),
            stats: ModelStats::default(),
        }
    }

    /// A request arrives at `now`; what was due until then is appended to `out` first.
    pub fn arrive(&mut self, now: Nanos, arrival: Arrival, out: &mut Vec<Output>) -> RequestId {
        self.advance(now, out);
        let id = RequestId(self.next_id);
        self.next_id += 1;
        self.queue.push_back(Waiting { id, arrived: self.now, arrival });
        self.start_next(self.now, out);
        id
    }

    /// The request's client left at `now`: its place in queue, prefill or batch is free from there.
    pub fn cancel(&mut self, now: Nanos, id: RequestId, out: &mut Vec<Output>) {
        self.advance(now, out);
        let held = self.queue.len() + self.held();
        self.queue.retain(|w| w.id != id);
        if self.prefill.as_ref().is_some_and(|p| p.id == id) {
            self.prefill = None;
        }
        if let Some(d) = self.decoding.remove(&id) {
            self.due.remove(&(d.due, id));
        }
        if self.queue.len() + self.held() < held {
            self.stats.cancelled += 1;
        }
        self.start_next(self.now, out);
    }

    /// Appends everything due at or before `now` to `out`, in model order.
    pub fn advance(&mut self, now: Nanos, out: &mut Vec<Output>) {
        while let Some(at) = self.next_deadline().filter(|at| *at <= now) {
            self.step(at.get(), out);
        }
        self.now = self.now.max(now.get());
    }

    /// When the next thing becomes due, if anything is under way.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let token = self.due.first().map(|(at, _)| *at);
        let prefill = self.prefill.as_ref().map(|p| p.ends);
        token.into_iter().chain(prefill).min().map(Nanos::new)
    }

    /// Totals and present load.
    #[must_use]
    pub fn stats(&self) -> ModelStats {
        ModelStats {
            running: self.held(),
            waiting: self.queue.len(),
            cached_blocks: self.cache.len(),
            ..self.stats
        }
    }

    fn held(&self) -> usize {
        self.decoding.len() + usize::from(self.prefill.is_some())
    }

    /// One event at `at`. Tokens go before a prefill's end of the same instant.
    fn step(&mut self, at: u64, out: &mut Vec<Output>) {
        match self.due.first().copied().filter(|(due, _)| *due == at) {
            Some((_, id)) => self.emit_token(at, id, out),
            None => self.end_prefill(at, out),
        }
        self.start_next(at, out);
    }

    fn start_next(&mut self, at: u64, out: &mut Vec<Output>) {
        if self.prefill.is_some() || self.held() >= self.params.slots.max(1) {
            return;
        }
        let Some(w) = self.queue.pop_front() else { return };
        let hit_blocks = self.cache.leading_hits(&w.arrival.blocks) as u64;
        let hit_tokens = hit_blocks.saturating_mul(self.params.block_tokens);
        let uncached = w.arrival.prompt_tokens.saturating_sub(hit_tokens);
        let prefill_ns = prefill_ns(uncached, self.params.prefill_tokens_per_s);
        self.stats.queried_tokens += w.arrival.prompt_tokens;
        self.stats.hit_tokens += hit_tokens;
        let queue_ns = at.saturating_sub(w.arrived);
        let kind = OutputKind::Started(Start { hit_tokens, queue_ns, prefill_ns });
        out.push(Output { id: w.id, at: Nanos::new(at), kind });
        let ends = at.saturating_add(prefill_ns);
        self.prefill = Some(Prefilling { id: w.id, ends, arrival: w.arrival });
    }

    fn end_prefill(&mut self, at: u64, out: &mut Vec<Output>) {
        let Some(p) = self.prefill.take() else { return };
        self.cache.use_all(&p.arrival.blocks);
        self.stats.prompt_tokens += p.arrival.prompt_tokens;
        let output_tokens = p.arrival.output_tokens.max(1);
        self.decoding.insert(p.id, Decoding { next_index: 0, output_tokens, due: at });
        self.due.insert((at, p.id));
        self.emit_token(at, p.id, out);
    }

    fn emit_token(&mut self, at: u64, id: RequestId, out: &mut Vec<Output>) {
        self.due.remove(&(at, id));
        let interval = self.interval();
        let Some(d) = self.decoding.get_mut(&id) else { return };
        let index = d.next_index;
        let last = index + 1 >= d.output_tokens;
        d.next_index += 1;
        d.due = at.saturating_add(interval);
        let due = d.due;
        out.push(Output { id, at: Nanos::new(at), kind: OutputKind::Token { index, last } });
        self.stats.generated_tokens += 1;
        if last {
            self.decoding.remove(&id);
            self.stats.finished += 1;
        } else {
            self.due.insert((due, id));
        }
    }

    /// The time to the next token, given the requests that decode now.
    fn interval(&self) -> u64 {
        let others = self.decoding.len().saturating_sub(1) as u128;
        let base = u128::from(self.params.decode_interval_ns);
        let extra = base * others * u128::from(self.params.slowdown_ppm) / 1_000_000;
        u64::try_from(base + extra).unwrap_or(u64::MAX)
    }
}

/// Nanoseconds to prefill `tokens`, rounded up.
fn prefill_ns(tokens: u64, tokens_per_s: u64) -> u64 {
    let ns = (u128::from(tokens) * u128::from(NS_PER_S)).div_ceil(u128::from(tokens_per_s.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
