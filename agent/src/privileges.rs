//! Dropping everything that attaching needed.

use caps::CapSet;

/// Drops every capability of this thread, for good. Capabilities belong to threads: this must come
/// before any other thread is started, or that one keeps them.
///
/// # Errors
/// When the kernel refuses.
pub fn drop_all() -> Result<(), caps::errors::CapsError> {
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
