//! Where the time to a request's first token went, on one clock.

use protocol::Nanos;
use protocol::receipt::Phase;
use serde::Serialize;

use super::pair::Pair;
use super::row::LegRow;

/// What most of the time to first token is put down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The client or the network to it.
    ClientNetwork,
    /// The gateway: choosing, forwarding, relaying.
    Gateway,
    /// The backends that served the request.
    Backend,
    /// The network between gateway and backends.
    NetworkBetween,
    /// Attempts that failed before the one that served.
    Retries,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 5] =
        [Self::ClientNetwork, Self::Gateway, Self::Backend, Self::NetworkBetween, Self::Retries];

    /// Its name in rows.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::ClientNetwork => "client_network",
            Self::Gateway => "gateway",
            Self::Backend => "backend",
            Self::NetworkBetween => "network_between",
            Self::Retries => "retries",
        }
    }
}

/// Parts of the time to first token, in nanoseconds. Gateway, backend, network between and retries add
/// up to the client leg's TTFT, where the parts of different legs do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Split {
    /// First to last byte of the client's request, and one round trip to it.
    pub client_network_ns: i64,
    /// Request end on the client leg to request end on the first backend leg, prefill's end to the
    /// decode request, and first token on the backend leg to first token on the client leg.
    pub gateway_ns: i64,
    /// Request end to response on the legs that served, without their network.
    pub backend_ns: i64,
    /// A round trip on each leg that served, and from its request's last byte to that byte's last
    /// repetition.
    pub network_between_ns: i64,
    /// First request to a backend that did not serve, up to the request to the one that did.
    pub retries_ns: i64,
    /// The largest of them.
    pub cause: Cause,
}

/// A span of a backend leg: its own time, and what of it the network took.
#[derive(Clone, Copy, Default)]
struct Served {
    backend: i64,
    network: i64,
}

impl Served {
    /// `end` ends the span that began with the request's last byte.
    fn of(leg: &LegRow, end: Nanos) -> Option<Self> {
        let start = leg.request_end_ns?;
        let whole = end.since(start).max(0);
        let round_trip = leg.handshake_rtt_ns.and_then(|rtt| i64::try_from(rtt).ok()).unwrap_or(0);
        let resent = leg.request_resent_ns.map_or(0, |resent| resent.since(start).max(0));
        let network = round_trip.saturating_add(resent).min(whole);
        Some(Self { backend: whole - network, network })
    }
}

impl Split {
    /// Nothing where a stamp is missing, or no first token came.
    #[must_use]
    pub fn of(pair: &Pair) -> Option<Self> {
        let client = &pair.client;
        let (asked, told) = (client.request_end_ns?, client.first_token_ns?);
        let decode = pair.serving()?;
        let (decode_asked, decode_told) = (decode.request_end_ns?, decode.first_token_ns?);
        let first_asked = pair.backends.first()?.0.request_end_ns?;
        // A prefill that runs beside its decode, as SGLang's does, is within the decode's time.
        let prefill = pair
            .leg(Phase::Prefill)
            .filter(|leg| leg.framing_end_ns.is_some_and(|end| end <= decode_asked));
        let (serving_asked, prefilled, handoff) = match prefill {
            Some(leg) => {
                let end = leg.framing_end_ns?;
                (leg.request_end_ns?, Served::of(leg, end)?, decode_asked.since(end))
            }
            None => (decode_asked, Served::default(), 0),
        };
        let decoded = Served::of(decode, decode_told)?;
        let gateway = first_asked.since(asked) + handoff + told.since(decode_told);
        Some(Self::caused(
            client_network(client)?,
            gateway.max(0),
            prefilled.backend + decoded.backend,
            prefilled.network + decoded.network,
            serving_asked.since(first_asked).max(0),
        ))
    }

    fn caused(client: i64, gateway: i64, backend: i64, between: i64, retries: i64) -> Self {
        let parts = [client, gateway, backend, between, retries];
        let largest = parts.iter().zip(Cause::ALL).max_by_key(|(part, _)| **part);
        Self {
            client_network_ns: client,
            gateway_ns: gateway,
            backend_ns: backend,
            network_between_ns: between,
            retries_ns: retries,
            cause: largest.map_or(Cause::Backend, |(_, cause)| cause),
        }
    }

    /// What the client waited, in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> i64 {
        self.client_network_ns
            + self.gateway_ns
            + self.backend_ns
            + self.network_between_ns
            + self.retries_ns
    }
}

fn client_network(client: &LegRow) -> Option<i64> {
    let upload = client.request_end_ns?.since(client.request_first_ns?).max(0);
    let round_trip = client.client_rtt_upper_bound_ns.and_then(|rtt| i64::try_from(rtt).ok());
    Some(upload.saturating_add(round_trip.unwrap_or(0)))
}
