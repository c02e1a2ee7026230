//! A piece of an input, and its reader.

use std::fs::File;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use super::cuts::Cuts;
use super::lines::lines_of;
use super::members::members_of;
use crate::readers::formats::Cutting;
use crate::readers::input::{Input, Location, cannot};
use crate::readers::item::{Nothing, Reader};
use crate::readers::opened::open;
use crate::readers::rows::parquet;
use crate::readers::streams::MemberPacking;
use crate::reading::Reading;

/// Bytes of a piece, about. A file of less than two of them is one piece.
pub(super) const PIECE: u64 = 64 << 20;
/// Pieces of a Parquet file, at most.
const FOOTERS: u64 = 32;

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

/// The pieces of an input.
pub fn pieces(input: &Input) -> impl Iterator<Item = InputPiece> {
    let cutting = match input.place {
        Location::File(_) => input.format.reader().cutting(&input.name.to_ascii_lowercase()),
        Location::Entry { .. } | Location::Object { .. } => Cutting::Whole,
    };
    let most = match cutting {
        Cutting::Whole => 1,
        Cutting::Lines | Cutting::Members(_) => u64::MAX,
        // Each piece of a Parquet file reads its footer.
        Cutting::RowGroups => FOOTERS,
    };
    let of = (input.bytes / PIECE).clamp(1, most);
    (0..of).map(move |number| InputPiece { number, of })
}

/// Opens one piece of an input. Its position counts the bytes of the piece.
///
/// # Errors
/// As [`open`], and if the file is shorter than it was; of Parquet, also if it is longer, as its
/// footer is at its end.
pub fn open_piece(input: &Input, reading: &Reading, piece: InputPiece) -> anyhow::Result<Box<dyn Reader>> {
    let reading = &*input.reading(reading);
    let Location::File(path) = &input.place else { return whole_or_nothing(input, reading, piece) };
    if piece.of == 1 {
        return open(input, reading);
    }
    let Input { name, bytes, .. } = input;
    let file = File::open(path).with_context(|| cannot("open", name))?;
    let found = file.metadata().with_context(|| cannot("read", name))?.len();
    let cutting = input.format.reader().cutting(&name.to_ascii_lowercase());
    // The other pieces were cut by this length, maybe on another machine. What was added since is
    // in no piece.
    ensure!(
        found == *bytes || (found > *bytes && cutting != Cutting::RowGroups),
        "{name} has {found} bytes, and had {bytes} when the run began: it must not change while it is read. Run again when it is \
         complete, or copy it"
    );
    if cutting == Cutting::RowGroups {
        return parquet::open_piece(file, name, reading, piece);
    }
    let Some(packing) = MemberPacking::of(&file).with_context(|| cannot("read", name))? else {
        return whole_or_nothing(input, reading, piece);
    };
    let cuts = Cuts { file, packing, bytes: *bytes, piece };
    let opened = match cutting {
        Cutting::Lines => lines_of(cuts, name, reading).map_err(Into::into),
        Cutting::Members(dialect) => members_of(cuts, dialect, name, reading),
        Cutting::Whole | Cutting::RowGroups => Ok(None),
    };
    match opened.with_context(|| cannot("read", name))? {
        Some(reader) => Ok(reader),
        None => whole_or_nothing(input, reading, piece),
    }
}

/// An input that cannot be cut, whatever its name says: all of it belongs to the first piece.
fn whole_or_nothing(input: &Input, reading: &Reading, piece: InputPiece) -> anyhow::Result<Box<dyn Reader>> {
    if piece.number == 0 { open(input, reading) } else { Ok(Box::new(Nothing)) }
}
