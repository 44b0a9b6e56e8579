//! goodput-agent: eBPF capture of inference streams on gateway and backend hosts.

pub mod capture;
