//! Every target over its seeds, over what was found before, and over a fixed sequence of damage.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking")]

use std::path::Path;
use std::time::{Duration, Instant};

use fuzz::{Mutator, TARGETS, Target};

/// Damaged inputs per target, unless `GOODPUT_FUZZ_ROUNDS` says otherwise.
const ROUNDS: u64 = 1_500;
/// A single input of this size that takes this long hangs, even on a busy host.
const HANG: Duration = Duration::from_secs(10);

fn run(target: Target, input: &[u8]) {
    let start = Instant::now();
    (target.run)(input);
    let took = start.elapsed();
    assert!(took < HANG, "{}: {took:?} for {} bytes", target.name, input.len());
}

/// Inputs that once failed, kept in `corpus/<target>`.
fn corpus(target: Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn rounds() -> u64 {
    std::env::var("GOODPUT_FUZZ_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap())
}

#[test]
fn no_target_panics_hangs_or_contradicts_itself() {
    for target in TARGETS {
        let mut seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has no seed", target.name);
        seeds.extend(corpus(target));
        seeds.iter().for_each(|seed| run(target, seed));
        for round in 0..rounds() {
            let input = Mutator::new(round).damaged(&seeds);
            let name = target.name;
            let guard = Named { name, round };
            run(target, &input);
            std::mem::forget(guard);
        }
    }
}

/// Names the input while a panic unwinds.
struct Named {
    name: &'static str,
    round: u64,
}

impl Drop for Named {
    fn drop(&mut self) {
        eprintln!("target {}, Mutator::new({}) over its seeds", self.name, self.round);
    }
}

#[test]
fn seeds_reach_the_end_of_their_decoders() {
    let pcap = (fuzz::find("pcap").unwrap().seeds)();
    assert!(pcap.len() >= 10);
    let flows = (fuzz::find("events").unwrap().seeds)();
    assert!(flows.iter().all(|seed| seed.len() > 500));
}
