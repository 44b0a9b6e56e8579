//! Windows end with the interest in them: a client that was killed must not hold one for good.

use protocol::Nanos;

use super::Engine;
use crate::window::WindowError;

impl Engine {
    /// Number of the window that somebody calls about now.
    pub(super) fn window(&mut self, id: &str) -> Result<u64, WindowError> {
        let now = self.config.clock.now();
        self.expire_windows(now);
        self.windows.renew(id, now)
    }

    /// Gives up the windows that nobody called about for as long as their leases.
    pub(super) fn expire_windows(&mut self, now: Nanos) {
        for key in self.windows.expire(now) {
            self.inflight.forget(key);
            tracing::info!(window = key, "a window's lease ran out: it was given up");
        }
    }
}
