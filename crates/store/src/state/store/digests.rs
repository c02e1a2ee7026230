//! The list of the digests of all files of a store, by which damage is found.
//!
//! ```text
//! STORE/_nigh/digests/00007.json      the list of commit 7
//!     {
//!       "manifest": "…",             of manifest.json, without its field `digests`
//!       "files": { "_nigh/week=2024-01-08/00001/week.json": { "bytes": 4012, "digest": "…" }, … }
//!     }
//! STORE/_nigh/manifest.json           has the digest of the list in `digests`
//! ```
//!
//! Each commit writes a new list: what the list before has of files that stay, and the files that
//! the commit adds. The digest of a part of a table is computed while a worker writes it, and comes
//! with `week.json` or `tables.json`; those of all other files are computed here.
//!
//! The list does not have what can be made again from the other files: `views.sql`, the logs for
//! Delta Lake, the postings. Nor does it have files that an older version made.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::folders::{MANIFEST, OWN, Store, TABLES, WEEK, commit_of, records_folder, removed_folder};
use crate::objects::{Digest, FileContent};
use crate::state::durable::replace;
use crate::state::indexes::UrlRunRow;
use crate::state::weeks::{Manifest, TablePart, WeekFiles, WholeWeek, shard_file};
use crate::tables::{Table as _, UrlRow};

/// The folder of the list, within [`OWN`].
pub(super) const DIGESTS: &str = "digests";
/// The files that each folder of records of a week has.
const OF_WEEK: [&str; 3] = ["job.toml", "summary.json", WEEK];
/// Those of results.
const OF_RESULTS: [&str; 2] = ["job.toml", "summary.json"];

/// Files, by their paths within the store.
type Digests = BTreeMap<PathBuf, FileContent>;

/// The list of a commit.
#[derive(Serialize, Deserialize)]
struct DigestList {
    /// The digest of the manifest, without that of this list.
    manifest: Digest,
    files: Digests,
}

/// What a store knows of one of its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownContent {
    /// The size in bytes.
    pub bytes: Option<u64>,
    /// The digest of the bytes.
    pub digest: Option<Digest>,
}

/// The files of a store.
#[derive(Clone, Debug, Default)]
pub struct KnownFiles {
    /// The files, by their paths within the store, and what it knows of each.
    pub files: BTreeMap<PathBuf, KnownContent>,
    /// Files that cannot be read, or say otherwise than the manifest, and what is wrong with each:
    /// what only they say of others is not known.
    pub damaged: BTreeMap<PathBuf, String>,
}

impl Store {
    /// Stages the list of a commit, whose other files are in the folder of `staged`, and notes its
    /// digest in the manifest.
    ///
    /// # Errors
    /// Names the file that cannot be read or written.
    pub(super) fn stage_digests(&self, staged: &Store, manifest: &mut Manifest) -> Result<()> {
        let (mut digests, mut parts) = (Digests::new(), HashSet::new());
        for week in &manifest.weeks {
            let whole = WholeWeek::read(&staged.records(week).join(WEEK))?.map_or_else(|| self.whole(week), Ok)?;
            for (path, part) in whole.parts() {
                if let Some(digest) = part.digest {
                    digests.insert(path.clone(), FileContent { bytes: part.bytes, digest });
                }
                parts.insert(path);
            }
        }
        let records: HashSet<PathBuf> = manifest.folders_of_records().collect();
        let stays = |path: &Path| {
            // `_nigh/week=…/COMMIT`, or a table of results.
            let first: PathBuf = path.iter().take(3).collect();
            records.contains(&first) || parts.contains(path) || manifest.keeps_table(path)
        };
        let before = self.manifest_of_any_format()?.map(|before| self.read_digests(&before)).transpose()?;
        let before = before.flatten().map(|before| before.files).unwrap_or_default();
        digests.extend(before.into_iter().filter(|(path, _)| stays(path)));
        let mut files = Vec::new();
        let results = manifest.results.keys().map(PathBuf::from);
        for folder in records.iter().cloned().chain(results) {
            staged.list(&folder, &mut files)?;
        }
        files.retain(|file| stays(file));
        for list in files.iter().filter(|file| file.ends_with(TABLES)) {
            digests.extend(staged.digests_of_results(list)?);
        }
        // A commit may replace a file of records by another one.
        files.retain(|file| file.starts_with(OWN) || !digests.contains_key(file));
        digests.extend(contents(staged.root(), &files)?);
        let list = DigestList { manifest: digest_of_manifest(&manifest.text()?)?, files: digests };
        let text = serde_json::to_vec(&list).context("digests are plain data")?;
        let folder = staged.own().join(DIGESTS);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        replace(&staged.root().join(list_of(manifest)), &text)?;
        manifest.digests = Some(Digest::of(&text));
        Ok(())
    }

