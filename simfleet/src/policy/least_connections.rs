//! The endpoint with the fewest requests in flight.

use super::{Choice, EndpointLoad, Lookup, Policy, RequestView};

/// Takes the least loaded usable endpoint; equal ones in turn.
#[derive(Debug, Default)]
pub struct LeastConnections {
    next: usize,
}

impl LeastConnections {
    /// The least loaded usable endpoint. Starting behind the last choice keeps an idle fleet from
    /// sending everything to its first endpoint.
    pub(super) fn pick(&mut self, endpoints: &[EndpointLoad]) -> Option<usize> {
        let n = endpoints.len();
        let usable = (0..n)
            .map(|step| (self.next + step) % n)
            .filter_map(|i| endpoints.get(i).filter(|e| e.usable).map(|e| (i, e.in_flight)));
        let (endpoint, _) = usable.min_by_key(|(_, in_flight)| *in_flight)?;
        self.next = (endpoint + 1) % n;
        Some(endpoint)
    }
}

impl Policy for LeastConnections {
    fn choose(&mut self, _: RequestView<'_>, endpoints: &[EndpointLoad]) -> Option<Choice> {
        let endpoint = self.pick(endpoints)?;
        Some(Choice { endpoint, lookup: Lookup::NotAsked })
    }
}
