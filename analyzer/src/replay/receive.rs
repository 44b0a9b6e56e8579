//! Reads with the kernel's receive stamps: the only module with system calls that no safe wrapper covers.
#![expect(
    unsafe_code,
    reason = "recvmsg with control messages that nix does not decode (TCP_CM_INQ)"
)]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use nix::sys::socket::{TimestampingFlag, setsockopt, sockopt};

/// `TCP_INQ` of `linux/tcp.h`, as socket option and as type of the control message.
const TCP_INQ: libc::c_int = 36;

/// Room for one SCM_TIMESTAMPING (three timespecs) and one TCP_CM_INQ, headers and padding included.
const CONTROL_BYTES: usize = 128;

/// The kernel aligns control messages to the word size.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL_BYTES]);

/// One read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Bytes read; 0 is the end of the stream.
    pub(super) len: usize,
    /// CLOCK_REALTIME nanoseconds at which the last segment of these bytes was received.
    pub(super) realtime: Option<u64>,
    /// Bytes left in the receive queue.
    pub(super) queued: Option<u32>,
}

/// Asks for receive stamps and the length of the queue. False where the kernel has neither: stamps then
/// come from the client's clock, record by record.
pub(super) fn enable_stamps(socket: BorrowedFd<'_>) -> bool {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
    setsockopt(&socket, sockopt::Timestamping, &flags).is_ok()
}

/// Asks for the number of bytes that stay queued after each read.
pub(super) fn enable_queue_length(socket: BorrowedFd<'_>) -> bool {
    let on: libc::c_int = 1;
    let size = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(0);
    // SAFETY: `on` lives through the call and `size` is its size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_INQ,
            (&raw const on).cast(),
            size,
        )
    };
    result == 0
}

/// Reads what is there.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut control = Control([MaybeUninit::uninit(); CONTROL_BYTES]);
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: msghdr is a C struct for which all-zero bytes are a valid, empty header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: `header` points at `vector`, `buffer` and `control`, which live through the call and
    // are as long as stated.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    let len = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    let (realtime, queued) = controls(&header);
    Ok(Received { len, realtime, queued })
}

/// Walks the control messages that `recvmsg` left in `header`.
fn controls(header: &libc::msghdr) -> (Option<u64>, Option<u32>) {
    let (mut realtime, mut queued) = (None, None);
    // SAFETY: `header` was filled by recvmsg: msg_control points at msg_controllen initialised bytes of
    // whole control messages, within which the CMSG macros stay.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: not null, thus a whole header written by the kernel; the buffer is aligned for it.
        let cmsg = unsafe { *message };
        match (cmsg.cmsg_level, cmsg.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                // SAFETY: the kernel wrote three timespecs, the first of which is the software stamp.
                let stamp = unsafe { read_data::<libc::timespec>(message) };
                realtime = nanoseconds(&stamp);
            }
            (libc::IPPROTO_TCP, TCP_INQ) => {
                // SAFETY: the kernel wrote one int.
                let bytes = unsafe { read_data::<libc::c_int>(message) };
                queued = u32::try_from(bytes).ok();
            }
            _ => {}
        }
        // SAFETY: as for CMSG_FIRSTHDR.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    (realtime, queued)
}

/// # Safety
/// `message` points at a whole control message whose data begins with a `T`.
unsafe fn read_data<T: Copy>(message: *const libc::cmsghdr) -> T {
    // SAFETY: by the caller's promise; the data need not be aligned for `T`.
    unsafe { libc::CMSG_DATA(message).cast::<T>().read_unaligned() }
}

/// All zero means that the kernel took no stamp.
fn nanoseconds(stamp: &libc::timespec) -> Option<u64> {
    let seconds = u64::try_from(stamp.tv_sec).ok()?;
    let nanoseconds = u64::try_from(stamp.tv_nsec).ok()?;
    let total = seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    Some(total).filter(|&total| total > 0)
}
