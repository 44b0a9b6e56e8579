//! What `read` prints for people.

use std::fmt::Write as _;
use std::path::Path;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};

use crate::read::{EndpointSummary, Listeners, Quantiles, ReadReport};

const NS_PER_SECOND: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.to_vec());
    table
}

/// The servers, and the line that reads them.
pub(super) fn listeners(file: &Path, found: &Listeners) -> String {
    let file = file.display();
    let Some(first) = found.listeners.first() else {
        return format!(
            "{file}: no TCP server was seen to accept a connection or to send an HTTP/1 response.\n\
             If you know one: goodput-agent read {file} --endpoint backend=ADDRESS:PORT\n"
        );
    };
    let mut table = table(&["server", "connections accepted", "HTTP/1 responses"]);
    for listener in &found.listeners {
        table.add_row([
            listener.address.to_string(),
            listener.accepted.to_string(),
            listener.http_responses.to_string(),
        ]);
    }
    let cut = if found.cut { "More servers than are listed were seen.\n" } else { "" };
    format!(
        "{table}\n{cut}Nothing was read yet: say which of them to watch, and as what \
         (vip, backend, prefill, decode):\n\
         \x20 goodput-agent read {file} --endpoint backend={}\n\
         or take every one that sends HTTP/1 responses as a backend:\n\
         \x20 goodput-agent read {file} --endpoint auto\n",
        first.address
    )
}

/// The figures of a file.
pub(super) fn report(file: &Path, report: &ReadReport) -> String {
    let mut text = heading(file, report);
    for part in [traffic(report), verdicts(report)] {
        let _ = writeln!(text, "{part}");
    }
    if report.complete {
        text.push_str("complete: true\n");
        return text;
    }
    text.push_str("complete: false\n");
    for cause in &report.causes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}: {}; mend: {}", cause.reason, cause.detail, cause.mend);
    }
    text
}

fn heading(file: &Path, report: &ReadReport) -> String {
    let seconds = match (report.first_ns, report.last_ns) {
        (Some(first), Some(last)) => to_float(last.since(first).cast_unsigned()) / NS_PER_SECOND,
        _ => 0.0,
    };
    format!(
        "{}: {}, {} packets, {} of the endpoints, {seconds:.3} s; clock: file\n",
        file.display(),
        report.format,
        report.counters.packets,
        report.counters.endpoint_packets,
    )
}

fn traffic(report: &ReadReport) -> Table {
    let mut table = table(&[
        "endpoint",
        "role",
        "connections",
        "requests",
        "TTFT p50",
        "TTFT p99",
        "TPOT p50",
        "TPOT p99",
        "response bytes",
        "retransmits",
        "bytes lost",
    ]);
    for row in &report.endpoints {
        let [ttft_p50, ttft_p99] = milliseconds(row.ttft);
        let [tpot_p50, tpot_p99] = milliseconds(row.tpot);
        table.add_row([
            row.endpoint.to_string(),
            row.role.to_string(),
            row.connections.to_string(),
            row.requests.to_string(),
            ttft_p50,
            ttft_p99,
            tpot_p50,
            tpot_p99,
            row.response_bytes.to_string(),
            row.retransmits.to_string(),
            row.bytes_lost.to_string(),
        ]);
    }
    table
}

fn verdicts(report: &ReadReport) -> Table {
    let mut table = table(&["endpoint", "outcomes", "framing"]);
    for row in &report.endpoints {
        table.add_row([row.endpoint.to_string(), outcomes(row), framing(row)]);
    }
    table
}

/// Names as in the JSON form.
fn outcomes(row: &EndpointSummary) -> String {
    let name = |outcome| serde_json::to_value(outcome).ok()?.as_str().map(str::to_owned);
    let counts = row.outcomes.iter().map(|(outcome, count)| {
        format!("{} {count}", name(outcome).unwrap_or_else(|| format!("{outcome:?}")))
    });
    or_dash(&counts.collect::<Vec<_>>())
}

fn framing(row: &EndpointSummary) -> String {
    let it = &row.framing;
    let verdicts = [("valid", it.valid), ("invalid", it.invalid), ("unknown", it.unknown)];
    let verdicts = verdicts.into_iter().filter(|(_, count)| *count > 0);
    let rules = it.rules.iter().map(|(rule, count)| format!("{rule} {count}"));
    let verdicts = verdicts.map(|(verdict, count)| format!("{verdict} {count}"));
    or_dash(&verdicts.chain(rules).collect::<Vec<_>>())
}

fn or_dash(parts: &[String]) -> String {
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

fn milliseconds(quantiles: Option<Quantiles>) -> [String; 2] {
    let text = |ns| format!("{:.3} ms", to_float(ns) / NS_PER_MS);
    quantiles.map_or(["-".to_owned(), "-".to_owned()], |it| [text(it.p50_ns), text(it.p99_ns)])
}

/// For people: exact up to 2^53 ns, 104 days.
fn to_float(ns: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
    let float = ns as f64;
    float
}
