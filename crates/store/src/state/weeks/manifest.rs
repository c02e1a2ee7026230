//! `manifest.json` and `week.json`: what a store holds.
//!
//! `STORE/_nigh/manifest.json` is one JSON object. Each commit puts a new one in its place, by one
//! rename: that is the commit. A file that neither it nor a `week.json` lists is not part of the
//! store.
//!
//! ```text
//! {
//!   "format": 11,                of the layout and of the meaning of columns; format 10 is read as it is, `nigh upgrade` takes 9
//!   "version": "…",              of the program that wrote it
//!   "commits": 7,                the number of commits so far; names of new files have it
//!   "before": "…",               the hash of the manifest that this one replaced
//!   "method": {…},               parameters of all weeks; a job with others is refused
//!   "method_hash": "…",
//!   "removed": null,             or { "before": DATE, "commit": 6, "urls": […], "named": […] }, numbers by shard
//!   "weeks": [                   in order
//!     { "week": DATE, "commit": 7, "stands_on": "…", "key": "…", "documents": 9, "urls": […], "named": […] }
//!   ],
//!   "results": { "evolution": 5 },  tables of several weeks, with the commit that wrote them
//!   "catalog": "delta",          a description of the tables for other programs is kept beside them; absent if none
//!   "digests": "…"               the digest of the list of digests (`store/digests.rs`)
//! }
//! ```
//!
//! `_nigh/week=DATE/COMMIT/week.json` is one JSON object with the week's row of the manifest
//! (`committed`), its `method`, its `journal` (see `journal.rs`) and its `files` (see `tables.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::journal::{Segment, WeekJournal};
use super::tables::{KEPT_TABLES, KeptFiles, Piece, TablePart, WeekFiles, WeekTables};
use crate::config::{Method, Reading};
use crate::objects::Digest;
use crate::records::{Week, short_hash};
use crate::state::durable::replace;
use crate::structures::CompactSort;
use crate::tables::read_chunks;

/// The version of the layout of a store, and of the meaning of its columns.
pub const FORMAT: u32 = 11;

/// The version before. Its stores are read as they are, and the next week makes them of this one:
/// from then on pages that stay have their features where they were.
const FORMAT_BEFORE: u32 = 10;

/// The oldest version, which [`Store::upgrade`](crate::state::Store::upgrade) brings up to date.
pub(crate) const OLDEST_FORMAT: u32 = 9;

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the layout.
    pub format: u32,
    /// The version of the program that wrote the file.
    pub version: String,
    /// The number of commits so far, this one included.
    pub commits: u64,
    /// The hash of the text of the manifest that this one replaced; empty for the first.
    pub before: String,
    /// The parameters of every week of the store.
    pub method: Method,
    /// The hash of the parameters.
    pub method_hash: String,
    /// What is kept of removed weeks.
    pub removed: Option<RemovedWeeks>,
    /// The committed weeks, in order.
    pub weeks: Vec<CommittedWeek>,
    /// The tables that jobs made of several weeks: the name of the folder, and the number of the
    /// commit that wrote them.
    pub results: BTreeMap<String, u64>,
    /// The description of the tables that every commit brings up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogFormat>,
    /// The digest of the list of digests of the store's files; none if an older version made the
    /// last commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digests: Option<Digest>,
}

/// A way of other programs to describe tables, so that their readers see whole commits only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatalogFormat {
    /// A Delta Lake table for each folder of a table
    Delta,
}

/// What the manifest keeps of removed weeks, so that their URLs keep their ids and their cluster
/// ids are not given again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemovedWeeks {
    /// The first week that was not removed.
    pub before: Week,
    /// The number of the commit that wrote the files with their URLs.
    pub commit: u64,
    /// The number of URLs that got an id in them, by shard.
    pub urls: Vec<u64>,
    /// The number of cluster ids given in them, by shard.
    pub named: Vec<u64>,
}

impl RemovedWeeks {
    /// The shards that have files of URLs: those that gave an id. A file has no rows if all of its
    /// URLs were deleted.
    pub fn shards(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.urls).filter(|(_, urls)| **urls > 0).map(|(shard, _)| shard)
    }
}

