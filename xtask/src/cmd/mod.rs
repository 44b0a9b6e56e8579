//! One file per command.

pub(crate) mod demo;
pub(crate) mod ebpf;
pub(crate) mod test;
