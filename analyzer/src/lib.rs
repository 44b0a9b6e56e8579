//! goodput: replays a real trace through a gateway and turns it into goodput@SLO and a verdict.
#![deny(unsafe_code)]

pub mod agent_client;
pub mod analyze;
pub mod audit;
pub mod campaign;
pub mod clock;
pub mod control;
pub mod evidence;
pub mod gateway;
pub mod health;
pub mod import;
pub mod input;
pub mod join;
pub mod outcome;
pub mod probe;
pub mod prompt;
pub mod records;
pub mod replay;
pub mod report;
pub mod run;
pub mod rundir;
pub mod schedule;
pub mod selfcheck;
pub mod slo;
pub mod stats;
pub mod trace;
pub mod verify;

#[cfg(test)]
mod testkit;
