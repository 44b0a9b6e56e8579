//! The subcommands.

pub(crate) mod example;
pub(crate) mod faults;
pub(crate) mod run;

use std::process::ExitCode;

/// 2 for what the user can mend, 1 for the rest.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    let usage = error.downcast_ref::<simfleet::FleetError>().is_some();
    ExitCode::from(if usage { 2 } else { 1 })
}
