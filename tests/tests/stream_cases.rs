//! Every scripted stream of `protocol::cases`, over real sockets: client and agent both arrive at the
//! right class, directly and through a gateway.

use std::net::SocketAddr;

use anyhow::Context as _;
use e2e::agent::{Agent, Watch, Window, ttft_ns};
use e2e::fleet::Fleet;
use e2e::jsonl::{number, text};
use e2e::replay::Replay;
use e2e::require_kernel;
use e2e::trace::Trace;
use protocol::StreamOutcome;
use protocol::cases::{Case, ExpectedFraming, cases};
use protocol::timeline::Tpot;
use serde_json::Value;

const FLEET: &str = "
[[backend]]
name = 'b0'
[[gateway]]
name = 'vip'
policy = { algorithm = 'round_robin' }
";
/// Streams at once: enough to be quick, few enough for two cores.
const AT_ONCE: usize = 6;
/// Lateness of a busy host. The wrong answers that the cases are about are further off: 60 ms or more.
const LATE_MS: i64 = 40;
/// The same for time per output token, in microseconds: five tokens share one lateness.
const TPOT_LATE_US: i64 = 4_000;
const NS_PER_MS: i64 = 1_000_000;

/// One case as the client saw it.
struct Served {
    case: Case,
    request: Value,
}

