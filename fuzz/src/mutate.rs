//! Damage to bytes by a fixed sequence of draws.

/// Words at which the decoders turn.
const SALIENT: [&[u8]; 26] = [
    b"\r\n",
    b"\n\n",
    b"\r\n\r\n",
    b":",
    b";",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"content-length: 3\r\n",
    b"transfer-encoding: chunked\r\n",
    b"connection: close\r\n",
    b"\0",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xef\xbb\xbf",
    b"data: ",
    b"data: [DONE]\n\n",
    b"{",
    b"}",
    b"\"",
    b"null",
    b"-1",
    b"1e999",
    b"nan",
];
/// Longest piece copied or removed.
const PIECE: usize = 64;
/// Inputs stay below this: what is found must be small enough to read.
const MOST: usize = 64 * 1024;

/// Marsaglia's xorshift: the same damage in every run.
#[derive(Debug)]
pub struct Mutator(u64);

impl Mutator {
    /// A sequence of its own for each seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (limit.max(1) as u64)).unwrap_or(0)
    }

    /// One of `seeds`, damaged at one to four places.
    pub fn damaged(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds.get(self.below(seeds.len())).cloned().unwrap_or_default();
        let other = self.below(seeds.len());
        for _ in 0..=self.below(4) {
            self.damage(&mut bytes, seeds.get(other).map_or(&[][..], Vec::as_slice));
        }
        bytes.truncate(MOST);
        bytes
    }

    fn damage(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        let end = (at + self.below(PIECE)).min(bytes.len());
        match self.below(7) {
            0 => insert(bytes, at, SALIENT[self.below(SALIENT.len())]),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy = bytes[at..end].to_vec();
                insert(bytes, at, &copy);
            }
            3 => bytes.truncate(at),
            4 => {
                let from = self.below(other.len() + 1);
                let to = (from + self.below(PIECE)).min(other.len());
                insert(bytes, at, &other[from..to]);
            }
            5 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(self.below(256)).unwrap_or(0);
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}
