//! Successive committed weeks of a store: their dates, the URLs that each week or an earlier one
//! has seen, and their files.
//!
//! Opening reads the manifest and the `week.json` of each week, and no table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::config::Method;
use crate::records::{DocId, Week};
use crate::state::store::Store;
use crate::state::weeks::{CommittedWeek, Earlier, KeptFiles, Manifest, Segment, WeekFiles, WeekTables};
use crate::structures::CompactSort;
use crate::tables::{LinkRow, RowRange, Table as _};

/// Committed weeks of a store, in order and without a gap. Most jobs need at least one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The folder of the store.
    pub store: PathBuf,
    /// The parameters of the weeks, as one line.
    pub method: String,
    /// The number of features of a document with words.
    pub features: usize,
    /// The weeks.
    pub weeks: Vec<PastWeek>,
}

/// A committed week, as a job over several weeks needs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastWeek {
    /// The date that names the week.
    pub week: Week,
    /// The number of the commit that wrote its records: another one if the week was made again,
    /// pages were deleted, or chunks were made later.
    pub commit: u64,
    /// The number of the commit that made its pages and clusters.
    pub made: u64,
    /// For each shard the number of URLs first seen in this week or before it, including weeks
    /// before the first of the job.
    pub rows: Vec<u64>,
    /// The segments, ascending by wave and shard.
    pub(crate) segments: Vec<Segment>,
    /// The files of its tables.
    pub(crate) files: WeekFiles,
    /// The files of earlier weeks that have rows of its pages.
    pub(crate) kept: KeptFiles,
}

impl PastWeek {
    /// The number of its documents.
    pub fn documents(&self) -> u64 {
        self.segments.iter().map(|segment| segment.documents).sum()
    }

    /// Its pages with words, and how many of them have a row in its table `chunks`.
    pub fn pages_with_chunks(&self) -> (u64, u64) {
        let sum = |of: fn(&Segment) -> u64| self.segments.iter().map(of).sum();
        (sum(|segment| segment.features), sum(|segment| segment.chunks))
    }

    /// Whether a URL was first seen in this week or before.
    #[inline]
    pub fn knows(&self, doc: DocId) -> bool {
        doc.row() < self.rows[doc.shard() as usize]
    }
}

impl History {
    /// The weeks of a store from `first` to `last`, both included. `None` means the first or the
    /// last week of the store.
    ///
    /// # Errors
    /// If the store has no week or lacks one of these (the message lists its weeks), or is damaged.
    pub fn open(store: &Store, first: Option<Week>, last: Option<Week>) -> Result<History> {
        let root = store.root().display();
        let manifest = store.manifest()?.with_context(|| {
            format!("{root} is not a nigh store (no manifest.json): `nigh run jobs/cluster.toml` makes a store")
        })?;
        let committed = &manifest.weeks;
        ensure!(!committed.is_empty(), "the store {root} has no week yet: `nigh run jobs/cluster.toml` makes one");
        let position = |week: Option<Week>, default: usize| match week {
            None => Ok(default),
            Some(week) => committed.iter().position(|committed| committed.week == week).with_context(|| {
                let weeks: Vec<String> = committed.iter().map(|committed| committed.week.to_string()).collect();
                format!("the store {root} has no week {week}; it has {}", weeks.join(", "))
            }),
        };
        let (from, to) = (position(first, 0)?, position(last, committed.len() - 1)?);
        if from > to {
            bail!("first = {} is after last = {}: swap them", committed[from].week, committed[to].week);
        }
        let mut rows = Earlier::before(&manifest, committed[0].week).urls(manifest.method.shards);
        let mut weeks = Vec::new();
        for (number, week) in committed[..=to].iter().enumerate() {
            add_urls(&mut rows, week, store.root())?;
            if number >= from {
                let (segments, files, kept) = segments(store, week, &manifest)?;
                weeks.push(PastWeek {
                    week: week.week,
                    commit: week.commit,
                    made: week.made(),
                    rows: rows.clone(),
                    segments,
                    files,
                    kept,
                });
            }
        }
        let (method, features) = (manifest.method.to_string(), manifest.method.features);
        Ok(History { store: store.root().to_owned(), method, features, weeks })
    }

    /// No weeks, for a job that has other input.
    pub fn without_weeks(store: &Store) -> History {
        let root = store.root().to_owned();
        History { store: root, method: String::new(), features: Method::default().features, weeks: Vec::new() }
    }

    /// For each shard the number of URLs that the last week or one before it has seen; empty
    /// without weeks.
    pub fn rows_by_shard(&self) -> &[u64] {
        self.weeks.last().map_or(&[], |week| &week.rows)
    }

    /// The first week.
    pub fn first(&self) -> &PastWeek {
        &self.weeks[0]
    }

