//! The rule by which socket states become a gauge.

/// States of a connection that exists: ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK,
/// CLOSING (`include/net/tcp_states.h`).
const CONNECTED: [u8; 6] = [1, 4, 5, 8, 9, 11];

/// Whether a socket in `state` is a connection.
pub(super) fn is_connected(state: u8) -> bool {
    CONNECTED.contains(&state)
}

/// What a transition changes: 1 when it enters the connected states, -1 when it leaves them. Needs
/// no table of sockets, so that no full table can break the gauge.
#[must_use]
pub fn gauge_change(old_state: u8, new_state: u8) -> Option<i64> {
    match (is_connected(old_state), is_connected(new_state)) {
        (false, true) => Some(1),
        (true, false) => Some(-1),
        _ => None,
    }
}
