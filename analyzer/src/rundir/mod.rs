//! The run directory: where each artefact lies, and the wire form of those that phases hand on.
//!
//! `docs/formats.md` is the contract; what the replay writes is in [`crate::records`].

mod command;
mod derived_slo;
mod evidence;
mod gateway;
mod import_file;
mod inflight;
mod json;
mod kernel;
mod layout;
mod manifest;
mod probe;
mod readiness;
mod removal;
mod slo_file;

pub use command::resume_command;
pub use derived_slo::{DerivedOrigin, DerivedSlo, ReadDerivedSlo};
pub use evidence::{AgentEvidence, EvidenceFile, Told};
pub use gateway::{Counter, CounterDelta, Expected, GatewayFile, Readback, Scrape, SeriesFamily};
pub use import_file::{ImportFile, ImportedFile, Lack, LackEntry};
pub use inflight::InflightRow;
pub use json::{JsonError, from_json, read_json, read_optional, to_json, write_json};
pub use kernel::{KernelRow, Leg};
pub use layout::{RunDir, cell_name};
pub use manifest::{Manifest, Override};
pub use probe::{Concentration, ProbeFile};
pub use readiness::{ReadinessRow, TargetKind};
pub use removal::{remove_run, strangers};
pub use slo_file::{SloFile, SloOrigin};