    /// The digests in the list of the files of results, at this path within the store: those of an
    /// older version have none.
    fn digests_of_results(&self, list: &Path) -> Result<Digests> {
        let path = self.root().join(list);
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let tables: WeekFiles =
            serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
        // The list is `_nigh/RESULTS/COMMIT/tables.json`.
        let folder = PathBuf::from(list.iter().nth(1).unwrap_or_default());
        let parts = tables.iter().flat_map(|(table, parts)| parts.iter().map(move |part| (table, part)));
        let with_digest = parts.filter_map(|(table, part)| {
            Some((folder.join(table).join(&part.file), FileContent { bytes: part.bytes, digest: part.digest? }))
        });
        Ok(with_digest.collect())
    }

    /// Checks that the list of the last commit can be used, or is not there.
    ///
    /// # Errors
    /// If it cannot be read or is damaged: says what to do.
    pub(super) fn check_digests(&self, manifest: &Manifest) -> Result<()> {
        self.read_digests(manifest).map(drop)
    }

    /// The list that the last commit wrote; `None` if it is missing, or an older version wrote
    /// none.
    fn read_digests(&self, manifest: &Manifest) -> Result<Option<DigestList>> {
        let Some(expected) = manifest.digests else { return Ok(None) };
        let path = self.root().join(list_of(manifest));
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        ensure!(
            Digest::of(&text) == expected,
            "{} has other bytes than were written: restore it from a copy, or remove it; `nigh check` compares no digest of its files then",
            path.display()
        );
        serde_json::from_slice(&text).map(Some).with_context(|| format!("{} is damaged", path.display()))
    }

    /// The list that the manifest names, within the store; `None` if an older version wrote none.
    pub(super) fn listed_digests(&self, manifest: &Manifest) -> Option<PathBuf> {
        manifest.digests.map(|_| list_of(manifest))
    }

