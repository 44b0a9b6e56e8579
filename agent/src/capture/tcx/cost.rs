//! What the kernel's verifier had to walk for each program.

use aya::programs::Program;

use super::config::TcxConfig;
use super::load::{self, program_error};
use super::preflight::{Host, Probe as _};
use crate::capture::CaptureError;

/// One kernel program that was loaded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProgramCost {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier walked; the limit is a million. `None` before Linux 5.16, which
    /// does not tell.
    pub verified_instructions: Option<u32>,
}

/// One kernel program, and the kernel's verdict on it.
#[derive(Debug)]
pub struct TriedProgram {
    /// Its name.
    pub name: String,
    /// What it cost, or why it was refused.
    pub verdict: Result<ProgramCost, CaptureError>,
}

/// Loads every program that this kernel can use, attaches none, and says what each cost the verifier;
/// sorted by name.
///
/// # Errors
/// Names the program that the kernel refused.
pub fn program_costs() -> Result<Vec<ProgramCost>, CaptureError> {
    try_programs()?.into_iter().map(|it| it.verdict).collect()
}

/// As [`program_costs`], with the kernel's verdict on each program by its name.
///
/// # Errors
/// When not even the maps can be made.
pub fn try_programs() -> Result<Vec<TriedProgram>, CaptureError> {
    let mut bpf = load::load(&TcxConfig::new(Vec::new(), Vec::new()), 1)?;
    let tcx = Host.has_tcx();
    let usable = |program: &Program| match program {
        Program::SchedClassifier(_) => tcx,
        Program::SocketFilter(_) | Program::TracePoint(_) => true,
        _ => false,
    };
    let programs = bpf.programs_mut().filter(|(_, program)| usable(program));
    let mut loaded: Vec<_> = programs
        .map(|(name, program)| TriedProgram {
            name: name.to_owned(),
            verdict: load_one(name, program),
        })
        .collect();
    loaded.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(loaded)
}

fn load_one(name: &str, program: &mut Program) -> Result<ProgramCost, CaptureError> {
    let loaded = match program {
        Program::SchedClassifier(program) => program.load(),
        Program::SocketFilter(program) => program.load(),
        Program::TracePoint(program) => program.load(),
        _ => Ok(()),
    };
    loaded.map_err(|error| program_error(name, &error))?;
    let info = program.info().map_err(|error| program_error(name, &error))?;
    let verified_instructions = info.verified_instruction_count();
    Ok(ProgramCost { name: name.to_owned(), verified_instructions })
}
