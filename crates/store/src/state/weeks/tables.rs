//! The files of committed tables, and where in them the rows of a segment or shard are.
//!
//! Workers write pieces: one for each segment (`shard00005-wave00017.parquet`), shard
//! (`shard00005.parquet`), wave (`all-wave00017.parquet`) or table (`all.parquet`). They are
//! packed, wave by wave and then in the order of shards, into *parts* of about 64 MiB, which are
//! the files of the committed week. `week.json` lists the parts, and how many rows are of which
//! piece:
//!
//! ```text
//! "files": {
//!   "documents": [
//!     {
//!       "file": "nigh-00001-00000.parquet", "bytes": 70000000, "digest": "…",
//!       "pieces": [ ["shard00000-wave00000.parquet", 4012], … ]
//!     }
//!   ]
//! }
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::journal::{Segment, SegmentOrigin};
use crate::objects::{Digest, FileContent};
use crate::records::Week;
use crate::structures::CompactSort as _;
use crate::tables::{ChunkRow, DocumentRow, FeatureRow, LinkRow, Pack, PackedFile, RowRange, Table as _};

/// The files of the tables of a week, or of a study, by table.
pub type WeekFiles = BTreeMap<String, Vec<TablePart>>;

/// The files of earlier weeks in which pages of a week have rows, by the week and the table.
pub type KeptFiles = BTreeMap<Week, WeekFiles>;

/// Tables of which pages that stay have their rows where they were: in the files of the week that
/// crawled the page. Weeks of older versions have the features of all their pages in files of their
/// own: see [`Store::whole_base`](crate::state::Store::whole_base).
pub const KEPT_TABLES: [&str; 3] = [FeatureRow::NAME, LinkRow::NAME, ChunkRow::NAME];

/// A file of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TablePart {
    /// The name of the file.
    pub file: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The digest of the bytes; none if an older version made the file.
    #[serde(default)]
    pub digest: Option<Digest>,
    /// The pieces that were packed into it, in order.
    pub pieces: Vec<Piece>,
}

impl TablePart {
    /// Makes the file at `path` of pieces, each given by its name and its rows, in this order.
    ///
    /// # Errors
    /// As [`pack`](crate::tables::pack()).
    pub fn pack(
        pack: Pack,
        pieces: impl Iterator<Item = (String, RowRange)>,
        path: &Path,
        labels: &[(&str, &str)],
    ) -> Result<TablePart> {
        let (names, sources): (Vec<String>, Vec<RowRange>) = pieces.unzip();
        let PackedFile { rows: counts, content: FileContent { bytes, digest } } = pack(&sources, path, labels)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let pieces = names.into_iter().zip(counts).map(|(name, rows)| Piece(name, rows)).collect();
        Ok(TablePart { file, bytes, digest: Some(digest), pieces })
    }
}

/// A piece: its name, and its number of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Piece(pub String, pub u64);

/// The tables of a committed week, for reading. Cheap to clone. The footer of each file is read at
/// most once.
#[derive(Clone, Debug, Default)]
pub struct WeekTables {
    root: PathBuf,
    week: Option<Week>,
    tables: HashMap<String, TableFiles>,
    /// Those of earlier weeks.
    kept: HashMap<(Week, String), TableFiles>,
}

/// The files of one table.
#[derive(Clone, Debug, Default)]
struct TableFiles {
    parts: Vec<RowRange>,
    pieces: HashMap<String, RowRange>,
}

impl WeekTables {
    /// The tables of a week of the store at `root`.
    pub fn new(root: &Path, week: Week, files: &WeekFiles, kept: &KeptFiles) -> WeekTables {
        let of_table = |week: Week, table: &str, parts: &[TablePart]| {
            TableFiles::new(&root.join(table).join(week.folder()), parts)
        };
        let tables = files.iter().map(|(table, parts)| (table.clone(), of_table(week, table, parts)));
        let mut of_earlier = HashMap::new();
        for (week, files) in kept {
            of_earlier
                .extend(files.iter().map(|(table, parts)| ((*week, table.clone()), of_table(*week, table, parts))));
        }
        WeekTables { root: root.to_owned(), week: Some(week), tables: tables.collect(), kept: of_earlier }
    }

