//! Reuse of a pair of addresses.

use super::*;

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
