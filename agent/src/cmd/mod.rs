//! The command line; one file per subcommand.

mod audit;
mod doctor;
mod read;
mod run;
mod selftest;
mod top;

use clap::{Parser, Subcommand};

/// Exit code for what the operator can mend.
pub const EXIT_USAGE: u8 = 2;

/// Watches inference streams in the kernel, without touching them.
#[derive(Debug, Parser)]
#[command(name = "goodput-agent", version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Watches endpoints and serves what it sees over HTTP
    Run(Box<run::RunArgs>),
    /// Records a window of live traffic to a folder, for `goodput audit`
    Audit(Box<audit::AuditArgs>),
    /// Reads a pcap or pcapng file and says what its streams were like
    Read(read::ReadArgs),
    /// Says what this host lacks for watching, and the line that gives it
    Doctor(Box<doctor::DoctorArgs>),
    /// Proves on this host that what the agent observes is what was sent
    Selftest(selftest::SelftestArgs),
    /// Shows what an agent sees, live
    Top(top::TopArgs),
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// Names what is wrong and its mend.
    pub fn execute(&self) -> anyhow::Result<std::process::ExitCode> {
        match &self.command {
            Subcommands::Run(args) => run::execute(args),
            Subcommands::Audit(args) => audit::execute(args),
            Subcommands::Read(args) => read::execute(args),
            Subcommands::Doctor(args) => doctor::execute(args),
            Subcommands::Selftest(args) => selftest::execute(args),
            Subcommands::Top(args) => top::execute(args),
        }
    }
}
