//! Everything that can be checked before a byte is sent or written.

use std::path::{Path, PathBuf};

use crate::agent_client::Agent;
use crate::campaign::{Api as ApiKey, ArmKeys, Arrivals as ArrivalsKey, Campaign, LengthControl};
use crate::control::Control;
use crate::gateway::Gateway;
use crate::input::read_regular;
use crate::prompt::{Api, BodyOptions};
use crate::replay::{BearerToken, Target};
use crate::run::RunError;
use crate::rundir::{Manifest, RunDir, read_json, resume_command, strangers};
use crate::schedule::{Arrivals, Plan, Schedule, build};
use crate::trace::{LoadOptions, Trace, load};

/// What to do with a run directory that holds a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Refuse.
    #[default]
    Refuse,
    /// Remove it and measure anew.
    Replace,
    /// Keep its finished repetitions and add what is missing.
    Resume,
}

/// What the command line adds to a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOptions {
    /// Instead of the campaign's own run directory.
    pub run_dir: Option<PathBuf>,
    /// Repetitions of each cell to have at the end, instead of the campaign's number.
    pub repetitions: Option<u32>,
    /// What to do with a run that is there.
    pub existing: Existing,
    /// Measure without the agents that the campaign lists.
    pub without_agent: bool,
    /// Do not make up for discarded repetitions: each cell is measured once.
    pub single_pass: bool,
    /// Length of the probe's burst, seconds, instead of the campaign's.
    pub probe_seconds: Option<f64>,
}

impl RunOptions {
    /// For what writes nothing: a run that is there does not matter.
    pub(super) fn anywhere() -> Self {
        Self { existing: Existing::Resume, without_agent: true, ..Self::default() }
    }
}

/// An arm, resolved.
#[derive(Debug)]
pub(super) struct Arm {
    pub(super) keys: ArmKeys,
    pub(super) target: Target,
}

/// A campaign ready to go.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) campaign: Campaign,
    pub(super) options: RunOptions,
    pub(super) dir: RunDir,
    pub(super) trace: Trace,
    pub(super) trace_source: Vec<u8>,
    pub(super) trace_lines: Vec<u8>,
    pub(super) trace_origin: Option<serde_json::Value>,
    pub(super) arms: Vec<Arm>,
    pub(super) bearer: Option<BearerToken>,
    pub(super) token: Option<String>,
    pub(super) body: BodyOptions,
    pub(super) control: Control,
}

impl Prepared {
    pub(super) fn new(campaign: Campaign, options: RunOptions) -> Result<Self, RunError> {
        let keys = campaign.keys().clone();
        if keys.imported.is_some() {
            return Err(RunError::Imported { path: campaign.path().to_owned() });
        }
        let path = campaign.resolve(&keys.trace.path);
        let trace = load(
            &path,
            &LoadOptions {
                format: keys.trace.format,
                length_divisor: keys.trace.length_divisor,
                skip: keys.trace.skip,
                limit: keys.trace.limit,
            },
        )?;
        let token_file = keys.request.token_file.as_ref().map(|file| campaign.resolve(file));
        let root = options.run_dir.clone().unwrap_or_else(|| keys.run_dir.clone());
        let prepared = Self {
            trace_source: read(&path)?,
            trace_lines: trace.to_jsonl()?,
            trace_origin: origin(&campaign)?,
            arms: keys.arm.iter().map(resolve).collect::<Result<_, _>>()?,
            bearer: token_file.as_deref().map(BearerToken::read).transpose()?,
            token: token_file.as_deref().map(read_token).transpose()?,
            body: body_options(&campaign),
            control: Control::new()?,
            dir: RunDir::new(&root),
            trace,
            options,
            campaign,
        };
        prepared.check_schedules()?;
        prepared.check_dir()?;
        Ok(prepared)
    }

    /// Repetitions of each cell at the end of this run.
    pub(super) fn repetitions(&self) -> u32 {
        let load = &self.campaign.keys().load;
        self.options.repetitions.unwrap_or(load.repetitions).min(load.max_repetitions)
    }

    /// The error of a run that a signal stopped, with the command that continues it.
    pub(super) fn interrupted(&self) -> RunError {
        let (options, repetitions) = (&self.options, self.options.repetitions);
        RunError::Interrupted {
            resume: resume_command(
                self.campaign.path(),
                self.dir.root(),
                repetitions,
                options.without_agent,
            ),
        }
    }

