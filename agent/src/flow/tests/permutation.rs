//! Control and data segments in every order.

use super::*;

/// Calls `visit` with every order of `0..len` (Heap's algorithm).
fn orders(len: usize, visit: &mut dyn FnMut(&[usize])) {
    fn permute(order: &mut Vec<usize>, len: usize, visit: &mut dyn FnMut(&[usize])) {
        if len <= 1 {
            visit(order);
            return;
        }
        for at in 0..len {
            permute(order, len - 1, visit);
            let other = if len % 2 == 0 { at } else { 0 };
            order.swap(other, len - 1);
        }
    }
    permute(&mut (0..len).collect(), len, visit);
}

/// SYN, SYN-ACK, request, response in two parts, and an end of two segments.
fn talk(end: fn(&mut Talk)) -> Talk {
    let mut talk = Talk::open();
    let response = stream(3);
    let (first, second) = response.split_at(HEAD.len() + 40);
    talk.request(&post(1, "hello")).response(first).response(second);
    end(&mut talk);
    talk
}

/// What may be said when segments come in any order: nothing wrong about the response.
fn check(end: fn(&mut Talk), allowed: &[Outcome]) {
    let talk = talk(end);
    assert_eq!(talk.packets.len(), 7);
    orders(talk.packets.len(), &mut |order| {
        let packets: Vec<_> = order
            .iter()
            .zip(0_u64..)
            .map(|(at, place)| Packet { stamp: 1000 + place, ..talk.packets[*at].clone() })
            .collect();
        let mut told = Told::of(&packets);
        told.settle(100_000_000_000);
        told.flush();
        let open = told.table.open_requests().count();
        assert_eq!(told.started.len(), told.ended.len() + open, "{order:?}");
        let outcomes = told.outcomes();
        assert!(outcomes.iter().all(|it| allowed.contains(it)), "{order:?} {outcomes:?}");
        assert!(told.table.connections() <= 1, "{order:?}");
        assert_eq!(told.table.parked_cost(), 0, "{order:?}");
    });
}

#[test]
fn fins_in_every_order_with_data_never_give_a_wrong_verdict() {
    let allowed = [Outcome::Ok, Outcome::Unknown];
    check(
        |it| {
            it.endpoint_fin().client_fin();
        },
        &allowed,
    );
    check(
        |it| {
            it.client_fin().endpoint_fin();
        },
        &allowed,
    );
}

#[test]
fn a_reset_in_every_order_with_data_never_breaks_framing() {
    // A RST that overtakes the data it follows is what the receiver saw first, too.
    let allowed = [Outcome::Ok, Outcome::Unknown, Outcome::Reset];
    check(
        |it| {
            it.endpoint_fin().reset(true);
        },
        &allowed,
    );
    let allowed = [Outcome::Ok, Outcome::Unknown, Outcome::AbortedByClient];
    check(
        |it| {
            it.client_fin().reset(false);
        },
        &allowed,
    );
}

#[test]
fn a_pair_of_addresses_may_be_reused_at_once_whatever_was_seen_of_the_end() {
    let ends: [fn(&mut Talk); 4] = [
        |_| {},
        |it| {
            it.client_fin().endpoint_fin();
        },
        |it| {
            it.endpoint_fin();
        },
        |it| {
            it.reset(true);
        },
    ];
    for end in ends {
        let mut first = Talk::open();
        first.request(&post(1, "")).response(&stream(2));
        end(&mut first);
        let mut second = Talk::open_at(2_000_000_000, 3_000_000_000, first.stamp + 1);
        second.request(&post(2, "")).response(&stream(2));
        let mut told = Told::of(first.packets.iter().chain(&second.packets));
        told.flush();
        assert_eq!(told.outcomes(), [Outcome::Ok, Outcome::Ok]);
        let ids: Vec<_> = told.finished.iter().map(|it| it.connection.0).collect();
        assert_eq!(ids, [0, 1]);
        assert!(told.finished.iter().all(|it| !it.adopted && it.index == 0));
    }
}