/// A committed week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommittedWeek {
    /// The date that names the week.
    pub week: Week,
    /// The number of the commit that wrote its `week.json`.
    pub commit: u64,
    /// The number of the commit that made its pages, if it is another one: only the chunks of its
    /// pages, or the URLs of deleted ones, are otherwise since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<u64>,
    /// The [identity](CommittedWeek::identity) of the week that was the last one before this one
    /// was committed: the week before, or an older version of this week. Empty if there was none.
    pub stands_on: String,
    /// The hash of what the week was made from.
    pub key: String,
    /// The number of documents.
    pub documents: u64,
    /// The number of URLs first seen in this week, by shard: the rows of its `urls`, and deleted
    /// URLs.
    pub urls: Vec<u64>,
    /// The number of cluster ids given in this week, by shard.
    pub named: Vec<u64>,
}

impl CommittedWeek {
    /// The number of the commit that made its pages and clusters.
    pub fn made(&self) -> u64 {
        self.made.unwrap_or(self.commit)
    }

    /// A commit writes `week.json` again, and pages and clusters stay as they are.
    pub fn amend(&mut self, commit: u64) {
        self.made = Some(self.made());
        self.commit = commit;
    }

    /// A hash of the week and of all weeks, versions and deletions that it stands on. Two stores
    /// whose last weeks have the same identity have given the same ids to the same URLs, so that
    /// what was computed for one holds for the other.
    pub fn identity(&self) -> String {
        short_hash(format!("{} {} on {}", self.week, self.key, self.stands_on).as_bytes())
    }

    /// The hash of what the week is made from when it is made again with so many shards.
    pub fn key_with_shards(&self, shards: u32) -> String {
        short_hash(format!("{} with {shards} shards", self.identity()).as_bytes())
    }
}

/// The content of `week.json`: everything about a complete week that its tables do not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WholeWeek {
    /// The row of the manifest.
    pub committed: CommittedWeek,
    /// The parameters of the week.
    pub method: Method,
    /// What the week was made from, its segments and its counts.
    pub journal: WeekJournal,
    /// The files of its tables.
    pub files: WeekFiles,
    /// The files of earlier weeks that have rows of pages that stayed.
    #[serde(default)]
    pub kept: KeptFiles,
    /// The working directories of the runs that read the inputs of this week and of those before,
    /// by week; of those only whose inputs have relative names. Nothing of the tables depends on
    /// them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub folders: BTreeMap<Week, PathBuf>,
    /// How the inputs of earlier weeks were read, by week, of those that were read in another way
    /// than the job of this week says. Weeks of older versions do not say it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub readings: BTreeMap<Week, Reading>,
}

impl WholeWeek {
    /// Reads the file at `path`; `None` if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Option<WholeWeek>> {
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map(Some).with_context(|| format!("{} is damaged", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the file at `path` atomically and durably.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        replace(path, &serde_json::to_vec(self).context("a week is plain data")?)
    }

    /// The paths of the files of its tables, relative to the store.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.parts().map(|(path, _)| path)
    }

    /// The paths of the files of its tables, relative to the store, and of those of earlier weeks
    /// that it needs.
    pub fn parts(&self) -> impl Iterator<Item = (PathBuf, &TablePart)> {
        let weeks = self.kept.iter().chain([(&self.committed.week, &self.files)]);
        weeks.flat_map(|(week, files)| {
            files.iter().flat_map(move |(table, parts)| {
                let folder = Path::new(table).join(week.folder());
                parts.iter().map(move |part| (folder.join(&part.file), part))
            })
        })
    }

    /// The tables of the week, of the store at `root`.
    pub fn tables(&self, root: &Path) -> WeekTables {
        WeekTables::new(root, self.committed.week, &self.files, &self.kept)
    }

    /// The files that have the rows of these segments whose origin is this week or an earlier one,
    /// of this week's own files and those it kept.
    pub fn kept_for(&self, segments: &[Segment]) -> KeptFiles {
        let mut wanted: BTreeMap<Week, BTreeSet<String>> = BTreeMap::new();
        for segment in segments {
            if let Some(origin) = segment.origin {
                let of_origin = Segment { wave: origin.wave, ..*segment }.file();
                wanted.entry(origin.week).or_default().insert(of_origin);
            }
        }
        let mut kept = KeptFiles::new();
        for (week, names) in wanted {
            let files = if week == self.committed.week { Some(&self.files) } else { self.kept.get(&week) };
            for (table, parts) in files.into_iter().flatten().filter(|(table, _)| KEPT_TABLES.contains(&table.as_str()))
            {
                let has_wanted = |part: &&TablePart| part.pieces.iter().any(|Piece(name, _)| names.contains(name));
                let parts: Vec<TablePart> = parts.iter().filter(has_wanted).cloned().collect();
                kept.entry(week).or_default().insert(table.clone(), parts);
            }
        }
        kept
    }
}

