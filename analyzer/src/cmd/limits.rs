//! Limits of the process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Lets the process open as many files as it may: each request in flight is a socket, and an open-loop
/// client must not be bounded by a default of 1024. Where the limit cannot be raised the requests beyond
/// it end as `connect_error`, which names the reason.
pub(crate) fn raise_open_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
