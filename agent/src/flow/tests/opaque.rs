//! TLS, HTTP/2 and tunnels: one observation a connection, with its bytes and first-byte instants.

use super::*;

const HELLO: &[u8] = &[0x16, 0x03, 0x01, 0x00, 0x03, 0x01, 0x00, 0x00];
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n\
    Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
const SWITCHING: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";

#[test]
fn every_byte_of_an_opaque_connection_is_counted_in_both_directions() {
    let mut talk = Talk::open();
    talk.request(HELLO).request(&[7; 500]).response(&[0x16; 900]);
    for _ in 0..20 {
        talk.request(b"GET /x HTTP/1.1\r\n\r\n").response(&[9; 1000]);
    }
    talk.client_fin().response(&[1; 50]).endpoint_fin();
    let end = talk.stamp;
    let mut told = Told::of(&talk.packets);
    let exchange = told.one();
    assert_eq!(exchange.request_bytes, 508 + 20 * 19);
    assert_eq!(exchange.response.bytes, 900 + 20 * 1000 + 50);
    assert_eq!(exchange.request_first, ns(talk.packets[2].stamp));
    assert_eq!(exchange.response.first_byte, ns(talk.packets[4].stamp));
    assert_eq!(exchange.end, ns(end));
    assert_eq!(exchange.segments, 2 + 1 + 40 + 1);
    assert_eq!(Outcome::of(&exchange), Outcome::Opaque);
    assert_eq!((told.started.len(), told.ended.len()), (1, 1));
    assert_eq!(told.table.stats().opaque_connections, 1);
}

#[test]
fn an_opaque_connection_is_nobodys_request_in_flight_once_answered() {
    let mut talk = Talk::open();
    talk.request(HELLO);
    let mut told = Told::of(&talk.packets);
    assert_eq!(told.table.open_requests().count(), 1);
    talk.response(HELLO);
    told.take(&talk.packets[3..]);
    assert_eq!(told.table.open_requests().count(), 0);
    assert_eq!(told.ended, [talk.stamp]);
    assert!(told.finished.is_empty(), "it may carry more");
}

#[test]
fn a_closing_window_gets_what_was_carried_so_far_and_no_second_row_follows() {
    let mut talk = Talk::open();
    talk.request(HELLO).response(HELLO);
    let mut told = Told::of(&talk.packets);
    let exchange = told.one();
    assert_eq!((exchange.request_bytes, exchange.response.bytes, exchange.end), (8, 8, None));
    talk.request(b"more").response(b"more").client_fin().endpoint_fin();
    told.take(&talk.packets[4..]);
    assert_eq!(told.finished.len(), 1);
    assert_eq!(told.table.connections(), 0);
}

#[test]
fn an_upgrade_to_http2_without_tls_is_recognised() {
    let mut talk = Talk::open();
    talk.request(UPGRADE).response(&[SWITCHING, b"frames"].concat());
    talk.request(PREFACE).response(b"more").client_fin().endpoint_fin();
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(exchange.opaque, Some(Opaque::Http2));
    assert_eq!(exchange.request_bytes, (UPGRADE.len() + PREFACE.len()) as u64);
    assert_eq!(exchange.response.bytes, (SWITCHING.len() + 10) as u64);
}

#[test]
fn an_upgrade_that_the_endpoint_ignores_leaves_plain_http() {
    let mut talk = Talk::open();
    talk.request(UPGRADE).response(&stream(2)).request(&post(2, "")).response(&stream(2));
    let mut told = Told::of(&talk.packets);
    told.flush();
    assert_eq!(told.outcomes(), [Outcome::Ok, Outcome::Ok]);
}

#[test]
fn requests_sent_behind_a_tunnel_are_part_of_it() {
    let mut talk = Talk::open();
    let connect = b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n";
    talk.request(connect).response(b"HTTP/1.1 200 OK\r\n\r\n");
    talk.request(&post(1, "")).response(&stream(3)).reset(false);
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(exchange.opaque, Some(Opaque::Tunnel));
    assert_eq!(exchange.request_bytes, (connect.len() + post(1, "").len()) as u64);
    assert_eq!(exchange.closed_by, Some(Side::Client));
}

#[test]
fn an_opaque_connection_that_was_never_answered_still_has_its_row() {
    let mut talk = Talk::open();
    talk.request(HELLO).reset(true);
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(exchange.opaque, Some(Opaque::Tls));
    assert_eq!((exchange.request_bytes, exchange.response.bytes), (8, 0));
    assert_eq!(exchange.response.first_byte, None);
}

#[test]
fn bytes_that_were_lost_or_not_copied_are_counted_too() {
    let mut talk = Talk::open();
    talk.request(HELLO).response(HELLO).request(&[1; 700]).response(&[2; 900]);
    talk.request(&[3; 100]).response(&[4; 100]).client_fin().endpoint_fin();
    talk.packets[4] = talk.packets[4].clone().uncopied();
    talk.packets.remove(5);
    let exchange = Told::of(&talk.packets).one();
    assert_eq!((exchange.request_bytes, exchange.response.bytes), (808, 1008));
}
