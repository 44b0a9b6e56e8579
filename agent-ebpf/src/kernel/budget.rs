//! How much of a packet is copied.

use agent_ebpf::endpoint::FlowKey;

use super::maps::{BUDGETS, REQUEST_BUDGET};

/// A response: all of it. It also re-arms the budget of the next request on the connection.
#[inline(always)]
pub(super) fn response(key: &FlowKey, payload_len: u32) -> u32 {
    if payload_len != 0 {
        rearm(key);
    }
    payload_len
}

/// A new connection on ports that were used before starts with a full budget.
#[inline(always)]
pub(super) fn rearm(key: &FlowKey) {
    if let Some(used) = BUDGETS.get_ptr_mut(key) {
        // SAFETY: the value of a preallocated map is always valid memory of this type; a race with
        // another CPU only changes how much is copied.
        unsafe { *used = 0 };
    }
}

/// A request: what is left of the budget.
#[inline(always)]
pub(super) fn request(key: &FlowKey, payload_len: u32) -> u32 {
    if payload_len == 0 {
        return 0;
    }
    let budget = REQUEST_BUDGET.load();
    let Some(used) = BUDGETS.get_ptr_mut(key) else {
        let copied = payload_len.min(budget);
        // A full table refuses nothing in an LRU map; if it did, more would be copied.
        let _ = BUDGETS.insert(key, copied, 0);
        return copied;
    };
    // SAFETY: as in `rearm`.
    let before = unsafe { *used };
    let copied = payload_len.min(budget.saturating_sub(before));
    // SAFETY: as in `rearm`.
    unsafe { *used = before + copied };
    copied
}
