//! Finds the prompt in a JSON request body, byte by byte, keeping none of them.

/// Keys of the top-level object whose value is the prompt: chat completions, completions, responses.
const PROMPT_KEYS: [&[u8]; 3] = [b"messages", b"prompt", b"input"];
/// The longest of them; longer keys need not be remembered.
const LONGEST_KEY: usize = 8;

/// A key of the top-level object under way.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    bytes: [u8; LONGEST_KEY],
    /// Bytes so far; more than [`LONGEST_KEY`] are not kept.
    len: usize,
    escaped: bool,
}

impl Key {
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
        }
        self.len = self.len.saturating_add(1);
    }

    fn is_prompt(&self) -> bool {
        self.bytes.get(..self.len).is_some_and(|key| PROMPT_KEYS.contains(&key))
    }
}

/// Place within one JSON value.
#[derive(Clone, Copy, Debug, Default)]
struct Nesting {
    depth: u32,
    in_string: bool,
    escaped: bool,
}

/// What a byte is to the value under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A byte that counts.
    Content,
    /// White space that JSON gives no meaning to (RFC 8259, section 2).
    Blank,
    /// The last byte, which counts.
    Last,
    /// The value ended before this byte.
    Beyond,
}

impl Nesting {
    fn take(&mut self, byte: u8) -> Part {
        if self.in_string {
            return self.take_in_string(byte);
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth = self.depth.saturating_add(1),
            b']' | b'}' if self.depth == 0 => return Part::Beyond,
            b',' if self.depth == 0 => return Part::Beyond,
            b']' | b'}' => {
                self.depth -= 1;
                if self.depth == 0 {
                    return Part::Last;
                }
            }
            byte if is_blank(byte) => return Part::Blank,
            _ => {}
        }
        Part::Content
    }

    fn take_in_string(&mut self, byte: u8) -> Part {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            if self.depth == 0 {
                return Part::Last;
            }
        }
        Part::Content
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Before the object's brace.
    Start,
    /// Where a key or the object's end must come.
    Member,
    Key(Key),
    /// After a key; true for the prompt's.
    Colon(bool),
    /// Before a value's first byte; true for the prompt's.
    Value(bool),
    /// In a value that is not the prompt.
    Other(Nesting),
    Prompt(Nesting),
    /// The prompt was seen to its end.
    Whole,
    /// There is none.
    Absent,
}

/// How far the prompt was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// More bytes may bring it, or more of it.
    More,
    /// It was seen to its end.
    Whole,
    /// The body has none, or is no JSON object.
    Absent,
}

/// Finds the value of the first of the prompt's keys in the top-level object.
#[derive(Clone, Debug)]
pub(super) struct PromptScanner {
    state: State,
}

impl PromptScanner {
    pub(super) fn new() -> Self {
        Self { state: State::Start }
    }

    pub(super) fn found(&self) -> Found {
        match self.state {
            State::Whole => Found::Whole,
            State::Absent => Found::Absent,
            _ => Found::More,
        }
    }

    /// Takes body bytes in order; `prompt` gets those of the prompt's value, without white space
    /// between tokens, in slices whose borders mean nothing.
    pub(super) fn feed<'a>(&mut self, bytes: &'a [u8], prompt: &mut dyn FnMut(&'a [u8])) {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Prompt(nesting) = self.state {
                at += self.prompt(nesting, &bytes[at..], prompt);
            } else if self.found() == Found::More {
                at += usize::from(self.step(bytes[at]));
            } else {
                return;
            }
        }
    }

    /// Takes bytes of the prompt's value; answers how many.
    fn prompt<'a>(
        &mut self,
        mut nesting: Nesting,
        bytes: &'a [u8],
        prompt: &mut dyn FnMut(&'a [u8]),
    ) -> usize {
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            match nesting.take(*byte) {
                Part::Content => continue,
                Part::Blank => prompt(&bytes[from..at]),
                // A value that begins with a bracket or a quotation mark ends with one.
                Part::Last | Part::Beyond => {
                    prompt(&bytes[from..=at]);
                    self.state = State::Whole;
                    return at + 1;
                }
            }
            from = at + 1;
        }
        prompt(&bytes[from..]);
        self.state = State::Prompt(nesting);
        bytes.len()
    }

    /// Takes one byte outside the prompt; false when it is to be looked at again in the new state.
    fn step(&mut self, byte: u8) -> bool {
        let mut taken = true;
        self.state = match self.state {
            State::Key(key) => after_key_byte(key, byte),
            State::Other(mut nesting) => match nesting.take(byte) {
                Part::Content | Part::Blank => State::Other(nesting),
                Part::Last => State::Member,
                Part::Beyond => {
                    taken = byte != b'}' && byte != b']';
                    State::Member
                }
            },
            state if is_blank(byte) => state,
            State::Start if byte == b'{' => State::Member,
            State::Member if byte == b',' => State::Member,
            State::Member if byte == b'"' => State::Key(Key::default()),
            State::Colon(prompt) if byte == b':' => State::Value(prompt),
            State::Value(prompt) => {
                taken = false;
                // A prompt may be null where another key holds it.
                if prompt && matches!(byte, b'"' | b'[') {
                    State::Prompt(Nesting::default())
                } else {
                    State::Other(Nesting::default())
                }
            }
            _ => State::Absent,
        };
        taken
    }
}

fn after_key_byte(mut key: Key, byte: u8) -> State {
    if key.escaped {
        key.escaped = false;
        key.push(byte);
        return State::Key(key);
    }
    match byte {
        b'"' => State::Colon(key.is_prompt()),
        b'\\' => {
            key.escaped = true;
            key.push(byte);
            State::Key(key)
        }
        _ => {
            key.push(byte);
            State::Key(key)
        }
    }
}
