//! Dropping everything that attaching needed.

use caps::CapSet;
use nix::sys::resource::{Resource, setrlimit};

/// A limit below the smallest core file, and the one at which the kernel starts no program that core
/// files are piped to either (`fs/coredump.c`; 0 is not enforced there, core(5)).
const NO_CORE: u64 = 1;

/// Sees to it that a crash leaves no image of this process behind: for a moment its memory holds bytes
/// of requests and answers.
fn forbid_core_dumps() {
    if let Err(error) = setrlimit(Resource::RLIMIT_CORE, NO_CORE, NO_CORE) {
        tracing::warn!(%error, "core dumps could not be turned off");
    }
}

/// Drops every capability of this thread, for good, and with them core dumps. Capabilities belong to threads: this must come
/// before any other thread is started, or that one keeps them.
///
/// # Errors
/// When the kernel refuses.
pub fn drop_all() -> Result<(), caps::errors::CapsError> {
    forbid_core_dumps();
    // The bounding set can only be emptied with CAP_SETPCAP; without it, no_new_privs still keeps
    // programs started from here from gaining anything.
    let bounding = caps::clear(None, CapSet::Bounding);
    if let Err(error) = bounding {
        tracing::debug!(%error, "the bounding set stays");
    }
    if let Err(error) = nix::sys::prctl::set_no_new_privs() {
        tracing::warn!(%error, "no_new_privs could not be set");
    }
    caps::clear(None, CapSet::Ambient)?;
    caps::clear(None, CapSet::Inheritable)?;
    caps::clear(None, CapSet::Effective)?;
    caps::clear(None, CapSet::Permitted)
}
