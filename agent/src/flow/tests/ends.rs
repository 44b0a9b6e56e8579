//! SYN, FIN and RST in every order.

use super::*;

fn begun() -> Talk {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(HEAD).response(&token());
    talk
}

#[test]
fn who_ends_a_response_early_decides_its_class() {
    let close = |end: fn(&mut Talk)| {
        let mut talk = begun();
        end(&mut talk);
        let mut told = Told::of(&talk.packets);
        let exchange = told.one();
        assert_eq!(told.table.connections(), 0);
        assert_eq!((told.opened, told.closed), (1, 1));
        assert_eq!(told.started.len(), told.ended.len());
        (Outcome::of(&exchange), exchange.closed_by, exchange.end.unwrap().get())
    };
    let first = begun().stamp + 1000;
    let fins: fn(&mut Talk) = |it| {
        it.endpoint_fin().client_fin();
    };
    assert_eq!(close(fins), (Outcome::Truncated, Some(Side::Endpoint), first));
    let reset: fn(&mut Talk) = |it| {
        it.reset(true);
    };
    assert_eq!(close(reset), (Outcome::Reset, Some(Side::Endpoint), first));
    let aborted = (Outcome::AbortedByClient, Some(Side::Client), first);
    assert_eq!(
        close(|it| {
            it.client_fin().endpoint_fin();
        }),
        aborted
    );
    assert_eq!(
        close(|it| {
            it.reset(false);
        }),
        aborted
    );
    assert_eq!(
        close(|it| {
            it.client_fin().reset(true);
        }),
        aborted
    );
}

#[test]
fn a_half_closed_connection_still_delivers() {
    let mut talk = begun();
    talk.client_fin().response(&token()).response(&done()).response(LAST_CHUNK).endpoint_fin();
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
    assert_eq!(exchange.closed_by, Some(Side::Client));
}

#[test]
fn a_client_that_left_a_silent_endpoint_is_given_up_in_time() {
    let mut talk = begun();
    talk.client_fin();
    let mut told = Told::of(&talk.packets);
    told.settle(talk.stamp + 100_000_000);
    assert!(told.finished.is_empty());
    told.settle(talk.stamp + 600_000_000);
    assert_eq!(told.outcomes(), [Outcome::AbortedByClient]);
    assert_eq!(told.ended, [talk.stamp]);
}

#[test]
fn an_error_or_broken_framing_outranks_the_client_that_leaves_because_of_it() {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(HEAD).response(b"zz\r\n").client_fin();
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(Outcome::of(&exchange), Outcome::Framing);
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(b"HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\n");
    talk.reset(false);
    assert_eq!(Outcome::of(&Told::of(&talk.packets).one()), Outcome::HttpStatus);
}

#[test]
fn a_fin_rides_on_the_last_bytes_and_may_overtake_them() {
    for swap in [false, true] {
        let mut talk = Talk::open();
        talk.request(&post(1, ""));
        talk.response(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        talk.response(
            b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n",
        );
        talk.last().flags |= FIN;
        let end = talk.last().stamp;
        if swap {
            talk.packets.swap(3, 4);
        }
        let exchange = Told::of(&talk.packets).one();
        assert_eq!(exchange.framing(), protocol::http1::Framing::Valid, "{swap}");
        assert_eq!(exchange.response.framing_end, ns(end));
    }
}

#[test]
fn a_syn_that_comes_after_the_first_bytes_still_counts() {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(&stream(1));
    for order in [[1, 0, 2, 3], [2, 0, 1, 3], [2, 1, 0, 3], [2, 3, 0, 1]] {
        let packets: Vec<_> = order.iter().map(|at| talk.packets[*at].clone()).collect();
        let mut told = Told::of(&packets);
        told.flush();
        assert_eq!(told.table.connections(), 1, "{order:?}");
        assert_eq!(told.outcomes(), [Outcome::SingleToken], "{order:?}");
        assert!(!told.finished[0].adopted, "{order:?}");
    }
}

#[test]
fn a_reused_pair_of_addresses_is_another_connection() {
    let mut told = Told::with(FlowLimits::default());
    let mut first = begun();
    told.take(&first.packets);
    let mut second = Talk::open_at(900_000, 700_000, first.stamp + 1000);
    second.request(&post(2, "")).response(&stream(2)).client_fin().endpoint_fin();
    told.take(&second.packets);
    // A late segment of the first one is not taken for a new connection.
    first.response(&token());
    told.take([first.last().clone()].iter());
    let mut third = Talk::open_at(123, 456, second.stamp + 1000);
    third.request(&post(3, "")).response(&stream(2)).endpoint_fin().client_fin();
    told.take(&third.packets);
    told.flush();
    let ids: Vec<_> = told.finished.iter().map(|it| it.connection.0).collect();
    assert_eq!(ids[0], 0);
    assert_eq!(told.outcomes()[0], Outcome::Unknown, "how the first one ended was not seen");
    assert_eq!(told.outcomes().iter().filter(|it| **it == Outcome::Ok).count(), 2);
    assert_eq!(told.started.len(), told.ended.len());
}

#[test]
fn late_segments_of_a_closed_connection_open_none() {
    let mut talk = begun();
    talk.client_fin().endpoint_fin();
    let mut told = Told::of(&talk.packets);
    told.take(&talk.packets);
    assert_eq!(told.table.connections(), 0);
    assert_eq!(told.opened, 1);
}

#[test]
fn refused_and_retried_connections_leave_nothing() {
    let mut talk = Talk::open();
    talk.packets.truncate(1);
    talk.packets.push(talk.packets[0].clone());
    let refusal = Packet::new(9, true, 0, 1000, b"").with_flags(RST);
    talk.packets.push(refusal);
    let told = Told::of(&talk.packets);
    assert_eq!(told.table.connections(), 0);
    assert_eq!((told.opened, told.closed), (0, 0));
}

#[test]
fn a_reset_of_another_connection_ends_none() {
    let mut talk = begun();
    let stray = Packet::new(talk.stamp, true, talk.server.wrapping_add(1 << 30), 0, b"");
    talk.packets.push(stray.with_flags(RST));
    let told = Told::of(&talk.packets);
    assert_eq!(told.table.connections(), 1);
    assert_eq!(told.table.stats().stray_segments, 1);
}

#[test]
fn data_on_a_syn_is_read() {
    let mut talk = Talk::open();
    let request = post(1, "");
    talk.packets[0].payload = request.clone();
    talk.packets[0].payload_len = u32::try_from(request.len()).unwrap();
    talk.client = talk.client.wrapping_add(talk.packets[0].payload_len);
    talk.packets[1].ack = talk.client;
    talk.response(&stream(1));
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(exchange.request_first, ns(talk.packets[0].stamp));
    assert_eq!(Outcome::of(&exchange), Outcome::SingleToken);
}
