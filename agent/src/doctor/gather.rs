//! Asking this host.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aya::programs::ProgramType;
use caps::CapSet;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::socket::SockaddrStorage;
use nix::time::{ClockId, clock_gettime};

use super::facts::{
    ApiState, Clocks, Facts, File, Link, Loaded, Privileges, SocketPlaces, TokenFile,
};
use super::offload;
use super::vip::{self, Vip};
use crate::capture::foreign;
use crate::capture::tcx::{
    DEFAULT_RING_BYTES, Host, Probe as _, retransmit_obstacle, try_programs,
};
use crate::config::{Config, Settings};
use crate::sockdiag::NetlinkTables;

/// An agent answers at once; anything else at its address need not answer at all.
const API_PATIENCE: Duration = Duration::from_secs(2);
/// Looks at the clocks, of which the tightest counts.
const LOOKS: usize = 64;

/// What is asked about, besides the host itself.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// Flags, which win over it.
    pub flags: Settings,
    /// A virtual service whose traffic should be visible.
    pub vip: Option<Vip>,
}

/// Asks the host; changes nothing on it. Must be called before any other thread is started, from a
/// thread whose network namespace is the agent's.
#[must_use]
pub fn gather(request: &Request) -> Facts {
    let settings = settings(request);
    let config =
        settings.as_ref().map_or_else(|why| Some(Err(why.clone())), |it| complete(request, it));
    let settings = settings.unwrap_or_else(|_| request.flags.clone());
    let links = links();
    let forced = settings.source.and_then(crate::config::SourceKind::method);
    let mut facts = of_kernel();
    facts.forced = forced;
    facts.ring_bytes = settings.ring_bytes.unwrap_or(DEFAULT_RING_BYTES);
    facts.wanted.clone_from(&settings.interfaces);
    facts.links = links;
    facts.foreign = foreign(&facts);
    if let Some(Ok(config)) = &config {
        facts.api = Some(api(config.api));
        facts.token = config.token_file.as_deref().map(token);
        facts.jsonl = config.jsonl.clone().map(|path| (path.clone(), appendable(&path)));
    }
    facts.config = config;
    facts.sockets = sockets(&facts.endpoints());
    facts.vip = request.vip.map(|vip| vip::look(vip, &facts, &settings.endpoints));
    facts
}

fn settings(request: &Request) -> Result<Settings, String> {
    let file = request.file.as_deref().map(Settings::read).transpose();
    let file = file.map_err(|error| error.to_string())?.unwrap_or_default();
    Ok(request.flags.clone().over(file))
}

/// A configuration is looked at when there is a file, or enough flags for one.
fn complete(request: &Request, settings: &Settings) -> Option<Result<Config, String>> {
    let meant = request.file.is_some()
        || (!settings.endpoints.is_empty() && !settings.interfaces.is_empty());
    meant.then(|| settings.clone().complete("host").map_err(|error| error.to_string()))
}

fn of_kernel() -> Facts {
    let asked = |supported: Result<bool, _>| supported.ok();
    let privileges = privileges();
    let may_ask = [caps::Capability::CAP_BPF, caps::Capability::CAP_SYS_ADMIN]
        .iter()
        .any(|it| privileges.effective.contains(it));
    let of_type = |kind| asked(aya::sys::is_program_supported(kind)).filter(|_| may_ask);
    let may_mount = privileges.effective.contains(&caps::Capability::CAP_SYS_ADMIN);
    Facts {
        release: nix::sys::utsname::uname()
            .map_or_else(|_| String::new(), |it| it.release().to_string_lossy().into_owned()),
        ring_buffers: may_ask.then(|| Host.has_ring_buffers()),
        tcx: privileges
            .effective
            .contains(&caps::Capability::CAP_NET_ADMIN)
            .then(|| Host.has_tcx()),
        socket_filters: of_type(ProgramType::SocketFilter),
        socket_states: Host
            .tracepoint_obstacle(may_mount)
            .map_or(Ok(()), |error| Err(error.to_string())),
        retransmits: retransmit_obstacle().map_or(Ok(()), |error| Err(error.to_string())),
        btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        programs: may_ask.then(programs),
        forced: None,
        privileges,
        files: files(),
        memlock: memlock(),
        ring_bytes: DEFAULT_RING_BYTES,
        links: Ok(Vec::new()),
        wanted: Vec::new(),
        foreign: BTreeMap::new(),
        config: None,
        api: None,
        token: None,
        jsonl: None,
        sockets: Ok(SocketPlaces::default()),
        clocks: clocks(),
        vip: None,
    }
}

