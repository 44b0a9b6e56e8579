//! `tc` filters and the XDP program of an interface, asked by rtnetlink(7).

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use super::{ForeignError, ForeignProgram, Hook, failed};

/// Message types and flags (`include/uapi/linux/rtnetlink.h` and `netlink.h`).
const GET_LINK: u16 = 18;
const GET_FILTER: u16 = 46;
const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;
const REQUEST: u16 = 0x1;
const DUMP: u16 = 0x300;
/// Parents of filters in `clsact`; `ingress` answers to the first, too (`pkt_sched.h`).
const PARENTS: [(Hook, u32); 2] = [(Hook::TcIngress, 0xffff_fff2), (Hook::TcEgress, 0xffff_fff3)];
/// Attributes (`rtnetlink.h`, `pkt_cls.h`, `if_link.h`).
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;
const IFLA_XDP: u16 = 43;
/// Program ids by mode: any, native, generic, in hardware.
const IFLA_XDP_PROG_IDS: std::ops::RangeInclusive<u16> = 4..=7;

const HEADER_LEN: usize = 16;
const TC_MESSAGE_LEN: usize = 20;
const LINK_MESSAGE_LEN: usize = 16;

fn number<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk::<N>().copied()
}

fn number16(bytes: &[u8], offset: usize) -> Option<u16> {
    number(bytes, offset).map(u16::from_ne_bytes)
}

fn number32(bytes: &[u8], offset: usize) -> Option<u32> {
    number(bytes, offset).map(u32::from_ne_bytes)
}

/// Splits off what lies before `len` rounded up to 4 bytes, as netlink aligns everything.
fn aligned(bytes: &[u8], len: usize) -> &[u8] {
    bytes.get(len.next_multiple_of(4)..).unwrap_or_default()
}

/// Attributes of a message: type and value.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(number16(bytes, 0)?);
        // The two highest bits are flags.
        let kind = number16(bytes, 2)? & 0x3fff;
        let value = bytes.get(4..len)?;
        bytes = aligned(bytes, len);
        Some((kind, value))
    })
}

fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(HEADER_LEN + body.len()).unwrap_or(0);
    let mut message = len.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST | flags).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn open() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?)
}

/// Sends a request and hands the body of every answer to `take`.
fn ask(message: &[u8], dump: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let socket = open()?;
    send(socket.as_raw_fd(), message, MsgFlags::empty())?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let len = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = buffer.get(..len).unwrap_or_default();
        while let Some(len) = number32(rest, 0).and_then(|len| usize::try_from(len).ok()) {
            let Some(body) = rest.get(HEADER_LEN..len) else { return Ok(()) };
            match number16(rest, 4) {
                Some(MESSAGE_DONE) => return Ok(()),
                Some(MESSAGE_ERROR) => return answer(body),
                _ => take(body),
            }
            rest = aligned(rest, len);
        }
        if !dump {
            return Ok(());
        }
    }
}

/// An error message holds a negative number, or 0 for a bare acknowledgement.
fn answer(body: &[u8]) -> io::Result<()> {
    match number(body, 0).map(i32::from_ne_bytes) {
        Some(code) if code < 0 => Err(io::Error::from_raw_os_error(-code)),
        _ => Ok(()),
    }
}

/// BPF filters of the interface's `clsact` or `ingress` qdisc.
pub(super) fn filters(ifindex: u32) -> Result<Vec<ForeignProgram>, ForeignError> {
    let mut found = Vec::new();
    for (hook, parent) in PARENTS {
        let mut body = vec![0; 4];
        body.extend(ifindex.to_ne_bytes());
        body.extend([0; 4]);
        body.extend(parent.to_ne_bytes());
        body.extend([0; 4]);
        let mut here: Vec<ForeignProgram> = Vec::new();
        let message = request(GET_FILTER, DUMP, &body);
        ask(&message, true, &mut |body| here.extend(filter(hook, body)))
            .map_err(|error| failed("RTM_GETTFILTER", error))?;
        here.sort_by_key(|it| (it.priority, it.handle));
        for (position, program) in (0..).zip(&mut here) {
            program.position = position;
        }
        found.extend(here);
    }
    Ok(found)
}

