//! Messages of `SOCK_DIAG` (`include/uapi/linux/{netlink,sock_diag,inet_diag,tcp}.h`): fixed
//! layouts in host byte order, ports and addresses in network byte order.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::{Detail, DiagError, TcpInfo};

const HEADER: usize = 16;
/// `struct inet_diag_req_v2` without its header.
const REQUEST: usize = 56;
const SOCKET: usize = 72;
/// Header of an attribute.
const ATTRIBUTE: usize = 4;
/// Bytes of a filter for each port: compare, the port, and go to the end.
const PORT_STEPS: usize = 12;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x10;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
const INET_DIAG_BC_JMP: u8 = 1;
const INET_DIAG_BC_S_EQ: u8 = 11;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKV6ONLY: u16 = 11;
const IPPROTO_TCP: u8 = 6;

/// `idiag_timer` of what is left of a connection in `TIME_WAIT`. Such a remainder may say
/// `FIN_WAIT2`, although its socket is closed and the tracepoint has said so.
const TIMER_TIME_WAIT: u8 = 3;

pub(super) const LISTEN: u8 = 10;
/// `LISTEN` and the states of a connection that exists, as a mask.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11;

/// Address families, as `struct inet_diag_req_v2` wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    const fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }
}

/// What one message says about a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiagSocket {
    pub(super) state: u8,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) cookie: u64,
    pub(super) time_wait: bool,
    /// A listening IPv6 socket takes no IPv4 connections.
    pub(super) v6_only: bool,
    pub(super) info: Option<TcpInfo>,
}

/// What ends a dump, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
    /// The kernel refused, with this `errno`.
    Refused(i32),
}

/// What a dump has brought so far.
#[derive(Debug, Default)]
pub(super) struct Dump {
    pub(super) sockets: Vec<DiagSocket>,
    /// The list changed while the kernel read it.
    pub(super) interrupted: bool,
}

