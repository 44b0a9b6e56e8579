//! goodput-agent: eBPF capture of inference streams on gateway and backend hosts.

pub mod api;
pub mod audit;
pub mod capture;
pub mod clock;
pub mod cmd;
pub mod config;
pub mod discovery;
pub mod doctor;
pub mod endpoint;
pub mod evidence;
pub mod flow;
pub mod inflight;
pub mod legs;
pub mod logging;
pub mod metrics;
pub mod notify;
pub mod observation;
pub mod privileges;
pub mod prompt;
pub mod read;
pub mod reload;
pub mod selftest;
pub mod sockdiag;
pub mod source;
#[cfg(test)]
pub(crate) mod testing;
pub mod top;
pub mod window;
pub mod worker;
