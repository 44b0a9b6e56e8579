//! The correlation header: W3C Trace Context `traceparent`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a trace id or a `traceparent` value was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// Wrong length or separators.
    #[error("expected 00-<32 hex>-<16 hex>-<2 hex>")]
    Shape,
    /// A character outside 0-9 and a-f: the standard admits lower case only.
    #[error("expected lower-case hexadecimal digits")]
    Digit,
    /// Version ff is forbidden.
    #[error("version ff is not allowed")]
    Version,
    /// All-zero ids mean "none".
    #[error("an all-zero id is not allowed")]
    Zero,
}

/// A 128-bit trace id; the key that joins client and kernel observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// From its bytes; all zero is refused.
    ///
    /// # Errors
    /// [`TraceError::Zero`].
    pub fn new(bytes: [u8; 16]) -> Result<Self, TraceError> {
        if bytes == [0; 16] { Err(TraceError::Zero) } else { Ok(Self(bytes)) }
    }

    /// Its bytes, most significant first.
    #[must_use]
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for TraceId {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        Self::new(hex(text.as_bytes())?)
    }
}

impl TryFrom<String> for TraceId {
    type Error = TraceError;

    fn try_from(text: String) -> Result<Self, TraceError> {
        text.parse()
    }
}

impl From<TraceId> for String {
    fn from(id: TraceId) -> Self {
        id.to_string()
    }
}

/// A whole `traceparent` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: TraceId,
    /// The caller's span; proxies may rewrite it, so nothing is joined on it.
    pub parent_id: [u8; 8],
    /// Bit 0 is "sampled"; this project sends 0, so that nobody's tracing backend is filled.
    pub flags: u8,
}

impl TraceParent {
    /// Header name, as sent.
    pub const HEADER: &'static str = "traceparent";

    /// An unsampled parent.
    ///
    /// # Errors
    /// [`TraceError::Zero`] for an all-zero parent id.
    pub fn unsampled(trace_id: TraceId, parent_id: [u8; 8]) -> Result<Self, TraceError> {
        if parent_id == [0; 8] {
            return Err(TraceError::Zero);
        }
        Ok(Self { trace_id, parent_id, flags: 0 })
    }

    /// Parses a header value. Versions above 00 may carry more after the flags.
    ///
    /// # Errors
    /// Every [`TraceError`].
    pub fn parse(value: &[u8]) -> Result<Self, TraceError> {
        const LEN: usize = 55;
        let head = value.get(..LEN).ok_or(TraceError::Shape)?;
        if [head[2], head[35], head[52]] != [b'-'; 3] {
            return Err(TraceError::Shape);
        }
        let [version] = hex::<1>(&head[..2])?;
        let tail = &value[LEN..];
        match (version, tail.first()) {
            (0xff, _) => return Err(TraceError::Version),
            (_, None) | (1.., Some(b'-')) => {}
            _ => return Err(TraceError::Shape),
        }
        let parent = Self::unsampled(TraceId::new(hex(&head[3..35])?)?, hex(&head[36..52])?)?;
        let [flags] = hex::<1>(&head[53..])?;
        Ok(Self { flags, ..parent })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-", self.trace_id)?;
        self.parent_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

impl FromStr for TraceParent {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        Self::parse(text.as_bytes())
    }
}

fn hex<const N: usize>(text: &[u8]) -> Result<[u8; N], TraceError> {
    if text.len() != 2 * N {
        return Err(TraceError::Shape);
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = (nibble(pair[0])? << 4) | nibble(pair[1])?;
    }
    Ok(bytes)
}

fn nibble(digit: u8) -> Result<u8, TraceError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(TraceError::Digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W3C_EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn reads_and_writes_the_example_of_the_standard() {
        let parent: TraceParent = W3C_EXAMPLE.parse().unwrap();
        assert_eq!(parent.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(parent.flags, 1);
        assert_eq!(parent.to_string(), W3C_EXAMPLE);
    }

    #[test]
    fn a_trace_id_is_a_hex_string_in_json() {
        let id: TraceId = "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap();
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "\"4bf92f3577b34da6a3ce929d0e0e4736\"");
        assert_eq!(serde_json::from_str::<TraceId>(&json).unwrap(), id);
    }

    #[test]
    fn refuses_what_the_standard_refuses() {
        let refused = [
            ("", TraceError::Shape),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x", TraceError::Shape),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", TraceError::Shape),
            ("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", TraceError::Shape),
            ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", TraceError::Digit),
            ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", TraceError::Version),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", TraceError::Zero),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", TraceError::Zero),
        ];
        for (text, error) in refused {
            assert_eq!(text.parse::<TraceParent>(), Err(error), "{text}");
        }
        assert!(
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"
                .parse::<TraceParent>()
                .is_ok()
        );
    }
}
