//! The pieces of an input, and the reader of one.

use std::fs::File;

use anyhow::{Context as _, ensure};

use super::cuts::{Cuts, InputPiece};
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
