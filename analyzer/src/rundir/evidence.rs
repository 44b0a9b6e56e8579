//! `evidence.json`: what the agents told of the gateway's host around one repetition.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Expected;
use crate::records::Versioned;

/// What every agent told before and after one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Name of the arm.
    pub arm: String,
    /// One per agent of the campaign.
    pub agents: Vec<AgentEvidence>,
}

impl Versioned for EvidenceFile {
    const SCHEMA: &'static str = "goodput.host-evidence/1";
}

/// What one agent told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentEvidence {
    /// Its name in the campaign.
    pub name: String,
    /// Before the repetition.
    pub before: Told,
    /// After it.
    pub after: Told,
}

/// An answer of `/v1/evidence` (`goodput.evidence/1`), or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// As answered.
    Evidence(Value),
    /// Why not.
    Problem(String),
}

impl Told {
    fn processes(&self) -> Option<&Vec<Value>> {
        match self {
            Self::Evidence(evidence) => evidence["processes"]["value"].as_array(),
            Self::Problem(_) => None,
        }
    }

    /// The gateway's processes, by id and start; nothing where they are unknown.
    fn starts(&self) -> Option<BTreeSet<(u64, u64)>> {
        let start = |it: &Value| Some((it["pid"].as_u64()?, it["started_boottime_ns"].as_u64()?));
        self.processes()?.iter().map(start).collect()
    }

    /// Routing modes that the gateway's processes were started with, where one is set and known.
    fn lb_modes(&self) -> BTreeSet<&str> {
        let all = self.processes().into_iter().flatten();
        all.filter_map(|it| it["environment"]["value"]["LOXILB_KV_LB_MODE"].as_str()).collect()
    }
}

impl EvidenceFile {
    /// Where the hosts contradict what the arm expects, in words: another routing mode in the environment
    /// of every process, or a gateway that was started anew.
    #[must_use]
    pub fn mismatches(&self, expected: &Expected) -> Vec<String> {
        self.agents.iter().flat_map(|agent| agent.mismatches(expected)).collect()
    }
}

impl AgentEvidence {
    fn mismatches(&self, expected: &Expected) -> Vec<String> {
        let mut found = Vec::new();
        let starts = self.before.starts().zip(self.after.starts());
        if starts.is_some_and(|(before, after)| before != after) {
            found.push(format!(
                "the gateway's process was started or ended during the repetition (agent {})",
                self.name
            ));
        }
        let modes = self.after.lb_modes();
        if let Some(wanted) = &expected.lb_mode
            && !modes.is_empty()
            && !modes.contains(wanted.as_str())
        {
            let modes: Vec<&str> = modes.into_iter().collect();
            found.push(format!(
                "LOXILB_KV_LB_MODE of the gateway's process is {}, expected {wanted} (agent {})",
                modes.join(" and "),
                self.name
            ));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(start: u64, mode: Option<&str>) -> Told {
        Told::Evidence(
            json!({"schema": "goodput.evidence/1", "processes": {"state": "known", "value": [{
                "pid": 7,
                "started_boottime_ns": start,
                "environment": {"state": "known", "value": {"LOXILB_KV_LB_MODE": mode}},
            }]}}),
        )
    }

    fn mismatches(before: Told, after: Told) -> Vec<String> {
        let file = EvidenceFile {
            schema: EvidenceFile::SCHEMA.to_owned(),
            arm: "aware".to_owned(),
            agents: vec![AgentEvidence { name: "host".to_owned(), before, after }],
        };
        let text = serde_json::to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<EvidenceFile>(&text).unwrap(), file);
        let expected = Expected { lb_mode: Some("hard".to_owned()), ..Expected::default() };
        file.mismatches(&expected)
    }

    #[test]
    fn a_restart_and_another_mode_are_told() {
        assert!(mismatches(told(1, Some("hard")), told(1, Some("hard"))).is_empty());
        let restarted = mismatches(told(1, Some("hard")), told(2, Some("hard")));
        assert!(restarted[0].contains("started or ended"), "{restarted:?}");
        let soft = mismatches(told(1, Some("soft")), told(1, Some("soft")));
        assert!(soft[0].contains("is soft, expected hard (agent host)"), "{soft:?}");
    }

    #[test]
    fn what_is_unknown_contradicts_nothing() {
        let problem = || Told::Problem("status 404".to_owned());
        assert!(mismatches(problem(), problem()).is_empty());
        assert!(mismatches(told(1, None), told(1, None)).is_empty());
        let unknown = || Told::Evidence(json!({"processes": {"state": "unknown", "why": "x"}}));
        assert!(mismatches(unknown(), told(1, Some("hard"))).is_empty());
        let nobody = || Told::Evidence(json!({"processes": {"state": "known", "value": []}}));
        assert!(mismatches(nobody(), nobody()).is_empty());
    }
}
