//! Every resample of G items, as multisets with the number of orderings that give them.

/// Above this many items there are more than 1.35 million multisets.
pub const MAX_ENUMERATED: usize = 12;

/// Calls `visit` with how often each of `items` items is drawn, and with the number of ordered resamples
/// that draw them so. The numbers add up to items^items.
///
/// Nothing is visited for more than [`MAX_ENUMERATED`] items.
pub fn multisets(items: usize, mut visit: impl FnMut(&[usize], u64)) {
    if items == 0 || items > MAX_ENUMERATED {
        return;
    }
    let factorials = factorials(items);
    let mut counts = vec![0; items];
    descend(&mut counts, 0, items, factorials[items], &factorials, &mut visit);
}

fn factorials(n: usize) -> Vec<u64> {
    let running = (0..=n as u64).scan(1, |product, i| {
        *product *= i.max(1);
        Some(*product)
    });
    running.collect()
}

fn descend(
    counts: &mut [usize],
    item: usize,
    left: usize,
    weight: u64,
    factorials: &[u64],
    visit: &mut impl FnMut(&[usize], u64),
) {
    if item + 1 == counts.len() {
        counts[item] = left;
        visit(counts, weight / factorials[left]);
        return;
    }
    for copies in 0..=left {
        counts[item] = copies;
        descend(counts, item + 1, left - copies, weight / factorials[copies], factorials, visit);
    }
}
