//! Windows of clients that stopped calling.

use super::*;
use crate::window::{Lease, MAX_WINDOWS};

const SECOND: u64 = 1_000_000_000;

impl Bench {
    fn opened(&mut self, label: &str, lease_s: u64) -> String {
        let lease = Lease::from_seconds(lease_s).unwrap();
        let opening = Opening { lease, ..Opening::new(label) };
        let opened = self.ask(|reply| Command::Open(opening, reply)).unwrap();
        assert_eq!(opened.lease_s, lease_s);
        opened.window_id
    }

    fn state(&mut self, id: &str) -> Result<(), WindowError> {
        self.ask(|reply| Command::Observations(id.to_owned(), reply)).map(|_| ())
    }

    fn expired(&mut self) -> (usize, u64) {
        let tick = self.ask(Command::Metrics);
        (tick.windows, tick.windows_expired)
    }
}

#[test]
fn an_open_window_that_nobody_calls_about_is_given_up_and_says_so_from_then_on() {
    let mut bench = Bench::new();
    let id = bench.opened("killed", 5);
    bench.script.packets(&good(1, 1_000_000).packets);
    bench.at(5 * SECOND - 1);
    bench.poll();
    assert_eq!(bench.expired(), (1, 0));
    bench.at(5 * SECOND);
    bench.poll();
    assert_eq!(bench.expired(), (0, 1));
    assert_eq!(bench.state(&id), Err(WindowError::Expired));
    let closing = bench.ask(|reply| Command::Close(Ending::new(&id, 0), reply));
    assert_eq!(closing.unwrap_err(), WindowError::Expired);
    let deleted = bench.ask(|reply| Command::Delete(id.clone(), reply));
    assert_eq!(deleted, Err(WindowError::Expired));
    let inflight = bench.ask(|reply| Command::Inflight(id.clone(), reply));
    assert_eq!(inflight.unwrap_err(), WindowError::Expired);
    assert_eq!(bench.state("w2"), Err(WindowError::Unknown));
}

#[test]
fn every_call_about_a_window_begins_its_lease_anew() {
    let mut bench = Bench::new();
    let id = bench.opened("watched", 5);
    for call in 1..=4_u64 {
        bench.at(call * 4 * SECOND);
        bench.poll();
        match call {
            1 => bench.state(&id).unwrap(),
            2 => drop(bench.ask(|reply| Command::Inflight(id.clone(), reply)).unwrap()),
            3 => drop(bench.ask(|reply| Command::Concentration(id.clone(), reply)).unwrap()),
            _ => drop(bench.close(&id)),
        }
    }
    // A status is no call about it.
    bench.at(20 * SECOND);
    let _ = bench.ask(Command::Status);
    assert_eq!(bench.expired(), (1, 0));
}

#[test]
fn a_closed_window_is_kept_for_the_lease_of_its_close() {
    let mut bench = Bench::new();
    let (short, usual) = (bench.opened("a", 5), bench.opened("b", 5));
    bench.at(SECOND);
    let lease = Lease::from_seconds(60).unwrap();
    let ending = Ending { lease, ..Ending::new(&short, 0) };
    bench.ask(|reply| Command::Close(ending, reply)).unwrap();
    bench.close(&usual);
    bench.at(61 * SECOND);
    assert_eq!(bench.state(&short), Err(WindowError::Expired));
    bench.state(&usual).unwrap();
    bench.at((61 + Lease::CLOSED.seconds()) * SECOND);
    assert_eq!(bench.state(&usual), Err(WindowError::Expired));
}

#[test]
fn a_close_that_waits_for_requests_is_answered_however_short_the_lease() {
    let mut bench = Bench::new();
    let id = bench.opened("slow", 1);
    let mut talk = Talk::open_at(1, 1, 1_000_000);
    talk.request(&post(1, ""));
    bench.script.packets(&talk.packets);
    bench.poll();
    bench.at(2_000_000);
    let mut waiting = bench.begin(|reply| Command::Close(Ending::new(&id, 30_000), reply));
    bench.at(20 * SECOND);
    bench.poll();
    assert!(waiting.try_recv().is_err(), "still waiting");
    bench.at(31 * SECOND);
    bench.poll();
    assert_eq!(waiting.try_recv().unwrap().unwrap().open_requests, 1);
    bench.state(&id).unwrap();
}

#[test]
fn expired_windows_make_room_for_the_next() {
    let mut bench = Bench::new();
    for number in 0..MAX_WINDOWS {
        bench.opened(&number.to_string(), 10);
    }
    let open = |bench: &mut Bench| {
        bench.ask(|reply| Command::Open(Opening::new("next"), reply)).map(|it| it.window_id)
    };
    assert_eq!(open(&mut bench).unwrap_err(), WindowError::Full);
    bench.at(10 * SECOND);
    assert_eq!(open(&mut bench).unwrap(), format!("w{}", MAX_WINDOWS + 1));
    assert_eq!(bench.expired(), (1, MAX_WINDOWS as u64));
}

#[test]
fn leases_are_between_a_second_and_a_week() {
    assert!(Lease::from_seconds(1).is_ok() && Lease::from_seconds(604_800).is_ok());
    for seconds in [0, 604_801, u64::MAX] {
        let error = Lease::from_seconds(seconds).unwrap_err().to_string();
        assert!(error.contains("between 1 and 604800"), "{error}");
    }
    assert_eq!(Lease::LONGEST.end(Nanos::new(u64::MAX)), Nanos::new(u64::MAX));
}
