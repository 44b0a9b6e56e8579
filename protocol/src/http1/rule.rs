//! The one table of departures from the HTTP/1.1 grammar: what each is, where RFC 9112 speaks of it,
//! and whether this crate calls the message invalid or tolerates and counts it.
//!
//! The decoders look every departure up here, so the table cannot drift from the code.

use serde::{Deserialize, Serialize};

/// Which way a message travels; some departures are judged differently for requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Client to server.
    Request,
    /// Server to client.
    Response,
}

/// What a decoder does when it meets a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The message's framing is invalid and decoding of the connection stops.
    Invalid,
    /// The message stays valid; the departure is counted.
    Tolerated,
    /// Cannot occur in this direction.
    NotApplicable,
}

/// One row of [`RULES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The departure.
    pub rule: Rule,
    /// Stable name, as exported.
    pub code: &'static str,
    /// Treatment in requests.
    pub request: Treatment,
    /// Treatment in responses.
    pub response: Treatment,
    /// Document and section that the judgement rests on.
    pub section: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
}

macro_rules! rules {
    ($($name:ident $code:literal $request:ident $response:ident $section:literal $summary:literal;)*) => {
        /// A departure from the grammar; names are stable and exported in snake_case.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Rule {
            $(#[doc = $summary] #[serde(rename = $code)] $name,)*
        }

        /// Every departure this crate knows, in the order of [`Rule`].
        pub const RULES: &[Row] = &[
            $(Row {
                rule: Rule::$name,
                code: $code,
                request: Treatment::$request,
                response: Treatment::$response,
                section: $section,
                summary: $summary,
            },)*
        ];
    };
}

