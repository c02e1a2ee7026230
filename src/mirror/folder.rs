//! The mirror: a store's folder on this machine, what it stands on, and the digests of its files.
//!
//! ```text
//! MIRROR/manifest.json  week=…/  urls/  _work/  lock      as any store
//! MIRROR/_mirror/base.json        of which bucket it is, and which catalog it stands on; replaced whole
//! MIRROR/_mirror/digests.json     what is known of its files
//! MIRROR/_mirror/fetched/         what is on its way
//! ```
//!
//! A mirror that is *settled* on a catalog holds what that one says, and what runs made since: that is to be published.
//! While it is brought up to date it is *unsettled*, and nothing that it holds is believed but by its digest.

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

/// Where the mirror's own files are.
const OWN: &str = "_mirror";

/// A store's folder on this machine.
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

/// What a mirror stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Base {
    /// It is being brought up to date.
    Unsettled,
    /// A bucket without a store.
    Nothing,
    /// A catalog.
    Catalog(Digest),
}

/// What is known of a file, as long as it looks the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    bytes: u64,
    modified_ns: u128,
    digest: Digest,
}

impl MirrorFolder {
    /// The mirror of a URL's store at a folder, which need not exist yet.
    pub fn at(root: &Path, url: &str) -> MirrorFolder {
        MirrorFolder { root: root.to_owned(), url: url.to_owned() }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes it, where there is none yet. The caller holds the folder's lock, or is alone.
    ///
    /// # Errors
    /// Where it is something else, or the mirror of another store.
    pub fn make(&self) -> Result<()> {
        let path = self.base_path();
        let root = self.root.display();
        match std::fs::read(&path) {
            Ok(text) => {
                let damaged = || format!("{} is damaged: remove the mirror {root}", path.display());
                let BaseFile { url, .. } = serde_json::from_slice(&text).with_context(damaged)?;
                ensure!(
                    url == self.url,
                    "the folder {root} is the mirror of {url}: take another --mirror for {}",
                    self.url
                );
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // The lock is taken before it is known what the folder is.
                let other = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
                if let Some(other) = other.map(|entry| entry.file_name()).find(|name| name != "lock" && name != OWN) {
                    bail!(
                        "the folder {root} is no mirror of {}, and has {}: take an empty --mirror, or one that is not there",
                        self.url,
                        other.display()
                    );
                }
                std::fs::create_dir_all(self.own()).with_context(|| format!("cannot make the mirror {root}"))?;
                self.stand_on(Base::Unsettled)
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

    /// Where what is fetched lies until it is whole.
    pub fn fetched(&self) -> PathBuf {
        self.own().join("fetched")
    }

    /// What it stands on.
    pub fn base(&self) -> Result<Base> {
        let path = self.base_path();
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mirrored: BaseFile =
            serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
        Ok(mirrored.base)
    }

    /// Notes what it stands on now.
    pub fn stand_on(&self, base: Base) -> Result<()> {
        let mirrored = BaseFile { url: self.url.clone(), base };
        replace(&self.base_path(), &serde_json::to_vec(&mirrored).context("a base is plain data")?)
    }

    /// The text of its manifest; `None` where there is no store yet.
    pub fn manifest(&self) -> Result<Option<String>> {
        let path = self.root.join("manifest.json");
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// The files of all folders that are whole, with their digests; only those that look different than the last time
    /// are read.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn files(&self) -> Result<BTreeMap<String, FileList>> {
        self.files_of(self.folders(true)?)
    }

    /// As [`MirrorFolder::files`], of weeks that the manifest does not list as well.
    pub fn all_files(&self) -> Result<BTreeMap<String, FileList>> {
        self.files_of(self.folders(false)?)
    }

    fn files_of(&self, names: Vec<String>) -> Result<BTreeMap<String, FileList>> {
        let path = self.own().join("digests.json");
        // What is damaged or not there is found out anew.
        let known: BTreeMap<String, FileStamp> =
            std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let (mut now, mut folders) = (BTreeMap::new(), BTreeMap::new());
        for folder in names {
            let mut files = FileList::default();
            let root = self.root.join(&folder);
            for entry in walkdir::WalkDir::new(&root) {
                let entry = entry.with_context(|| format!("cannot list {}", root.display()))?;
                let path = entry.path().strip_prefix(&root).unwrap_or(entry.path());
                let (Some(path), true) = (path.to_str(), entry.file_type().is_file()) else { continue };
                // Left by a kill while a file was replaced.
                if path.ends_with(".tmp") {
                    continue;
                }
                let metadata = entry.metadata().with_context(|| format!("cannot read {}", entry.path().display()))?;
                let name = format!("{folder}/{path}");
                let file = match known.get(&name) {
                    Some(known) if known.is_as(&metadata) => *known,
                    _ => FileStamp::of(&metadata, Digest::of_file(entry.path())?),
                };
                files.0.insert(path.to_owned(), FileContent { bytes: file.bytes, digest: file.digest });
                now.insert(name, file);
            }
            folders.insert(folder, files);
        }
        if now != known {
            replace(&path, &serde_json::to_vec(&now).context("digests are plain data")?)?;
        }
        Ok(folders)
    }

    /// The names of all folders that are no work; of weeks all, or those that the manifest lists.
    fn folders(&self, listed: bool) -> Result<Vec<String>> {
        let failed = || format!("cannot list {}", self.root.display());
        let manifest = if listed { Store::at(&self.root).manifest()? } else { None };
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&self.root).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let week = name.strip_prefix("week=").and_then(|date| date.parse::<Week>().ok());
            let has = |week| manifest.as_ref().is_some_and(|manifest| manifest.has(week));
            let is_whole = !listed || week.is_none_or(has);
            if is_whole && !name.starts_with(['_', '.']) && entry.path().is_dir() {
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

    fn is_as(&self, metadata: &Metadata) -> bool {
        self.bytes == metadata.len() && self.modified_ns == modified(metadata)
    }
}

fn modified(metadata: &Metadata) -> u128 {
    metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_of_one_store_and_no_other_folder_becomes_one() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = MirrorFolder::at(&folder.path().join("mirror"), "s3://bucket/a");
        mirror.make().unwrap();
        assert_eq!(mirror.base().unwrap(), Base::Unsettled);
        mirror.stand_on(Base::Catalog(Digest::of(b""))).unwrap();
        mirror.make().unwrap();
        assert_eq!(mirror.base().unwrap(), Base::Catalog(Digest::of(b"")));
        let other = MirrorFolder::at(mirror.root(), "s3://bucket/b").make().unwrap_err().to_string();
        assert!(other.contains("is the mirror of s3://bucket/a"), "{other}");
        let store = folder.path().join("store");
        std::fs::create_dir_all(store.join("week=2024-01-08")).unwrap();
        let other = MirrorFolder::at(&store, "s3://bucket/a").make().unwrap_err().to_string();
        assert!(other.contains("is no mirror") && other.contains("week=2024-01-08"), "{other}");
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
            // A week that no manifest lists is not whole, and work never is.
            assert_eq!(files.keys().collect::<Vec<_>>(), ["evolution"]);
            files["evolution"].0["amounts/all.parquet"].digest
        };
        assert_eq!(digest(b"rows"), Digest::of(b"rows"));
        assert_eq!(digest(b"other rows"), Digest::of(b"other rows"));
        assert_eq!(mirror.files().unwrap()["evolution"].0["amounts/all.parquet"].digest, Digest::of(b"other rows"));
    }
}