/// A request for the TCP sockets of `family` with one of `ports` as their local port.
pub(super) fn request(family: Family, ports: &[u16], detail: Detail, sequence: u32) -> Vec<u8> {
    let filter = filter(ports);
    let len = HEADER + REQUEST + ATTRIBUTE + filter.len();
    let mut bytes = Vec::with_capacity(len);
    // A port has 16 bits, and its part of the filter 12 bytes: the length fits.
    bytes.extend(u32::try_from(len).unwrap_or(0).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    let extensions = match detail {
        Detail::Identity => 0,
        Detail::Path => 1 << (INET_DIAG_INFO - 1),
    };
    bytes.extend([family.number(), IPPROTO_TCP, extensions, 0]);
    bytes.extend(STATES.to_ne_bytes());
    bytes.resize(HEADER + REQUEST, 0);
    bytes.extend(u16::try_from(ATTRIBUTE + filter.len()).unwrap_or(0).to_ne_bytes());
    bytes.extend(INET_DIAG_REQ_BYTECODE.to_ne_bytes());
    bytes.extend(filter);
    bytes
}

/// A program of `struct inet_diag_bc_op` for the kernel: a socket of any of `ports` ends right behind
/// it, which takes the socket, every other one a step further, which passes it over. A step names the
/// distances to where it goes on when it holds and when it does not.
fn filter(ports: &[u16]) -> Vec<u8> {
    let step = |code: u8, holds: u8, else_: u16| {
        let [low, high] = else_.to_ne_bytes();
        [code, holds, low, high]
    };
    let mut program = Vec::with_capacity(ports.len() * PORT_STEPS);
    for (port, left) in ports.iter().zip((0..ports.len()).rev()) {
        program.extend(step(INET_DIAG_BC_S_EQ, 8, 12));
        program.extend(step(0, 0, *port));
        if left > 0 {
            let end = left * PORT_STEPS;
            program.extend(step(INET_DIAG_BC_JMP, 4, u16::try_from(end).unwrap_or(u16::MAX)));
        }
    }
    program
}

fn bytes<const N: usize>(message: &[u8], offset: usize) -> Option<[u8; N]> {
    message.get(offset..)?.first_chunk::<N>().copied()
}

fn number16(message: &[u8], offset: usize) -> Option<u16> {
    bytes(message, offset).map(u16::from_ne_bytes)
}

fn number32(message: &[u8], offset: usize) -> Option<u32> {
    bytes(message, offset).map(u32::from_ne_bytes)
}

/// Netlink's items, messages and attributes alike, begin at multiples of 4.
fn aligned(len: usize) -> usize {
    len.saturating_add(3) & !3
}

/// How many sockets one datagram that answers request `sequence` describes.
///
/// # Errors
/// [`DiagError::Malformed`].
pub fn dumped_sockets(datagram: &[u8], sequence: u32) -> Result<usize, DiagError> {
    let mut dump = Dump::default();
    messages(datagram, sequence, &mut dump)?;
    Ok(dump.sockets.len())
}

/// Reads the messages of one datagram that answer request `sequence`.
pub(super) fn messages(
    mut datagram: &[u8],
    sequence: u32,
    dump: &mut Dump,
) -> Result<Progress, DiagError> {
    const SHORT: DiagError = DiagError::Malformed("a message is shorter than it says");
    while datagram.len() >= HEADER {
        let len = number32(datagram, 0).and_then(|len| usize::try_from(len).ok()).ok_or(SHORT)?;
        let kind = number16(datagram, 4).ok_or(SHORT)?;
        let flags = number16(datagram, 6).ok_or(SHORT)?;
        let body = datagram.get(HEADER..len).ok_or(SHORT)?;
        // What is left of an earlier dump that was given up.
        let ours = number32(datagram, 8) == Some(sequence);
        datagram = datagram.get(aligned(len)..).unwrap_or_default();
        if !ours {
            continue;
        }
        dump.interrupted |= flags & NLM_F_DUMP_INTR != 0;
        match kind {
            SOCK_DIAG_BY_FAMILY => dump.sockets.extend(socket(body)?),
            NLMSG_DONE => return Ok(Progress::Done),
            NLMSG_ERROR => {
                let code = bytes(body, 0).map(i32::from_ne_bytes).ok_or(SHORT)?;
                return Ok(Progress::Refused(code.saturating_neg()));
            }
            _ => {}
        }
    }
    Ok(Progress::More)
}

/// A `struct inet_diag_msg` with its attributes; `None` for an address family that is no IP.
fn socket(body: &[u8]) -> Result<Option<DiagSocket>, DiagError> {
    const SHORT: DiagError = DiagError::Malformed("a socket's message is too short");
    let fixed = body.get(..SOCKET).ok_or(SHORT)?;
    let address = |address_at, port_at| {
        let ip = match fixed.first() {
            Some(2) => IpAddr::V4(Ipv4Addr::from(bytes::<4>(fixed, address_at)?)),
            Some(10) => IpAddr::V6(Ipv6Addr::from(bytes::<16>(fixed, address_at)?)),
            _ => return None,
        };
        let port = u16::from_be_bytes(bytes(fixed, port_at)?);
        Some(SocketAddr::new(ip.to_canonical(), port))
    };
    let (Some(local), Some(remote)) = (address(8, 4), address(24, 6)) else { return Ok(None) };
    let cookie = number32(fixed, 44).zip(number32(fixed, 48)).ok_or(SHORT)?;
    let mut socket = DiagSocket {
        state: *fixed.get(1).ok_or(SHORT)?,
        local,
        remote,
        cookie: u64::from(cookie.1) << 32 | u64::from(cookie.0),
        time_wait: fixed.get(2) == Some(&TIMER_TIME_WAIT),
        v6_only: false,
        info: None,
    };
    attributes(body.get(SOCKET..).unwrap_or_default(), &mut socket);
    Ok(Some(socket))
}

/// Kernels add attributes and lengthen `struct tcp_info`: what is not known is skipped.
fn attributes(mut rest: &[u8], socket: &mut DiagSocket) {
    while let (Some(len), Some(kind)) = (number16(rest, 0), number16(rest, 2)) {
        let len = usize::from(len);
        let Some(value) = rest.get(4..len) else { return };
        match kind {
            INET_DIAG_INFO => socket.info = tcp_info(value),
            INET_DIAG_SKV6ONLY => socket.v6_only = value.first().is_some_and(|it| *it != 0),
            _ => {}
        }
        rest = rest.get(aligned(len)..).unwrap_or_default();
    }
}

fn tcp_info(value: &[u8]) -> Option<TcpInfo> {
    let micros = |offset| number32(value, offset).map(|it| Duration::from_micros(it.into()));
    Some(TcpInfo { rtt: micros(68)?, rttvar: micros(72)?, total_retrans: number32(value, 100)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(HEADER + body.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(4 + value.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn body(family: u8, state: u8, timer: u8) -> Vec<u8> {
        let mut bytes = vec![family, state, timer, 0];
        bytes.extend(8000_u16.to_be_bytes());
        bytes.extend(40_000_u16.to_be_bytes());
        for last in [1_u8, 2] {
            let address = match family {
                2 => {
                    let mut four = vec![10, 0, 0, last];
                    four.resize(16, 0);
                    four
                }
                _ => format!("::ffff:10.0.0.{last}").parse::<Ipv6Addr>().unwrap().octets().into(),
            };
            bytes.extend(address);
        }
        bytes.extend([0; 4]);
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(1_u32.to_ne_bytes());
        bytes.resize(SOCKET, 0);
        bytes
    }

    #[test]
    fn a_request_has_its_fields_where_the_kernel_reads_them() {
        let request = request(Family::V6, &[8000], Detail::Path, 9);
        assert_eq!(request.len(), 84);
        assert_eq!(number32(&request, 0), Some(84));
        assert_eq!(number16(&request, 4), Some(20));
        assert_eq!(number32(&request, 8), Some(9));
        assert_eq!(&request[16..20], [10, 6, 2, 0]);
        assert_eq!(number32(&request, 20), Some(0b1111_0011_0010));
        assert_eq!(&request[24..72], [0; 48]);
        assert_eq!((number16(&request, 72), number16(&request, 74)), (Some(12), Some(1)));
    }

    /// Runs a filter as the kernel does (`inet_diag_bc_run`).
    fn takes(program: &[u8], port: u16) -> bool {
        let mut at = 0;
        while at < program.len() {
            let holds = match program[at] {
                INET_DIAG_BC_S_EQ => number16(program, at + 6) == Some(port),
                _ => false,
            };
            let no = usize::from(number16(program, at + 2).unwrap());
            at += if holds { usize::from(program[at + 1]) } else { no };
        }
        at == program.len()
    }

    #[test]
    fn a_filter_takes_its_ports_and_no_other() {
        for ports in [&[80][..], &[80, 443], &[1, 80, 8000, 8001, 65_535]] {
            let program = filter(ports);
            for port in [0, 1, 2, 80, 443, 7999, 8000, 8001, 8002, 65_534, 65_535] {
                assert_eq!(takes(&program, port), ports.contains(&port), "{port} of {ports:?}");
            }
        }
    }

    #[test]
    fn every_field_of_a_socket_is_read_from_its_place() {
        let mut info = vec![0; 232];
        info[68..72].copy_from_slice(&1500_u32.to_ne_bytes());
        info[72..76].copy_from_slice(&250_u32.to_ne_bytes());
        info[100..104].copy_from_slice(&3_u32.to_ne_bytes());
        let attributes = [attribute(11, &[1]), attribute(77, &[1, 2, 3]), attribute(2, &info)];
        for family in [2, 10] {
            let body = [body(family, 1, 0), attributes.concat()].concat();
            let mut dump = Dump::default();
            let progress = messages(&message(20, 2, 5, &body), 5, &mut dump).unwrap();
            assert_eq!(progress, Progress::More);
            let expected = DiagSocket {
                state: 1,
                local: "10.0.0.1:8000".parse().unwrap(),
                remote: "10.0.0.2:40000".parse().unwrap(),
                cookie: 1 << 32 | 7,
                time_wait: false,
                v6_only: true,
                info: Some(TcpInfo {
                    rtt: Duration::from_micros(1500),
                    rttvar: Duration::from_micros(250),
                    total_retrans: 3,
                }),
            };
            assert_eq!(dump.sockets, [expected]);
        }
    }

    #[test]
    fn the_remainder_of_a_closed_connection_is_told_apart() {
        let mut dump = Dump::default();
        messages(&message(20, 2, 5, &body(2, 5, 3)), 5, &mut dump).unwrap();
        assert!(dump.sockets[0].time_wait);
    }

    #[test]
    fn a_short_tcp_info_of_an_old_kernel_is_no_error() {
        let body = [body(2, 1, 0), attribute(2, &[0; 80])].concat();
        let mut dump = Dump::default();
        messages(&message(20, 2, 5, &body), 5, &mut dump).unwrap();
        assert_eq!(dump.sockets[0].info, None);
    }

    #[test]
    fn a_dump_ends_with_done_error_or_interruption_of_its_own_sequence() {
        let mut dump = Dump::default();
        let mut progress = |bytes: &[u8]| messages(bytes, 5, &mut dump).unwrap();
        assert_eq!(progress(&message(3, 2, 5, &[0; 4])), Progress::Done);
        assert_eq!(progress(&message(3, 2, 4, &[0; 4])), Progress::More);
        assert_eq!(progress(&message(2, 0, 5, &(-2_i32).to_ne_bytes())), Progress::Refused(2));
        let stale = message(2, 0, 4, &(-2_i32).to_ne_bytes());
        assert_eq!(progress(&[stale, message(3, 2, 5, &[0; 4])].concat()), Progress::Done);
        assert!(!dump.interrupted && dump.sockets.is_empty());
        messages(&message(3, 0x12, 5, &[0; 4]), 5, &mut dump).unwrap();
        assert!(dump.interrupted);
    }

    #[test]
    fn truncated_messages_are_errors() {
        let whole = message(20, 2, 5, &body(2, 1, 0));
        for len in HEADER..whole.len() {
            assert!(messages(&whole[..len], 5, &mut Dump::default()).is_err(), "{len}");
        }
    }

    proptest! {
        #[test]
        fn no_datagram_makes_the_reader_hang_or_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = messages(&bytes, 5, &mut Dump::default());
            let framed = message(20, 2, 5, &bytes);
            let _ = messages(&framed, 5, &mut Dump::default());
        }
    }
}