    /// The rows of a shard in a table that is written after the waves; `None` if it has none there.
    pub fn of_shard(&self, table: &str, shard: u32) -> Option<RowRange> {
        self.find(table, &shard_file(shard))
    }

    /// All rows that the week has written of a table, file by file.
    pub fn all(&self, table: &str) -> &[RowRange] {
        self.tables.get(table).map_or(&[], |files| &files.parts)
    }

    /// All files of earlier weeks in which the week's pages have rows of a table. They have rows of
    /// other pages, too.
    pub fn all_kept(&self, table: &str) -> impl Iterator<Item = &RowRange> {
        self.kept.iter().filter(move |((_, of), _)| of == table).flat_map(|(_, files)| &files.parts)
    }

    /// The rows of a segment in a table that has rows for each segment. Those of pages that stayed
    /// are in the files of the week that crawled them, beside others that are passed over: the rows
    /// that count are those of the documents that the segment has in `documents`.
    ///
    /// # Errors
    /// If the week lacks them: then its `week.json` is damaged.
    pub fn of_segment(&self, table: &str, segment: &Segment) -> Result<RowRange> {
        let name = segment.file();
        let own = self.find(table, &name);
        let Some((origin, None)) = segment.origin.map(|origin| (origin, own)) else { return self.rows(table, &name) };
        Ok(self.of_origin(table, segment.shard, origin)?.live_in(self.rows(DocumentRow::NAME, &name)?))
    }

    /// The rows of pages that stay, in the files of the week that crawled them: this one, or an
    /// earlier one whose files it needs. Rows of other pages are among them.
    ///
    /// # Errors
    /// As [`WeekTables::of_segment`].
    pub fn of_origin(&self, table: &str, shard: u32, origin: SegmentOrigin) -> Result<RowRange> {
        let name = Segment { wave: origin.wave, shard, ..Segment::default() }.file();
        let rows = if self.week == Some(origin.week) {
            self.find(table, &name)
        } else {
            let files = self.kept.get(&(origin.week, table.to_owned()));
            files.and_then(|files| files.pieces.get(&name)).cloned()
        };
        rows.with_context(|| self.lacks(table, Some(origin.week), &name))
    }

    /// The rows that a worker wrote to the file `name` of a table; `None` if there was no such
    /// file.
    pub fn find(&self, table: &str, name: &str) -> Option<RowRange> {
        self.tables.get(table)?.pieces.get(name).cloned()
    }

    /// All pieces of a table that the week has written, in the order of their names.
    pub fn pieces(&self, table: &str) -> Vec<(&str, &RowRange)> {
        let pieces = self.tables.get(table).into_iter().flat_map(|files| &files.pieces);
        let mut pieces: Vec<(&str, &RowRange)> = pieces.map(|(name, rows)| (name.as_str(), rows)).collect();
        pieces.sort_items_by_key(|(name, _)| *name);
        pieces
    }

    /// As [`WeekTables::find`], for rows that the week must have.
    ///
    /// # Errors
    /// If it lacks them: then its `week.json` is damaged.
    pub fn rows(&self, table: &str, name: &str) -> Result<RowRange> {
        self.find(table, name).with_context(|| self.lacks(table, self.week, name))
    }

    /// The message that a table of a week lacks rows.
    fn lacks(&self, table: &str, week: Option<Week>, name: &str) -> String {
        let week = week.map_or_else(String::new, |week| week.to_string());
        let root = self.root.display();
        format!("the store {root} is damaged: the table `{table}` of week {week} lacks the rows of {name}")
    }
}

/// The pieces of the table in a folder, which has these files, by name.
pub(crate) fn pieces_of(folder: &Path, parts: &[TablePart]) -> HashMap<String, RowRange> {
    TableFiles::new(folder, parts).pieces
}

impl TableFiles {
    fn new(folder: &Path, parts: &[TablePart]) -> TableFiles {
        let mut of_table = TableFiles::default();
        for part in parts {
            let file = RowRange::file(folder.join(&part.file));
            let mut first = 0;
            for Piece(name, rows) in &part.pieces {
                of_table.pieces.insert(name.clone(), file.part(first..first + rows));
                first += rows;
            }
            of_table.parts.push(file);
        }
        of_table
    }
}

/// The name of a shard's file, in a table that is written after the waves.
pub fn shard_file(shard: u32) -> String {
    format!("shard{shard:05}.parquet")
}
