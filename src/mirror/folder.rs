//! The mirror folder: the copy of a bucket's store on this machine, in which runs work.
//!
//! ```text
//! MIRROR/manifest.json  week=…/  urls/  _work/  lock      as in any store
//! MIRROR/_mirror/base.json        the bucket's URL and the mirror's base; replaced as a whole
//! MIRROR/_mirror/digests.json     the digests of the mirror's files
//! MIRROR/_mirror/fetched/         files that are being fetched
//! ```
//!
//! The *base* of a mirror is the catalog that it was last equal to. A *settled* mirror has the files of its base, and the work
//! of later runs that is still to be published. While a mirror is brought up to date it is *unsettled*: then a file counts only
//! if its digest is right.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::catalog::{FileContent, FileList};
use crate::objects::Digest;
use crate::records::Week;
use crate::state::{Store, replace};

/// The folder of the mirror's own files.
const OWN: &str = "_mirror";

/// The mirror of the store at a URL.
#[derive(Clone, Debug)]
pub(super) struct MirrorFolder {
    root: PathBuf,
    url: String,
}

/// The content of `base.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BaseFile {
    url: String,
    base: Base,
}

/// The state of the bucket that a mirror was last equal to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Base {
    /// None: the mirror is being brought up to date.
    Unsettled,
    /// A bucket without a store.
    Nothing,
    /// The catalog with this digest.
    Catalog(Digest),
}

/// The digest of a file, valid while the file's size and time of change stay the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    bytes: u64,
    modified_ns: u128,
    digest: Digest,
}

impl MirrorFolder {
    /// The mirror, in the folder `root`, of the store at `url`. The folder need not exist.
    pub fn at(root: &Path, url: &str) -> MirrorFolder {
        MirrorFolder { root: root.to_owned(), url: url.to_owned() }
    }

    /// The path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder a mirror, if it is not one yet. The caller must hold the folder's lock, or be its only user.
    ///
    /// # Errors
    /// If the folder has other files, or is the mirror of another store.
    pub fn make(&self) -> Result<()> {
        let path = self.base_path();
        let root = self.root.display();
        match std::fs::read(&path) {
            Ok(text) => {
                let damaged = || format!("{} is damaged: remove the mirror {root}", path.display());
                let BaseFile { url, .. } = serde_json::from_slice(&text).with_context(damaged)?;
                ensure!(
                    url == self.url,
                    "the folder {root} is the mirror of {url}: give another --mirror for {}",
                    self.url
                );
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // The caller has locked the folder before it is known to be a mirror, so a lock file may exist.
                let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
                if let Some(other) = entries.map(|entry| entry.file_name()).find(|name| name != "lock" && name != OWN) {
                    bail!(
                        "the folder {root} is not a mirror of {}, and contains {}: give a --mirror that is empty or does not exist",
                        self.url,
                        other.display()
                    );
                }
                std::fs::create_dir_all(self.own()).with_context(|| format!("cannot make the mirror {root}"))?;
                self.set_base(Base::Unsettled)
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn own(&self) -> PathBuf {
        self.root.join(OWN)
    }

    fn base_path(&self) -> PathBuf {
        self.own().join("base.json")
    }

    /// The folder of files that are not fetched completely yet.
    pub fn fetched(&self) -> PathBuf {
        self.own().join("fetched")
    }

    /// Reads the base of the mirror.
    pub fn base(&self) -> Result<Base> {
        let path = self.base_path();
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file: BaseFile = serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
        Ok(file.base)
    }

    /// Records the base of the mirror.
    pub fn set_base(&self, base: Base) -> Result<()> {
        let file = BaseFile { url: self.url.clone(), base };
        replace(&self.base_path(), &serde_json::to_vec(&file).context("a base is plain data")?)
    }

    /// The text of the store's manifest; `None` if the mirror has no store yet.
    pub fn manifest(&self) -> Result<Option<String>> {
        let path = self.root.join("manifest.json");
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// The files of all committed folders, with their digests. Reads only files whose size or time of change is new.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn files(&self) -> Result<BTreeMap<String, FileList>> {
        self.files_of(self.folders(true)?)
    }

    /// As [`MirrorFolder::files`], with the weeks that the manifest does not list.
    pub fn all_files(&self) -> Result<BTreeMap<String, FileList>> {
        self.files_of(self.folders(false)?)
    }

    fn files_of(&self, names: Vec<String>) -> Result<BTreeMap<String, FileList>> {
        let path = self.own().join("digests.json");
        // If the digests are damaged or missing, all files are read again.
        let old_stamps: BTreeMap<String, FileStamp> =
            std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let (mut stamps, mut folders) = (BTreeMap::new(), BTreeMap::new());
        for folder in names {
            let mut files = FileList::default();
            let root = self.root.join(&folder);
            for entry in walkdir::WalkDir::new(&root) {
                let entry = entry.with_context(|| format!("cannot list {}", root.display()))?;
                let path = entry.path().strip_prefix(&root).unwrap_or(entry.path());
                let (Some(path), true) = (path.to_str(), entry.file_type().is_file()) else { continue };
                // A kill left this file while it was to replace another one.
                if path.ends_with(".tmp") {
                    continue;
                }
                let metadata = entry.metadata().with_context(|| format!("cannot read {}", entry.path().display()))?;
                let name = format!("{folder}/{path}");
                let stamp = match old_stamps.get(&name) {
                    Some(old) if old.matches(&metadata) => *old,
                    _ => FileStamp::of(&metadata, Digest::of_file(entry.path())?),
                };
                files.0.insert(path.to_owned(), FileContent { bytes: stamp.bytes, digest: stamp.digest });
                stamps.insert(name, stamp);
            }
            folders.insert(folder, files);
        }
        if stamps != old_stamps {
            replace(&path, &serde_json::to_vec(&stamps).context("digests are plain data")?)?;
        }
        Ok(folders)
    }

    /// The names of all folders except hidden ones and those of unfinished work. Of weeks, all; if `only_committed`, those that
    /// the manifest lists.
    fn folders(&self, only_committed: bool) -> Result<Vec<String>> {
        let failed = || format!("cannot list {}", self.root.display());
        let manifest = if only_committed { Store::at(&self.root).manifest()? } else { None };
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&self.root).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let week = name.strip_prefix("week=").and_then(|date| date.parse::<Week>().ok());
            let has = |week| manifest.as_ref().is_some_and(|manifest| manifest.has(week));
            let is_included = !only_committed || week.is_none_or(has);
            if is_included && !name.starts_with(['_', '.']) && entry.path().is_dir() {
                folders.push(name);
            }
        }
        Ok(folders)
    }
}

impl FileStamp {
    fn of(metadata: &Metadata, digest: Digest) -> FileStamp {
        FileStamp { bytes: metadata.len(), modified_ns: modified(metadata), digest }
    }

