//! Every endpoint in turn.

use super::{Choice, EndpointLoad, Lookup, MissReason, Policy, Prompt, RequestView};

/// Takes usable endpoints in order, one per request.
#[derive(Debug, Default)]
pub struct RoundRobin {
    next: usize,
    falling_back: bool,
}

impl RoundRobin {
    /// Starts at the first endpoint.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, in the place of a cache-aware policy whose index never matches: every lookup misses
    /// as it does in LoxiLB when the gateway's block hashes differ from the engine's.
    #[must_use]
    pub fn falling_back() -> Self {
        Self { next: 0, falling_back: true }
    }

    fn lookup(&self, prompt: Prompt<'_>) -> Lookup {
        match prompt {
            _ if !self.falling_back => Lookup::NotAsked,
            Prompt::None => Lookup::NotAsked,
            Prompt::Unread => Lookup::Miss(MissReason::TextEmpty),
            Prompt::Blocks([]) => Lookup::Miss(MissReason::Hashes),
            Prompt::Blocks(_) => Lookup::Miss(MissReason::NoWorker),
        }
    }
}

impl Policy for RoundRobin {
    fn choose(&mut self, request: RequestView<'_>, endpoints: &[EndpointLoad]) -> Option<Choice> {
        let n = endpoints.len();
        let turns = (0..n).map(|step| (self.next + step) % n);
        let endpoint = turns.into_iter().find(|i| endpoints.get(*i).is_some_and(|e| e.usable))?;
        self.next = (endpoint + 1) % n;
        Some(Choice { endpoint, lookup: self.lookup(request.prompt) })
    }
}
