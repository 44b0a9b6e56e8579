//! What the kernel's accounting itself costs: it reads the clock before and after every run, and on a
//! virtual machine that is no small part of a short program's run time.

use anyhow::Context as _;
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};

use crate::host::{programs, share};

/// The agent's object holds a program that only passes packets on.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../agent/bpf/goodput-agent.bpf.o");

/// That program, at `lo`; it goes when this is dropped.
pub(super) struct Floor {
    _bpf: Ebpf,
}

impl Floor {
    /// Attaches it behind whatever else is there.
    pub(super) fn attach() -> anyhow::Result<Self> {
        // The ring is part of the object, too.
        let mut bpf = EbpfLoader::new().map_max_entries("RECORDS", 4096).load(OBJECT)?;
        let program: &mut SchedClassifier =
            bpf.program_mut("pass").context("the object has no program `pass`")?.try_into()?;
        program.load()?;
        let options = TcAttachOptions::TcxOrder(LinkOrder::last());
        program.attach_with_options("lo", TcAttachType::Ingress, options)?;
        Ok(Self { _bpf: bpf })
    }

    /// Nanoseconds for each run since it was attached.
    pub(super) fn ns_per_run(&self) -> anyhow::Result<f64> {
        let own = programs(std::process::id())?;
        let (time, count) = own
            .iter()
            .fold((0, 0), |(time, count), it| (time + it.run_time_ns, count + it.run_count));
        Ok(share(time, count))
    }
}
