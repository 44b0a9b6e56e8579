//! Keep-alive, pipelining, interim responses, and what is not HTTP/1.

use super::*;

#[test]
fn a_thousand_requests_on_one_connection_are_a_thousand_observations() {
    let mut talk = Talk::open();
    for _ in 0..1000 {
        talk.request(&post(1, "a")).response(&stream(2));
    }
    let mut told = Told::of(&talk.packets);
    told.flush();
    let indices: Vec<_> = told.finished.iter().map(|it| it.index).collect();
    assert_eq!(indices, (0..1000).collect::<Vec<_>>());
    assert!(told.outcomes().iter().all(|it| *it == Outcome::Ok));
    assert!(told.finished.iter().all(|it| it.segments == 2));
}

#[test]
fn pipelined_requests_get_their_responses_in_order() {
    let mut talk = Talk::open();
    let requests: Vec<u8> = (1..=3).flat_map(|number| post(number, "abc")).collect();
    talk.request(&requests);
    talk.response(&[stream(1), stream(2), stream(3)].concat());
    let mut told = Told::of(&talk.packets);
    told.flush();
    let seen: Vec<_> = told
        .finished
        .iter()
        .map(|it| (it.trace_id.unwrap().bytes()[15], it.response.token_events))
        .collect();
    assert_eq!(seen, [(1, 1), (2, 2), (3, 3)]);
}

#[test]
fn interim_responses_and_early_answers_belong_to_their_request() {
    let request = post(1, "0123456789");
    let (head, body) = request.split_at(request.len() - 10);
    let mut talk = Talk::open();
    talk.request(head).response(b"HTTP/1.1 100 Continue\r\n\r\n").request(body);
    talk.response(&stream(2));
    // The answer to the second comes before its body.
    talk.request(head).response(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    talk.request(body).request(&post(3, "")).response(&stream(2));
    let mut told = Told::of(&talk.packets);
    told.flush();
    assert_eq!(told.outcomes(), [Outcome::Ok, Outcome::HttpStatus, Outcome::Ok]);
    assert_eq!(told.finished[0].response.interim_responses, 1);
    assert!(told.finished[1].request_end > told.finished[1].end);
}

#[test]
fn bytes_after_a_response_that_nobody_asked_for_break_its_framing() {
    for apart in [false, true] {
        let mut talk = Talk::open();
        talk.request(&post(1, ""));
        if apart {
            talk.response(&stream(2)).response(b"HTTP/1.1 200 OK\r\n\r\n");
        } else {
            talk.response(&[stream(2), b"x".to_vec()].concat());
        }
        let exchange = Told::of(&talk.packets).one();
        assert_eq!(Outcome::of(&exchange), Outcome::Framing, "{apart}");
    }
}

#[test]
fn a_complete_request_is_told_a_moment_later_even_on_an_idle_connection() {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(&stream(2));
    let mut told = Told::of(&talk.packets);
    assert_eq!((told.finished.len(), told.ended.len()), (0, 1));
    told.settle(talk.stamp + 30_000_000);
    assert_eq!(told.outcomes(), [Outcome::Ok]);
}

#[test]
fn empty_lines_between_requests_are_nobodys() {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(&stream(1)).request(b"\r\n");
    let mut told = Told::of(&talk.packets);
    told.flush();
    assert_eq!(told.started.len(), 1);
}

#[test]
fn other_protocols_are_opaque_and_counted() {
    let tls: &[u8] = &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01];
    let cases: [(&[u8], &[u8], Opaque); 4] = [
        (tls, &[0x16, 0x03, 0x03], Opaque::Tls),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0\0\x06\x04", Opaque::Http2),
        (
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
            Opaque::Tunnel,
        ),
        (
            b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
            Opaque::Tunnel,
        ),
    ];
    for (request, response, opaque) in cases {
        for split in [1, request.len()] {
            let mut talk = Talk::open();
            request.chunks(split).for_each(|part| {
                talk.request(part);
            });
            talk.response(response).request(b"POST / HTTP/1.1\r\n\r\n").response(b"anything");
            talk.client_fin().endpoint_fin();
            let mut told = Told::of(&talk.packets);
            let exchange = told.one();
            assert_eq!(exchange.opaque, Some(opaque), "{split}");
            assert_eq!(Outcome::of(&exchange), Outcome::Opaque);
            assert!(exchange.response.first_byte.is_some());
            assert_eq!(told.table.stats().opaque_connections, 1);
            assert_eq!((told.started.len(), told.ended.len()), (1, 1));
        }
    }
}

#[test]
fn a_request_that_merely_begins_like_another_protocol_is_read() {
    let mut talk = Talk::open();
    let request = b"PRI /x HTTP/1.1\r\nHost: x\r\n\r\n";
    talk.request(request).response(&stream(2));
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
}