    /// The last week.
    pub fn last(&self) -> &PastWeek {
        &self.weeks[self.weeks.len() - 1]
    }

    /// The tables of week number `number`, from 0.
    pub fn tables(&self, number: usize) -> WeekTables {
        let week = &self.weeks[number];
        WeekTables::new(&self.store, week.week, &week.files, &week.kept)
    }

    /// The rows that one shard has in a table of week number `number`, whose tables are `tables`:
    /// one item for each wave that has some.
    ///
    /// `table` has one row per document, except `features` and `chunks`, which lack documents
    /// without words; `chunks` may lack others; and `links`.
    ///
    /// # Errors
    /// If the week lacks some of them: the store is damaged.
    pub fn rows(&self, number: usize, tables: &WeekTables, table: &str, shard: u32) -> Result<Vec<RowRange>> {
        let rows_of = |segment: &Segment| match table {
            "features" => segment.features,
            "chunks" => segment.chunks,
            "links" => segment.links,
            _ => segment.documents,
        };
        let has_rows = |segment: &&Segment| segment.shard == shard && rows_of(segment) > 0;
        let segments = self.weeks[number].segments.iter().filter(has_rows);
        segments.map(|segment| tables.of_segment(table, segment)).collect()
    }

    /// The links of the pages of one shard that stayed from an earlier week: they are as that week
    /// wrote them.
    ///
    /// # Errors
    /// As [`History::rows`].
    pub fn links_that_stayed(&self, number: usize, tables: &WeekTables, shard: u32) -> Result<Vec<RowRange>> {
        let stayed = |segment: &&Segment| segment.shard == shard && segment.links > 0 && segment.origin.is_some();
        let segments = self.weeks[number].segments.iter().filter(stayed);
        segments.map(|segment| tables.of_segment(LinkRow::NAME, segment)).collect()
    }

    /// The URLs that week number `number` or one before it has seen, by shard, each item sorted by
    /// hash: what [`UrlLookup`](crate::state::UrlLookup) opens.
    ///
    /// # Errors
    /// If the manifest or a `week.json` is missing or cannot be read.
    pub fn urls(&self, number: usize) -> Result<BTreeMap<u32, Vec<RowRange>>> {
        let store = Store::at(&self.store);
        let manifest = store.manifest()?.with_context(|| format!("{} has no manifest", self.store.display()))?;
        let mut weeks = Earlier { removed: manifest.removed, weeks: manifest.weeks };
        weeks.weeks.retain(|week| week.week <= self.weeks[number].week);
        store.url_indexes(&weeks)
    }

    /// The rows that one shard has in the table `links` of week number `number`.
    pub fn links(&self, number: usize, shard: u32) -> u64 {
        let segments = self.weeks[number].segments.iter().filter(|segment| segment.shard == shard);
        segments.map(|segment| segment.links).sum()
    }

    /// Checks that a document in a file of week number `number` belongs to the shard, and that its
    /// URL was seen by that week.
    ///
    /// # Errors
    /// If not; the message names the file and the document.
    pub fn check(&self, number: usize, doc: DocId, shard: u32, path: &Path) -> Result<()> {
        if doc.shard() != shard || !self.weeks[number].knows(doc) {
            bail!(
                "{} is damaged: it holds document {doc}, which is of another shard or of no known URL",
                path.display()
            );
        }
        Ok(())
    }
}

/// Adds the URLs that were first seen in a week to the rows of each shard.
fn add_urls(rows: &mut [u64], committed: &CommittedWeek, store: &Path) -> Result<()> {
    ensure!(
        committed.urls.len() == rows.len(),
        "the manifest of {} is damaged: week {} has urls of {} shards, instead of {}",
        store.display(),
        committed.week,
        committed.urls.len(),
        rows.len()
    );
    rows.iter_mut().zip(&committed.urls).for_each(|(sum, urls)| *sum += urls);
    Ok(())
}

