//! From a packet to records in the ring.

use core::arch::asm;

use agent_ebpf::{
    counters::{PacketCounters, SEGMENTS_ATTEMPTED, SEGMENTS_FAILED, UNREADABLE_PIECES},
    record::{MAX_PIECES, PIECE_LEN, SEGMENT_HEADER_LEN, SegmentHeader},
};
use aya_ebpf::{
    bindings::__sk_buff,
    helpers::{bpf_ringbuf_output, bpf_skb_load_bytes},
};

use super::maps::{RECORDS, SCRATCH, WAKE_BYTES};

/// `BPF_RB_AVAIL_DATA`, `BPF_RB_NO_WAKEUP` and `BPF_RB_FORCE_WAKEUP` (`include/uapi/linux/bpf.h`).
const AVAILABLE_DATA: u64 = 0;
const NO_WAKEUP: u64 = 1;
const FORCE_WAKEUP: u64 = 2;
/// Width of the band of fill levels in which the reader is woken: the largest record passes it in one
/// step or stops in it.
const WAKE_BAND: u64 = 8192;

/// Whether the next record wakes the reader. By default the first record in an empty ring does, and
/// an interrupt sent to oneself costs the sender of the packet several microseconds on a virtual
/// machine: the reader has a timer instead, and is woken early only when the ring fills.
#[inline(always)]
pub(super) fn wakeup() -> u64 {
    let waiting = RECORDS.query(AVAILABLE_DATA);
    if waiting.wrapping_sub(u64::from(WAKE_BYTES.load())) < WAKE_BAND {
        FORCE_WAKEUP
    } else {
        NO_WAKEUP
    }
}

/// A record before it is written: header, then payload.
#[repr(C)]
pub(super) struct Scratch {
    header: SegmentHeader,
    payload: [u8; PIECE_LEN as usize],
}

/// Writes a packet's records: `header`, and behind it `copied` bytes of its payload, which begins at
/// `payload_offset`.
#[inline(always)]
pub(super) fn emit(
    packet: *mut __sk_buff,
    header: SegmentHeader,
    payload_offset: u32,
    copied: u32,
    counters: &mut PacketCounters,
) {
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else { return };
    // SAFETY: this CPU's own entry; packet programs do not interrupt each other.
    let scratch = unsafe { &mut *scratch };
    scratch.header = header;
    let flags = wakeup();
    Emitter { packet, scratch, counters, payload_offset, flags }.segment(copied);
}

/// Where records of one packet come from and go to.
struct Emitter<'a> {
    packet: *mut __sk_buff,
    scratch: &'a mut Scratch,
    counters: &'a mut PacketCounters,
    /// Offset of the TCP payload in the packet.
    payload_offset: u32,
    /// See [`wakeup`]; the same for every piece.
    flags: u64,
}

/// 1 for a negative result, without a branch: a branch on the result inside the copy loop doubles
/// the paths that the verifier has to follow with every piece.
#[inline(always)]
fn is_error(result: i64) -> u64 {
    result.cast_unsigned() >> 63
}

/// The same number, of which the compiler knows nothing. Knowing that there are at most [`MAX_PIECES`], it
/// drops the loop's own bound, and verifiers that have lost the number's (Linux 6.1) walk the loop
/// until they give up.
#[inline(always)]
fn opaque(number: u32) -> u32 {
    let mut number = u64::from(number);
    // SAFETY: copies a register to itself.
    unsafe { asm!("{0} = {0}", inout(reg) number, options(pure, nomem, nostack)) };
    number as u32
}

impl Emitter<'_> {
    /// Writes the header followed by `len` bytes of payload.
    #[inline(always)]
    fn write(&mut self, len: u32) {
        self.scratch.header.attempt = self.counters[SEGMENTS_ATTEMPTED];
        // SAFETY: `len` is at most `PIECE_LEN`, so header and payload lie within the scratch entry;
        // the ring is a valid map.
        let result = unsafe {
            bpf_ringbuf_output(
                (&raw const RECORDS).cast_mut().cast(),
                (&raw mut *self.scratch).cast(),
                SEGMENT_HEADER_LEN as u64 + u64::from(len),
                self.flags,
            )
        };
        self.counters[SEGMENTS_ATTEMPTED] += 1;
        self.counters[SEGMENTS_FAILED] += is_error(result);
    }

    /// Copies and writes one piece of `len` bytes, 1 to `PIECE_LEN`.
    #[inline(always)]
    fn piece(&mut self, piece_offset: u32, len: u32) {
        // SAFETY: `len` is at most `PIECE_LEN`, the size of the destination.
        let result = unsafe {
            bpf_skb_load_bytes(
                self.packet.cast(),
                self.payload_offset + piece_offset,
                self.scratch.payload.as_mut_ptr().cast(),
                len,
            )
        };
        let error = is_error(result);
        self.counters[UNREADABLE_PIECES] += error;
        self.scratch.header.piece_offset = piece_offset;
        // On error the helper cleared the destination: those zeroes are not the packet's bytes.
        self.scratch.header.captured_len = len & (error as u32).wrapping_sub(1);
        self.write(len);
    }

    /// Writes the header alone, or `copied` bytes of payload in pieces.
    #[inline(always)]
    fn segment(&mut self, copied: u32) {
        self.scratch.header.piece_offset = 0;
        self.scratch.header.captured_len = 0;
        if copied == 0 {
            self.write(0);
            return;
        }
        let copied = copied.min(MAX_PIECES * PIECE_LEN);
        let whole = opaque((copied - 1) / PIECE_LEN);
        for index in 0..MAX_PIECES - 1 {
            if index >= whole {
                break;
            }
            self.piece(index * PIECE_LEN, PIECE_LEN);
        }
        let start = whole * PIECE_LEN;
        // Written so that the verifier sees a length of 1 to `PIECE_LEN`.
        let rest = (((copied - start).min(PIECE_LEN) - 1) & (PIECE_LEN - 1)) + 1;
        self.piece(start, rest);
    }
}
