//! Rows about the clocks that stamps are of.

use super::{Facts, File, Row, State};

/// Clock sources that are read without leaving the CPU.
const FAST: [&str; 5] =
    ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen"];
/// A look at the clock that costs more would show in every stamp.
const SLOW_NS: u64 = 1_000;

pub(super) fn rows(facts: &Facts) -> Vec<Row> {
    let mut rows = vec![namespace(facts), source(facts)];
    rows.push(match facts.clocks {
        Some(clocks) => {
            let (offset, within) = (clocks.offset_ns / 1_000_000, clocks.within_ns);
            let found =
                format!("CLOCK_REALTIME - CLOCK_MONOTONIC = {offset} ms, known within {within} ns");
            Row::ok("time.offset", found)
        }
        None => Row::bad(
            State::Unknown,
            "time.offset",
            "the clocks can't be read",
            "allow clock_gettime to the process (seccomp)",
        ),
    });
    rows
}

/// The kernel's stamps know no time namespace, this process's clock does.
fn namespace(facts: &Facts) -> Row {
    const CHECK: &str = "time.namespace";
    let Some(text) = facts.file(File::TimeOffsets) else {
        return Row::ok(CHECK, "the kernel has no time namespaces");
    };
    let moved = text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("monotonic") && words.any(|word| word != "0")
    });
    if moved {
        return Row::bad(
            State::Fail,
            CHECK,
            format!("CLOCK_MONOTONIC is shifted here: {}", text.replace('\n', ", ")),
            "run the agent in the host's time namespace: kernel stamps are of its clock",
        );
    }
    Row::ok(CHECK, "CLOCK_MONOTONIC is the kernel's own")
}

fn source(facts: &Facts) -> Row {
    const CHECK: &str = "time.source";
    const MEND: &str = "see dmesg for why tsc was given up (clocksource=tsc tsc=reliable on the kernel \
                        command line if the hardware is sound)";
    let name = facts.file(File::ClockSource);
    let cost = facts.clocks.map(|it| it.read_ns);
    let found = format!(
        "{}, {} ns a look",
        name.unwrap_or("not told"),
        cost.map_or_else(|| "?".to_owned(), |it| it.to_string())
    );
    let slow = cost.is_some_and(|it| it > SLOW_NS);
    let emulated = name.is_some_and(|name| !FAST.contains(&name));
    // The name alone is no fault: what counts is what a look costs.
    if slow && (emulated || name.is_none()) {
        return Row::bad(State::Warn, CHECK, found, MEND);
    }
    Row::ok(CHECK, found)
}
