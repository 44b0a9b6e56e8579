//! `goodput-agent top` in a terminal multiplexer, read off the screen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use agent::metrics::{Families, parse};
use nix::sys::signal::Signal;

use crate::common::kernel_available;
use crate::live::{Live, json, post, scripted, send, stream, until};

/// A server of its own, ended when dropped.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn start(socket: PathBuf, columns: &str, command: &str) -> Self {
        let tmux = Self { socket };
        let size = ["-x", columns, "-y", "24"];
        tmux.run(&[&["new-session", "-d", "-s", "top"], &size[..], &[command]].concat());
        tmux
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null", "-u"]).args(arguments);
        command.env("LANG", "C.UTF-8").env("TERM", "xterm-256color").env_remove("TMUX");
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p", "-t", "top"])
    }

    fn press(&self, key: &str) {
        self.run(&["send-keys", "-t", "top", key]);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// The sum of a family's samples of one endpoint, read without the code that draws.
fn sum(families: &Families, family: &str, endpoint: &str, unwanted: &[&str]) -> f64 {
    let samples = families[family].samples.iter();
    let own = samples.filter(|it| it.labels.get("endpoint").map(String::as_str) == Some(endpoint));
    let wanted =
        own.filter(|it| it.labels.get("outcome").is_none_or(|it| !unwanted.contains(&&**it)));
    wanted.map(|it| it.value).sum()
}

fn plain(families: &Families, family: &str) -> f64 {
    families[family].samples[0].value
}

/// The median by `histogram_quantile`'s rule, in milliseconds as shown.
fn median_ms(families: &Families, family: &str, endpoint: &str) -> String {
    let buckets: Vec<(f64, f64)> = families[family]
        .samples
        .iter()
        .filter(|it| it.labels.get("endpoint").map(String::as_str) == Some(endpoint))
        .filter_map(|it| {
            Some((it.labels.get("le")?.replace("+Inf", "inf").parse().ok()?, it.value))
        })
        .collect();
    let rank = buckets.last().unwrap().1 / 2.0;
    let at = buckets.iter().position(|(_, count)| *count >= rank && *count > 0.0).unwrap();
    let (low, below) = if at == 0 { (0.0, 0.0) } else { buckets[at - 1] };
    let (high, count) = buckets[at];
    format!("{:.1}", (low + (high - low) * (rank - below) / (count - below)) * 1000.0)
}

/// The row of an endpoint, by column.
fn cells(screen: &str, endpoint: &str) -> Vec<String> {
    let line = screen.lines().find(|line| line.contains(endpoint)).unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

fn compare(screen: &str, families: &Families, endpoints: &[String]) {
    let tick = plain(families, "goodput_agent_ticks");
    let stamp = plain(families, "goodput_agent_tick_timestamp_seconds");
    assert!(screen.contains(&format!("tick {tick} at {stamp:.3}")), "{tick} {stamp}\n{screen}");
    let complete = plain(families, "goodput_agent_complete") > 0.0;
    assert_eq!(screen.contains("INCOMPLETE"), !complete, "{screen}");
    for endpoint in endpoints {
        let of = |family: &str| sum(families, family, endpoint, &[]).to_string();
        let cells = cells(screen, endpoint);
        assert_eq!(cells[3], of("goodput_agent_requests_in_flight"), "{screen}");
        assert_eq!(cells[4], of("goodput_agent_connections"), "{screen}");
        assert_eq!(cells[5], of("goodput_agent_requests"), "{screen}");
        let ttft = "goodput_agent_time_to_first_token_seconds";
        assert_eq!(cells[7], median_ms(families, ttft, endpoint), "{screen}");
        let errors = sum(families, "goodput_agent_requests", endpoint, &["ok", "single_token"]);
        assert_eq!(cells.last().unwrap(), &errors.to_string(), "{screen}");
    }
}

/// What the shown tick was drawn from, once no other is taken.
fn paused(tmux: &Tmux, dump: &Path) -> (String, Families) {
    tmux.press("p");
    let screen = until("a paused screen", || {
        let screen = tmux.screen();
        screen.contains("paused").then_some(screen)
    });
    (screen, parse(&fs::read_to_string(dump).unwrap()).unwrap())
}

#[test]
fn the_values_on_screen_are_those_of_the_same_ticks_metrics() {
    if !kernel_available("top in tmux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let answer = |tokens: usize| stream("", &vec!["token"; tokens]);
    let failing = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec();
    let servers =
        [scripted(vec![answer(3), answer(5), failing.clone()]), scripted(vec![answer(2), failing])];
    let endpoints = servers.map(|address| address.to_string());
    let arguments = endpoints.each_ref().map(|it| format!("backend={it}"));
    let arguments = ["--endpoint", &arguments[0], "--endpoint", &arguments[1]];
    let agent = Live::start(folder.path(), &arguments, "info");
    for (number, server) in [0, 0, 0, 1].into_iter().enumerate() {
        send(servers[server], &post(u8::try_from(number).unwrap(), "", "{}"));
    }
    // One stays in flight: its request does not end.
    let mut open = std::net::TcpStream::connect(servers[1]).unwrap();
    std::io::Write::write_all(&mut open, &post(9, "", "{}")).unwrap();
    until("one request in flight", || {
        let rows = json(&agent.call("GET", "/v1/inflight", "", ""));
        let busy = rows["endpoints"].as_array().unwrap().iter().any(|it| it["requests"] == 1);
        busy.then_some(())
    });
    let dump = folder.path().join("tick");
    let command = format!(
        "{} top --api http://{} --interval-ms 200 --dump {}",
        env!("CARGO_BIN_EXE_goodput-agent"),
        agent.api,
        dump.display()
    );
    let tmux = Tmux::start(folder.path().join("tmux"), "130", &command);
    until("a second tick", || tmux.screen().contains("0.0").then_some(()));
    let (screen, families) = paused(&tmux, &dump);
    compare(&screen, &families, &endpoints);
    assert_eq!(sum(&families, "goodput_agent_requests", &endpoints[0], &[]), 3.0);
    assert!(cells(&screen, &endpoints[1])[2].contains('#'), "the bar of the busy one: {screen}");

    tmux.press("p");
    agent.signal(Signal::SIGTERM);
    until("the loss of the agent", || tmux.screen().contains("NOT CONNECTED").then_some(()));
    tmux.press("q");
}