impl Manifest {
    /// The manifest of a store without weeks.
    pub fn new(method: &Method) -> Manifest {
        Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            commits: 0,
            before: String::new(),
            method: method.clone(),
            method_hash: method.hash(),
            removed: None,
            weeks: Vec::new(),
            results: BTreeMap::new(),
            catalog: None,
            digests: None,
        }
    }

    /// The manifest of the next commit: the same content, with a higher number.
    ///
    /// # Errors
    /// If the manifest cannot be written as text.
    pub fn next(&self) -> Result<Manifest> {
        let before = if self.commits == 0 { String::new() } else { short_hash(self.text()?.as_bytes()) };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Manifest { version, commits: self.commits + 1, before, ..self.clone() })
    }

    /// Puts a week in its place among the committed ones, instead of an older version of it. The
    /// store has this format then.
    pub fn put(&mut self, week: CommittedWeek) {
        self.format = FORMAT;
        self.weeks.retain(|other| other.week != week.week);
        self.weeks.push(week);
        self.weeks.sort_items_by_key(|week| week.week);
    }

    /// The identity of the last week; empty if there is none.
    pub fn identity(&self) -> String {
        self.weeks.last().map_or_else(String::new, CommittedWeek::identity)
    }

    /// Whether a week is before the first week that was not removed, so that it cannot be added.
    pub fn has_removed(&self, week: Week) -> bool {
        self.removed.as_ref().is_some_and(|removed| week < removed.before)
    }

    /// Whether a week was made again after the tables of a study, whose last week it is, were made
    /// of it; or its chunks, of a study that reads them.
    pub fn outdates(&self, week: Week, study: &str) -> bool {
        // Commits of weeks and of results are numbered together.
        let made = self.results.get(study);
        let last = |of: &CommittedWeek| if read_chunks(study) { of.commit } else { of.made() };
        self.weeks.iter().any(|of| of.week == week && made.is_some_and(|made| *made < last(of)))
    }

    /// Whether a week is committed.
    pub fn has(&self, week: Week) -> bool {
        self.weeks.iter().any(|committed| committed.week == week)
    }

    /// Reads the manifest at `path`; `None` if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or has a newer format, or one that is too old.
    pub fn read(path: &Path) -> Result<Option<Manifest>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        Manifest::parse(&text, &path.display().to_string()).map(Some)
    }

    /// Parses the text of the manifest; messages call it `name`, the path of the file or the URL of
    /// the object.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn parse(text: &str, name: &str) -> Result<Manifest> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = || format!("{name} is damaged: restore it, or use another --store");
        let Version { format } = serde_json::from_str(text).with_context(damaged)?;
        if !(OLDEST_FORMAT..=FORMAT).contains(&format) {
            bail!(
                "{name} has format {format}, and this program ({}) reads formats {FORMAT_BEFORE} and {FORMAT}: use the program that made the \
                 store, or make the weeks again in another --store",
                env!("CARGO_PKG_VERSION")
            );
        }
        serde_json::from_str(text).with_context(damaged)
    }

    /// Checks that the tables of the store at `root` can be read.
    ///
    /// # Errors
    /// If the store has the oldest format; the message says how to bring it up to date.
    pub(crate) fn check_format(&self, root: &Path) -> Result<()> {
        ensure!(
            self.format >= FORMAT_BEFORE,
            "the store {} has format {} (of nigh {}), and this program ({}) reads formats {FORMAT_BEFORE} and {FORMAT}: `nigh upgrade` brings \
             the store up to date, and leaves its tables as they are",
            root.display(),
            self.format,
            self.version,
            env!("CARGO_PKG_VERSION"),
        );
        Ok(())
    }

    /// Writes the manifest to `path` atomically and durably.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        replace(path, self.text()?.as_bytes())
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> Result<String> {
        let mut text = serde_json::to_string_pretty(self).context("a manifest is plain data")?;
        text.push('\n');
        Ok(text)
    }

    /// Whether the store has weeks, or had some: only then are its parameters those of its weeks.
    pub fn has_had_weeks(&self) -> bool {
        !self.weeks.is_empty() || self.removed.is_some()
    }

    /// Takes the parameters of the first week; and of a later one, what a link means: its week is
    /// verified in another way from then on.
    pub fn set_method(&mut self, method: &Method) {
        if !self.has_had_weeks() || self.method == self.with_links_of_store(method) {
            (self.method, self.method_hash) = (method.clone(), method.hash());
        }
    }

    /// A method with the similarity and the verification of the store.
    pub fn with_links_of_store(&self, method: &Method) -> Method {
        Method { similarity: self.method.similarity, verify: self.method.verify, ..method.clone() }
    }

    /// Checks that a job has the parameters of the store.
    ///
    /// # Errors
    /// If they differ; the message has both values of every parameter that differs, and what to do.
    pub fn check(&self, store: &Path, method: &Method) -> Result<()> {
        if self.method == *method || !self.has_had_weeks() {
            return Ok(());
        }
        let (of_store, of_job) = (self.method.to_string(), method.to_string());
        // Some fields are written only if they are set.
        let fields = |text: &str| -> Vec<(String, String)> {
            let pairs = text.split(", ").filter_map(|field| field.split_once(" = "));
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let (of_store, of_job) = (fields(&of_store), fields(&of_job));
        let value = |fields: &[(String, String)], name: &str| {
            let found = fields.iter().find(|(other, _)| other == name);
            found.map_or_else(|| format!("no {name}"), |(name, value)| format!("{name} = {value}"))
        };
        let mut names: Vec<&String> = of_store.iter().map(|(name, _)| name).collect();
        names.extend(
            of_job.iter().map(|(name, _)| name).filter(|name| !of_store.iter().any(|(other, _)| other == *name)),
        );
        let differing: Vec<String> = names
            .into_iter()
            .map(|name| (value(&of_store, name), value(&of_job, name)))
            .filter(|(of_store, of_job)| of_store != of_job)
            .map(|(of_store, of_job)| format!("{of_store} in the store, {of_job} in the job"))
            .collect();
        bail!(
            "the store {} was made with other parameters ({}): change the job's [method] or the flags for it, or use another --store",
            store.display(),
            differing.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.json");
        assert_eq!(Manifest::read(&path).unwrap(), None);
        let manifest = Manifest::new(&Method::default());
        manifest.write(&path).unwrap();
        assert_eq!(Manifest::read(&path).unwrap(), Some(manifest));
    }

    #[test]
    fn another_method_is_refused_with_both_values() {
        let mut manifest = Manifest::new(&Method::default());
        let other = Method { agreements: 3, words: 4, ..Method::default() };
        // A store without weeks takes the parameters of its first one.
        manifest.check(Path::new("s"), &other).unwrap();
        manifest.set_method(&other);
        assert_eq!((&manifest.method, manifest.method_hash.clone()), (&other, other.hash()));
        manifest.set_method(&Method::default());
        let week = "2024-01-08".parse().unwrap();
        let [stands_on, key] = ["", "key"].map(str::to_owned);
        manifest.put(CommittedWeek {
            week,
            commit: 1,
            made: None,
            stands_on,
            key,
            documents: 0,
            urls: vec![],
            named: vec![],
        });
        manifest.set_method(&other);
        assert_eq!(manifest.method, Method::default());
        let error = manifest.check(Path::new("s"), &other).unwrap_err().to_string();
        assert!(error.contains("agreements = 2 in the store, agreements = 3 in the job"), "{error}");
        assert!(error.contains("words = 5 in the store") && !error.contains("features"), "{error}");
        let other = Method { similarity: Some(0.8.try_into().unwrap()), ..Method::default() };
        let error = manifest.check(Path::new("s"), &other).unwrap_err().to_string();
        assert!(error.contains("(no similarity in the store, similarity = 0.8 in the job)"), "{error}");
    }

    #[test]
    fn a_newer_format_and_a_cut_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.json");
        std::fs::write(&path, "{\"format\": 99, \"something\": 1}").unwrap();
        assert!(Manifest::read(&path).unwrap_err().to_string().contains("format 99"));
        std::fs::write(&path, format!("{{\"format\": {FORMAT}, \"ver")).unwrap();
        assert!(Manifest::read(&path).unwrap_err().to_string().contains("damaged"));
    }
}