    fn matches(&self, metadata: &Metadata) -> bool {
        self.bytes == metadata.len() && self.modified_ns == modified(metadata)
    }
}

/// When a file was last changed, in nanoseconds since 1970; 0 if that is unknown.
fn modified(metadata: &Metadata) -> u128 {
    metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_belongs_to_one_store_and_a_folder_with_files_does_not_become_one() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = MirrorFolder::at(&folder.path().join("mirror"), "s3://bucket/a");
        mirror.make().unwrap();
        assert_eq!(mirror.base().unwrap(), Base::Unsettled);
        mirror.set_base(Base::Catalog(Digest::of(b""))).unwrap();
        mirror.make().unwrap();
        assert_eq!(mirror.base().unwrap(), Base::Catalog(Digest::of(b"")));
        let other = MirrorFolder::at(mirror.root(), "s3://bucket/b").make().unwrap_err().to_string();
        assert!(other.contains("is the mirror of s3://bucket/a"), "{other}");
        let store = folder.path().join("store");
        std::fs::create_dir_all(store.join("week=2024-01-08")).unwrap();
        let other = MirrorFolder::at(&store, "s3://bucket/a").make().unwrap_err().to_string();
        assert!(other.contains("is not a mirror") && other.contains("week=2024-01-08"), "{other}");
    }

    #[test]
    fn files_that_change_have_other_digests() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = MirrorFolder::at(folder.path(), "s3://bucket/a");
        mirror.make().unwrap();
        let tables = folder.path().join("evolution/amounts");
        std::fs::create_dir_all(&tables).unwrap();
        std::fs::create_dir_all(folder.path().join("_work/week=2024-01-08")).unwrap();
        std::fs::create_dir_all(folder.path().join("week=2024-01-08/clusters")).unwrap();
        let digest = |bytes: &[u8]| {
            std::fs::write(tables.join("all.parquet"), bytes).unwrap();
            let files = mirror.files().unwrap();
            // A week that no manifest lists is not committed, and unfinished work is not either.
            assert_eq!(files.keys().collect::<Vec<_>>(), ["evolution"]);
            files["evolution"].0["amounts/all.parquet"].digest
        };
        assert_eq!(digest(b"rows"), Digest::of(b"rows"));
        assert_eq!(digest(b"other rows"), Digest::of(b"other rows"));
        assert_eq!(mirror.files().unwrap()["evolution"].0["amounts/all.parquet"].digest, Digest::of(b"other rows"));
    }
}
