//! Prompts are copied and hashed while a window asks for it.

use super::*;
use crate::prompt::Salt;
use crate::window::Lease;

const SECOND: u64 = 1_000_000_000;
const REST: u32 = 4096;
const READING: u32 = 72 * 1024;

impl Bench {
    fn copying(self) -> Self {
        Self { engine: self.engine.copying(REST), ..self }
    }

    fn open_salted(&mut self, lease_s: u64) -> String {
        let lease = Lease::from_seconds(lease_s).unwrap();
        let prefix_salt = Some(Salt::random().unwrap());
        let opening = Opening { lease, prefix_salt, ..Opening::new("audit") };
        self.ask(|reply| Command::Open(opening, reply)).unwrap().window_id
    }

    fn asked_for(&self) -> Vec<u32> {
        self.script.request_bytes.lock().unwrap().clone()
    }

    fn prefixes(&mut self, id: &str) -> Vec<String> {
        let rows = self.ask(|reply| Command::Prefixes(id.to_owned(), reply)).unwrap();
        rows.iter().map(|row| row.to_string()).collect()
    }
}

#[test]
fn requests_are_copied_farther_until_the_last_window_that_reads_prompts_ends() {
    let mut bench = Bench::new().copying();
    let plain = bench.open();
    bench.poll();
    assert!(bench.asked_for().is_empty(), "nobody reads");
    let (first, second) = (bench.open_salted(10), bench.open_salted(3600));
    assert_eq!(bench.asked_for(), [READING]);
    bench.ask(|reply| Command::Close(Ending::new(&second, 0), reply)).unwrap();
    bench.poll();
    assert_eq!(bench.asked_for(), [READING], "the first still reads");
    // Its client was killed.
    bench.at(11 * SECOND);
    bench.poll();
    assert_eq!(bench.asked_for(), [READING, REST]);
    let gone = bench.ask(|reply| Command::Prefixes(first, reply));
    assert_eq!(gone, Err(WindowError::Expired));
    assert!(bench.prefixes(&second).is_empty());
    let none = bench.ask(|reply| Command::Prefixes(plain, reply));
    assert_eq!(none, Err(WindowError::NoPrefixes));
}

/// A request belongs to the windows in which its first byte came; each has hashes of its own salt.
#[test]
fn each_window_has_the_hashes_of_its_own_requests() {
    let mut bench = Bench::new().copying();
    let body = |text: &str| format!("{{\"prompt\":\"{}\"}}", text.repeat(2000));
    let asked = |number, at, text: &str| {
        let mut talk = Talk::open_at(u32::from(number) * 100_000, 1, at);
        talk.request(&post(number, &body(text))).response(&stream(1)).client_fin().endpoint_fin();
        talk.packets.iter_mut().for_each(|packet| packet.peer.set_port(40_000 + u16::from(number)));
        talk.packets
    };
    let first = bench.open_salted(3600);
    bench.at(SECOND);
    bench.script.packets(&asked(1, SECOND / 2, "one"));
    let second = bench.open_salted(3600);
    bench.script.packets(&asked(2, 2 * SECOND, "two"));
    bench.at(3 * SECOND);
    for id in [&first, &second] {
        bench.ask(|reply| Command::Close(Ending::new(id, 0), reply)).unwrap();
    }
    let (first, second) = (bench.prefixes(&first), bench.prefixes(&second));
    assert_eq!((first.len(), second.len()), (2, 1));
    assert!(first.iter().all(|row| row.matches("null").count() == 2), "4 KiB of 6: {first:?}");
    assert_ne!(first[1], second[0], "another salt, other hashes of the same request");
    let written = bench.written.0.lock().unwrap().clone();
    assert!(!String::from_utf8(written).unwrap().contains("prefixes"), "none in the JSONL file");
}
