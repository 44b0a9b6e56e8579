//! LoxiLB's receipt of a disaggregated request, wherever an observation shows it.

use protocol::receipt::Receipt;
use serde::{Deserialize, Serialize};

use super::Observation;
use crate::endpoint::Leg;

/// Where a receipt was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptFrom {
    /// The `id` of the response's chunks.
    ResponseId,
    /// The response's `X-Request-Id`.
    ResponseHeader,
    /// The `X-Request-Id` that the gateway sent to the backend.
    RequestHeader,
}

impl Observation {
    /// The receipt, and where it was read. What a client sends itself is none.
    #[must_use]
    pub fn receipt(&self) -> Option<(Receipt, ReceiptFrom)> {
        let record = &self.exchange.response;
        let in_id = record.response_id.as_deref().and_then(Receipt::find);
        let header = record.head.as_ref().and_then(|head| head.request_id.as_deref());
        let sent = self.exchange.request_receipt.filter(|_| self.role.leg() == Leg::Backend);
        let all = [
            (in_id, ReceiptFrom::ResponseId),
            (header.and_then(Receipt::find), ReceiptFrom::ResponseHeader),
            (sent, ReceiptFrom::RequestHeader),
        ];
        all.into_iter().find_map(|(receipt, from)| Some((receipt?, from)))
    }
}
