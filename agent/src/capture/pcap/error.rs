//! What can be wrong with a capture file.

use std::io;

/// The file can't be read as a capture at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("can't be read: {0}; check the name and its permissions")]
    Read(#[from] io::Error),
    /// No byte in it.
    #[error(
        "is empty: capture again, and end tcpdump with SIGINT so that it writes everything out"
    )]
    Empty,
    /// Compressed as a whole.
    #[error(
        "is compressed with {with}: unpack it on the way, as in `{with} -dc FILE | goodput-agent read -`"
    )]
    Compressed {
        /// The program that unpacks it.
        with: &'static str,
    },
    /// Another kind of file.
    #[error(
        "is neither a pcap nor a pcapng file (it begins with {first:02x?}): \
         convert other formats with `editcap -F pcapng FILE out.pcapng`"
    )]
    NotACapture {
        /// Its first bytes.
        first: Vec<u8>,
    },
    /// A format of the family that is not read.
    #[error("is {what}: convert it with `editcap -F pcapng FILE out.pcapng`")]
    Unsupported {
        /// Which.
        what: &'static str,
    },
    /// Cut off before the first record.
    #[error("breaks off inside its header: copy it again, or capture again")]
    TornHeader,
}

/// Why reading ended before the end of the file. What came before stays valid.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The last record is not whole.
    #[error(
        "the record at byte {at} breaks off: the capture was still being written, or copied in part"
    )]
    Torn {
        /// Where the record begins.
        at: u64,
    },
    /// A record contradicts the format.
    #[error("the record at byte {at} is damaged: {what}")]
    Damaged {
        /// Where the record begins.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The system refused.
    #[error("reading failed at byte {at}: {source}")]
    Read {
        /// Where.
        at: u64,
        /// Why.
        source: io::Error,
    },
}
