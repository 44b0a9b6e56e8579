//! The probe-only audit: what a window of live traffic tells of a gateway's routing, and what it does not.
//!
//! Figures are always given; a judgement only where the evidence bears it, else `UNKNOWN` with coded
//! reasons (`docs/audit.md`).

mod affinity;
mod fleet;
mod folder;
mod judge;
mod reading;
mod record;
mod report;
mod rows;
mod salt;
mod spread;

pub use affinity::{Affinity, SizeAffinity};
pub use folder::{FolderError, Recording, check_new, read, write_file};
pub use judge::{Finding, Reason};
pub use record::{Patience, Plan, RecordError, Target, record};
pub use report::{AuditReport, BackendReport, RoleReport, analyze};
pub use rows::{
    Account, AgentPart, AuditFile, ConcentrationRow, Files, PREFIX_SIZES, PrefixRow, RequestRow,
    Role, State,
};
pub use salt::{Salt, SaltError};
pub use spread::{Evenness, InTurn};

#[cfg(test)]
mod tests;
