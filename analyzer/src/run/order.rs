//! Order of the arms inside a repetition: seeded, so that no arm always goes first.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// Positions of `arms` arms in the order of repetition `repetition`.
pub(super) fn order(arms: usize, seed: u64, repetition: u32) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_add(u64::from(repetition)));
    let mut keyed: Vec<(u64, usize)> = (0..arms).map(|arm| (rng.next_u64(), arm)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, arm)| arm).collect()
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn orders_are_permutations_that_depend_on_seed_and_repetition_alone() {
        let mut first = std::collections::BTreeSet::new();
        for repetition in 1..=20 {
            let mut arms = order(2, 7, repetition);
            assert_eq!(arms, order(2, 7, repetition));
            first.insert(arms[0]);
            arms.sort_unstable();
            assert_eq!(arms, [0, 1]);
        }
        assert_eq!(first.len(), 2, "one arm always went first");
    }
}
