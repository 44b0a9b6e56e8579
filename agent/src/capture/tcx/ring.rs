//! How far the ring's writer and reader are.
//!
//! Layout of a BPF ring buffer's pages: `kernel/bpf/ringbuf.c`, `struct bpf_ringbuf`; the first page
//! holds the reader's position, the second the writer's.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::capture::CaptureError;

/// A page of the ring that holds one position.
struct PositionPage {
    page: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: the mapping is owned, read-only shared memory that is only accessed atomically.
unsafe impl Send for PositionPage {}

impl PositionPage {
    fn map(ring: BorrowedFd<'_>, page_index: usize) -> Result<Self, CaptureError> {
        // SAFETY: the call has no preconditions.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let len = usize::try_from(page_size).unwrap_or(4096);
        let offset = libc::off_t::try_from(page_index * len).unwrap_or(0);
        // SAFETY: a fresh mapping at an address that the kernel picks aliases nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ,
                libc::MAP_SHARED,
                ring.as_raw_fd(),
                offset,
            )
        };
        match NonNull::new(start.cast::<AtomicU64>()) {
            Some(page) if start != libc::MAP_FAILED => Ok(Self { page, len }),
            _ => Err(CaptureError::System {
                call: "mmap of the ring buffer",
                source: std::io::Error::last_os_error(),
                mend: "free memory or set a smaller ring_bytes",
            }),
        }
    }

    fn load(&self) -> u64 {
        // SAFETY: the page stays mapped as long as `self` lives, and is aligned to a page.
        unsafe { self.page.as_ref() }.load(Ordering::Acquire)
    }
}

impl Drop for PositionPage {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `map` made; nobody keeps a reference into it.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.len) };
    }
}

/// Both positions of a ring, in bytes since it was made.
pub(super) struct RingPositions {
    consumer: PositionPage,
    producer: PositionPage,
}

impl RingPositions {
    /// Maps the position pages of `ring`.
    pub(super) fn new(ring: BorrowedFd<'_>) -> Result<Self, CaptureError> {
        Ok(Self { consumer: PositionPage::map(ring, 0)?, producer: PositionPage::map(ring, 1)? })
    }

    /// Everything reserved so far ends here.
    pub(super) fn produced(&self) -> u64 {
        self.producer.load()
    }

    /// Everything before was taken out.
    pub(super) fn consumed(&self) -> u64 {
        self.consumer.load()
    }
}
