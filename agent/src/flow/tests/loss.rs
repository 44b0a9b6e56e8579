//! Bytes that were not copied, and bytes that were lost.

use super::*;

#[test]
fn the_end_of_a_request_is_found_although_its_body_was_not_copied() {
    let request = post(1, &"x".repeat(10_000));
    let mut talk = Talk::open();
    talk.request(&request[..200]).request(&request[200..5000]).request(&request[5000..]);
    talk.response(&stream(2));
    // The budget ended within the second segment; the third is a header only.
    talk.packets[3].payload.truncate(100);
    talk.packets[4] = talk.packets[4].clone().uncopied();
    let end = talk.packets[4].stamp;
    let mut told = Told::of(&talk.packets);
    let exchange = told.one();
    assert_eq!(exchange.request_end, ns(end));
    assert_eq!(exchange.request_bytes, request.len() as u64);
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
    assert_eq!(told.table.stats().gaps, 0);
}

#[test]
fn a_cut_last_segment_ends_the_request_when_the_endpoint_answers() {
    let request = post(1, &"x".repeat(10_000));
    let mut talk = Talk::open();
    talk.request(&request);
    talk.last().payload.truncate(4096);
    let mut told = Told::of(&talk.packets);
    assert_eq!(told.table.open_requests().count(), 1);
    talk.response(&stream(1));
    told.take(&talk.packets[3..]);
    let exchange = told.one();
    assert_eq!(exchange.request_end, ns(talk.packets[2].stamp));
}

#[test]
fn a_lost_request_segment_leaves_its_end_unknown_and_the_response_judged() {
    let request = post(1, &"x".repeat(3000));
    let mut talk = Talk::open();
    talk.request(&request[..2000]).request(&request[2000..]);
    talk.response(&stream(2));
    talk.packets.remove(3);
    let mut told = Told::of(&talk.packets);
    let exchange = told.one();
    assert_eq!(exchange.request_end, None);
    assert!(exchange.request_first.is_some());
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
    assert_eq!(told.table.stats().gaps, 1);
}

#[test]
fn a_request_lost_whole_leaves_an_observation_without_its_instants() {
    let mut talk = Talk::open();
    talk.request(&post(1, "hello")).response(&stream(2)).client_fin().endpoint_fin();
    talk.packets.remove(2);
    let mut told = Told::of(&talk.packets);
    let exchange = told.one();
    assert_eq!((exchange.request_first, exchange.request_end), (None, None));
    assert_eq!(exchange.trace_id, None);
    assert_eq!(told.started.len(), told.ended.len());
}

#[test]
fn a_hole_is_known_as_soon_as_the_peer_has_acknowledged_it() {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(HEAD).response(&token()).response(&token());
    talk.packets.remove(4);
    let mut told = Told::of(&talk.packets);
    assert_eq!(told.table.stats().gaps, 0, "it may still be on its way");
    talk.client_fin();
    told.take([talk.last().clone()].iter());
    assert_eq!(told.table.stats().gaps, 1);
    talk.endpoint_fin();
    told.take([talk.last().clone()].iter());
    assert_eq!(Outcome::of(&told.one()), Outcome::Unknown);
}

#[test]
fn a_hole_that_nobody_acknowledges_is_given_up_in_time() {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(HEAD).response(&token()).client_fin();
    // The client's FIN came before the lost token and the endpoint's FIN.
    talk.response(&token()).endpoint_fin();
    talk.packets.remove(6);
    let mut told = Told::of(&talk.packets);
    assert_eq!(told.table.connections(), 1);
    told.settle(talk.stamp + 100_000_000);
    assert_eq!(told.table.stats().gaps, 0);
    told.settle(talk.stamp + 4_000_000_000);
    assert_eq!(told.table.stats().gaps, 1);
    assert_eq!(told.table.connections(), 0);
    assert_eq!(told.outcomes(), [Outcome::Unknown]);
}

#[test]
fn a_connection_resumes_at_the_next_request_after_a_loss() {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(&stream(3));
    talk.request(&post(2, "")).response(&stream(3));
    talk.request(&post(3, "")).response(&stream(3));
    let half = talk.packets[3].payload.len() / 2;
    let whole = talk.packets[3].clone();
    talk.packets[3] = Packet::new(whole.stamp, true, whole.seq, whole.ack, &whole.payload[..half]);
    let mut told = Told::of(&talk.packets);
    told.flush();
    assert_eq!(told.outcomes(), [Outcome::Unknown, Outcome::Ok, Outcome::Ok]);
    assert!(told.finished[1].doubtful);
    assert!(!told.finished[2].doubtful, "a whole message proves that it is in step");
}

#[test]
fn a_loss_inside_a_request_head_makes_nothing_invalid() {
    let request = post(1, "");
    let mut talk = Talk::open();
    talk.request(&request[..10]).request(&request[10..60]).request(&request[60..]);
    talk.response(&stream(2)).request(&post(2, "")).response(&stream(2));
    talk.packets.remove(3);
    let mut told = Told::of(&talk.packets);
    told.flush();
    assert_eq!(told.outcomes(), [Outcome::Ok, Outcome::Ok]);
    assert_eq!(told.finished[0].trace_id, None);
    assert!(told.finished[1].trace_id.is_some());
}

/// A body that was not copied hides where its request ended: the next one is found by its request line, in
/// whatever form and behind whatever line ends it comes.
#[test]
fn after_an_unseen_body_every_form_of_request_line_is_found() {
    for line in ["\r\nPOST /v1/x", "POST http://gateway/v1/x", "OPTIONS *"] {
        let mut talk = Talk::open();
        let head = "POST /v1/x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        talk.request(head.as_bytes()).request(&[b'x'; 5_000]);
        *talk.last() = talk.last().clone().uncopied();
        talk.response(&stream(2));
        talk.request(format!("{line} HTTP/1.1\r\ncontent-length: 0\r\n\r\n").as_bytes());
        talk.response(&stream(3));
        let mut told = Told::of(&talk.packets);
        told.flush();
        assert_eq!(told.finished.len(), 2, "{line:?}");
        assert_eq!(Outcome::of(&told.finished[1]), Outcome::Ok, "{line:?}");
        assert_eq!(told.table.stats().unassigned_bytes, 0, "{line:?}");
    }
}

#[test]
fn connections_older_than_the_agent_begin_at_a_request_line() {
    let mut talk = Talk::silent(1000, 5000, 0);
    talk.response(&token()).response(LAST_CHUNK);
    talk.request(&post(1, "")).response(&stream(2));
    let mut told = Told::of(&talk.packets);
    let exchange = told.one();
    assert!(exchange.adopted && exchange.doubtful);
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
    assert_eq!(told.table.stats().adopted_segments, 4);
    assert!(told.table.stats().unassigned_bytes > 0);
}

#[test]
fn an_adopted_connection_is_never_invalid() {
    let mut talk = Talk::silent(1000, 5000, 0);
    talk.request(b"rest of a body").request(&post(1, ""));
    talk.response(b"rest of a body that is no response\r\n\r\n").endpoint_fin();
    let mut told = Told::of(&talk.packets);
    told.flush();
    assert_eq!(told.outcomes(), [Outcome::Unknown]);
}