/// One BPF filter: the chain head that precedes each has no handle and is none.
fn filter(hook: Hook, body: &[u8]) -> Option<ForeignProgram> {
    let handle = number32(body, 8).filter(|handle| *handle != 0)?;
    let priority = u16::try_from(number32(body, 16)? >> 16).ok()?;
    let rest = body.get(TC_MESSAGE_LEN..)?;
    if text(attribute(rest, TCA_KIND)?) != "bpf" {
        return None;
    }
    let options = attribute(rest, TCA_OPTIONS).unwrap_or_default();
    Some(ForeignProgram {
        hook,
        id: attribute(options, TCA_BPF_ID).and_then(|value| number32(value, 0)),
        name: attribute(options, TCA_BPF_NAME).map(text),
        position: 0,
        priority: Some(priority),
        handle: Some(handle),
        before_agent: None,
    })
}

/// The XDP programs of the interface; usually one at most.
pub(super) fn xdp(ifindex: u32) -> Result<Vec<ForeignProgram>, ForeignError> {
    let mut body = vec![0; 4];
    body.extend(ifindex.to_ne_bytes());
    body.extend([0; 8]);
    let mut ids = Vec::new();
    ask(&request(GET_LINK, 0, &body), false, &mut |body| ids.extend(xdp_ids(body)))
        .map_err(|error| failed("RTM_GETLINK", error))?;
    ids.sort_unstable();
    ids.dedup();
    let program = |(position, id)| ForeignProgram {
        hook: Hook::Xdp,
        id: Some(id),
        name: None,
        position,
        priority: None,
        handle: None,
        before_agent: None,
    };
    Ok((0..).zip(ids).map(program).collect())
}

fn xdp_ids(body: &[u8]) -> Vec<u32> {
    let rest = body.get(LINK_MESSAGE_LEN..).unwrap_or_default();
    let modes = attributes(attribute(rest, IFLA_XDP).unwrap_or_default());
    modes
        .filter(|(kind, _)| IFLA_XDP_PROG_IDS.contains(kind))
        .filter_map(|(_, value)| number32(value, 0))
        .filter(|id| *id != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(4 + value.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn filter_message() -> Vec<u8> {
        let mut body = vec![0; 8];
        body.extend(1_u32.to_ne_bytes());
        body.extend(0xffff_fff2_u32.to_ne_bytes());
        body.extend(((1_u32 << 16) | 0x300).to_ne_bytes());
        body.extend(encode(TCA_KIND, b"bpf\0"));
        let id = encode(TCA_BPF_ID, &77_u32.to_ne_bytes());
        let options = [encode(TCA_BPF_NAME, b"tc_hook\0"), id].concat();
        body.extend(encode(TCA_OPTIONS | 0x8000, &options));
        body
    }

    #[test]
    fn a_bpf_filter_is_read_with_priority_handle_name_and_id() {
        let found = filter(Hook::TcIngress, &filter_message()).unwrap();
        assert_eq!((found.priority, found.handle, found.id), (Some(1), Some(1), Some(77)));
        assert_eq!(found.name.as_deref(), Some("tc_hook"));
    }

    #[test]
    fn a_truncated_message_is_no_filter_and_no_panic() {
        let whole = filter_message();
        for len in 0..whole.len() {
            let _ = filter(Hook::TcIngress, &whole[..len]);
            let _ = xdp_ids(&whole[..len]);
        }
        assert_eq!(filter(Hook::TcIngress, &whole[..TC_MESSAGE_LEN]), None);
    }

    #[test]
    fn xdp_programs_of_every_mode_are_read_and_zero_is_none() {
        let modes = [encode(2, &[2]), encode(4, &9_u32.to_ne_bytes()), encode(5, &[0; 4])];
        let mut body = vec![0; LINK_MESSAGE_LEN];
        body.extend(encode(3, b"eth0\0"));
        body.extend(encode(IFLA_XDP, &modes.concat()));
        assert_eq!(xdp_ids(&body), [9]);
    }
}
