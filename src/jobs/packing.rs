//! Packs the small files of a week into the files of its commit.
//!
//! ```text
//! for each table
//!     pieces = its files, in the order of their names: by shard, then by wave
//!     for each part of consecutive pieces, about 64 MiB: one worker copies their row groups into one file, as they are
//! ```
//!
//! Which pieces are in a part depends only on their sizes, so the files are the same for any number of workers.
//!
//! Cost: every byte of the week's tables is read and written once. While a week is packed, its tables lie on the disk twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use nigh_exchange::Context;

use super::week::IngestedWeek;
use crate::state::{Part, Piece, WeekFiles, sync_folder};
use crate::tables::{Pack, RowGroups, WEEK_TABLES, parts};

/// A file of a table: the number of the table in [`WEEK_TABLES`], the name and the size in bytes.
type SmallFile = (usize, String, u64);

/// Stages all tables of the week for its commit, each worker some of the files. Every table gets a file, even without rows. Returns the
/// files of all workers. Those of this process are durable.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub(crate) fn pack_week(cx: &mut Context, week: &IngestedWeek<'_>) -> Result<WeekFiles> {
    let (index, peers) = (cx.index(), cx.peers());
    let store = week.plan.open_store();
    let mut of_tables: BTreeMap<usize, Vec<(String, u64)>> =
        (0..WEEK_TABLES.len()).map(|table| (table, vec![])).collect();
    // Also a barrier: all small files are complete.
    for (table, name, bytes) in cx.sorted(own_files(week, index)?)? {
        of_tables.entry(table).or_default().push((name, bytes));
    }
    // Own parts: the table, the number of the part in it, and its small files.
    let (mut number, mut own) = (0, Vec::new());
    for (table, files) in of_tables {
        let mut ranges = parts(files.iter().map(|(_, bytes)| *bytes));
        if ranges.is_empty() {
            ranges.push(0..0);
        }
        for (part, range) in ranges.into_iter().enumerate() {
            number += 1;
            if number % peers == index {
                let names: Vec<String> = files[range].iter().map(|(name, _)| name.clone()).collect();
                own.push((table, part, names));
            }
        }
    }
    // A step for each small file.
    cx.watch().expect_steps(own.iter().map(|(_, _, names)| names.len()).sum());
    let mut packed = Vec::new();
    for (table, part, names) in own {
        let (kind, steps) = (&WEEK_TABLES[table], names.len());
        let folder = Path::new(kind.name).join(week.plan.week.folder());
        let path = store.staged_part(&folder, week.plan.commit, part);
        packed.push((table, pack_part(week, kind.name, kind.pack, names, &path)?));
        cx.watch().add_steps(steps);
    }
    sync_folder(week.unfinished.folder())?;
    let mut files: WeekFiles = WEEK_TABLES.iter().map(|table| (table.name.to_owned(), vec![])).collect();
    // Sorted by table and by the name of the file, which has its number.
    for (table, part) in cx.sorted(packed)? {
        files.entry(WEEK_TABLES[table].name.to_owned()).or_default().push(part);
    }
    Ok(files)
}

/// Packs the small files with these names into the file at `path`.
fn pack_part(week: &IngestedWeek<'_>, table: &str, pack: Pack, names: Vec<String>, path: &Path) -> Result<Part> {
    let sources: Vec<RowGroups> = names.iter().map(|name| week.unfinished.table(table, name).into()).collect();
    let job = if week.plan.earlier.is_empty() { "cluster" } else { "weekly" };
    let groups = pack(&sources, path, &[("nigh.week", &week.plan.week.to_string()), ("nigh.job", job)])?;
    let bytes = path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Part { file, bytes, pieces: names.into_iter().zip(groups).map(|(name, groups)| Piece(name, groups)).collect() })
}

/// The small files that this worker has written: those of its shards, and for the first worker those that belong to no shard.
fn own_files(week: &IngestedWeek<'_>, index: usize) -> Result<Vec<SmallFile>> {
    let own_shards: std::collections::HashSet<u32> = week.owned.shards().collect();
    let is_own = |name: &str| match shard_of(name) {
        Some(shard) => own_shards.contains(&shard),
        None => index == 0,
    };
    let mut files = Vec::new();
    for (table, kind) in WEEK_TABLES.iter().enumerate() {
        let folder: PathBuf = week.unfinished.table(kind.name, "");
        if !folder.exists() {
            continue;
        }
        let failed = || format!("cannot list {}", folder.display());
        for entry in std::fs::read_dir(&folder).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".parquet") && is_own(&name) {
                files.push((table, name, entry.metadata().with_context(failed)?.len()));
            }
        }
    }
    Ok(files)
}

/// The shard in the name of a file that has the rows of one shard.
fn shard_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("shard")?;
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}
