//! How much of a request is copied.

use agent_ebpf::endpoint::{FlowKey, RequestBudget};

use super::maps::{BUDGETS, OPTIONS};

/// How much of `payload_len` bytes is copied: what is left of the request's budget. A request begins
/// where the client acknowledges more than before, so that responses need no entry looked up.
#[inline(always)]
pub(super) fn request(key: &FlowKey, ack: u32, payload_len: u32) -> u32 {
    if payload_len == 0 {
        return 0;
    }
    let Some(options) = OPTIONS.get(0) else { return payload_len };
    let Some(budget) = BUDGETS.get_ptr_mut(key) else {
        let copied = payload_len.min(options.request_bytes);
        // A full table refuses nothing in an LRU map; if it did, more would be copied.
        let _ = BUDGETS.insert(key, RequestBudget { ack, copied }, 0);
        return copied;
    };
    // SAFETY: the value of a preallocated map is always valid memory of this type; a race with
    // another CPU only changes how much is copied.
    let budget = unsafe { &mut *budget };
    let before = if budget.ack == ack { budget.copied } else { 0 };
    let copied = payload_len.min(options.request_bytes.saturating_sub(before));
    *budget = RequestBudget { ack, copied: before + copied };
    copied
}
