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

/// Loads every program that this kernel can use, attaches none, and says what each cost the verifier;
/// sorted by name.
///
/// # Errors
/// Names the program that the kernel refused.
pub fn program_costs() -> Result<Vec<ProgramCost>, CaptureError> {
    let mut bpf = load::load(&TcxConfig::new(Vec::new(), Vec::new()), 1)?;
    let tcx = Host.has_tcx();
    let mut costs = Vec::new();
    for (name, program) in bpf.programs_mut() {
        if let Some(cost) = load_one(name, program, tcx)? {
            costs.push(cost);
        }
    }
    costs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(costs)
}

fn load_one(
    name: &str,
    program: &mut Program,
    tcx: bool,
) -> Result<Option<ProgramCost>, CaptureError> {
    let loaded = match program {
        Program::SchedClassifier(_) if !tcx => return Ok(None),
        Program::SchedClassifier(program) => program.load(),
        Program::SocketFilter(program) => program.load(),
        Program::TracePoint(program) => program.load(),
        _ => return Ok(None),
    };
    loaded.map_err(|error| program_error(name, &error))?;
    let info = program.info().map_err(|error| program_error(name, &error))?;
    let verified_instructions = info.verified_instruction_count();
    Ok(Some(ProgramCost { name: name.to_owned(), verified_instructions }))
}