fn programs() -> Result<Vec<Loaded>, String> {
    let tried = try_programs().map_err(|error| error.to_string())?;
    let loaded = tried.into_iter().map(|it| Loaded {
        name: it.name,
        verdict: it
            .verdict
            .map(|it| it.verified_instructions)
            .map_err(|error| refusal(&error.to_string())),
    });
    Ok(loaded.collect())
}

/// The verifier's reason out of its log, which names every instruction that it walked: the lines
/// before its statistics.
fn refusal(error: &str) -> String {
    let Some((what, log)) = error.split_once(" Verifier output: ") else { return error.to_owned() };
    let statistics =
        |line: &&str| line.starts_with("verification time") || line.starts_with("processed ");
    let lines: Vec<&str> = log.lines().collect();
    let end = lines.iter().position(statistics).unwrap_or(lines.len());
    let reason = lines.get(end.saturating_sub(2)..end).unwrap_or_default();
    format!("{what} {}", reason.join(": "))
}

fn privileges() -> Privileges {
    let set = |set| caps::read(None, set).unwrap_or_default();
    Privileges {
        root: nix::unistd::geteuid().is_root(),
        effective: set(CapSet::Effective),
        permitted: set(CapSet::Permitted),
        bounding: set(CapSet::Bounding),
    }
}

fn files() -> BTreeMap<File, String> {
    let read = |file: File| Some((file, fs::read_to_string(file.path()).ok()?));
    File::ALL.into_iter().filter_map(read).collect()
}

fn memlock() -> Option<u64> {
    let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK).ok()?;
    (soft != RLIM_INFINITY).then_some(soft)
}

fn links() -> Result<Vec<Link>, String> {
    let found: Vec<InterfaceAddress> =
        getifaddrs().map_err(|error| format!("getifaddrs: {error}"))?.collect();
    Ok(found.iter().filter_map(|entry| link(entry, &found)).collect())
}

fn link(entry: &InterfaceAddress, all: &[InterfaceAddress]) -> Option<Link> {
    let address = *entry.address.as_ref()?.as_link_addr()?;
    let name = entry.interface_name.clone();
    let (gro, lro) = offload::merging(&name);
    let own = all.iter().filter(|it| it.interface_name == name);
    Some(Link {
        index: u32::try_from(address.ifindex()).ok()?,
        up: entry.flags.contains(InterfaceFlags::IFF_UP),
        loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
        link_type: address.hatype(),
        mtu: offload::mtu(&name),
        gro,
        lro,
        addresses: own.filter_map(|it| ip(it.address.as_ref()?)).collect(),
        name,
    })
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip()).to_canonical()))
}

fn foreign(facts: &Facts) -> BTreeMap<String, Result<Vec<foreign::ForeignProgram>, String>> {
    let list = |link: &Link| {
        let listed = foreign::list(link.index).map_err(|error| error.to_string());
        (link.name.clone(), listed)
    };
    facts.watched().map(list).collect()
}

/// Listening is tried, and given up at once.
fn api(address: SocketAddr) -> ApiState {
    match TcpListener::bind(address) {
        Ok(_) => ApiState::Free,
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && is_agent(address) => {
            ApiState::Agent
        }
        Err(error) => ApiState::Refused(error.to_string()),
    }
}

