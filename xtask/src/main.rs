//! The project's own commands: demo, test, ebpf.
fn main() {}
