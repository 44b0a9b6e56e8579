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

/// The error in one line. A fleet error's text names its cause already; others are joined with theirs.
pub(crate) fn message(error: &anyhow::Error) -> String {
    match error.downcast_ref::<simfleet::FleetError>() {
        Some(fleet) => fleet.to_string(),
        None => format!("{error:#}"),
    }
}
