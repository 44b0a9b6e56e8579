//! Another program on the agent's interfaces: it counts what it sees and gives a fixed verdict.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// `enum bpf_cmd`, program type, map type and attach flags of `include/uapi/linux/bpf.h`.
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const ARRAY: u32 = 2;
const SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
const BEFORE: u32 = 1 << 3;

/// A loaded program and the counter that it keeps.
pub(crate) struct Neighbour {
    map: OwnedFd,
    program: OwnedFd,
}

fn bpf(command: libc::c_long, attribute: &[u8]) -> libc::c_long {
    // SAFETY: the attribute is valid for its length; pointers in it outlive the call.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attribute.as_ptr(), attribute.len()) };
    assert!(result >= 0, "bpf command {command}: {}", std::io::Error::last_os_error());
    result
}

fn descriptor(result: libc::c_long) -> OwnedFd {
    // SAFETY: a descriptor that was just made and that nobody else owns.
    unsafe { OwnedFd::from_raw_fd(i32::try_from(result).unwrap()) }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn pointer(bytes: &[u8]) -> [u8; 8] {
    (bytes.as_ptr().addr() as u64).to_ne_bytes()
}

fn number(descriptor: &OwnedFd) -> u32 {
    u32::try_from(descriptor.as_raw_fd()).unwrap()
}

fn instruction(code: u8, registers: u8, immediate: u32) -> [u8; 8] {
    let [a, b, c, d] = immediate.to_le_bytes();
    [code, registers, 0, 0, a, b, c, d]
}

impl Neighbour {
    /// A program that adds 1 to its counter and returns `verdict`.
    pub(crate) fn new(verdict: u32) -> Self {
        let map = descriptor(bpf(MAP_CREATE, &words(&[ARRAY, 4, 8, 1, 0])));
        let code = [
            // r1 = address of the counter; r0 = 1; lock *r1 += r0; return verdict.
            instruction(0x18, 0x21, number(&map)),
            instruction(0, 0, 0),
            instruction(0xb7, 0x00, 1),
            instruction(0xdb, 0x01, 0),
            instruction(0xb7, 0x00, verdict),
            instruction(0x95, 0x00, 0),
        ];
        let count = u32::try_from(code.len()).unwrap();
        let (code, licence) = (code.concat(), b"GPL\0");
        let mut attribute = words(&[SCHED_CLS, count]);
        attribute.extend(pointer(&code));
        attribute.extend(pointer(licence));
        attribute.resize(128, 0);
        Self { map, program: descriptor(bpf(PROG_LOAD, &attribute)) }
    }

    /// Packets that it saw.
    pub(crate) fn seen(&self) -> u64 {
        let (key, mut value) = ([0_u8; 4], [0_u8; 8]);
        let mut attribute = words(&[number(&self.map), 0]);
        attribute.extend(pointer(&key));
        attribute.extend((value.as_mut_ptr().addr() as u64).to_ne_bytes());
        attribute.extend([0; 8]);
        bpf(MAP_LOOKUP, &attribute);
        u64::from_ne_bytes(value)
    }

    /// Attaches by TCX in front of everybody, until the result is dropped.
    pub(crate) fn in_front(&self, ifindex: u32) -> OwnedFd {
        let mut attribute = words(&[number(&self.program), ifindex, TCX_INGRESS, BEFORE]);
        attribute.resize(64, 0);
        descriptor(bpf(LINK_CREATE, &attribute))
    }

    /// Attaches as LoxiLB does: a `clsact` filter with direct action, handle 1, priority 1.
    pub(crate) fn in_clsact(&self, ifindex: u32) {
        let options = [
            attribute(6, &number(&self.program).to_ne_bytes()),
            attribute(7, b"neighbour\0"),
            attribute(8, &1_u32.to_ne_bytes()),
        ];
        let every_protocol = u32::from(u16::try_from(libc::ETH_P_ALL).unwrap().to_be());
        let mut body = words(&[0, ifindex, 1, 0xffff_fff2, 1 << 16 | every_protocol]);
        body.extend(attribute(1, b"bpf\0"));
        body.extend(attribute(2 | 0x8000, &options.concat()));
        // RTM_NEWTFILTER with REQUEST, ACK, CREATE and EXCL.
        let mut message = words(&[u32::try_from(16 + body.len()).unwrap()]);
        message.extend(44_u16.to_ne_bytes());
        message.extend(0x0605_u16.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        acknowledged(&message);
    }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(4 + value.len()).unwrap().to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn acknowledged(message: &[u8]) {
    use nix::sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
    };
    let protocol = SockProtocol::NetlinkRoute;
    let socket =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::empty(), protocol).unwrap();
    send(socket.as_raw_fd(), message, MsgFlags::empty()).unwrap();
    let mut answer = [0; 4096];
    recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty()).unwrap();
    let code = i32::from_ne_bytes(*answer[16..].first_chunk().unwrap());
    assert_eq!(code, 0, "{}", std::io::Error::from_raw_os_error(-code));
}
