//! What an export has written, and the card that says so.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::{Context as _, Result};

use super::card::CARD;
use super::exported::Exported;
use super::file::Writing;
use crate::export::place::{ExportFolder, Output, WrittenFile};

/// What an export has written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrittenDataset {
    /// The number of files.
    pub files: u64,
    /// What they have.
    pub counts: Exported,
    /// The lines of the indexes of what is written and of what is not, if they are asked for.
    pub index: Option<[u64; 2]>,
}

/// Writes the card, if there is one, of files at these paths. Until it is whole, it is the
/// unfinished file with this number.
///
/// # Errors
/// If it cannot be written.
pub(in crate::export) fn write_card(
    writing: &Writing<'_>,
    folder: &mut ExportFolder,
    paths: &BTreeSet<&str>,
    counts: &Exported,
    number: usize,
) -> Result<()> {
    let Some(card) = &writing.card else { return Ok(()) };
    let (unfinished, failed) = (folder.unfinished(number), || format!("cannot write {CARD}"));
    let mut out = Output::create(&unfinished).with_context(failed)?;
    out.write_all(card.text(paths, counts).as_bytes()).with_context(failed)?;
    let file = WrittenFile::new(CARD.to_owned(), Some(out.finish().with_context(failed)?), Exported::default());
    folder.add(&unfinished, file)
}
