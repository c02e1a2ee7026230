//! Some successive weeks of a store: which there are, which URLs were known by each, and where their tables lie.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::records::{DocId, Week};
use crate::state::store::Store;
use crate::state::weeks::{CommittedWeek, Earlier, Manifest, Segment, WholeWeek};

/// Committed weeks of a store, in order, without a gap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The store's folder.
    pub store: PathBuf,
    /// The parameters of its weeks, as one line.
    pub method: String,
    /// Features of a page with words.
    pub features: usize,
    /// The weeks: at least one.
    pub weeks: Vec<PastWeek>,
}

/// A committed week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastWeek {
    /// Its date.
    pub week: Week,
    /// Rows of each shard's url table up to this week: URLs first seen in it or before, in the job's weeks or not.
    pub rows: Vec<u64>,
    /// Its segments.
    pub(crate) segments: Vec<Segment>,
}

impl PastWeek {
    /// Whether a URL was first seen in this week or before.
    #[inline]
    pub fn knows(&self, doc: DocId) -> bool {
        doc.row() < self.rows[doc.shard() as usize]
    }
}

impl History {
    /// The store's weeks from `first` to `last`; from its first, and to its last, where they are not given.
    ///
    /// # Errors
    /// Where the store has no week, or not these, or is damaged: says which it has.
    pub fn open(store: &Store, first: Option<Week>, last: Option<Week>) -> Result<History> {
        let root = store.root().display();
        let manifest = store.manifest()?.with_context(|| {
            format!("{root} is not a nigh store (no manifest.json): `nigh run jobs/cluster.toml` makes a store")
        })?;
        let known = &manifest.weeks;
        ensure!(!known.is_empty(), "the store {root} has no week yet: `nigh run jobs/cluster.toml` makes one");
        let place = |week: Option<Week>, otherwise: usize| match week {
            None => Ok(otherwise),
            Some(week) => known.iter().position(|known| known.week == week).with_context(|| {
                let weeks: Vec<String> = known.iter().map(|known| known.week.to_string()).collect();
                format!("the store {root} has no week {week}; it has {}", weeks.join(", "))
            }),
        };
        let (from, to) = (place(first, 0)?, place(last, known.len() - 1)?);
        if from > to {
            bail!("first = {} is after last = {}: swap them", known[from].week, known[to].week);
        }
        let mut rows = Earlier::before(&manifest, known[0].week).urls(manifest.method.shards);
        let mut weeks = Vec::new();
        for (at, committed) in known[..=to].iter().enumerate() {
            add_urls(&mut rows, committed, store.root())?;
            if at >= from {
                let segments = segments(store, committed, &manifest)?;
                weeks.push(PastWeek { week: committed.week, rows: rows.clone(), segments });
            }
        }
        let (method, features) = (manifest.method.to_string(), manifest.method.features);
        Ok(History { store: store.root().to_owned(), method, features, weeks })
    }

    /// The first week.
    pub fn first(&self) -> &PastWeek {
        &self.weeks[0]
    }

    /// The last week.
    pub fn last(&self) -> &PastWeek {
        &self.weeks[self.weeks.len() - 1]
    }

    /// The files of a table of the week number `at`, of one shard: those of its waves that have any row in it. Only
    /// `features` has fewer rows than `documents`.
    pub fn files(&self, at: usize, table: &str, shard: u32) -> impl Iterator<Item = PathBuf> {
        let week = &self.weeks[at];
        let folder = Store::at(&self.store).week(week.week).join(table);
        let features = table == "features";
        let some = move |segment: &&Segment| {
            segment.shard == shard && if features { segment.features > 0 } else { segment.documents > 0 }
        };
        week.segments.iter().filter(some).map(move |segment| folder.join(segment.file()))
    }

    /// Refuses a document of a file of the week number `at` that is not of the shard, or of no URL known by then.
    ///
    /// # Errors
    /// Names the file and the document.
    pub fn check(&self, at: usize, doc: DocId, shard: u32, path: &Path) -> Result<()> {
        if doc.shard() != shard || !self.weeks[at].knows(doc) {
            bail!("{} is damaged: it holds the document {doc}, which is not of its shard", path.display());
        }
        Ok(())
    }
}

/// Adds the URLs that were first seen in a week to the rows of each shard.
fn add_urls(rows: &mut [u64], committed: &CommittedWeek, store: &Path) -> Result<()> {
    let manifest = store.join("manifest.json");
    ensure!(
        committed.urls.len() == rows.len(),
        "{} is damaged: week {} has the urls of {} shards, not of {}",
        manifest.display(),
        committed.week,
        committed.urls.len(),
        rows.len()
    );
    rows.iter_mut().zip(&committed.urls).for_each(|(sum, urls)| *sum += urls);
    Ok(())
}

fn segments(store: &Store, committed: &CommittedWeek, manifest: &Manifest) -> Result<Vec<Segment>> {
    let path = store.week(committed.week).join("week.json");
    let missing = || format!("{} is missing: the store is damaged", path.display());
    let whole = WholeWeek::read(&path)?.with_context(missing)?;
    let mut segments = whole.journal.segments;
    ensure!(
        segments.iter().all(|segment| segment.shard < manifest.method.shards),
        "{} is damaged: it lists a shard that the store has not",
        path.display()
    );
    segments.sort_unstable();
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;
    use crate::state::weeks::{Counts, InputKey, Journal};

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
                key: String::new(),
                documents: 3,
                urls: urls.to_vec(),
                named: vec![0, 0],
            };
            let key = InputKey { hash: "key".into(), waves: 2, files: 1, bytes: 1 };
            let segment = |wave, shard, features| Segment { wave, shard, documents: 1, urls: 1, features, links: 0 };
            let segments = vec![segment(1, 0, 1), segment(0, 0, 0), segment(0, 1, 1)];
            let journal = Journal { key, waves: 2, segments, counts: Counts::default() };
            let whole = WholeWeek { committed: committed.clone(), method: manifest.method.clone(), journal };
            std::fs::create_dir_all(store.week(committed.week)).unwrap();
            whole.write(&store.week(committed.week).join("week.json")).unwrap();
            manifest.weeks.push(committed);
        }
        manifest.write(&folder.join("manifest.json")).unwrap();
        store
    }

    #[test]
    fn urls_of_weeks_before_the_first_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(&store(folder.path()), Some(week("2024-01-15")), None).unwrap();
        let rows: Vec<Vec<u64>> = history.weeks.iter().map(|week| week.rows.clone()).collect();
        assert_eq!(rows, [[4, 2], [4, 6]]);
        assert!(history.first().knows(DocId::new(0, 3)) && !history.first().knows(DocId::new(1, 2)));
        assert!(history.check(0, DocId::new(1, 2), 1, Path::new("file")).is_err());
        history.check(1, DocId::new(1, 2), 1, Path::new("file")).unwrap();
    }

    #[test]
    fn files_are_those_of_waves_that_have_rows() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(&store(folder.path()), None, None).unwrap();
        let names = |table: &str| -> Vec<String> {
            history.files(1, table, 0).map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("clusters"), ["shard00000-wave00000.parquet", "shard00000-wave00001.parquet"]);
        assert_eq!(names("features"), ["shard00000-wave00001.parquet"]);
    }

    #[test]
    fn what_a_store_has_not_is_told() {
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
        std::fs::remove_file(store.week(week("2024-01-15")).join("week.json")).unwrap();
        assert!(error("", "").contains("week=2024-01-15/week.json is missing"));
        Manifest::new(&Method::default()).write(&folder.path().join("manifest.json")).unwrap();
        assert!(error("", "").contains("has no week yet"));
    }
}