    /// All files of the store that count, and what is known of them.
    ///
    /// # Errors
    /// If a folder cannot be listed, or the user lacks the right to read a list or a `week.json`.
    pub fn known_files(&self, manifest: &Manifest) -> Result<KnownFiles> {
        let mut known = KnownFiles::default();
        let list = match self.read_digests(manifest) {
            Ok(list) => list,
            Err(error) if is_refused(&error) => return Err(error),
            // It is compared with its digest as all files are.
            Err(_) => None,
        };
        let path = Path::new(OWN).join(MANIFEST);
        let text = std::fs::read_to_string(self.root().join(&path));
        let found = digest_of_manifest(&text.with_context(|| format!("cannot read {}", path.display()))?)?;
        if list.as_ref().is_some_and(|list| list.manifest != found) {
            known.damaged.insert(path, "has other values than were written".to_owned());
        } else if manifest.digests.is_none() && self.root().join(list_of(manifest)).exists() {
            known.damaged.insert(path, "does not name the list of digests that the last commit wrote".to_owned());
        }
        for week in &manifest.weeks {
            let folder = Path::new(OWN).join(records_folder(week.week, week.commit));
            match self.whole(week) {
                Ok(whole) => {
                    if list.is_none() && whole.committed != *week {
                        let found = "has another row for this week than manifest.json".to_owned();
                        known.damaged.insert(folder.join(WEEK), found);
                    }
                    // If it is damaged itself, the list has what it said.
                    let counts = whole.parts().filter(|(_, part)| list.is_none() || part.digest.is_none());
                    let content = |part: &TablePart| KnownContent { bytes: Some(part.bytes), digest: part.digest };
                    known.files.extend(counts.map(|(path, part)| (path, content(part))));
                }
                Err(error) if is_refused(&error) => return Err(error),
                Err(error) => {
                    let cause = error.root_cause();
                    let is_missing = !self.root().join(&folder).join(WEEK).exists();
                    let found = if is_missing { "is missing".to_owned() } else { format!("cannot be used: {cause}") };
                    known.damaged.insert(folder.join(WEEK), found);
                }
            }
            known.files.extend(OF_WEEK.map(|name| (folder.join(name), KnownContent::default())));
        }
        let mut others = Vec::new();
        if let Some(removed) = &manifest.removed {
            let folder = Path::new(OWN).join(removed_folder(removed));
            let tables = [UrlRow::NAME, UrlRunRow::NAME].map(|table| folder.join(table));
            others.extend(removed.shards().flat_map(|shard| tables.clone().map(|table| table.join(shard_file(shard)))));
        }
        for (results, commit) in &manifest.results {
            let folder = Path::new(OWN).join(results).join(format!("{commit:05}"));
            others.extend(OF_RESULTS.map(|name| folder.join(name)));
            self.list(&folder, &mut others)?;
            others.extend(self.files_of_results(results, *commit)?);
        }
        known.files.extend(others.into_iter().map(|path| (path, KnownContent::default())));
        let files = list.into_iter().flat_map(|list| list.files);
        known.files.extend(files.map(|(path, content)| (path, content.into())));
        if let Some(path) = self.listed_digests(manifest) {
            known.files.insert(path, KnownContent { bytes: None, digest: manifest.digests });
        }
        Ok(known)
    }
}

/// The path of the list that the last commit wrote, within the store.
fn list_of(manifest: &Manifest) -> PathBuf {
    Path::new(OWN).join(DIGESTS).join(format!("{:05}.json", manifest.commits))
}

/// The sizes and digests of files below a folder, by several threads.
fn contents(root: &Path, files: &[PathBuf]) -> Result<Digests> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Digests> {
        let mut contents = Digests::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            contents.insert(file.clone(), FileContent::of_file(&root.join(file))?);
        }
        Ok(contents)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let found = threads.into_iter().map(|thread| thread.join().expect("reading a file does not panic"));
        found.collect::<Result<Vec<Digests>>>().map(|found| found.into_iter().flatten().collect())
    })
}

/// The digest of the values in the text of a manifest, without its field `digests`: also of fields
/// that this version does not know.
fn digest_of_manifest(text: &str) -> Result<Digest> {
    let mut manifest: Value = serde_json::from_str(text).context("a manifest is JSON")?;
    manifest.as_object_mut().context("a manifest is an object")?.remove("digests");
    // Features of serde_json decide whether fields keep their order.
    manifest.sort_all_objects();
    Ok(Digest::of(&serde_json::to_vec(&manifest)?))
}

impl Manifest {
    /// The folders of records that the store keeps: of weeks, of the removed weeks, and of results.
    fn folders_of_records(&self) -> impl Iterator<Item = PathBuf> {
        let weeks = self.weeks.iter().map(|week| records_folder(week.week, week.commit));
        let results = self.results.iter().map(|(results, commit)| Path::new(results).join(format!("{commit:05}")));
        weeks.chain(self.removed.iter().map(removed_folder)).chain(results).map(|folder| Path::new(OWN).join(folder))
    }

    /// Whether a file is one of a table of results that the store keeps.
    fn keeps_table(&self, path: &Path) -> bool {
        let mut names = path.iter().filter_map(|name| name.to_str());
        let results = names.next().and_then(|name| self.results.get(name));
        results.is_some() && names.next_back().and_then(commit_of) == results.copied()
    }
}

impl From<FileContent> for KnownContent {
    fn from(content: FileContent) -> KnownContent {
        KnownContent { bytes: Some(content.bytes), digest: Some(content.digest) }
    }
}

/// Whether an error is that of a user who may not read a file, and says nothing of the file.
fn is_refused(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.map(std::io::Error::kind).any(|kind| kind == ErrorKind::PermissionDenied)
}
