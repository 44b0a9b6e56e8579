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
            let other = if len.is_multiple_of(2) { at } else { 0 };
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

/// Every order of the talk's segments that gives an outcome which is not `allowed`.
fn wrong(end: fn(&mut Talk), allowed: &[Outcome]) -> Vec<(Vec<usize>, Vec<Outcome>)> {
    let talk = talk(end);
    assert_eq!(outcomes(&talk, &[0, 1, 2, 3, 4, 5, 6]), [Outcome::Ok], "as it was sent");
    let mut wrong = Vec::new();
    orders(talk.packets.len(), &mut |order| {
        let outcomes = outcomes(&talk, order);
        if !outcomes.iter().all(|it| allowed.contains(it)) {
            wrong.push((order.to_vec(), outcomes));
        }
    });
    wrong
}

fn outcomes(talk: &Talk, order: &[usize]) -> Vec<Outcome> {
    let packets: Vec<_> = order
        .iter()
        .zip(0_u64..)
        .map(|(at, place)| Packet { stamp: 1000 + place, ..talk.packets[*at].clone() })
        .collect();
    let mut told = Told::of(&packets);
    told.settle(100_000_000_000);
    told.flush();
    let open = told.table.open_requests().count();
    assert_eq!(told.started.len(), told.finished.len() + open, "{order:?}");
    assert_eq!(told.started.len(), told.ended.len() + told.table.in_flight(), "{order:?}");
    assert!(told.table.connections() <= 1, "{order:?}");
    assert_eq!(told.table.parked_cost(), 0, "{order:?}");
    told.outcomes()
}

/// As [`wrong`], with each segment missing in turn, and with each one once more at every order's end.
fn wrong_with_one_more_or_less(allowed: &[Outcome]) -> Vec<(Vec<usize>, Vec<Outcome>)> {
    let talk = talk(|it| {
        it.endpoint_fin().client_fin();
    });
    let mut wrong = Vec::new();
    let mut try_order = |order: &[usize]| {
        let outcomes = outcomes(&talk, order);
        if !outcomes.iter().all(|it| allowed.contains(it)) {
            wrong.push((order.to_vec(), outcomes));
        }
    };
    for other in 0..talk.packets.len() {
        orders(talk.packets.len() - 1, &mut |order| {
            let mut order: Vec<_> = order.iter().map(|at| at + usize::from(*at >= other)).collect();
            try_order(&order);
            order.extend([other, order[0]]);
            try_order(&order);
        });
    }
    wrong
}

fn check(end: fn(&mut Talk), allowed: &[Outcome]) {
    expect_none(&wrong(end, allowed));
}

fn expect_none(wrong: &[(Vec<usize>, Vec<Outcome>)]) {
    assert!(
        wrong.is_empty(),
        "{} orders, of which {:?}",
        wrong.len(),
        &wrong[..wrong.len().min(20)]
    );
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
fn an_order_with_one_segment_lost_or_repeated_never_gives_a_wrong_verdict() {
    let allowed = [Outcome::Ok, Outcome::Unknown];
    expect_none(&wrong_with_one_more_or_less(&allowed));
}
