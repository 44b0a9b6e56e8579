//! The TOML form of a fleet, with the addresses, names and limits of it checked.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::places::Places;
use super::{
    BackendConfig, EndpointRef, EngineConfig, FleetConfig, GatewayConfig, GatewayKeepAlive,
    KeepAliveLimits, PolicyConfig, loopback_any,
};
use crate::error::FleetError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FleetFile {
    request_log: Option<PathBuf>,
    pub(super) engine: Option<Spanned<toml::Table>>,
    #[serde(default)]
    pub(super) backend: Vec<Spanned<BackendFile>>,
    #[serde(default)]
    pub(super) gateway: Vec<Spanned<GatewayFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackendFile {
    pub(super) name: String,
    #[serde(default = "loopback_any")]
    listen: SocketAddr,
    pub(super) engine: Option<Spanned<toml::Table>>,
    #[serde(default)]
    keep_alive: KeepAliveLimits,
    fault: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GatewayFile {
    pub(super) name: String,
    #[serde(default = "loopback_any")]
    vip: SocketAddr,
    #[serde(default = "loopback_any")]
    rest: SocketAddr,
    #[serde(default)]
    endpoints: Vec<String>,
    #[serde(default)]
    prefill: Vec<String>,
    policy: PolicyConfig,
    metrics_tick_s: Option<u32>,
    log_file: Option<PathBuf>,
    keep_alive: Option<GatewayKeepAlive>,
    fault: Option<String>,
}

impl FleetConfig {
    /// Reads and checks a fleet file.
    ///
    /// # Errors
    /// When it cannot be read, is not valid TOML, has an unknown key, or contradicts itself.
    pub fn from_path(path: &Path) -> Result<Self, FleetError> {
        let read = |source| FleetError::Read { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(read)?;
        Self::from_toml(&text).map_err(|e| e.within(path.display()))
    }

    /// Reads and checks the text of a fleet file.
    ///
    /// # Errors
    /// When it is not valid TOML, has an unknown key, or contradicts itself.
    pub fn from_toml(text: &str) -> Result<Self, FleetError> {
        let file: FleetFile = toml::from_str(text).map_err(|e| FleetError::Parse(e.to_string()))?;
        let places = Places::new(&file, text);
        let fleet = file.fleet().map_err(|e| places.locate(e))?;
        fleet.validate().map_err(|e| places.locate(e))?;
        Ok(fleet)
    }

    /// Checks names, references and limits.
    ///
    /// # Errors
    /// At the first contradiction found.
    pub fn validate(&self) -> Result<(), FleetError> {
        if self.backends.is_empty() && self.gateways.is_empty() {
            return Err(FleetError::invalid(
                "fleet",
                "nothing to run",
                "add at least one [[backend]] or [[gateway]] table",
            ));
        }
        unique("backend", self.backends.iter().map(|b| b.name.as_str()))?;
        unique("gateway", self.gateways.iter().map(|g| g.name.as_str()))?;
        for backend in &self.backends {
            backend.engine.validate(&format!("backend {:?}.engine", backend.name))?;
        }
        self.gateways.iter().try_for_each(|g| self.validate_gateway(g))
    }

    fn validate_gateway(&self, gateway: &GatewayConfig) -> Result<(), FleetError> {
        let place = format!("gateway {:?}.endpoints", gateway.name);
        if gateway.endpoints.is_empty() {
            return Err(FleetError::invalid(place, "no endpoint", "name a backend or an address"));
        }
        for endpoint in gateway.endpoints.iter().chain(&gateway.prefill) {
            let EndpointRef::Backend(name) = endpoint else { continue };
            if !self.backends.iter().any(|b| b.name == *name) {
                let problem = format!("no backend is called {name:?}");
                let mend = "name a [[backend]] of this file, or an address such as 10.0.0.2:8000";
                return Err(FleetError::invalid(place, problem, mend));
            }
        }
        if gateway.policy.load_factor_percent < 100 || gateway.policy.hash_blocks == 0 {
            let place = format!("gateway {:?}.policy", gateway.name);
            let problem = "load_factor_percent below 100 or hash_blocks of 0";
            return Err(FleetError::invalid(place, problem, "use at least 100, and at least 1"));
        }
        let tokenizer = gateway.policy.tokenizer();
        if tokenizer.block_tokens == 0 || tokenizer.bytes_per_token == 0 {
            let place = format!("gateway {:?}.policy", gateway.name);
            return Err(FleetError::invalid(place, "a block of 0 bytes", "use 1 or more"));
        }
        Ok(())
    }
}

impl FleetFile {
    fn fleet(self) -> Result<FleetConfig, FleetError> {
        let engine = engine("engine", self.common_engine())?;
        let backends: Vec<_> = self
            .backend
            .iter()
            .map(|b| backend(self.common_engine(), b.get_ref()))
            .collect::<Result<_, _>>()?;
        let gateways: Vec<_> = self
            .gateway
            .iter()
            .map(|g| gateway(g.get_ref(), &engine, &backends))
            .collect::<Result<_, _>>()?;
        Ok(FleetConfig { request_log: self.request_log, backends, gateways })
    }

    fn common_engine(&self) -> toml::Table {
        self.engine.as_ref().map(|it| it.get_ref().clone()).unwrap_or_default()
    }
}

fn engine(place: &str, table: toml::Table) -> Result<EngineConfig, FleetError> {
    table.try_into().map_err(|e: toml::de::Error| {
        FleetError::invalid(place, e.message(), "`simfleet example` shows every key")
    })
}

fn backend(mut table: toml::Table, b: &BackendFile) -> Result<BackendConfig, FleetError> {
    table.extend(b.engine.iter().flat_map(|it| it.get_ref().clone()));
    let place = format!("backend {:?}", b.name);
    Ok(BackendConfig {
        name: b.name.clone(),
        listen: b.listen,
        engine: engine(&format!("{place}.engine"), table)?,
        keep_alive: b.keep_alive,
        fault: fault(&place, b.fault.as_deref())?,
    })
}

fn gateway(
    g: &GatewayFile,
    engine: &EngineConfig,
    backends: &[BackendConfig],
) -> Result<GatewayConfig, FleetError> {
    let decodes = |b: &&BackendConfig| !g.prefill.contains(&b.name);
    let named = |b: &BackendConfig| EndpointRef::Backend(b.name.clone());
    let all = || backends.iter().filter(decodes).map(named).collect();
    let listed = || g.endpoints.iter().map(|e| endpoint(e)).collect();
    let mut policy = g.policy.clone();
    policy.block_tokens.get_or_insert(engine.block_tokens);
    policy.bytes_per_token.get_or_insert(engine.bytes_per_token);
    Ok(GatewayConfig {
        name: g.name.clone(),
        vip: g.vip,
        rest: g.rest,
        endpoints: if g.endpoints.is_empty() { all() } else { listed() },
        prefill: g.prefill.iter().map(|e| endpoint(e)).collect(),
        policy,
        metrics_tick: g.metrics_tick_s.map(|s| Duration::from_secs(u64::from(s))),
        log_file: g.log_file.clone(),
        keep_alive: g.keep_alive,
        fault: fault(&format!("gateway {:?}", g.name), g.fault.as_deref())?,
    })
}

fn endpoint(text: &str) -> EndpointRef {
    match text.parse() {
        Ok(addr) => EndpointRef::Address(addr),
        Err(_) => EndpointRef::Backend(text.to_owned()),
    }
}

fn fault<F>(place: &str, name: Option<&str>) -> Result<Option<F>, FleetError>
where
    F: FromStr,
    F::Err: std::fmt::Display,
{
    let invalid = |e: F::Err| {
        FleetError::invalid(format!("{place}.fault"), e.to_string(), "use a name from that list")
    };
    name.map(|n| n.parse().map_err(invalid)).transpose()
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), FleetError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let problem = format!("two are called {name:?}");
            let place = format!("{kind} {name:?}");
            return Err(FleetError::invalid(place, problem, "give each its own name"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::{Algorithm, EndpointRef, FleetConfig};

    #[test]
    fn a_backends_engine_table_overrides_the_common_one_key_by_key() {
        let text = "
            [engine]
            slots = 3
            block_tokens = 32
            [[backend]]
            name = 'a'
            [[backend]]
            name = 'b'
            engine = { slots = 9 }
            [[gateway]]
            name = 'g'
            policy = { algorithm = 'cache_aware' }
        ";
        let fleet = FleetConfig::from_toml(text).unwrap();
        let slots: Vec<_> = fleet.backends.iter().map(|b| b.engine.slots).collect();
        assert_eq!(slots, [3, 9]);
        assert_eq!(fleet.backends[1].engine.block_tokens, 32);
        let gateway = &fleet.gateways[0];
        assert_eq!(gateway.policy.algorithm, Algorithm::CacheAware);
        assert_eq!(gateway.policy.tokenizer().block_tokens, 32);
        assert_eq!(gateway.endpoints[1], EndpointRef::Backend("b".into()));
    }

    #[test]
    fn bad_files_are_refused_and_the_error_names_the_place() {
        let cases = [
            ("", "nothing to run"),
            ("sped = 1", "sped"),
            ("[[backend]]\nname='a'\n[backend.engine]\nslot = 1", "slot"),
            ("[[backend]]\nname='a'\nengine={slots=0}", "slots"),
            ("[[backend]]\nname='a'\n[[backend]]\nname='a'", "two are called"),
            ("[[backend]]\nname='a'\nfault='nope'", "nope"),
            ("[[backend]]\nname='a'\nlisten='nowhere'", "listen"),
            ("[[gateway]]\nname='g'\nendpoints=['x']\npolicy={algorithm='round_robin'}", "\"x\""),
            ("[[gateway]]\nname='g'\npolicy={algorithm='best'}", "best"),
            (
                "[[gateway]]\nname='g'\nendpoints=['1.2.3.4:5']\n\
                 policy={algorithm='bounded_load_hash',load_factor_percent=99}",
                "load_factor_percent",
            ),
            ("[engine]\ndecode_slowdown_per_active = nan\n[[backend]]\nname='a'", "NaN"),
        ];
        for (text, word) in cases {
            let error = FleetConfig::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn every_mistake_in_a_table_is_told_with_its_line() {
        let head = "# a comment\n[engine]\nslots = 3\n\n[[backend]]\nname = 'a'\n";
        let policy = "policy = { algorithm = 'round_robin' }\n";
        let gateway = format!("[[gateway]]\nname = 'g'\n{policy}");
        let cases = [
            ("[engine]\nslot = 1\n[[backend]]\nname = 'a'\n".to_owned(), 1),
            (format!("{head}[backend.engine]\nslot = 1\n"), 7),
            (format!("{head}engine = {{ slots = 0 }}\n"), 7),
            (format!("{head}fault = 'nope'\n"), 5),
            (format!("{head}[[backend]]\nname = 'a'\n"), 7),
            (format!("{head}{gateway}endpoints = ['x']\n"), 7),
            (format!("{head}{gateway}fault = 'nope'\n"), 7),
            (format!("{head}bogus = 1\n"), 7),
        ];
        for (text, line) in cases {
            let error = FleetConfig::from_toml(&text).unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}")), "{text}\n{error}");
        }
    }
}
