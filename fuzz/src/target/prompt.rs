//! The prompt in a request body: any split gives the same hashes, and a hole only takes some away.

use agent::prompt::{PREFIX_SIZES, Prefixes, PromptEnd, PromptHasher};

/// What long prompts repeat, so that short inputs reach the sizes that are hashed.
const FILL: usize = 1_500;

/// The first byte chooses the pieces and whether the body is made long.
pub(super) fn run(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let step = usize::from(*first) % 17 + 1;
    let body = if *first >= 0x80 { lengthen(bytes) } else { bytes.to_vec() };
    let whole = read(&body, body.len().max(1), body.len());
    assert_eq!(whole, read(&body, step, body.len()), "pieces change hashes");
    assert!(whole.bytes <= PREFIX_SIZES[3] && whole.bytes as usize <= body.len());
    // Bytes are lost from here on.
    let cut = read(&body, step, body.len() / 2);
    assert!(cut.bytes <= whole.bytes, "a hole adds bytes");
    assert!(cut.bytes < whole.bytes || cut.end == whole.end || cut.end == PromptEnd::Cut);
}

/// Much text follows the quotation mark that begins a value, and every fourth one from there.
fn lengthen(bytes: &[u8]) -> Vec<u8> {
    let (mut body, mut marks) = (Vec::new(), 0_usize);
    for byte in bytes {
        body.push(*byte);
        marks += usize::from(*byte == b'"');
        if *byte == b'"' && marks % 4 == 3 && body.len() < 6 * FILL {
            body.extend(std::iter::repeat_n(b'x', FILL));
        }
    }
    body
}

/// Hashes of `body`, of which only the first `seen` bytes come, in pieces of `step`.
fn read(body: &[u8], step: usize, seen: usize) -> Prefixes {
    let mut hasher = PromptHasher::new();
    body[..seen].chunks(step).for_each(|piece| hasher.feed(piece));
    if seen < body.len() {
        hasher.lose();
        hasher.feed(&body[seen..]);
    }
    hasher.finish()
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    const BODIES: [&str; 6] = [
        r#"{"model":"m","messages":[{"role":"user","content":"a \"b\" \\"}],"stream":true}"#,
        r#" { "prompt" : [ [1, 2], "x" ] , "n" : 1 }"#,
        r#"{"prompt":null,"input":"a"}"#,
        r#"{"tools":[{"messages":"no"}],"x":1.5e3,"mess\u0061ges":{},"prompt":"é\n"}"#,
        r#"{"messages":[]}"#,
        "[]",
    ];
    let with = |first: u8| BODIES.iter().map(move |body| [&[first][..], body.as_bytes()].concat());
    let long = format!("\u{3}{{\"prompt\":\"{}\"}}", "word ".repeat(13_200));
    with(2).chain(with(0x90)).chain([long.into_bytes()]).collect()
}
