//! Chain hashes of a prompt's full blocks: equal hash at position `i` means equal bytes up to block `i`.

use sha2::{Digest, Sha256};

/// The hash of one block and of everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash(u128);

impl BlockHash {
    /// The hash, most significant byte first.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

/// How prompt bytes become tokens and tokens become cache blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokenizer {
    /// UTF-8 bytes that make one token, at least 1.
    pub bytes_per_token: u64,
    /// Tokens in one cache block, at least 1.
    pub block_tokens: u64,
}

impl Tokenizer {
    /// Prompt tokens: bytes / bytes per token, rounded up.
    #[must_use]
    pub fn tokens(&self, prompt: &[u8]) -> u64 {
        (prompt.len() as u64).div_ceil(self.bytes_per_token.max(1))
    }

    /// Chain hashes of the full blocks of `prompt`, first block first. A partial last block has none.
    #[must_use]
    pub fn blocks(&self, prompt: &[u8]) -> Vec<BlockHash> {
        let bytes = self.bytes_per_token.max(1).saturating_mul(self.block_tokens.max(1));
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut parent = [0_u8; 16];
        prompt
            .chunks_exact(bytes)
            .map(|block| {
                parent = chain(parent, block);
                BlockHash(u128::from_be_bytes(parent))
            })
            .collect()
    }
}

/// First 128 bits of SHA-256(parent || block): collisions would turn a miss into a hit.
fn chain(parent: [u8; 16], block: &[u8]) -> [u8; 16] {
    let digest = Sha256::new().chain_update(parent).chain_update(block).finalize();
    let mut out = [0_u8; 16];
    out.iter_mut().zip(digest.iter()).for_each(|(o, d)| *o = *d);
    out
}

#[cfg(test)]
mod tests {
    use super::Tokenizer;

    const TOKENS: Tokenizer = Tokenizer { bytes_per_token: 4, block_tokens: 2 };

    #[test]
    fn tokens_round_up_and_blocks_round_down() {
        assert_eq!(TOKENS.tokens(b""), 0);
        assert_eq!(TOKENS.tokens(b"12345"), 2);
        assert_eq!(TOKENS.blocks(b"1234567").len(), 0);
        assert_eq!(TOKENS.blocks(b"12345678").len(), 1);
        assert_eq!(TOKENS.blocks(b"1234567812345678x").len(), 2);
    }

    #[test]
    fn a_block_is_equal_only_when_everything_before_it_is() {
        let a = TOKENS.blocks(b"aaaaaaaabbbbbbbb");
        let b = TOKENS.blocks(b"xxxxxxxxbbbbbbbb");
        let c = TOKENS.blocks(b"aaaaaaaacccccccc");
        assert_ne!(a[1], b[1], "same bytes behind another prefix are another block");
        assert_eq!(a[0], c[0]);
        assert_ne!(a[1], c[1]);
    }
}
