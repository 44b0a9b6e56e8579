//! The audit folder that this agent records by itself (`docs/formats.md`); `goodput audit` judges it.

mod folder;

pub use folder::{Account, AuditError, Folder, Rows, State};
