//! What every call goes through, whatever it is about.

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::error::ApiError;
use super::{MAX_BODY, State};

/// Reads the body whole before anything is done with it: within its size, and within its time.
pub(super) async fn read_body(
    Shared(state): Shared<State>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let reading = axum::body::to_bytes(body, MAX_BODY);
    match tokio::time::timeout(state.limits.body_timeout, reading).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok(Err(_)) => ApiError::LargeBody.into_response(),
        Err(_) => ApiError::SlowBody.into_response(),
    }
}

/// Labels and codes of answers must never be taken for a page by a browser.
pub(super) async fn no_sniffing(mut response: Response) -> Response {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