    pub(super) fn schedule(
        &self,
        arm: &str,
        rate_rps: f64,
        repetition: u32,
        requests: Option<usize>,
    ) -> Result<Schedule, RunError> {
        let keys = self.campaign.keys();
        let arrivals = match keys.load.arrivals {
            ArrivalsKey::Poisson => Arrivals::Poisson,
            ArrivalsKey::Constant => Arrivals::Constant,
            ArrivalsKey::Trace => Arrivals::Trace { jitter_ms: 0 },
        };
        let plan = Plan { rate_rps, arrivals, requests, seed: keys.seed, repetition, arm };
        Ok(build(&self.trace, &plan)?)
    }

    /// Agents to ask; none when they are left out.
    pub(super) fn agents(&self) -> Result<Vec<Agent<'_>>, RunError> {
        if self.options.without_agent {
            return Ok(Vec::new());
        }
        let keys = &self.campaign.keys().agent;
        keys.iter()
            .map(|agent| {
                let file = agent.token_file.as_ref().map(|file| self.campaign.resolve(file));
                Ok(Agent::new(agent, file.as_deref().map(read_token).transpose()?))
            })
            .collect()
    }

    pub(super) fn gateway<'a>(&'a self, arm: &'a Arm) -> Gateway<'a> {
        Gateway { arm: &arm.keys, vip: arm.target.address(), directory: self.campaign.directory() }
    }

    pub(super) fn floor(&self) -> &Arm {
        let found = self.arms.iter().position(|arm| arm.keys.floor);
        &self.arms[found.unwrap_or(0)]
    }

    /// A rate or trace that gives no schedule must not be found after an hour.
    fn check_schedules(&self) -> Result<(), RunError> {
        for rate in self.campaign.rates() {
            self.schedule("check", rate, 1, None)?;
        }
        Ok(())
    }

    fn check_dir(&self) -> Result<(), RunError> {
        let root = self.dir.root();
        if root.file_name().is_none() {
            return Err(RunError::Unnamed { path: root.to_owned() });
        }
        match std::fs::read_dir(root).map(|mut entries| entries.next().is_none()) {
            Ok(true) => return Ok(()),
            Ok(false) => self.check_run()?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(RunError::io(root)(error)),
        }
        match self.options.existing {
            Existing::Refuse => Err(RunError::Exists { path: root.to_owned() }),
            Existing::Replace | Existing::Resume => Ok(()),
        }
    }

    /// The directory holds a run and nothing else: a manifest that other programs name alike is none.
    fn check_run(&self) -> Result<(), RunError> {
        let root = self.dir.root();
        let strangers = strangers(root).map_err(RunError::io(root))?;
        let known = read_json::<Manifest>(&self.dir.file("manifest.json")).is_ok();
        if known && strangers.is_empty() {
            return Ok(());
        }
        Err(RunError::Foreign { path: root.to_owned(), stranger: strangers.into_iter().next() })
    }
}

fn resolve(keys: &ArmKeys) -> Result<Arm, RunError> {
    let target = Target::resolve(&keys.vip)
        .map_err(|source| RunError::Target { arm: keys.name.clone(), source })?;
    Ok(Arm { keys: keys.clone(), target })
}

fn body_options(campaign: &Campaign) -> BodyOptions {
    let (request, trace) = (&campaign.keys().request, &campaign.keys().trace);
    BodyOptions {
        model: request.model.clone(),
        bytes_per_token: trace.bytes_per_token,
        blocks_api: match request.api {
            ApiKey::Chat => Api::Chat,
            ApiKey::Completions => Api::Completions,
        },
        ignore_eos: request.length_control == LengthControl::IgnoreEos,
        min_tokens: request.length_control == LengthControl::MinTokens,
    }
}

fn origin(campaign: &Campaign) -> Result<Option<serde_json::Value>, RunError> {
    let Some(path) = &campaign.keys().trace.origin else { return Ok(None) };
    let path = campaign.resolve(path);
    let bytes = read(&path)?;
    let parse = |source| crate::rundir::JsonError::Parse { path: path.clone(), source };
    Ok(Some(serde_json::from_slice(&bytes).map_err(parse)?))
}

fn read(path: &Path) -> Result<Vec<u8>, RunError> {
    read_regular(path).map_err(RunError::io(path))
}

/// The content of a token file for control calls; the reader of bearer tokens has checked its form.
fn read_token(path: &Path) -> Result<String, RunError> {
    BearerToken::read(path)?;
    Ok(String::from_utf8_lossy(&read(path)?).trim().to_owned())
}
