//! Pinned BPF objects, by name: what is there tells which LoxiLB runs and how.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::fact::Unknown;

/// Where objects are pinned: the usual mount, and LoxiLB's own (LoxiLB, `/opt/loxilb/dp`).
pub(super) const FOLDERS: [&str; 2] = ["/sys/fs/bpf", "/opt/loxilb/dp/bpf"];
/// The map that exists only with `--sockmapsupport` (LoxiLB's data path).
const SOCKMAP: &str = "sock_proxy_map";
/// Maps that every LoxiLB pins (LoxiLB's data path).
const ALWAYS: [&str; 3] = ["ct_map", "nat_map", "intf_map"];
/// Names listed of one folder, and folders in folders.
const MOST_NAMES: usize = 512;
const MOST_DEPTH: usize = 3;

/// One folder of pins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PinFolder {
    /// The folder, as the process sees it.
    pub folder: String,
    /// The process whose root it is under; nothing for the host's own.
    pub pid: Option<u32>,
    /// Names below it, folders with `/`; sorted.
    pub pins: Vec<String>,
    /// There are more than are listed.
    pub truncated: bool,
}

/// Lists `folder` below `root`; nothing where there is none.
pub(super) fn list(
    root: &Path,
    folder: &str,
    pid: Option<u32>,
) -> Result<Option<PinFolder>, Unknown> {
    let path = root.join(folder.trim_start_matches('/'));
    let mut pins = Vec::new();
    match walk(&path, &PathBuf::new(), 0, &mut pins) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unknown::failed(folder, &error)),
    }
    pins.sort_unstable();
    let truncated = pins.len() > MOST_NAMES;
    pins.truncate(MOST_NAMES);
    Ok(Some(PinFolder { folder: folder.to_owned(), pid, pins, truncated }))
}

fn walk(root: &Path, below: &Path, depth: usize, pins: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))?.flatten() {
        if pins.len() > MOST_NAMES {
            break;
        }
        let name = below.join(entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let shown = name.to_string_lossy().into_owned();
        pins.push(if is_folder { shown + "/" } else { shown });
        if is_folder && depth < MOST_DEPTH {
            // One folder that can't be read hides only itself.
            let _ = walk(root, &name, depth + 1, pins);
        }
    }
    Ok(())
}

/// Whether LoxiLB moves bytes between sockets inside the kernel, where captures of user space and of
/// packets on `lo` miss them.
pub(super) fn sockmap(folders: &[PinFolder]) -> Result<bool, Unknown> {
    let has = |wanted: &str| {
        let named = |pin: &String| pin.rsplit('/').next() == Some(wanted);
        folders.iter().any(|folder| folder.pins.iter().any(named))
    };
    if has(SOCKMAP) {
        return Ok(true);
    }
    if ALWAYS.iter().any(|map| has(map)) && folders.iter().all(|folder| !folder.truncated) {
        return Ok(false);
    }
    Err(Unknown::new(
        "no pinned map of LoxiLB was found",
        "start the agent on LoxiLB's host, as root, after LoxiLB",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(pins: &[&str]) -> PinFolder {
        let pins = pins.iter().map(|it| (*it).to_owned()).collect();
        PinFolder { folder: "/sys/fs/bpf".to_owned(), pid: None, pins, truncated: false }
    }

    #[test]
    fn the_sockmap_is_on_off_or_unknown() {
        assert_eq!(sockmap(&[folder(&["ct_map"]), folder(&["dp/sock_proxy_map"])]), Ok(true));
        assert_eq!(sockmap(&[folder(&["ct_map", "my_sock_proxy_map"])]), Ok(false));
        assert!(sockmap(&[folder(&["cilium/"])]).is_err());
        assert!(sockmap(&[]).is_err());
        let cut = PinFolder { truncated: true, ..folder(&["ct_map"]) };
        assert!(sockmap(&[cut]).is_err());
    }

    #[test]
    fn names_are_listed_below_folders_and_bounded() {
        let root = tempfile::tempdir().unwrap();
        let pins = root.path().join("sys/fs/bpf");
        fs::create_dir_all(pins.join("a/b/c/d/e")).unwrap();
        fs::write(pins.join("a/map"), "").unwrap();
        let listed = list(root.path(), "/sys/fs/bpf", Some(7)).unwrap().unwrap();
        assert_eq!(listed.pins, ["a/", "a/b/", "a/b/c/", "a/b/c/d/", "a/map"]);
        assert_eq!(list(root.path(), "/opt/loxilb/dp/bpf", None), Ok(None));
        (0..600).for_each(|n| fs::write(pins.join(format!("m{n}")), "").unwrap());
        let listed = list(root.path(), "/sys/fs/bpf", None).unwrap().unwrap();
        assert_eq!((listed.pins.len(), listed.truncated), (512, true));
    }
}
