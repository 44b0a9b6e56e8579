//! Hard bounds on what flows may keep.

/// Bounds; whatever exceeds one is given up and counted, never kept silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Bytes parked behind a hole, per direction of a connection.
    pub parked_per_stream: usize,
    /// Bytes parked behind holes in all.
    pub parked_total: usize,
    /// Connections tracked at a time.
    pub connections: usize,
    /// Closed connections remembered, so that late segments do not look like a new one.
    pub closed: usize,
    /// Requests outstanding on one connection.
    pub pipeline: usize,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            parked_per_stream: 256 * 1024,
            parked_total: 64 * 1024 * 1024,
            connections: 32 * 1024,
            closed: 16 * 1024,
            pipeline: 32,
        }
    }
}

/// Bytes parked by all streams together.
#[derive(Debug)]
pub(super) struct Budget {
    used: usize,
    limits: FlowLimits,
}

/// What every piece parked costs beyond its bytes.
pub(super) const PIECE_COST: usize = 64;

impl Budget {
    pub(super) fn new(limits: FlowLimits) -> Self {
        Self { used: 0, limits }
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.used += bytes;
    }

    pub(super) fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Whether a stream that has parked `by_stream` bytes must let go of some.
    pub(super) fn exceeded(&self, by_stream: usize) -> bool {
        by_stream > self.limits.parked_per_stream || self.used > self.limits.parked_total
    }

    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used
    }
}
