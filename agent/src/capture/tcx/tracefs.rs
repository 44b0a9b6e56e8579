//! The tracepoint's `format` file: the kernel program was compiled for one layout, this host may
//! have another.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agent_ebpf::tracepoint::{Field, Tracepoint, retransmit, socket_state};
use nix::mount::{MsFlags, mount};

use crate::capture::CaptureError;

/// Where tracefs is mounted: its own place, or below debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// What an operator types when tracefs is not mounted.
pub(super) const MOUNT_LINE: &str = "sudo mount -t tracefs tracefs /sys/kernel/tracing";

/// The `format` file if tracefs is mounted and readable.
fn read_format(tracepoint: &Tracepoint) -> io::Result<String> {
    let Tracepoint { category, name, .. } = tracepoint;
    let mut refused = None;
    for place in PLACES {
        let path: PathBuf = [place, "events", category, name, "format"].iter().collect();
        match fs::read_to_string(path) {
            Ok(text) => return Ok(text),
            // "Not there" in one place says nothing about the other; "not allowed" is the news.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// Makes sure that tracefs is there and that the tracepoint has the compiled layout.
///
/// An unmounted tracefs is mounted at its usual place, as libtracefs does, if the process may.
pub(super) fn prepare() -> Result<(), CaptureError> {
    let tracepoint = &socket_state::TRACEPOINT;
    let text = match read_format(tracepoint) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            mount_tracefs()?;
            read_format(tracepoint)
        }
        other => other,
    };
    check_format(tracepoint, &text.map_err(unreadable)?)
}

/// The same for the tracepoint of retransmissions, once tracefs is there. Nothing depends on it but
/// their count, so that a kernel without it is no obstacle.
pub(super) fn check_retransmit() -> Result<(), CaptureError> {
    let tracepoint = &retransmit::TRACEPOINT;
    let text = read_format(tracepoint).map_err(|source| CaptureError::System {
        call: "reading the tracepoint tcp:tcp_retransmit_skb",
        source,
        mend: "retransmissions are told from sequence numbers alone",
    });
    check_format(tracepoint, &text?)
}

/// Why retransmissions would be told from sequence numbers alone, if so.
#[must_use]
pub fn retransmit_obstacle() -> Option<CaptureError> {
    check_retransmit().err()
}

/// What would keep [`prepare`] from working; mounts nothing.
pub(super) fn obstacle(may_mount: bool) -> Option<CaptureError> {
    match read_format(&socket_state::TRACEPOINT) {
        Ok(text) => check_format(&socket_state::TRACEPOINT, &text).err(),
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_mount => None,
        Err(error) => Some(unreadable(error)),
    }
}

fn mount_tracefs() -> Result<(), CaptureError> {
    let target = Path::new(PLACES[0]);
    mount(Some("tracefs"), target, Some("tracefs"), MsFlags::empty(), None::<&str>).map_err(
        |error| CaptureError::System {
            call: "mount of tracefs",
            source: error.into(),
            mend: MOUNT_LINE,
        },
    )
}

fn unreadable(source: io::Error) -> CaptureError {
    let mend = if source.kind() == io::ErrorKind::NotFound {
        MOUNT_LINE
    } else {
        "run as root or with CAP_DAC_READ_SEARCH: the directory is for root only"
    };
    CaptureError::System { call: "reading the tracepoint sock:inet_sock_set_state", source, mend }
}

/// Offset and size of the field that a line of a `format` file describes, if it is `name`.
fn described(line: &str, name: &str) -> Option<(usize, usize)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let declared = declaration.split_whitespace().last()?;
    if declared.split('[').next()? != name {
        return None;
    }
    let mut offset = None;
    let mut size = None;
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            _ => {}
        }
    }
    offset.zip(size)
}

fn check_field(format: &str, field: Field) -> Result<(), String> {
    let Field { name, offset, size } = field;
    match format.lines().find_map(|line| described(line, name)) {
        Some(found) if found == (offset, size) => Ok(()),
        Some((at, of)) => Err(format!("{name}: offset {at} size {of}, not {offset} and {size}")),
        None => Err(format!("{name}: missing")),
    }
}

/// Compares a `format` file with the layout that the kernel program was compiled for.
fn check_format(tracepoint: &Tracepoint, format: &str) -> Result<(), CaptureError> {
    let Tracepoint { category, name, fields } = tracepoint;
    let wrong: Vec<_> =
        fields.iter().filter_map(|field| check_field(format, *field).err()).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(CaptureError::Program {
        what: format!("tracepoint {category}:{name} has another layout ({})", wrong.join("; ")),
        mend: "this kernel needs kernel programs compiled for its layout: report its version and \
               the tracepoint's format file"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: inet_sock_set_state\n\
        \tfield:int oldstate;\toffset:16;\tsize:4;\tsigned:1;\n\
        \tfield:int newstate;\toffset:20;\tsize:4;\tsigned:1;\n\
        \tfield:__u16 sport;\toffset:24;\tsize:2;\tsigned:0;\n\
        \tfield:__u16 dport;\toffset:26;\tsize:2;\tsigned:0;\n\
        \tfield:__u16 family;\toffset:28;\tsize:2;\tsigned:0;\n\
        \tfield:__u16 protocol;\toffset:30;\tsize:2;\tsigned:0;\n\
        \tfield:__u8 saddr[4];\toffset:32;\tsize:4;\tsigned:0;\n\
        \tfield:__u8 daddr[4];\toffset:36;\tsize:4;\tsigned:0;\n\
        \tfield:__u8 saddr_v6[16];\toffset:40;\tsize:16;\tsigned:0;\n\
        \tfield:__u8 daddr_v6[16];\toffset:56;\tsize:16;\tsigned:0;\n";

    fn check(format: &str) -> Result<(), CaptureError> {
        check_format(&socket_state::TRACEPOINT, format)
    }

    #[test]
    fn the_layout_of_current_kernels_is_accepted() {
        check(FORMAT).unwrap();
    }

    #[test]
    fn the_layout_before_linux_5_6_is_named_field_by_field() {
        let old = FORMAT
            .replace("__u16 protocol;\toffset:30;\tsize:2", "__u8 protocol;\toffset:30;\tsize:1")
            .replace("saddr_v6[16];\toffset:40", "saddr_v6[16];\toffset:39");
        let error = check(&old).unwrap_err().to_string();
        assert!(error.contains("protocol: offset 30 size 1, not 30 and 2"), "{error}");
        assert!(error.contains("saddr_v6: offset 39 size 16, not 40 and 16"), "{error}");
        assert!(!error.contains("daddr_v6"), "{error}");
    }

    #[test]
    fn a_missing_field_and_an_empty_file_are_errors() {
        assert!(check(&FORMAT.replace("newstate", "state")).is_err());
        assert!(check("").is_err());
    }
}
