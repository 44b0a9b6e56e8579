//! Configuration: a TOML file, then flags, which win.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::capture::tcx::{DEFAULT_REQUEST_BUDGET, DEFAULT_RING_BYTES, Method};
use crate::discovery;
use crate::endpoint::Endpoint;
use crate::evidence::DEFAULT_PROCESS;

/// Address of the API when nothing else is said.
pub const DEFAULT_API: &str = "127.0.0.1:9911";
/// Length of an interval of `inflight.jsonl`, in milliseconds, when nothing else is said.
pub const DEFAULT_INTERVAL_MS: u64 = 100;

/// Silence after which an estimated connection counts no more, in seconds, when nothing else is said.
pub const DEFAULT_IDLE_EXPIRY_S: u64 = 300;

/// Time between two readings of LoxiLB's rules, in milliseconds, when nothing else is said.
pub const DEFAULT_DISCOVERY_INTERVAL_MS: u64 = 5000;

/// Where records come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// TCX where the kernel has it, else socket filters.
    #[default]
    Auto,
    /// TCX links: Linux 6.6 or later.
    Tcx,
    /// Filters on packet sockets.
    SocketFilter,
}

impl SourceKind {
    /// The method that is asked for, if one is.
    #[must_use]
    pub const fn method(self) -> Option<Method> {
        match self {
            Self::Auto => None,
            Self::Tcx => Some(Method::Tcx),
            Self::SocketFilter => Some(Method::SocketFilter),
        }
    }
}

/// Settings, each of which may be missing: the file's form, and the flags'.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Name of this agent in its status [default: the host's name]
    #[arg(long)]
    pub name: Option<String>,
    /// Interface to watch; may be given several times
    #[arg(long = "interface", value_name = "NAME")]
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// Server to watch, as ROLE=ADDRESS:PORT with role vip, backend, prefill or decode; may be given
    /// several times
    #[arg(long = "endpoint", value_name = "ROLE=ADDRESS:PORT")]
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    /// Address of the HTTP API; port 0 takes a free one [default: 127.0.0.1:9911]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub api: Option<String>,
    /// File with the token that API calls must bear
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// File to which every observation is appended
    #[arg(long, value_name = "FILE")]
    pub jsonl: Option<PathBuf>,
    /// Size of the ring buffer: a power of two [default: 16777216]
    #[arg(long, value_name = "BYTES")]
    pub ring_bytes: Option<u32>,
    /// Bytes copied of each request [default: 65536]
    #[arg(long, value_name = "BYTES")]
    pub request_budget_bytes: Option<u32>,
    /// Length of an interval of the in-flight record [default: 100]
    #[arg(long, value_name = "MS")]
    pub interval_ms: Option<u64>,
    /// Silence after which a connection whose socket is on another host counts no more
    /// [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub idle_expiry_s: Option<u64>,
    /// Where records come from [default: auto]
    #[arg(long)]
    pub source: Option<SourceKind>,
    /// Name of LoxiLB's process, for /v1/evidence [default: loxilb]
    #[arg(long, value_name = "NAME")]
    pub loxilb_process: Option<String>,
    /// See [`DiscoverySettings`].
    #[command(flatten)]
    #[serde(default)]
    pub discovery: DiscoverySettings,
}

/// Table `[discovery]`: endpoints read back from LoxiLB besides those that are named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct DiscoverySettings {
    /// Read VIPs and backends from LoxiLB's API, and keep them current
    #[arg(id = "loxilb_url", long = "discover", value_name = "URL")]
    pub loxilb_url: Option<String>,
    /// Time between two readings [default: 5000]
    #[arg(id = "discover_interval_ms", long = "discover-interval-ms", value_name = "MS")]
    pub interval_ms: Option<u64>,
}

impl DiscoverySettings {
    fn over(self, under: Self) -> Self {
        Self {
            loxilb_url: self.loxilb_url.or(under.loxilb_url),
            interval_ms: self.interval_ms.or(under.interval_ms),
        }
    }

    fn complete(self) -> Result<Option<discovery::Plan>, ConfigError> {
        let interval_ms = self.interval_ms.unwrap_or(DEFAULT_DISCOVERY_INTERVAL_MS);
        if !(100..=3_600_000).contains(&interval_ms) {
            let what = format!("discovery.interval_ms is {interval_ms}");
            return Err(refused(what, "set it between 100 and 3600000"));
        }
        let interval = std::time::Duration::from_millis(interval_ms);
        let Some(url) = self.loxilb_url else { return Ok(None) };
        let target: discovery::Target = url.parse().map_err(|error: discovery::TargetError| {
            refused(format!("discovery.loxilb_url: {error}"), "or leave it out")
        })?;
        Ok(Some(discovery::Plan { target, interval }))
    }
}