rules! {
    LeadingCrlf "leading_crlf" Tolerated Invalid "RFC 9112 2.2"
        "An empty line before the start line: servers should skip it, clients are given no such licence.";
    BareLf "bare_lf" Tolerated Tolerated "RFC 9112 2.2"
        "A line of the head or of the trailers ends in LF without CR.";
    BareCr "bare_cr" Invalid Invalid "RFC 9112 2.2"
        "A CR inside a line of the head or of the trailers.";
    StartLine "start_line" Invalid Invalid "RFC 9112 3, 4"
        "The first line is no request line or status line of HTTP/1.";
    MissingReasonSpace "missing_reason_space" NotApplicable Tolerated "RFC 9112 4"
        "The status line ends after the status code, without the space before the (optional) reason phrase.";
    StatusCode "status_code" NotApplicable Invalid "RFC 9110 15"
        "The status code is outside 100 to 599.";
    LeadingWhitespace "leading_whitespace" Invalid Invalid "RFC 9112 2.2"
        "Whitespace between the start line and the first field.";
    ObsFold "obs_fold" Invalid Tolerated "RFC 9112 5.2"
        "A field value is continued on a line that begins with whitespace.";
    FieldLine "field_line" Invalid Invalid "RFC 9112 5.1"
        "A field line without a proper name and colon, or with whitespace before the colon.";
    FieldValue "field_value" Invalid Invalid "RFC 9110 5.5"
        "A control character in a field value.";
    HeadTooLarge "head_too_large" Invalid Invalid "RFC 6585 5"
        "The head or the trailers exceed this crate's bound of 64 KiB.";
    ContentLengthSign "content_length_sign" Invalid Invalid "RFC 9110 8.6"
        "Content-Length carries a sign, as in `+5`.";
    ContentLengthSyntax "content_length_syntax" Invalid Invalid "RFC 9112 6.3"
        "Content-Length is not made of digits alone.";
    ContentLengthOverflow "content_length_overflow" Invalid Invalid "RFC 9110 8.6"
        "Content-Length exceeds 64 bits.";
    ContentLengthRepeated "content_length_repeated" Tolerated Tolerated "RFC 9110 8.6"
        "Content-Length is given several times with one value.";
    ContentLengthConflict "content_length_conflict" Invalid Invalid "RFC 9112 6.3"
        "Content-Length is given several times with different values.";
    ContentLengthWithoutBody "content_length_without_body" NotApplicable Tolerated "RFC 9110 8.6"
        "Content-Length in a 1xx or 204 response, which cannot have a body.";
    TransferEncodingWithContentLength "transfer_encoding_with_content_length" Invalid Invalid "RFC 9112 6.3"
        "Both Transfer-Encoding and Content-Length: ought to be handled as an error.";
    TransferEncodingInHttp10 "transfer_encoding_in_http10" Invalid Invalid "RFC 9112 6.1"
        "Transfer-Encoding in an HTTP/1.0 message: the framing must be treated as faulty.";
    TransferEncodingWithoutBody "transfer_encoding_without_body" NotApplicable Tolerated "RFC 9112 6.1"
        "Transfer-Encoding in a 1xx or 204 response, which cannot have a body.";
    TransferEncodingSyntax "transfer_encoding_syntax" Invalid Invalid "RFC 9112 6.1, 7"
        "Transfer-Encoding names no coding, or chunked with parameters.";
    ChunkedNotFinal "chunked_not_final" Invalid Invalid "RFC 9112 6.1"
        "Chunked is applied before another transfer coding.";
    ChunkedTwice "chunked_twice" Invalid Invalid "RFC 9112 6.1"
        "Chunked is applied more than once.";
    RequestNotChunked "request_not_chunked" Invalid NotApplicable "RFC 9112 6.3"
        "A request has a transfer coding but chunked is not the last one, so its end cannot be found.";
    ChunkSize "chunk_size" Invalid Invalid "RFC 9112 7.1"
        "A chunk does not begin with hexadecimal digits ended by CR, blank or semicolon.";
    ChunkSizeOverflow "chunk_size_overflow" Invalid Invalid "RFC 9112 7.1"
        "A chunk size exceeds 64 bits.";
    ChunkSizeBlank "chunk_size_blank" Tolerated Tolerated "RFC 9112 7.1"
        "Blanks between a chunk size and the end of its line.";
    ChunkExtension "chunk_extension" Tolerated Tolerated "RFC 9112 7.1.1"
        "A chunk extension: legal, ignored, counted.";
    ChunkExtensionSyntax "chunk_extension_syntax" Invalid Invalid "RFC 9112 7.1.1"
        "A control character in a chunk extension.";
    ChunkLineTooLong "chunk_line_too_long" Invalid Invalid "RFC 9112 7.1.1"
        "A chunk size line exceeds this crate's bound of 4 KiB.";
    ChunkLineEnd "chunk_line_end" Invalid Invalid "RFC 9112 7.1"
        "A CR in a chunk size line is not followed by LF.";
    ChunkBareLf "chunk_bare_lf" Invalid Invalid "RFC 9112 7.1"
        "A bare LF ends a chunk size line or chunk data: the licence of section 2.2 is for start line and fields only.";
    ChunkDataEnd "chunk_data_end" Invalid Invalid "RFC 9112 7.1"
        "Chunk data is not followed by CRLF.";
    Trailers "trailers" Tolerated Tolerated "RFC 9112 7.1.2"
        "Trailer fields after the last chunk: legal, ignored, counted.";
    ExcessBytes "excess_bytes" NotApplicable Invalid "RFC 9112 6.3"
        "Bytes follow the end of a response although no request is outstanding.";
}

impl Rule {
    /// This departure's row in [`RULES`].
    #[must_use]
    pub fn row(self) -> &'static Row {
        &RULES[self as usize]
    }

    /// Stable snake_case name.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.row().code
    }

    /// How a decoder for `direction` treats it.
    #[must_use]
    pub fn treatment(self, direction: Direction) -> Treatment {
        match direction {
            Direction::Request => self.row().request,
            Direction::Response => self.row().response,
        }
    }
}
