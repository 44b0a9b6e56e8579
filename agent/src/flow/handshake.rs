//! Round trips that a connection's opening shows, as seen where the agent sits.

use protocol::Nanos;

use crate::capture::Segment;

/// Instants of a connection's opening, all on the interface of its first SYN.
///
/// A repeated SYN or SYN-ACK makes it unknown which copy was answered: then there is no round trip
/// (Karn's algorithm, RFC 6298, section 3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    ifindex: u32,
    syn: Option<Nanos>,
    answer: Option<Nanos>,
    client: Option<Nanos>,
    syn_repeated: bool,
    answer_repeated: bool,
}

impl Handshake {
    /// Takes a segment of the connection.
    pub(super) fn note(&mut self, segment: &Segment<'_>) {
        if self.syn.is_some() && segment.ifindex != self.ifindex || self.client.is_some() {
            return;
        }
        match (segment.flags.syn(), segment.from_endpoint) {
            (true, false) => {
                self.ifindex = segment.ifindex;
                self.syn_repeated |= self.syn.is_some();
                self.syn.get_or_insert(segment.stamp);
            }
            (true, true) => {
                self.answer_repeated |= self.answer.is_some();
                self.answer.get_or_insert(segment.stamp);
            }
            (false, false) if self.answer.is_some() => self.client = Some(segment.stamp),
            (false, _) => {}
        }
    }

    /// From the client's SYN to the endpoint's answer, in nanoseconds: the way from here to the
    /// endpoint and back.
    pub(super) fn endpoint_rtt(&self) -> Option<u64> {
        let known = !self.syn_repeated && !self.answer_repeated;
        self.answer?.get().checked_sub(self.syn?.get()).filter(|_| known)
    }

    /// From the endpoint's answer to the client's next segment, in nanoseconds: the way from here to
    /// the client and back, and whatever the client waited before it spoke.
    pub(super) fn client_rtt_upper_bound(&self) -> Option<u64> {
        let known = !self.answer_repeated;
        self.client?.get().checked_sub(self.answer?.get()).filter(|_| known)
    }
}