/// A complete configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// See [`Settings::name`].
    pub name: String,
    /// See [`Settings::interfaces`].
    pub interfaces: Vec<String>,
    /// See [`Settings::endpoints`]; sorted by address.
    pub endpoints: Vec<Endpoint>,
    /// See [`Settings::api`].
    pub api: std::net::SocketAddr,
    /// See [`Settings::token_file`].
    pub token_file: Option<PathBuf>,
    /// See [`Settings::jsonl`].
    pub jsonl: Option<PathBuf>,
    /// See [`Settings::ring_bytes`].
    pub ring_bytes: u32,
    /// See [`Settings::request_budget_bytes`].
    pub request_budget_bytes: u32,
    /// See [`Settings::interval_ms`].
    pub interval_ms: u64,
    /// See [`Settings::idle_expiry_s`].
    pub idle_expiry_s: u64,
    /// See [`Settings::source`].
    pub source: SourceKind,
    /// See [`Settings::loxilb_process`].
    pub loxilb_process: String,
    /// See [`Settings::discovery`].
    pub discovery: Option<discovery::Plan>,
}

/// A configuration that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{}: {source}; name a readable file with --config", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not of the known form.
    #[error("{}: {reason}; `goodput-agent run --help` and docs/agent.md list the keys", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, column and what is wrong there.
        reason: Box<toml::de::Error>,
    },
    /// A value can't be used.
    #[error("{what}; {mend}")]
    Value {
        /// What is wrong.
        what: String,
        /// What to do about it.
        mend: &'static str,
    },
}

/// What the API tells is worth knowing to others: beyond this host it needs a token.
fn ensure_closed(api: std::net::SocketAddr, token: Option<&Path>) -> Result<(), ConfigError> {
    if api.ip().to_canonical().is_loopback() || token.is_some() {
        return Ok(());
    }
    Err(refused(
        format!("the API on {api} would be open to the network"),
        "protect it with --token-file, or keep it on 127.0.0.1",
    ))
}