fn is_agent(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, API_PATIENCE)?;
        stream.set_read_timeout(Some(API_PATIENCE))?;
        write!(stream, "GET /v1/status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut text = Vec::new();
        stream.take(64 * 1024).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let answer = ask().unwrap_or_default();
    ["goodput.agent-status/", "a bearer token is required"].iter().any(|it| answer.contains(it))
}

fn token(path: &Path) -> TokenFile {
    let read = || -> Result<(u32, usize), String> {
        let mode = fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let length = text.trim().len();
        if length == 0 { Err("the file holds no token".to_owned()) } else { Ok((mode, length)) }
    };
    TokenFile { path: path.to_owned(), content: read() }
}

/// Asks without creating the file.
fn appendable(path: &Path) -> Result<(), String> {
    use nix::unistd::{AccessFlags, access};
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let asked = if path.exists() { path } else { folder };
    if path.is_dir() {
        return Err("it is a folder".to_owned());
    }
    access(asked, AccessFlags::W_OK).map_err(|error| error.to_string())
}

fn sockets(endpoints: &[SocketAddr]) -> Result<SocketPlaces, String> {
    let tables = NetlinkTables::open(endpoints).map_err(|error| error.to_string())?;
    Ok(SocketPlaces { namespaces: tables.namespaces().to_vec() })
}

fn nanos(clock: ClockId) -> Option<i128> {
    let now = clock_gettime(clock).ok()?;
    Some(i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec()))
}

fn clocks() -> Option<Clocks> {
    let mut tightest: Option<(i128, i128)> = None;
    for _ in 0..LOOKS {
        let before = nanos(ClockId::CLOCK_MONOTONIC)?;
        let real = nanos(ClockId::CLOCK_REALTIME)?;
        let within = nanos(ClockId::CLOCK_MONOTONIC)? - before;
        if tightest.is_none_or(|(_, least)| within < least) {
            tightest = Some((real - before - within / 2, within));
        }
    }
    let (offset_ns, within) = tightest?;
    let within_ns = u64::try_from(within).ok()?;
    // Two looks lie between the first reading and the last.
    Some(Clocks { offset_ns, within_ns, read_ns: within_ns / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_verifiers_log_the_reason_is_kept() {
        let error = "x: refused (os error 13). Verifier output: 0: R1=ctx()\n50: (71) r1 = 0\n\
                     invalid access to packet\nR1 offset is outside\nverification time 1 usec\n\
                     processed 6100 insns\n: refused";
        assert_eq!(
            refusal(error),
            "x: refused (os error 13). invalid access to packet: R1 offset is outside"
        );
        assert_eq!(refusal("no log"), "no log");
        assert_eq!(refusal("x: Verifier output: short"), "x: short");
    }

    #[test]
    fn a_listener_at_the_apis_address_is_told_from_a_free_one_and_left_alone() {
        assert_eq!(api("127.0.0.1:0".parse().unwrap()), ApiState::Free);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let answers = std::thread::spawn(move || {
            let (mut stream, _) = taken.accept().unwrap();
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"schema\":\"other/1\"}").unwrap();
        });
        assert!(matches!(api(address), ApiState::Refused(_)));
        answers.join().unwrap();
    }

    #[test]
    fn files_of_tokens_and_of_rows_are_looked_at_and_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.token");
        assert!(token(&path).content.is_err());
        fs::write(&path, " \n").unwrap();
        assert!(token(&path).content.unwrap_err().contains("no token"));
        fs::write(&path, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let (mode, length) = token(&path).content.unwrap();
        assert_eq!((mode & 0o777, length), (0o644, 16));
        let rows = folder.path().join("rows.jsonl");
        assert_eq!(appendable(&rows), Ok(()));
        assert!(!rows.exists());
        assert!(appendable(folder.path()).unwrap_err().contains("folder"));
        assert!(appendable(&folder.path().join("no/rows.jsonl")).is_err());
    }
}
