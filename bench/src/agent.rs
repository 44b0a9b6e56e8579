//! `goodput-agent run` as a process, and the calls of its API that the bench needs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::remote::Remote;

/// A running agent on `lo`.
pub(crate) struct Agent {
    pub(crate) remote: Remote,
    api: SocketAddr,
}

#[derive(Deserialize)]
struct Ready {
    api: SocketAddr,
}

/// Parts of a window's account (`docs/agent-api.md`).
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Closing {
    pub(crate) complete: bool,
    pub(crate) reasons: Vec<String>,
    pub(crate) observations: u64,
    pub(crate) counters: Counters,
}

/// Parts of a window's counters.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Counters {
    pub(crate) segments: Class,
    pub(crate) sockets: Class,
    pub(crate) unparsed_packets: u64,
    pub(crate) gaps: u64,
}

/// Records of one class.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Class {
    pub(crate) attempted: u64,
    pub(crate) failed: u64,
    pub(crate) consumed: u64,
}

impl Agent {
    /// Starts an agent that watches `endpoints` and waits until it is attached.
    pub(crate) fn start(binary: &Path, endpoints: &[SocketAddr]) -> anyhow::Result<Self> {
        let mut command = Command::new(binary);
        command.args(["run", "--interface", "lo", "--api", "127.0.0.1:0"]);
        command.env("GOODPUT_LOG", "warn");
        for endpoint in endpoints {
            command.arg("--endpoint").arg(format!("backend={endpoint}"));
        }
        let mut remote = Remote::start(&mut command)?;
        let Ready { api } = remote.line()?;
        Ok(Self { remote, api })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.remote.pid()
    }

    fn call(&self, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        let mut socket = TcpStream::connect(self.api)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        let (api, len) = (self.api, body.len());
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n\
             Content-Length: {len}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        let (head, body) =
            answer.split_once("\r\n\r\n").context("the agent's answer has no head")?;
        ensure!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {head}: {body}");
        Ok(body.to_owned())
    }

    /// Opens a window; answers its id.
    pub(crate) fn open(&self) -> anyhow::Result<String> {
        let opened: Value =
            serde_json::from_str(&self.call("POST", "/v1/windows", r#"{"label":"bench"}"#)?)?;
        Ok(opened["window_id"].as_str().context("no window_id")?.to_owned())
    }

    /// Closes a window, waiting for requests in flight.
    pub(crate) fn close(&self, id: &str) -> anyhow::Result<Closing> {
        let body =
            self.call("POST", &format!("/v1/windows/{id}/close"), r#"{"drain_ms":10000}"#)?;
        Ok(serde_json::from_str(&body)?)
    }

    /// A window's rows, as lines.
    pub(crate) fn rows(&self, id: &str) -> anyhow::Result<String> {
        self.call("GET", &format!("/v1/windows/{id}/observations"), "")
    }

    /// Frees a window.
    pub(crate) fn delete(&self, id: &str) -> anyhow::Result<()> {
        self.call("DELETE", &format!("/v1/windows/{id}"), "").map(drop)
    }

    /// Connections and requests in flight, as the agent tells.
    pub(crate) fn in_flight(&self) -> anyhow::Result<(u64, u64)> {
        let body: Value = serde_json::from_str(&self.call("GET", "/v1/inflight", "")?)?;
        let rows = body["endpoints"].as_array().context("no endpoints")?;
        let sum = |key: &str| rows.iter().filter_map(|row| row[key].as_u64()).sum();
        Ok((sum("connections"), sum("requests")))
    }
}
