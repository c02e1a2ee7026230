//! Packs the pieces of a week into the files of its commit.
//!
//! ```text
//! for each table
//!     pieces = those of all bundles, by wave, then by shard: so their documents ascend over many pieces
//!     for each part of consecutive pieces, about 64 MiB: one worker writes them into one file
//! ```
//!
//! Which pieces are in a part depends only on their sizes, so the files are the same for any number
//! of workers.
//!
//! Cost: every byte of the week's tables is read and written once. While a week is packed, its
//! tables lie on the disk twice.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use nigh_exchange::Context;

use super::week::IngestedWeek;
use crate::state::{Piece, PlacedPiece, Segment, TablePart, WeekFiles, sync_folder};
use crate::structures::CompactSort;
use crate::tables::{Pack, RowRange, StoreTable, WEEK_TABLES, parts, tables_of_weeks};

/// A piece of a table, with the number of the table among those [of weeks](tables_of_weeks).
type OfTable = (usize, PlacedPiece);

/// Stages all tables of the week for its commit, each worker some of the files. Every table that
/// all weeks have gets a file, even without rows. Returns the
/// files of all workers. Those of this process are durable.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub(crate) fn pack_week(cx: &mut Context, week: &IngestedWeek<'_>) -> Result<WeekFiles> {
    let (index, peers) = (cx.index(), cx.peers());
    let store = week.plan.open_store();
    let tables: Vec<&StoreTable> = tables_of_weeks().collect();
    // Those that every week has come first.
    let mut of_tables: BTreeMap<usize, Vec<PlacedPiece>> =
        (0..WEEK_TABLES.len()).map(|table| (table, vec![])).collect();
    // Bundles are complete from here on.
    cx.barrier()?;
    for (table, piece) in cx.sorted(own_pieces(week, index)?)? {
        of_tables.entry(table).or_default().push(piece);
    }
    of_tables.values_mut().for_each(|pieces| pieces.sort_items_by_key(|piece| Segment::wave_of(&piece.name)));
    // Own parts: the table, the number of the part in it, and its pieces.
    let (mut number, mut own) = (0, Vec::new());
    for (table, pieces) in of_tables {
        let mut ranges = parts(pieces.iter().map(|piece| piece.bytes));
        if ranges.is_empty() {
            ranges.push(0..0);
        }
        for (part, range) in ranges.into_iter().enumerate() {
            number += 1;
            if number % peers == index {
                own.push((table, part, pieces[range].to_vec()));
            }
        }
    }
    // A step for each piece.
    cx.watch().expect_steps(own.iter().map(|(_, _, pieces)| pieces.len()).sum());
    let mut packed = Vec::new();
    for (table, part, pieces) in own {
        let (kind, steps) = (tables[table], pieces.len());
        let folder = Path::new(kind.name).join(week.plan.week.folder());
        let path = store.staged_part(&folder, week.plan.commit, part);
        packed.push((table, pack_part(week, kind.name, kind.pack, pieces, &path)?));
        cx.watch().add_steps(steps);
    }
    sync_folder(week.unfinished.folder())?;
    let mut files: WeekFiles = WEEK_TABLES.iter().map(|table| (table.name.to_owned(), vec![])).collect();
    // Sorted by table and by the name of the file, which has its number.
    for (table, part) in cx.sorted(packed)? {
        files.entry(tables[table].name.to_owned()).or_default().push(part);
    }
    Ok(files)
}

/// Packs pieces into the file at `path`.
fn pack_part(
    week: &IngestedWeek<'_>,
    table: &str,
    pack: Pack,
    pieces: Vec<PlacedPiece>,
    path: &Path,
) -> Result<TablePart> {
    // The footer of each bundle is read once.
    let mut bundles: BTreeMap<&str, RowRange> = BTreeMap::new();
    let rows = pieces.iter().map(|piece| {
        let bundle = || week.unfinished.table(table, &piece.bundle).into();
        let (first, end) = piece.rows;
        bundles.entry(&piece.bundle).or_insert_with(bundle).part(first..end)
    });
    let sources: Vec<RowRange> = rows.collect();
    let job = if week.plan.earlier.is_empty() { "cluster" } else { "weekly" };
    let counts = pack(&sources, path, &[("nigh.week", &week.plan.week.to_string()), ("nigh.job", job)])?;
    let bytes = path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(TablePart {
        file,
        bytes,
        pieces: pieces.into_iter().zip(counts).map(|(piece, n)| Piece(piece.name, n)).collect(),
    })
}

/// The pieces that this worker packs: those of its shards, and for the first worker those that
/// belong to no shard.
fn own_pieces(week: &IngestedWeek<'_>, index: usize) -> Result<Vec<OfTable>> {
    let own_shards: HashSet<u32> = week.owned.shards().collect();
    let is_own = |name: &str| match shard_of(name) {
        Some(shard) => own_shards.contains(&shard),
        None => index == 0,
    };
    let mut own = Vec::new();
    for (table, kind) in tables_of_weeks().enumerate() {
        let pieces = week.unfinished.pieces(kind.name)?.into_iter();
        let of_table: Vec<_> = pieces.filter(|piece| is_own(&piece.name)).collect();
        let mut names = HashSet::new();
        if let Some(twice) = of_table.iter().find(|piece| !names.insert(&piece.name)) {
            bail!(
                "{}: the table `{}` has the piece {} twice: remove this folder, and run the same command again",
                week.unfinished.folder().display(),
                kind.name,
                twice.name
            );
        }
        own.extend(of_table.into_iter().map(|piece| (table, piece)));
    }
    Ok(own)
}

/// The shard in the name of a piece that has the rows of one shard.
fn shard_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("shard")?;
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}