fn refused(what: impl Into<String>, mend: &'static str) -> ConfigError {
    ConfigError::Value { what: what.into(), mend }
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`] and [`ConfigError::Malformed`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|reason| ConfigError::Malformed {
            path: path.to_owned(),
            reason: Box::new(reason),
        })
    }

    /// These settings, and those of `under` where these are missing.
    #[must_use]
    pub fn over(self, under: Self) -> Self {
        let list = |own: Vec<String>, other| if own.is_empty() { other } else { own };
        Self {
            name: self.name.or(under.name),
            interfaces: list(self.interfaces, under.interfaces),
            endpoints: if self.endpoints.is_empty() { under.endpoints } else { self.endpoints },
            api: self.api.or(under.api),
            token_file: self.token_file.or(under.token_file),
            jsonl: self.jsonl.or(under.jsonl),
            ring_bytes: self.ring_bytes.or(under.ring_bytes),
            request_budget_bytes: self.request_budget_bytes.or(under.request_budget_bytes),
            interval_ms: self.interval_ms.or(under.interval_ms),
            idle_expiry_s: self.idle_expiry_s.or(under.idle_expiry_s),
            source: self.source.or(under.source),
            loxilb_process: self.loxilb_process.or(under.loxilb_process),
            discovery: self.discovery.over(under.discovery),
        }
    }

    /// Fills in defaults and checks values.
    ///
    /// # Errors
    /// [`ConfigError::Value`].
    pub fn complete(self, host: &str) -> Result<Config, ConfigError> {
        if self.interfaces.is_empty() {
            return Err(refused(
                "no interface is named",
                "name one with --interface, for example lo",
            ));
        }
        let discovery = self.discovery.complete()?;
        let mut endpoints = self.endpoints;
        endpoints.sort_unstable();
        if endpoints.is_empty() && discovery.is_none() {
            return Err(refused(
                "no endpoint is named",
                "name one with --endpoint, for example vip=10.0.0.10:8000, or --discover LoxiLB's API",
            ));
        }
        if let Some(pair) = endpoints.windows(2).find(|pair| pair[0].address == pair[1].address) {
            let what = format!("endpoint {} is named twice", pair[0].address);
            return Err(refused(what, "name it once, with one role"));
        }
        let api = self.api.as_deref().unwrap_or(DEFAULT_API);
        let api: std::net::SocketAddr = api.parse().map_err(|_| {
            let what = format!("api: `{api}` is no address with a port");
            refused(what, "write it as 127.0.0.1:9911")
        })?;
        ensure_closed(api, self.token_file.as_deref())?;
        let interval_ms = self.interval_ms.unwrap_or(DEFAULT_INTERVAL_MS);
        if !(1..=3_600_000).contains(&interval_ms) {
            let what = format!("interval_ms is {interval_ms}");
            return Err(refused(what, "set it between 1 and 3600000"));
        }
        let idle_expiry_s = self.idle_expiry_s.unwrap_or(DEFAULT_IDLE_EXPIRY_S);
        if !(1..=604_800).contains(&idle_expiry_s) {
            let what = format!("idle_expiry_s is {idle_expiry_s}");
            return Err(refused(what, "set it between 1 and 604800"));
        }
        Ok(Config {
            name: self.name.unwrap_or_else(|| host.to_owned()),
            interfaces: self.interfaces,
            endpoints,
            api,
            token_file: self.token_file,
            jsonl: self.jsonl,
            ring_bytes: self.ring_bytes.unwrap_or(DEFAULT_RING_BYTES),
            request_budget_bytes: self.request_budget_bytes.unwrap_or(DEFAULT_REQUEST_BUDGET),
            interval_ms,
            idle_expiry_s,
            source: self.source.unwrap_or_default(),
            loxilb_process: self.loxilb_process.unwrap_or_else(|| DEFAULT_PROCESS.to_owned()),
            discovery,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_file_is_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/agent.toml");
        let config = Settings::read(Path::new(path)).unwrap().complete("host").unwrap();
        assert_eq!(config.name, "demo");
        assert_eq!(config.endpoints.len(), 6);
        assert_eq!(config.interval_ms, 100);
    }

    #[test]
    fn unknown_keys_and_values_name_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.toml");
        for (text, line, what) in [
            ("name = \"a\"\nring = 5\n", "line 2", "unknown field `ring`"),
            (
                "[[endpoints]]\naddress = \"10.0.0.1\"\nrole = \"vip\"\n",
                "line 2",
                "no address with a port",
            ),
            (
                "[[endpoints]]\naddress = \"10.0.0.1:1\"\nrole = \"boss\"\n",
                "line 3",
                "unknown variant",
            ),
            ("interval_ms = -1\n", "line 1", "invalid value"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Settings::read(&path).unwrap_err().to_string();
            assert!(error.contains("agent.toml") && error.contains(line), "{error}");
            assert!(error.contains(what) && error.contains("--help"), "{error}");
        }
        let missing = Settings::read(&folder.path().join("none.toml")).unwrap_err().to_string();
        assert!(missing.contains("none.toml") && missing.contains("--config"), "{missing}");
    }

    #[test]
    fn sources_are_written_in_the_file_as_on_the_command_line() {
        for (text, expected) in [
            ("auto", SourceKind::Auto),
            ("tcx", SourceKind::Tcx),
            ("socket-filter", SourceKind::SocketFilter),
        ] {
            let settings: Settings = toml::from_str(&format!("source = \"{text}\"")).unwrap();
            assert_eq!(settings.source, Some(expected));
            let flag = <SourceKind as clap::ValueEnum>::from_str(text, false);
            assert_eq!(flag, Ok(expected));
            let name = expected.method().map_or("auto", Method::name);
            assert_eq!(name, text);
        }
    }

    #[test]
    fn flags_win_over_the_file() {
        let file =
            Settings { interval_ms: Some(5), name: Some("file".into()), ..Default::default() };
        let flags = Settings { name: Some("flag".into()), ..Default::default() };
        let both = flags.over(file);
        assert_eq!((both.name.as_deref(), both.interval_ms), (Some("flag"), Some(5)));
    }

    #[test]
    fn incomplete_and_contradictory_settings_name_the_mend() {
        let endpoint = |text: &str| text.parse::<Endpoint>().unwrap();
        let whole = Settings {
            interfaces: vec!["lo".into()],
            endpoints: vec![endpoint("vip=127.0.0.1:80")],
            ..Default::default()
        };
        assert!(whole.clone().complete("h").is_ok());
        let discovery = |url: &str, interval_ms| DiscoverySettings {
            loxilb_url: Some(url.to_owned()),
            interval_ms,
        };
        let found = Settings {
            endpoints: vec![],
            discovery: discovery("http://127.0.0.1:11111", None),
            ..whole.clone()
        };
        assert!(found.complete("h").unwrap().endpoints.is_empty());
        let refused = [
            Settings { interfaces: vec![], ..whole.clone() },
            Settings { endpoints: vec![], ..whole.clone() },
            Settings {
                endpoints: vec![endpoint("vip=127.0.0.1:80"), endpoint("backend=127.0.0.1:80")],
                ..whole.clone()
            },
            Settings { api: Some("nowhere".into()), ..whole.clone() },
            Settings { interval_ms: Some(0), ..whole.clone() },
            Settings { idle_expiry_s: Some(0), ..whole.clone() },
            Settings { discovery: discovery("http://localhost:11111", None), ..whole.clone() },
            Settings { discovery: discovery("http://127.0.0.1:11111", Some(1)), ..whole.clone() },
            Settings { api: Some("0.0.0.0:9911".into()), ..whole.clone() },
            Settings { api: Some("[::]:9911".into()), ..whole },
        ];
        for settings in refused {
            let error = settings.complete("h").unwrap_err();
            assert!(matches!(error, ConfigError::Value { .. }), "{error}");
        }
        assert!("boss=1.2.3.4:5".parse::<Endpoint>().unwrap_err().contains("no role"));
        assert!("vip=1.2.3.4".parse::<Endpoint>().unwrap_err().contains("no address"));
    }
}
