//! The request head as the backend gets it.

use crate::http::{Head, Request};

/// Fields that concern one hop only (RFC 9110 7.6.1), and those that are written anew.
const NOT_FORWARDED: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "expect",
];

/// Head and body for the backend: every end-to-end field as it came, and whether the connection is kept.
pub(super) fn for_backend(request: &Request, keep: bool) -> Vec<u8> {
    let head = &request.head;
    let mut bytes = format!("{} {} HTTP/1.1\r\n", head.method, head.target).into_bytes();
    for (name, value) in head.fields.iter().filter(|(name, _)| forwarded(head, name)) {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    if !request.body.is_empty() || head.method != "GET" {
        bytes.extend_from_slice(format!("content-length: {}\r\n", request.body.len()).as_bytes());
    }
    bytes.extend_from_slice(if keep { b"\r\n" } else { &b"connection: close\r\n\r\n"[..] });
    bytes.extend_from_slice(&request.body);
    bytes
}

fn forwarded(head: &Head, name: &str) -> bool {
    let listed = head.field("connection").unwrap_or("");
    let named = listed.split(',').any(|token| token.trim().eq_ignore_ascii_case(name));
    !named && !NOT_FORWARDED.iter().any(|n| name.eq_ignore_ascii_case(n))
}

#[cfg(test)]
mod tests {
    use super::for_backend;
    use crate::http::Connection;

    #[tokio::test]
    async fn end_to_end_fields_pass_and_hop_by_hop_fields_do_not() {
        let request = b"POST /v1/x HTTP/1.1\r\nHost: vip\r\ntraceparent: 00-a-b-00\r\n\
            Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTransfer-Encoding: chunked\r\n\r\n\
            2\r\nhi\r\n0\r\n\r\n";
        let parsed = Connection::new(&request[..]).request(&mut Vec::new()).await.unwrap();
        let text = String::from_utf8(for_backend(&parsed, false)).unwrap();
        assert_eq!(
            text,
            "POST /v1/x HTTP/1.1\r\nHost: vip\r\ntraceparent: 00-a-b-00\r\n\
             content-length: 2\r\nconnection: close\r\n\r\nhi"
        );
        let kept = String::from_utf8(for_backend(&parsed, true)).unwrap();
        assert!(kept.ends_with("content-length: 2\r\n\r\nhi"), "{kept}");
    }
}
