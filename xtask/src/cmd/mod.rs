//! One file per command.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod demo;
pub(crate) mod dist;
pub(crate) mod ebpf;
pub(crate) mod fuzz;
pub(crate) mod kernels;
pub(crate) mod test;
