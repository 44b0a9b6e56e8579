//! Everything in a file at once: the entry point of fuzzing.

use super::error::{OpenError, Stop};
use super::packet::{Other, parse};
use super::reader::Reader;

/// What a file holds.
#[derive(Debug)]
pub struct Decoded {
    /// Frames of any kind.
    pub frames: u64,
    /// TCP segments.
    pub segments: u64,
    /// Frames that may hold TCP but can't be read.
    pub unparsed: u64,
    /// Payload bytes of all segments on the wire.
    pub payload_bytes: u64,
    /// How reading ended.
    pub end: Result<(), Stop>,
}

/// Reads every record and header of `bytes`. Never panics, whatever they are.
///
/// # Errors
/// When this is no capture.
pub fn decode_all(bytes: &[u8]) -> Result<Decoded, OpenError> {
    let mut reader = Reader::open(bytes)?;
    let mut decoded =
        Decoded { frames: 0, segments: 0, unparsed: 0, payload_bytes: 0, end: Ok(()) };
    loop {
        match reader.advance() {
            Ok(true) => {}
            Ok(false) => return Ok(decoded),
            Err(stop) => {
                decoded.end = Err(stop);
                return Ok(decoded);
            }
        }
        let Some(frame) = reader.frame() else { return Ok(decoded) };
        decoded.frames += 1;
        match parse(&frame) {
            Ok(packet) => {
                decoded.segments += 1;
                decoded.payload_bytes += u64::from(packet.payload_len);
            }
            Err(Other::Unparsed | Other::UnknownLink(_)) => decoded.unparsed += 1,
            Err(Other::Foreign) => {}
        }
    }
}