/// The segments and the files of a week, its own and those of earlier weeks, from its `week.json`.
fn segments(
    store: &Store,
    committed: &CommittedWeek,
    manifest: &Manifest,
) -> Result<(Vec<Segment>, WeekFiles, KeptFiles)> {
    let whole = store.whole(committed)?;
    let mut segments = whole.journal.segments;
    ensure!(
        segments.iter().all(|segment| segment.shard < manifest.method.shards),
        "the week.json in {} is damaged: it lists a shard that the store does not have",
        store.records(committed).display()
    );
    segments.sort_rows();
    Ok((segments, whole.files, whole.kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::weeks::{InputKey, Piece, ReadingCounts, TablePart, WeekJournal, WholeWeek};

    fn week(date: &str) -> Week {
        date.parse().unwrap()
    }

    /// A store of two shards with three weeks, without tables.
    fn store(folder: &Path) -> Store {
        let store = Store::at(folder);
        let mut manifest = Manifest::new(&Method { shards: 2, ..Method::default() });
        for (date, urls) in [("2024-01-08", [3, 0]), ("2024-01-15", [1, 2]), ("2024-01-22", [0, 4])] {
            let committed = CommittedWeek {
                week: week(date),
                commit: 1,
                made: None,
                stands_on: String::new(),
                key: String::new(),
                documents: 3,
                urls: urls.to_vec(),
                named: vec![0, 0],
            };
            let key = InputKey { hash: "key".into(), waves: 2, files: 1, bytes: 1, stamps: Default::default() };
            let segment = |wave, shard, features| Segment {
                wave,
                shard,
                documents: 1,
                urls: 1,
                features,
                links: 0,
                chunks: 0,
                origin: None,
            };
            let segments = vec![segment(1, 0, 1), segment(0, 0, 0), segment(0, 1, 1)];
            let journal = WeekJournal {
                key,
                waves: 2,
                segments,
                counts: ReadingCounts::default(),
                earlier_inputs: Default::default(),
                another_text: None,
            };
            let piece = |name: &str| Piece(format!("{name}.parquet"), 1);
            let part =
                |pieces| vec![TablePart { file: "nigh-00001-00000.parquet".into(), bytes: 9, digest: None, pieces }];
            let [a, b, c] = ["shard00000-wave00000", "shard00000-wave00001", "shard00001-wave00000"].map(piece);
            let files = [("clusters", vec![a, b.clone(), c.clone()]), ("features", vec![b, c])];
            let files = files.map(|(table, pieces)| (table.to_owned(), part(pieces))).into();
            let whole = WholeWeek {
                committed: committed.clone(),
                method: manifest.method.clone(),
                journal,
                files,
                kept: KeptFiles::new(),
                folders: Default::default(),
                readings: Default::default(),
            };
            std::fs::create_dir_all(store.records(&committed)).unwrap();
            whole.write(&store.records(&committed).join("week.json")).unwrap();
            manifest.weeks.push(committed);
        }
        manifest.write(&store.manifest_path()).unwrap();
        store
    }

    #[test]
    fn urls_of_weeks_before_the_first_count_as_seen() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(&store(folder.path()), Some(week("2024-01-15")), None).unwrap();
        let rows: Vec<Vec<u64>> = history.weeks.iter().map(|week| week.rows.clone()).collect();
        assert_eq!(rows, [[4, 2], [4, 6]]);
        assert!(history.first().knows(DocId::new(0, 3)) && !history.first().knows(DocId::new(1, 2)));
        assert!(history.check(0, DocId::new(1, 2), 1, Path::new("file")).is_err());
        history.check(1, DocId::new(1, 2), 1, Path::new("file")).unwrap();
    }

    #[test]
    fn rows_are_those_of_waves_that_have_some() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(&store(folder.path()), None, None).unwrap();
        let tables = history.tables(1);
        let waves = |table: &str| history.rows(1, &tables, table, 0).unwrap().len();
        assert_eq!((waves("clusters"), waves("features")), (2, 1));
        let path = history.rows(1, &tables, "clusters", 0).unwrap()[1].path().to_owned();
        assert_eq!(path, folder.path().join("clusters/week=2024-01-15/nigh-00001-00000.parquet"));
        // The waves of this store have no links.
        assert_eq!((waves("links"), history.links(1, 0)), (0, 0));
        let error = history.rows(1, &tables, "evidence", 0).unwrap_err().to_string();
        assert!(
            error.contains("`evidence` of week 2024-01-15 lacks the rows of shard00000-wave00000.parquet"),
            "{error}"
        );
    }

    #[test]
    fn errors_name_what_the_store_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let error = |first: &str, last: &str| {
            let weeks = [first, last].map(|date| (!date.is_empty()).then(|| week(date)));
            History::open(&Store::at(folder.path()), weeks[0], weeks[1]).unwrap_err().to_string()
        };
        assert!(error("", "").contains("is not a nigh store (no manifest.json)"));
        let store = store(folder.path());
        let missing = error("2024-01-09", "");
        assert!(missing.contains("no week 2024-01-09; it has 2024-01-08, 2024-01-15, 2024-01-22"), "{missing}");
        assert!(error("2024-01-22", "2024-01-08").contains("is after"));
        let committed = store.committed(week("2024-01-15")).unwrap();
        std::fs::remove_file(store.records(&committed).join("week.json")).unwrap();
        assert!(error("", "").contains("week=2024-01-15/00001/week.json is missing"));
        Manifest::new(&Method::default()).write(&store.manifest_path()).unwrap();
        assert!(error("", "").contains("has no week yet"));
    }
}
