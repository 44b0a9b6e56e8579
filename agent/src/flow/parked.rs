//! Pieces that wait for the bytes before them.

use std::collections::BTreeMap;

use protocol::Nanos;

use super::limits::{Budget, PIECE_COST};

/// What is known of a range of a stream.
#[derive(Debug)]
pub(super) enum Content {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// That so many bytes passed, uncopied.
    Unseen(u64),
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Unseen(len) => *len,
        }
    }

    fn cost(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len() + PIECE_COST,
            Self::Unseen(_) => PIECE_COST,
        }
    }
}

/// A range and when it was seen.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) content: Content,
    pub(super) stamp: Nanos,
}

/// Pieces of one stream beyond its first hole, by offset; they never overlap.
#[derive(Debug, Default)]
pub(super) struct Parked {
    pieces: BTreeMap<u64, Piece>,
    cost: usize,
}

impl Parked {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.pieces.keys().next().copied()
    }

    /// Stamp of the first piece.
    pub(super) fn first_stamp(&self) -> Option<Nanos> {
        self.pieces.values().next().map(|piece| piece.stamp)
    }

    /// End of the last piece.
    pub(super) fn end(&self) -> Option<u64> {
        self.pieces.iter().next_back().map(|(at, piece)| at + piece.content.len())
    }

    /// The piece that covers `at`, with its offset.
    pub(super) fn covering(&self, at: u64) -> Option<(u64, &Piece)> {
        let (start, piece) = self.pieces.range(..=at).next_back()?;
        (start + piece.content.len() > at).then_some((*start, piece))
    }

    /// Offset of the first piece at or after `at`.
    pub(super) fn next_start(&self, at: u64) -> Option<u64> {
        self.pieces.range(at..).next().map(|(start, _)| *start)
    }

    pub(super) fn insert(&mut self, at: u64, piece: Piece, budget: &mut Budget) {
        let cost = piece.content.cost();
        self.cost += cost;
        budget.take(cost);
        self.pieces.insert(at, piece);
    }

    /// Takes the piece that begins at `at`.
    pub(super) fn take(&mut self, at: u64, budget: &mut Budget) -> Option<Piece> {
        let piece = self.pieces.remove(&at)?;
        let cost = piece.content.cost();
        self.cost -= cost;
        budget.give_back(cost);
        Some(piece)
    }

    pub(super) fn clear(&mut self, budget: &mut Budget) {
        budget.give_back(self.cost);
        self.cost = 0;
        self.pieces.clear();
    }
}
