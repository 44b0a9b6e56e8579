//! Message body length: RFC 9112 section 6.3, rule by rule.

use serde::{Deserialize, Serialize};

use super::fields::{Fields, trim};
use super::framing::{Broken, Ledger};
use super::number::content_length;
use super::rule::Rule;

/// How the end of a message body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// No body.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// Everything up to the close of the connection.
    UntilClose,
    /// What follows the head is not HTTP/1.1 (CONNECT, 101).
    Tunnel,
}

/// The request method, as far as framing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// HEAD: its response has no body whatever its fields say.
    Head,
    /// CONNECT: a successful response turns the connection into a tunnel.
    Connect,
    /// POST, the method of completion requests.
    Post,
    /// Any other method.
    Other,
}

impl Method {
    /// From the method token of a request line (case-sensitive, RFC 9110 section 9.1).
    #[must_use]
    pub fn from_token(token: &str) -> Self {
        match token {
            "HEAD" => Self::Head,
            "CONNECT" => Self::Connect,
            "POST" => Self::Post,
            _ => Self::Other,
        }
    }
}

/// What the transfer codings of a message amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Codings {
    /// Chunked is the last coding.
    pub(crate) chunked: bool,
    /// A coding other than chunked (and identity) is applied.
    pub(crate) coded: bool,
}

/// Body kind of a request.
pub(crate) fn of_request(
    method: Method,
    version_minor: u8,
    fields: Fields<'_>,
    base: u64,
    ledger: &mut Ledger,
) -> Result<BodyKind, Broken> {
    if method == Method::Connect {
        return Ok(BodyKind::Tunnel);
    }
    let kind = by_fields(version_minor, fields, base, ledger)?;
    match kind {
        BodyKind::UntilClose if fields.get("transfer-encoding").is_some() => {
            ledger.note(Rule::RequestNotChunked, base)?;
            Ok(kind)
        }
        BodyKind::UntilClose => Ok(BodyKind::None),
        _ => Ok(kind),
    }
}

/// Body kind of a response to `method`.
pub(crate) fn of_response(
    method: Method,
    status: u16,
    version_minor: u8,
    fields: Fields<'_>,
    base: u64,
    ledger: &mut Ledger,
) -> Result<BodyKind, Broken> {
    if matches!(status, 100..=199 | 204) {
        note_useless_fields(fields, base, ledger)?;
        return Ok(if status == 101 { BodyKind::Tunnel } else { BodyKind::None });
    }
    if method == Method::Connect && (200..300).contains(&status) {
        return Ok(BodyKind::Tunnel);
    }
    let kind = by_fields(version_minor, fields, base, ledger)?;
    let bodiless = method == Method::Head || status == 304;
    Ok(if bodiless { BodyKind::None } else { kind })
}

fn note_useless_fields(fields: Fields<'_>, base: u64, ledger: &mut Ledger) -> Result<(), Broken> {
    if fields.get("content-length").is_some() {
        ledger.note(Rule::ContentLengthWithoutBody, base)?;
    }
    if fields.get("transfer-encoding").is_some() {
        ledger.note(Rule::TransferEncodingWithoutBody, base)?;
    }
    Ok(())
}

fn by_fields(
    version_minor: u8,
    fields: Fields<'_>,
    base: u64,
    ledger: &mut Ledger,
) -> Result<BodyKind, Broken> {
    let length = declared_length(fields, base, ledger)?;
    let Some(codings) = transfer_codings(fields, base, ledger)? else {
        return Ok(length.map_or(BodyKind::UntilClose, BodyKind::Length));
    };
    if version_minor == 0 {
        ledger.note(Rule::TransferEncodingInHttp10, base)?;
    }
    if length.is_some() {
        ledger.note(Rule::TransferEncodingWithContentLength, base)?;
    }
    Ok(if codings.chunked { BodyKind::Chunked } else { BodyKind::UntilClose })
}

/// The one value that all Content-Length fields agree on.
fn declared_length(
    fields: Fields<'_>,
    base: u64,
    ledger: &mut Ledger,
) -> Result<Option<u64>, Broken> {
    let mut agreed = None;
    for element in fields.list("content-length") {
        let value = match content_length(element) {
            Ok(value) => value,
            Err(rule) => {
                ledger.note(rule, base)?;
                continue;
            }
        };
        match agreed {
            None => agreed = Some(value),
            Some(first) if first == value => ledger.note(Rule::ContentLengthRepeated, base)?,
            Some(_) => ledger.note(Rule::ContentLengthConflict, base)?,
        }
    }
    Ok(agreed)
}

/// The transfer codings, or `None` where there is no such field.
pub(crate) fn transfer_codings(
    fields: Fields<'_>,
    base: u64,
    ledger: &mut Ledger,
) -> Result<Option<Codings>, Broken> {
    if fields.get("transfer-encoding").is_none() {
        return Ok(None);
    }
    let mut codings = Codings { chunked: false, coded: false };
    let mut named = false;
    // Empty list elements are to be ignored (RFC 9110 section 5.6.1).
    for element in fields.list("transfer-encoding").filter(|element| !element.is_empty()) {
        named = true;
        coding(element, &mut codings, base, ledger)?;
    }
    if !named {
        ledger.note(Rule::TransferEncodingSyntax, base)?;
    }
    Ok(Some(codings))
}

fn coding(
    element: &[u8],
    codings: &mut Codings,
    base: u64,
    ledger: &mut Ledger,
) -> Result<(), Broken> {
    let (name, parameters) = match element.iter().position(|byte| *byte == b';') {
        Some(at) => (trim(&element[..at]), true),
        None => (element, false),
    };
    if name.eq_ignore_ascii_case(b"chunked") {
        if parameters {
            ledger.note(Rule::TransferEncodingSyntax, base)?;
        }
        if codings.chunked {
            ledger.note(Rule::ChunkedTwice, base)?;
        }
        codings.chunked = true;
        return Ok(());
    }
    if codings.chunked {
        // A response would be readable up to the close, but no sender may produce this.
        ledger.note(Rule::ChunkedNotFinal, base)?;
        codings.chunked = false;
    }
    codings.coded |= !name.eq_ignore_ascii_case(b"identity");
    Ok(())
}

/// Whether the connection outlives the message (RFC 9112 section 9.3).
pub(crate) fn keeps_alive(version_minor: u8, fields: Fields<'_>, body: BodyKind) -> bool {
    let wanted = match version_minor {
        0 => fields.has_token("connection", "keep-alive"),
        _ => !fields.has_token("connection", "close"),
    };
    wanted && !matches!(body, BodyKind::UntilClose | BodyKind::Tunnel)
}
