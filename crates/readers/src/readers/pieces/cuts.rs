//! A piece of an input, and where the pieces of a file begin.

use std::fs::File;
use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::readers::streams::MemberPacking;

/// A part of an input.
///
/// ```
/// use nigh_readers::readers::InputPiece;
/// assert_eq!(InputPiece::WHOLE.ordinal(7), 7);
/// assert!(InputPiece { number: 1, of: 3 }.ordinal(0) > InputPiece { number: 0, of: 3 }.ordinal(1 << 39));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InputPiece {
    /// Its number, from 0.
    pub number: u64,
    /// The number of pieces of the input.
    pub of: u64,
}

impl InputPiece {
    /// All of an input.
    pub const WHOLE: InputPiece = InputPiece { number: 0, of: 1 };

    /// A number that orders the items of all pieces as they are in the input, for the item with
    /// this number in the piece.
    pub fn ordinal(self, number: u64) -> u64 {
        self.number << 40 | number
    }
}

/// An open file, and which piece of it is to be read.
pub(super) struct Cuts {
    pub(super) file: File,
    pub(super) packing: MemberPacking,
    pub(super) bytes: u64,
    pub(super) piece: InputPiece,
}

impl Cuts {
    /// Where the bytes begin in which the piece with this number begins.
    pub(super) fn cut(&self, number: u64) -> u64 {
        cut(self.bytes, number, self.piece.of)
    }

    /// Where a piece begins: the first place in its part of the bytes that `search` finds. `None`
    /// if there is none; then the piece before goes on, and this one is empty.
    pub(super) fn begin(&self, number: u64, search: FindStart) -> io::Result<Option<u64>> {
        if number == 0 { Ok(Some(0)) } else { search(self, self.cut(number)..self.cut(number + 1)) }
    }

    /// Where the next piece that is not empty begins, from this number on; `None` if there is none.
    pub(super) fn next(&self, number: u64, search: FindStart) -> io::Result<Option<u64>> {
        for number in number..self.piece.of {
            if let Some(begin) = self.begin(number, search)? {
                return Ok(Some(begin));
            }
        }
        Ok(None)
    }
}

/// Finds the first place in a part of a file where a piece can begin.
pub(super) type FindStart = fn(&Cuts, Range<u64>) -> io::Result<Option<u64>>;

/// Where an n-th of some units begins.
pub(in crate::readers) fn cut(units: u64, number: u64, of: u64) -> u64 {
    (u128::from(units) * u128::from(number) / u128::from(of)) as u64
}
