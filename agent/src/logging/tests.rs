//! Lines as they reach the file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use super::*;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn logged(colours: bool, body: impl FnOnce()) -> String {
    let kept = Kept::default();
    let writer = kept.clone();
    let make = move || writer.clone();
    tracing::subscriber::with_default(subscriber(EnvFilter::new("info"), colours, make), body);
    kept.text()
}

const HOSTILE: &str = "a\r\n2026-01-01 ERROR forged\u{1b}[2J\u{7}\u{9b}31m\t\0\"quoted\" \u{7f}é";

#[test]
fn a_hostile_value_stays_one_line_without_control_characters() {
    for colours in [false, true] {
        let text = logged(colours, || {
            tracing::warn!(name = HOSTILE, "message {HOSTILE}");
            tracing::warn!(name = %HOSTILE, other = ?HOSTILE, "second");
        });
        assert_eq!(text.lines().count(), 2, "{text:?}");
        assert!(text.ends_with('\n') && text.contains("forged") && text.contains('é'), "{text:?}");
        let harmful = text.chars().filter(|it| it.is_control() && *it != '\n');
        let harmful: Vec<_> = harmful.filter(|it| !colours || *it != '\u{1b}').collect();
        assert!(harmful.is_empty(), "{text:?}");
        // With colours the formatter's own sequences remain, and no other.
        assert!(!text.contains("\u{1b}[2J"), "{text:?}");
    }
}

#[test]
fn texts_for_terminals_keep_their_line_ends_alone() {
    assert_eq!(printable("plain é\nsecond"), "plain é\nsecond");
    assert_eq!(printable("\u{1b}[31m\r\t\0\u{9b}"), "\\u{1b}[31m\\r\\t\\u{0}\\u{9b}");
}

#[test]
fn a_flood_of_one_kind_is_cut_and_leaves_other_kinds_alone() {
    let text = logged(false, || {
        for number in 0..10_000 {
            tracing::warn!(number, "flood");
        }
        tracing::warn!("other");
    });
    let lines = usize::try_from(Limits::default().lines).unwrap();
    assert_eq!(text.matches("flood").count(), lines);
    assert_eq!(text.matches("other").count(), 1);
}

#[test]
fn what_was_left_out_is_told_with_the_next_line() {
    let start = Instant::now();
    let (period, most) = (Duration::from_secs(10), 3);
    let mut kind = Kind::new(start);
    let verdicts: Vec<_> = (0..5).map(|_| kind.count(start, period, most)).collect();
    assert_eq!(verdicts[..3], [Verdict::Write { left_out: 0 }; 3]);
    assert_eq!(verdicts[3..], [Verdict::LeaveOut; 2]);
    assert_eq!(kind.count(start + period / 2, period, most), Verdict::LeaveOut);
    assert_eq!(kind.count(start + period, period, most), Verdict::Write { left_out: 3 });
    assert_eq!(kind.count(start + period * 3, period, most), Verdict::Write { left_out: 0 });
}

/// A second passes between two looks.
fn ticking() -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    *START + Duration::from_secs(LOOKS.fetch_add(1, Ordering::SeqCst))
}

#[test]
fn lines_left_out_are_told_in_the_log() {
    let kept = Kept::default();
    let tell = {
        let kept = kept.clone();
        move |line: &str| writeln!(kept.clone(), "{line}")
    };
    let limits = Limits { period: Duration::from_secs(5), lines: 2, forwarded: 2 };
    let limit = RateLimit::new(limits, tell).with_clock(ticking);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::sink).with_filter(limit);
    tracing::subscriber::with_default(Registry::default().with(layer), || {
        for _ in 0..8 {
            tracing::info!("line");
        }
    });
    let told = kept.text();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("3 lines like the next were left out: more than 2 in 5 s"), "{told}");
}
