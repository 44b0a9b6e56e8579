//! The export, read back by a strict parser.

use std::collections::BTreeMap;

use super::*;
use crate::endpoint::Endpoint;
use crate::inflight::Inflight;

fn endpoints() -> Vec<Endpoint> {
    ["vip=10.0.0.1:80", "backend=[2001:db8::1]:81"].map(|it| it.parse().unwrap()).to_vec()
}

fn tick() -> Tick {
    let mut gauges = Inflight::new(&endpoints(), 1).gauges();
    (gauges[0].requests, gauges[0].connections) = (4, Some(8));
    Tick {
        number: 3,
        at: Nanos::new(5),
        counters: WindowCounters { packets: 42, payload_bytes: 7, ..WindowCounters::default() },
        reasons: BTreeSet::from([Reason::RingFull]),
        gauges,
        book: Book::new(&endpoints()),
        legs: crate::legs::Tally::new(&endpoints()).counts().clone(),
        windows: 1,
        windows_expired: 2,
        flows: 9,
        interfaces: vec![InterfaceCount {
            name: "odd\"\\name\n".to_owned(),
            packets: 40,
            preempted: 2,
        }],
        jsonl_errors: 0,
    }
}

fn exported() -> String {
    let process = Process { ring_bytes: 4096, kernel: "6.18".to_owned(), ..Process::default() };
    openmetrics(tick(), process).unwrap()
}

fn value(families: &Families, family: &str, labels: &[(&str, &str)]) -> f64 {
    let wanted: BTreeMap<_, _> =
        labels.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    families[family].samples.iter().find(|sample| sample.labels == wanted).unwrap().value
}

#[test]
fn a_strict_parser_accepts_the_export_and_finds_the_values() {
    let families = parse(&exported()).unwrap();
    let vip = [("endpoint", "10.0.0.1:80"), ("role", "vip")];
    assert_eq!(value(&families, "goodput_agent_requests_in_flight", &vip), 4.0);
    assert_eq!(value(&families, "goodput_agent_connections", &vip), 8.0);
    assert_eq!(value(&families, "goodput_agent_packets", &[]), 42.0);
    assert_eq!(value(&families, "goodput_agent_payload_bytes", &[]), 7.0);
    assert_eq!(value(&families, "goodput_agent_complete", &[]), 0.0);
    assert_eq!(value(&families, "goodput_agent_incomplete", &[("reason", "ring_full")]), 1.0);
    assert_eq!(value(&families, "goodput_agent_incomplete", &[("reason", "preempted")]), 0.0);
    assert_eq!(value(&families, "goodput_agent_concentration_ratio", &[("role", "vip")]), 1.0);
    let odd = [("interface", "odd\"\\name\n")];
    assert_eq!(value(&families, "goodput_agent_interface_packets", &odd), 40.0);
}

#[test]
fn types_units_names_and_labels_are_those_of_the_catalog() {
    let families = parse(&exported()).unwrap();
    let mut names: Vec<_> = CATALOG.iter().map(Family::name).collect();
    names.sort_unstable();
    assert_eq!(families.keys().cloned().collect::<Vec<_>>(), names);
    for family in CATALOG {
        let found = &families[&family.name()];
        assert_eq!(found.kind, family.kind.name());
        assert_eq!(found.unit.as_deref().unwrap_or(""), family.unit);
        for sample in &found.samples {
            let labels = sample.labels.keys().filter(|label| *label != "le");
            let mut wanted = family.labels.to_vec();
            wanted.sort_unstable();
            assert_eq!(labels.collect::<Vec<_>>(), wanted, "{}", sample.name);
        }
    }
}

/// What promtool's lint asks of names and help texts.
#[test]
fn names_end_with_base_units_and_say_nothing_twice() {
    for family in CATALOG {
        let name = family.name();
        assert!(["", "seconds", "bytes", "ratio"].contains(&family.unit), "{name}");
        for suffix in ["_total", "_count", "_sum", "_bucket", "_info", "_milliseconds", "_ms"] {
            assert!(!name.ends_with(suffix), "{name}");
        }
        assert!(!name.contains(family.kind.name()) || family.kind == Kind::Info, "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert!(family.help.ends_with('.') && !family.help.contains('\n'), "{name}");
    }
}

#[test]
fn histograms_are_cumulative_and_end_in_their_count() {
    let mut tick = tick();
    let mut ttft = Histogram::new(TTFT_BOUNDS);
    [1, 2_000_000, 400_000_000, 500_000_000_000].into_iter().for_each(|ns| ttft.add(ns));
    tick.book.replace_ttft("10.0.0.1:80".parse().unwrap(), ttft);
    let families = parse(&openmetrics(tick, Process::default()).unwrap()).unwrap();
    let samples = families["goodput_agent_time_to_first_token_seconds"].samples.iter();
    let vip: Vec<_> = samples.filter(|it| it.labels["role"] == "vip").collect();
    let of = |suffix| vip.iter().filter(move |it| it.name.ends_with(suffix)).map(|it| it.value);
    let buckets: Vec<_> = of("_bucket").collect();
    assert!(buckets.is_sorted());
    assert_eq!((buckets[0], buckets[2], buckets.last()), (1.0, 2.0, Some(&4.0)));
    assert_eq!(of("_count").next(), Some(4.0));
    assert_eq!(of("_sum").next(), Some(500.402_000_001));
    assert_eq!(
        vip.iter().filter(|it| it.labels.get("le").is_some_and(|it| it == "+Inf")).count(),
        1
    );
}

#[test]
fn the_document_lists_exactly_what_is_exported() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: Vec<Vec<String>> = rows
        .filter(|row| row.starts_with("goodput_agent_") || row.starts_with("process_"))
        .map(|row| row.split('|').map(|it| it.trim().trim_matches('`').to_owned()).collect())
        .collect();
    let listed = |family: &Family| {
        let labels = family.labels.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>();
        [
            family.name(),
            family.kind.name().to_owned(),
            family.unit.to_owned(),
            labels.join(", ").trim_matches('`').to_owned(),
            family.help.trim_end_matches('.').to_owned(),
        ]
        .to_vec()
    };
    let cut = |row: &Vec<String>| row[..5].to_vec();
    assert_eq!(
        documented.iter().map(cut).collect::<Vec<_>>(),
        CATALOG.iter().map(listed).collect::<Vec<_>>()
    );
}

#[test]
fn the_parser_refuses_what_the_format_forbids() {
    let head = "# TYPE a counter\n";
    for (text, what) in [
        ("# TYPE a counter\na_total 1\n", "# EOF"),
        ("# TYPE a counter\na 1\n# EOF\n", "no sample"),
        ("# TYPE a counter\na_total -1\n# EOF\n", "-1"),
        ("# TYPE a counter\na_total 1\na_total 2\n# EOF\n", "twice"),
        ("# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n", "describe"),
        ("# TYPE a gauge\na{b=\"c} 1\n# EOF\n", "not end"),
        ("# TYPE a gauge\na{b=\"\\x\"} 1\n# EOF\n", "escape"),
        ("a 1\n# EOF\n", "without a family"),
        ("# EOF\n# EOF\n", "follows"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(what), "{text:?}: {error}");
    }
    assert!(parse(&format!("{head}a_total 1\n# EOF\n")).is_ok());
}