#[test]
fn the_client_judges_every_case_right() -> anyhow::Result<()> {
    let fleet = Fleet::start(FLEET)?;
    let mut wrong = Vec::new();
    for (route, to) in [("direct", fleet.backend("b0")?), ("gateway", fleet.vip("vip")?)] {
        for served in serve_all(to)? {
            let faults = served.client_faults(route == "gateway");
            wrong.extend(
                faults.iter().map(|fault| format!("{route} {}: {fault}", served.case.name)),
            );
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// Every way of looking at packets, each by an agent of its own beside the other.
const SOURCES: [&str; 2] = ["tcx", "socket-filter"];

#[test]
fn the_agent_judges_every_case_as_the_client_does_by_every_source() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let watch = Watch {
        interfaces: vec!["lo"],
        api: "127.0.0.1:0",
        vips: vec![fleet.vip("vip")?],
        backends: vec![fleet.backend("b0")?],
    };
    let start = |source: &str| Agent::start_file(&format!("source = {source:?}\n{}", watch.toml()));
    let [tcx, filter] = [start(SOURCES[0])?, start(SOURCES[1])?];
    let mut wrong = Vec::new();
    for (route, to) in [("direct", fleet.backend("b0")?), ("gateway", fleet.vip("vip")?)] {
        let ((all, by_filter), by_tcx) =
            tcx.api().window(route, || filter.api().window(route, || serve_all(to)))?;
        by_filter.ensure_complete().context(route)?;
        for served in all {
            let mut faults = served.agent_faults(route == "gateway", &by_tcx);
            faults.extend(served.source_faults(route == "gateway", &by_tcx, &by_filter));
            wrong.extend(
                faults.iter().map(|fault| format!("{route} {}: {fault}", served.case.name)),
            );
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

fn serve_all(to: SocketAddr) -> anyhow::Result<Vec<Served>> {
    let mut served = Vec::new();
    // Trace ids follow from the seed: each case needs its own.
    let seeded: Vec<_> = cases().into_iter().zip(1_u64..).collect();
    for group in seeded.chunks(AT_ONCE) {
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = group
                .iter()
                .map(|(case, seed)| scope.spawn(move || serve(case, *seed, to)))
                .collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        for result in results {
            served.push(result.unwrap_or_else(|_| anyhow::bail!("a thread panicked"))?);
        }
    }
    Ok(served)
}

fn serve(case: &Case, seed: u64, to: SocketAddr) -> anyhow::Result<Served> {
    let folder = tempfile::tempdir()?;
    let model = format!("fault:{}", case.name);
    let trace = Trace { rows: 1, groups: 1, blocks: 1, output_tokens: 5 }.text();
    let seed = seed.to_string();
    let more = ["--model", model.as_str(), "--deadline-ms", "3000", "--seed", seed.as_str()];
    let mut requests = Replay { to, trace: &trace, rate: 1.0, more: &more }.run(folder.path())?;
    anyhow::ensure!(requests.len() == 1, "{}: {} records", case.name, requests.len());
    Ok(Served { case: case.clone(), request: requests.remove(0) })
}

impl Served {
    /// A gateway whose backend ends before any byte answers 502 itself.
    fn gateway_answers(&self, through_gateway: bool) -> bool {
        through_gateway && self.case.name.ends_with("before_response")
    }

    fn client_faults(&self, through_gateway: bool) -> Vec<String> {
        let class = match self.case.expect.outcome {
            _ if self.gateway_answers(through_gateway) => "http_status",
            // A client sees every byte: a body that it cannot read is a bad payload.
            StreamOutcome::Unknown(_) => "bad_payload",
            outcome => outcome.class(),
        };
        let mut faults = Vec::new();
        differ(&mut faults, "class", text(&self.request, "class"), class);
        if !self.gateway_answers(through_gateway) {
            let framing = framing_word(self.case.expect.framing);
            differ(&mut faults, "framing", text(&self.request, "framing"), framing);
            self.time_faults(&mut faults, number(&self.request, "ttft_from_sent_ns"));
            self.tpot_faults(&mut faults);
        }
        faults
    }

    fn time_faults(&self, faults: &mut Vec<String>, ttft_ns: Option<i64>) {
        let expected = self.case.expect.ttft_ms.and_then(|ms| i64::try_from(ms).ok());
        let late = |ns: i64, ms: i64| (-1..=LATE_MS).contains(&(ns / NS_PER_MS - ms));
        match (expected, ttft_ns) {
            (None, None) => {}
            (Some(ms), Some(ns)) if late(ns, ms) => {}
            _ => faults.push(format!("TTFT is {ttft_ns:?} ns, not {expected:?} ms")),
        }
    }

    fn tpot_faults(&self, faults: &mut Vec<String>) {
        let got = number(&self.request, "tpot_ns").map(|ns| ns / 1000);
        let delivered = self.case.expect.outcome.is_delivered();
        let expected = match self.case.expect.tpot {
            Tpot::Value(value) if delivered => Some(value.floor_ns() / 1000),
            _ => None,
        };
        let near = |a: i64, b: i64| (a - b).abs() <= TPOT_LATE_US;
        match (expected.and_then(|us| i64::try_from(us).ok()), got) {
            (None, None) => {}
            (Some(expected), Some(got)) if near(expected, got) => {}
            // A stream that failed has no TPOT to be judged by.
            (None, Some(_)) if !delivered => {}
            (expected, got) => faults.push(format!("TPOT is {got:?} us, not {expected:?}")),
        }
    }

    /// The fallback says what TCX says of the same request; its stamps are taken on the same way.
    fn source_faults(&self, through_gateway: bool, tcx: &Window, filter: &Window) -> Vec<String> {
        let leg = if through_gateway { "client" } else { "backend" };
        let id = text(&self.request, "trace_id");
        let (Some(tcx), Some(filter)) = (tcx.leg(id, leg), filter.leg(id, leg)) else {
            return vec![format!("one source saw nothing of it on the {leg} leg")];
        };
        let mut faults = Vec::new();
        for key in ["outcome", "framing", "framing_rule", "status", "token_events"] {
            differ(&mut faults, key, &filter[key].to_string(), &tcx[key].to_string());
        }
        let ms = |row| ttft_ns(row).map(|ns| ns / NS_PER_MS);
        match (ms(tcx), ms(filter)) {
            (None, None) => {}
            (Some(one), Some(other)) if (one - other).abs() <= LATE_MS => {}
            (one, other) => faults.push(format!("TTFT by TCX {one:?} ms, by filter {other:?} ms")),
        }
        faults
    }

    fn agent_faults(&self, through_gateway: bool, window: &Window) -> Vec<String> {
        let leg = if through_gateway { "client" } else { "backend" };
        let Some(row) = window.leg(text(&self.request, "trace_id"), leg) else {
            return vec![format!("the agent saw nothing of it on the {leg} leg")];
        };
        let outcome = match self.case.expect.outcome {
            _ if self.gateway_answers(through_gateway) => "http_status",
            StreamOutcome::Unknown(_) => "opaque",
            outcome => outcome.class(),
        };
        let mut faults = Vec::new();
        differ(&mut faults, "the agent's outcome", text(row, "outcome"), outcome);
        if !self.gateway_answers(through_gateway) {
            let framing = framing_word(self.case.expect.framing);
            differ(&mut faults, "the agent's framing", text(row, "framing"), framing);
            self.time_faults(&mut faults, ttft_ns(row));
        }
        faults
    }
}

fn framing_word(framing: ExpectedFraming) -> &'static str {
    match framing {
        ExpectedFraming::Valid => "valid",
        ExpectedFraming::Invalid(_) => "invalid",
        // Cut short: docs/formats.md knows three words.
        ExpectedFraming::Incomplete | ExpectedFraming::Unknown => "unknown",
    }
}

fn differ(faults: &mut Vec<String>, what: &str, got: &str, expected: &str) {
    if got != expected {
        faults.push(format!("{what} is {got}, not {expected}"));
    }
}
