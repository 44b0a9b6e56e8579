//! Strict number grammars: library parsers accept signs and other forms that the RFC does not.

use super::rule::Rule;

/// `1*DIGIT` of RFC 9110 section 8.6, within 64 bits.
pub(crate) fn content_length(text: &[u8]) -> Result<u64, Rule> {
    if matches!(text.first(), Some(b'+' | b'-')) {
        return Err(Rule::ContentLengthSign);
    }
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Rule::ContentLengthSyntax);
    }
    text.iter().try_fold(0u64, |value, digit| {
        let shifted = value.checked_mul(10).ok_or(Rule::ContentLengthOverflow)?;
        shifted.checked_add(u64::from(digit - b'0')).ok_or(Rule::ContentLengthOverflow)
    })
}

/// Value of one `HEXDIG`, either case.
pub(crate) fn hex_digit(byte: u8) -> Option<u64> {
    match byte {
        b'0'..=b'9' => Some(u64::from(byte - b'0')),
        b'a'..=b'f' => Some(u64::from(byte - b'a') + 10),
        b'A'..=b'F' => Some(u64::from(byte - b'A') + 10),
        _ => None,
    }
}

/// A byte count as `u64`; lossless on every platform with pointers of up to 64 bits.
pub(crate) fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// The smaller of a slice length and a 64-bit byte count, as a slice length.
pub(crate) fn clamp(len: usize, limit: u64) -> usize {
    usize::try_from(limit).map_or(len, |limit| limit.min(len))
}
