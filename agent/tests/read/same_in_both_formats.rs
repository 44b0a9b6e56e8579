//! A format holds packets; it must not colour what they say.

use agent::capture::pcap::write::StampUnit;
use agent::capture::pcap::{LinkType, Order};

use crate::conversation::{Format, traffic, write};
use crate::program::{CaptureFile, run};

/// Rows and report, bytes as printed, but for the name of the format.
fn printed(format: (Format, Order, StampUnit)) -> (String, String) {
    let server = "10.0.0.1:8000".parse().unwrap();
    let clients = ["10.0.0.2:40000", "10.0.0.3:40001"].map(|it| it.parse().unwrap());
    let file = CaptureFile::new(&write(format, LinkType::ETHERNET, &traffic(server, clients)));
    let rows = file.beside("rows.jsonl");
    let rows_name = rows.to_str().unwrap();
    let endpoint = ["--endpoint", "backend=10.0.0.1:8000"];
    let arguments = [&[file.name()][..], &endpoint, &["--json", "--jsonl", rows_name]].concat();
    let printed = run(&arguments);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let name = match format.0 {
        Format::Pcap => r#""format":"pcap","#,
        Format::PcapNg => r#""format":"pcapng","#,
    };
    assert!(printed.stdout.contains(name), "{}", printed.stdout);
    (std::fs::read_to_string(rows).unwrap(), printed.stdout.replace(name, ""))
}

#[test]
fn pcap_and_pcapng_of_both_byte_orders_give_identical_observations() {
    for unit in [StampUnit::Nano, StampUnit::Micro] {
        let expected = printed((Format::Pcap, Order::Little, unit));
        assert_eq!(expected.0.lines().count(), 4);
        for (format, order) in [
            (Format::Pcap, Order::Big),
            (Format::PcapNg, Order::Little),
            (Format::PcapNg, Order::Big),
        ] {
            assert_eq!(printed((format, order, unit)), expected, "{format:?} {order:?} {unit:?}");
        }
    }
}
