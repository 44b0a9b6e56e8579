//! Builds responses as bytes, each piece ready for one write.

/// The reason phrase of the statuses that the fleet sends (RFC 9110 15).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Error",
    }
}

/// The status line and the fields that every answer has.
fn head(status: u16, content_type: &str) -> String {
    let reason = reason(status);
    format!("HTTP/1.1 {status} {reason}\r\nserver: simfleet\r\ncontent-type: {content_type}\r\n")
}

fn connection(keep_alive: bool) -> &'static str {
    if keep_alive { "" } else { "connection: close\r\n" }
}

/// A whole response with `Content-Length`. `extra` holds more fields, each ended by CRLF.
pub(crate) fn fixed(
    status: u16,
    content_type: &str,
    extra: &str,
    keep_alive: bool,
    body: &str,
) -> Vec<u8> {
    let (head, connection) = (head(status, content_type), connection(keep_alive));
    let length = body.len();
    format!("{head}{extra}{connection}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// A whole response that ends with the connection, as LoxiLB sends its own errors.
pub(crate) fn close_delimited(status: u16, content_type: &str, body: &str) -> Vec<u8> {
    let head = head(status, content_type);
    format!("{head}connection: close\r\n\r\n{body}").into_bytes()
}

/// The head of a streamed answer in chunked transfer coding.
pub(crate) fn stream_head(keep_alive: bool) -> Vec<u8> {
    let (head, connection) =
        (head(200, "text/event-stream; charset=utf-8"), connection(keep_alive));
    format!("{head}cache-control: no-cache\r\n{connection}transfer-encoding: chunked\r\n\r\n")
        .into_bytes()
}

/// One chunk of a chunked body (RFC 9112 7.1); an empty one ends the body.
pub(crate) fn chunk(payload: &str) -> Vec<u8> {
    format!("{:x}\r\n{payload}\r\n", payload.len()).into_bytes()
}
