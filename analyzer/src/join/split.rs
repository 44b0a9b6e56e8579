//! Where a request's TTFT went: client, gateway or backend.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::index::Legs;
use crate::records::RequestRecord;
use crate::rundir::Leg;

/// Parts of TTFT over the completed requests that both legs show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TtftSplit {
    /// Client TTFT from sent minus the client leg's TTFT: what the client itself adds.
    pub client: Distribution,
    /// The client leg's TTFT minus the backend leg's: what the gateway adds.
    pub gateway: Distribution,
    /// The backend leg's TTFT.
    pub backend: Distribution,
    /// Request end on the client leg to request end on the backend leg; one agent's clock only.
    pub gateway_request_path: Distribution,
    /// First token on the backend leg to first token on the client leg; one agent's clock only.
    pub gateway_response_path: Distribution,
}

#[derive(Default)]
struct Parts {
    client: Vec<i64>,
    gateway: Vec<i64>,
    backend: Vec<i64>,
    request_path: Vec<i64>,
    response_path: Vec<i64>,
}

impl TtftSplit {
    pub(super) fn of(completed: &[&RequestRecord], legs: &Legs<'_>) -> Self {
        let mut parts = Parts::default();
        for row in completed {
            parts.add(row, legs);
        }
        Self {
            client: Distribution::of_ns(&parts.client),
            gateway: Distribution::of_ns(&parts.gateway),
            backend: Distribution::of_ns(&parts.backend),
            gateway_request_path: Distribution::of_ns(&parts.request_path),
            gateway_response_path: Distribution::of_ns(&parts.response_path),
        }
    }
}

impl Parts {
    fn add(&mut self, row: &RequestRecord, legs: &Legs<'_>) {
        let Some(client) = legs.seen(row.trace_id, Leg::Client) else { return };
        let Some(client_leg) = client.row.ttft_ns() else { return };
        if let Some(whole) = row.ttft_from_sent_ns {
            self.client.push(whole - client_leg);
        }
        let Some(backend) = legs.seen(row.trace_id, Leg::Backend) else { return };
        let Some(backend_leg) = backend.row.ttft_ns() else { return };
        self.gateway.push(client_leg - backend_leg);
        self.backend.push(backend_leg);
        if client.agent == backend.agent {
            self.request_path.extend(gap(client.row.request_end_ns, backend.row.request_end_ns));
            self.response_path.extend(gap(backend.row.first_token_ns, client.row.first_token_ns));
        }
    }
}

fn gap(earlier: Option<u64>, later: Option<u64>) -> Option<i64> {
    i64::try_from(i128::from(later?) - i128::from(earlier?)).ok()
}
