//! What of a changed configuration can be applied while the agent runs without privileges
//! (`docs/decisions/`: maps that were opened stay writable, new interfaces would need capabilities).

use crate::config::Config;
use crate::endpoint::Endpoint;

/// The difference of two configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Endpoints to watch from now on, when they differ.
    pub endpoints: Option<Vec<Endpoint>>,
    /// Length of an interval, in nanoseconds, when it differs.
    pub interval_ns: Option<u64>,
    /// Keys that differ and need a restart; their old values stay.
    pub restart: Vec<&'static str>,
}

/// What to change so that an agent that runs with `old` follows `new`. Token and JSONL file are
/// always read and opened again: their content changes under the same name.
#[must_use]
pub fn plan(old: &Config, new: &Config) -> Plan {
    let restart = [
        ("name", old.name != new.name),
        ("interfaces", old.interfaces != new.interfaces),
        ("api", old.api != new.api),
        ("ring_bytes", old.ring_bytes != new.ring_bytes),
        ("request_budget_bytes", old.request_budget_bytes != new.request_budget_bytes),
        ("idle_expiry_s", old.idle_expiry_s != new.idle_expiry_s),
        ("source", old.source != new.source),
        ("loxilb_process", old.loxilb_process != new.loxilb_process),
        ("discovery", old.discovery != new.discovery),
    ];
    Plan {
        endpoints: (old.endpoints != new.endpoints).then(|| new.endpoints.clone()),
        interval_ns: (old.interval_ms != new.interval_ms).then(|| new.interval_ms * 1_000_000),
        restart: restart.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect(),
    }
}

/// The configuration in force after `plan` was applied: `old` where a restart is needed.
#[must_use]
pub fn in_force(old: &Config, new: Config) -> Config {
    Config {
        endpoints: new.endpoints,
        interval_ms: new.interval_ms,
        jsonl: new.jsonl,
        token_file: new.token_file,
        ..old.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn config(change: impl FnOnce(&mut Settings)) -> Config {
        let mut settings = Settings {
            interfaces: vec!["lo".to_owned()],
            endpoints: vec!["vip=127.0.0.1:80".parse().unwrap()],
            ..Default::default()
        };
        change(&mut settings);
        settings.complete("host").unwrap()
    }

    #[test]
    fn endpoints_and_interval_change_at_once_and_the_rest_waits_for_a_restart() {
        let old = config(|_| ());
        let new = config(|it| {
            it.endpoints.push("backend=127.0.0.1:81".parse().unwrap());
            it.interval_ms = Some(7);
            it.ring_bytes = Some(4096);
            it.interfaces.push("eth0".to_owned());
        });
        let plan = plan(&old, &new);
        assert_eq!(plan.endpoints.as_ref().map(Vec::len), Some(2));
        assert_eq!(plan.interval_ns, Some(7_000_000));
        assert_eq!(plan.restart, ["interfaces", "ring_bytes"]);
        let now = in_force(&old, new);
        assert_eq!((now.interval_ms, now.ring_bytes), (7, old.ring_bytes));
        assert_eq!(now.interfaces, ["lo"]);
    }

    #[test]
    fn nothing_changes_where_nothing_differs() {
        assert_eq!(plan(&config(|_| ()), &config(|_| ())), Plan::default());
    }
}
