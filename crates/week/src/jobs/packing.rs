//! Packs the pieces of a week, or of a study, into the files of its commit.
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
//! Cost: every byte of the tables is read and written once. While they are packed, they lie on the
//! disk twice.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use nigh_exchange::Context;

use super::week::IngestedWeek;
use crate::state::{PlacedPiece, Segment, TablePart, Unfinished, WeekFiles, sync_folder};
use crate::structures::{CompactSort, Ownership};
use crate::tables::{RowRange, StoreTable, WEEK_TABLES, parts, tables_of_weeks};

/// A piece of a table, with the number of the table among those that are packed.
type OfTable = (usize, PlacedPiece);

/// Tables that are to be packed.
pub struct TablePacking<'a> {
    /// The bundles of all workers.
    pub unfinished: &'a Unfinished,
    /// The shards of this worker.
    pub owned: &'a Ownership,
    /// The tables. One without pieces gets no file.
    pub tables: Vec<&'a StoreTable>,
    /// So many of them, the first ones, get a file even so.
    pub always: usize,
    /// The path at which a file of a table is staged, by the name of the table and the number of
    /// the file.
    pub staged: &'a dyn Fn(&str, usize) -> PathBuf,
    /// The key-values of every file.
    pub labels: &'a [(&'a str, &'a str)],
}

/// Stages all tables of the week for its commit, as [`TablePacking::pack`] does. Every table that
/// all weeks have gets a file, even without rows.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub(crate) fn pack_week(cx: &mut Context, week: &IngestedWeek<'_>) -> Result<WeekFiles> {
    let (store, folder) = (week.plan.open_store(), week.plan.week.folder());
    let staged = |table: &str, part| store.staged_part(&Path::new(table).join(&folder), week.plan.commit, part);
    let date = week.plan.week.to_string();
    let job = if week.plan.earlier.is_empty() { "cluster" } else { "weekly" };
    let packing = TablePacking {
        unfinished: week.unfinished,
        owned: week.owned,
        // Those that every week has come first.
        tables: tables_of_weeks().collect(),
        always: WEEK_TABLES.len(),
        staged: &staged,
        labels: &[("nigh.week", &date), ("nigh.job", job)],
    };
    packing.pack(cx)
}

impl TablePacking<'_> {
    /// Stages the files, each worker some of them. Every worker calls it when its bundles are
    /// complete. Returns the files of all workers. Those of this process are durable.
    ///
    /// # Errors
    /// If a file cannot be read or written (names it), or a worker of this process failed.
    pub fn pack(&self, cx: &mut Context) -> Result<WeekFiles> {
        let (index, peers) = (cx.index(), cx.peers());
        let mut of_tables: BTreeMap<usize, Vec<PlacedPiece>> = (0..self.always).map(|table| (table, vec![])).collect();
        // Bundles are complete from here on.
        cx.barrier()?;
        for (table, piece) in cx.sorted(self.own_pieces(index)?)? {
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
            let steps = pieces.len();
            packed.push((table, self.pack_part(self.tables[table], part, pieces)?));
            cx.watch().add_steps(steps);
        }
        sync_folder(self.unfinished.folder())?;
        let mut files = WeekFiles::new();
        // Sorted by table and by the name of the file, which has its number.
        for (table, part) in cx.sorted(packed)? {
            files.entry(self.tables[table].name.to_owned()).or_default().push(part);
        }
        Ok(files)
    }

    /// Packs pieces into file number `part` of a table.
    fn pack_part(&self, table: &StoreTable, part: usize, pieces: Vec<PlacedPiece>) -> Result<TablePart> {
        // The footer of each bundle is read once.
        let mut bundles: BTreeMap<String, RowRange> = BTreeMap::new();
        let sources = pieces.into_iter().map(|PlacedPiece { name, bundle, rows: (first, end), .. }| {
            let file = self.unfinished.table(table.name, &bundle);
            (name, bundles.entry(bundle).or_insert_with(|| file.into()).part(first..end))
        });
        TablePart::pack(table.pack, sources, &(self.staged)(table.name, part), self.labels)
    }

    /// The pieces that this worker lists: those of its shards, and for the first worker those that
    /// belong to no shard.
    fn own_pieces(&self, index: usize) -> Result<Vec<OfTable>> {
        let own_shards: HashSet<u32> = self.owned.shards().collect();
        let is_own = |name: &str| match shard_of(name) {
            Some(shard) => own_shards.contains(&shard),
            None => index == 0,
        };
        let mut own = Vec::new();
        for (table, kind) in self.tables.iter().enumerate() {
            let pieces = self.unfinished.pieces(kind.name)?.into_iter();
            let of_table: Vec<_> = pieces.filter(|piece| is_own(&piece.name)).collect();
            let mut names = HashSet::new();
            if let Some(twice) = of_table.iter().find(|piece| !names.insert(&piece.name)) {
                bail!(
                    "{}: the table `{}` has the piece {} twice: remove this folder, and run the same command again",
                    self.unfinished.folder().display(),
                    kind.name,
                    twice.name
                );
            }
            own.extend(of_table.into_iter().map(|piece| (table, piece)));
        }
        Ok(own)
    }
}

/// The shard in the name of a piece that has the rows of one shard.
fn shard_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("shard")?;
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}
