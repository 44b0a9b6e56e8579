//! Responses that end with their head, and heads before the response (RFC 9110, section 15; RFC 9112,
//! section 6.3).

use super::*;

fn request(method: &str) -> Vec<u8> {
    format!("{method} /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes()
}

/// `first` answers a request of this method; a stream follows on the same connection. In one
/// segment, a response read too far would swallow the stream's head.
fn then_a_stream(method: &str, first: &[u8]) -> [FinishedExchange; 2] {
    let mut talk = Talk::open();
    talk.request(&[request(method), post(2, "")].concat());
    talk.response(&[first, &stream(2)].concat());
    let mut told = Told::of(&talk.packets);
    told.flush();
    assert_eq!(told.table.stats().unassigned_bytes, 0);
    told.finished.try_into().unwrap()
}

#[test]
fn a_response_to_head_has_no_body_whatever_its_length_says() {
    let heads: [&[u8]; 2] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ];
    for head in heads {
        let [first, second] = then_a_stream("HEAD", head);
        assert_eq!(first.framing(), protocol::http1::Framing::Valid);
        assert_eq!(first.response.bytes, head.len() as u64);
        assert_eq!(Outcome::of(&second), Outcome::Ok);
    }
}

#[test]
fn no_content_and_not_modified_have_no_body() {
    let heads: [(u16, &[u8]); 2] = [
        (204, b"HTTP/1.1 204 No Content\r\n\r\n"),
        (304, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n"),
    ];
    for (status, head) in heads {
        let [first, second] = then_a_stream("GET", head);
        assert_eq!(first.response.status(), Some(status));
        assert_eq!(first.framing(), protocol::http1::Framing::Valid, "{status}");
        assert_eq!(Outcome::of(&first), Outcome::HttpStatus);
        assert_eq!(Outcome::of(&second), Outcome::Ok);
    }
}

#[test]
fn early_hints_come_before_the_response_and_are_none() {
    let mut talk = Talk::open();
    talk.request(&post(1, ""));
    talk.response(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n");
    talk.response(b"HTTP/1.1 103 Early Hints\r\nContent-Length: 7\r\n\r\n");
    talk.response(&stream(2));
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(exchange.response.interim_responses, 2);
    assert_eq!(exchange.response.status(), Some(200));
    // What the client got first was a hint, what it asked for came with the third segment.
    assert_eq!(exchange.response.first_byte, ns(talk.packets[3].stamp));
    assert_eq!(exchange.response.head.as_ref().map(|it| it.stamp), ns(talk.packets[5].stamp));
    assert_eq!(exchange.response.first_token, ns(talk.packets[5].stamp));
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
}

#[test]
fn a_response_whose_request_was_lost_is_never_invalid() {
    // Only the request tells that it was HEAD: without it a whole stream seems to be the body.
    let mut talk = Talk::open();
    talk.request(&request("HEAD"))
        .response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    talk.request(&post(2, "")).response(&stream(2)).client_fin().endpoint_fin();
    talk.packets.remove(2);
    let mut told = Told::of(&talk.packets);
    told.flush();
    assert_eq!(told.outcomes(), [Outcome::Unknown, Outcome::Ok]);
}
