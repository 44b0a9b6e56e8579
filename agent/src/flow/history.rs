//! The last bytes of a stream, to tell a repetition from a contradiction.

/// Bytes that are compared with repetitions; older ones are forgotten.
const KEEP: usize = 512;

/// The most recent bytes that were read in order.
#[derive(Debug, Default)]
pub(super) struct History {
    bytes: Vec<u8>,
}

impl History {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // What lies between older bytes and these would be missing.
        if bytes.len() > KEEP {
            self.clear();
        }
        let recent = &bytes[bytes.len().saturating_sub(KEEP)..];
        if self.bytes.len() + recent.len() > 2 * KEEP {
            let surplus = self.bytes.len().saturating_sub(KEEP - recent.len().min(KEEP));
            self.bytes.drain(..surplus);
        }
        self.bytes.extend_from_slice(recent);
    }

    /// Bytes were passed over: what came before cannot be placed any more.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// True when `bytes`, whose last one lies `back` bytes before the end, differ from what was
    /// read. What is no longer remembered cannot differ.
    pub(super) fn contradicts(&self, bytes: &[u8], back: u64) -> bool {
        let Ok(back) = usize::try_from(back) else { return false };
        let Some(end) = self.bytes.len().checked_sub(back) else { return false };
        let known = end.min(bytes.len());
        self.bytes[end - known..end] != bytes[bytes.len() - known..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_agree_and_contradictions_are_found_within_memory() {
        let mut history = History::default();
        history.push(b"hello ");
        history.push(b"world");
        assert!(!history.contradicts(b"world", 0));
        assert!(!history.contradicts(b"lo wor", 2));
        assert!(history.contradicts(b"lo wOr", 2));
        assert!(!history.contradicts(b"??hello", 5 + 1), "what came before is unknown");
        assert!(!history.contradicts(b"anything", 500));
    }

    #[test]
    fn bytes_beyond_memory_do_not_join_what_lies_apart() {
        let long: Vec<u8> = (0..=255).cycle().take(KEEP + 100).collect();
        let mut history = History::default();
        history.push(b"before");
        history.push(&long);
        assert!(!history.contradicts(&long, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut history = History::default();
        for round in 0..1000_usize {
            history.push(&vec![b'x'; round * 7 % 5000]);
            assert!(history.bytes.len() <= 2 * KEEP);
        }
        assert!(!history.contradicts(b"xxxx", 0));
    }
}
