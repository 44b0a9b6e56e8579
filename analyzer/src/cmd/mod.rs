//! The command line: one file per subcommand, one enum that names them all.
//!
//! Exit codes: 0 done, 1 done but the answer is no (a gate failed, a what-if was printed), 2 bad input
//! or environment, with a message that names the mend.

mod analyze;
mod audit;
mod audit_picture;
mod campaign_progress;
mod health;
mod import;
mod judged;
mod limits;
mod probe;
mod progress;
pub(crate) mod replay;
mod replay_summary;
mod run;
mod selfcheck;
pub(crate) mod signals;
mod slo;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Bad input or environment: nothing was measured.
const EXIT_BAD_INPUT: u8 = 2;

/// Replays a real trace through a gateway and turns it into goodput@SLO and a verdict.
#[derive(Debug, Parser)]
#[command(name = "goodput", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a campaign: health, SLO, probe, replay, analysis, verdict
    Run(run::Args),
    /// Phase 0 alone: a real request through every VIP, the models of every backend
    Health(health::Args),
    /// Phase 2 alone: how a burst lies on the backends, and the mode read back
    Probe(probe::Args),
    /// Replay a trace against one URL and record every request
    Replay(replay::Args),
    /// Judge a gateway's routing by live traffic: shares, concentration, prefix affinity
    Audit(audit::Args),
    /// Measure the unloaded baseline and derive the SLO from it
    Slo(slo::Args),
    /// Make a run directory of what AIPerf, vLLM's bench or GuideLLM measured
    Import(import::Args),
    /// Analyze a run directory again
    Analyze(analyze::Args),
    /// Judge a run directory again
    Verify(verify::Args),
    /// Check this build against known answers, module by module
    Selfcheck(selfcheck::Args),
}

/// Runs the chosen subcommand; an error is printed with its whole chain of causes and becomes exit code 2.
pub(crate) fn run(cli: &Cli) -> ExitCode {
    limits::raise_open_files();
    let result = match &cli.command {
        Command::Run(args) => run::run(args),
        Command::Health(args) => health::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Slo(args) => slo::run(args),
        Command::Import(args) => import::run(args),
        Command::Analyze(args) => analyze::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Selfcheck(args) => selfcheck::run(args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("goodput: {}", describe(&error));
        ExitCode::from(EXIT_BAD_INPUT)
    })
}

/// The message and those of its causes that it does not already contain.
fn describe(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use clap::CommandFactory as _;

    use super::{Cli, describe};

    #[test]
    fn a_cause_that_the_message_contains_is_not_repeated() {
        let cause = || std::io::Error::other("no such file");
        let once = Err::<(), _>(cause()).context("a.toml: no such file; name another").unwrap_err();
        assert_eq!(describe(&once), "a.toml: no such file; name another");
        let both = Err::<(), _>(cause()).context("cannot read a.toml").unwrap_err();
        assert_eq!(describe(&both), "cannot read a.toml: no such file");
    }

    #[test]
    fn every_command_shows_examples() {
        let mut cli = Cli::command();
        cli.clone().debug_assert();
        cli.build();
        let commands: Vec<_> = cli.get_subcommands().filter(|it| it.get_name() != "help").collect();
        assert!(!commands.is_empty());
        for command in commands {
            let help = command.clone().render_long_help().to_string();
            let name = command.get_name();
            assert!(help.contains(&format!("Examples:\n  goodput {name} ")), "{name}: {help}");
        }
    }
}
