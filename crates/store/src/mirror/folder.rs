//! The mirror folder: the copy of a bucket's store on this machine, in which runs work.
//!
//! ```text
//! MIRROR/clusters/…  views.sql  _nigh/…    as in any store
//! MIRROR/_mirror/base.json        the bucket's URL and the mirror's base; replaced as a whole
//! MIRROR/_mirror/digests.json     the digests of the mirror's files
//! MIRROR/_mirror/fetched/         files that are being fetched
//! ```
//!
//! The *base* of a mirror is the catalog that it was last equal to. A *settled* mirror has the
//! files of its base, and the work of later runs that is still to be published. While a mirror is
//! brought up to date it is *unsettled*: then a file counts only if its digest is right.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::catalog::FileList;
use crate::objects::{Digest, FileContent};
use crate::state::{LOCK, MANIFEST, OWN as STORE_OWN, Store, replace};
use crate::structures::CompactSort;

/// The beginnings of the names of what a store's own folder has for this machine only: unfinished
/// work and postings.
const PRIVATE: [&str; 2] = ["work", "postings"];
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

    /// Makes the folder a mirror, if it is not one yet. The caller must hold the folder's lock, or
    /// be its only user.
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
                // The caller has locked the folder before it is known to be a mirror, so a lock
                // file may exist.
                let names = |folder: &Path| {
                    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
                    entries.map(|entry| entry.file_name()).collect::<Vec<_>>()
                };
                let others = names(&self.root).into_iter().filter(|name| name != STORE_OWN && name != OWN);
                let of_store = names(&self.root.join(STORE_OWN)).into_iter().filter(|name| name != LOCK);
                if let Some(other) = others.chain(of_store).next() {
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

    /// Whether a folder is a mirror that is being brought up to date, or was until a kill.
    pub fn is_unsettled(root: &Path) -> Result<bool> {
        let folder = MirrorFolder::at(root, "");
        Ok(folder.base_path().exists() && matches!(folder.base()?, Base::Unsettled))
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

    /// The path of the store's manifest.
    pub fn manifest_path(&self) -> PathBuf {
        self.root.join(STORE_OWN).join(MANIFEST)
    }

    /// The text of the store's manifest; `None` if the mirror has no store yet.
    pub fn manifest(&self) -> Result<Option<String>> {
        let path = self.manifest_path();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// All files that the store's manifest lists, by folder, with their digests. Reads only files
    /// whose size or time of change is new.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn files(&self) -> Result<BTreeMap<String, FileList>> {
        let store = Store::at(&self.root);
        // `nigh upgrade` works in a mirror of the format before.
        let manifest = store.manifest_of_any_format()?;
        let paths = manifest.map(|manifest| store.listed_files(&manifest)).transpose()?;
        self.files_of(paths.unwrap_or_default())
    }

    /// As [`MirrorFolder::files`], with the files that the manifest does not list.
    pub fn all_files(&self) -> Result<BTreeMap<String, FileList>> {
        self.files_of(self.all_paths()?)
    }

    fn files_of(&self, paths: Vec<PathBuf>) -> Result<BTreeMap<String, FileList>> {
        let path = self.own().join("digests.json");
        // If the digests are damaged or missing, all files are read again.
        let old_stamps: BTreeMap<String, FileStamp> =
            std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let (mut stamps, mut folders) = (BTreeMap::new(), BTreeMap::<String, FileList>::new());
        for file in paths {
            let Some((folder, within)) = file.to_str().and_then(|name| name.split_once('/')) else { continue };
            let full = self.root.join(&file);
            let metadata = full.metadata().with_context(|| format!("cannot read {}", full.display()))?;
            let name = format!("{folder}/{within}");
            let stamp = match old_stamps.get(&name) {
                Some(old) if old.matches(&metadata) => *old,
                _ => FileStamp::of(&metadata, Digest::of_file(&full)?),
            };
            let content = FileContent { bytes: stamp.bytes, digest: stamp.digest };
            folders.entry(folder.to_owned()).or_default().0.insert(within.to_owned(), content);
            stamps.insert(name, stamp);
        }
        if stamps != old_stamps {
            replace(&path, &serde_json::to_vec(&stamps).context("digests are plain data")?)?;
        }
        Ok(folders)
    }

    /// The paths, relative to the mirror, of all files that can be part of a store: those of
    /// tables, and those of the store's own folder that it publishes.
    pub fn all_paths(&self) -> Result<Vec<PathBuf>> {
        let failed = || format!("cannot list {}", self.root.display());
        let own = Path::new(STORE_OWN);
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&self.root).with_context(failed)? {
            let name = PathBuf::from(entry.with_context(failed)?.file_name());
            if !name.to_string_lossy().starts_with(['_', '.']) {
                folders.push(name);
            }
        }
        for entry in std::fs::read_dir(self.root.join(own)).into_iter().flatten() {
            let name = entry.with_context(failed)?.file_name();
            if !name.to_string_lossy().starts_with(PRIVATE[0]) && !name.to_string_lossy().starts_with(PRIVATE[1]) {
                folders.push(own.join(name));
            }
        }
        let mut paths = Vec::new();
        for folder in folders.into_iter().map(|folder| self.root.join(folder)).filter(|folder| folder.is_dir()) {
            for entry in walkdir::WalkDir::new(&folder) {
                let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
                // A kill left a `.tmp` file while it was to replace another one.
                if entry.file_type().is_file() && entry.path().extension().is_none_or(|extension| extension != "tmp") {
                    paths.push(entry.path().strip_prefix(&self.root).unwrap_or(entry.path()).to_owned());
                }
            }
        }
        paths.sort_items();
        Ok(paths)
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
        std::fs::create_dir_all(store.join("_nigh/week=2024-01-08")).unwrap();
        let other = MirrorFolder::at(&store, "s3://bucket/a").make().unwrap_err().to_string();
        assert!(other.contains("is not a mirror") && other.contains("week=2024-01-08"), "{other}");
    }

    #[test]
    fn files_that_change_have_other_digests() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = MirrorFolder::at(folder.path(), "s3://bucket/a");
        mirror.make().unwrap();
        let tables = folder.path().join("evolution/amounts");
        for own in ["work/week=2024-01-08", "postings/run", "week=2024-01-08/00001"] {
            let own = folder.path().join("_nigh").join(own);
            std::fs::create_dir_all(&own).unwrap();
            std::fs::write(own.join("file"), "text").unwrap();
        }
        std::fs::create_dir_all(&tables).unwrap();
        let digest = |bytes: &[u8]| {
            std::fs::write(tables.join("nigh-00001-00000.parquet"), bytes).unwrap();
            assert_eq!(mirror.files().unwrap(), BTreeMap::new(), "no manifest lists them");
            let files = mirror.all_files().unwrap();
            // Unfinished work and postings stay on this machine.
            assert_eq!(files.keys().collect::<Vec<_>>(), ["_nigh", "evolution"]);
            assert_eq!(files["_nigh"].0.keys().collect::<Vec<_>>(), ["week=2024-01-08/00001/file"]);
            files["evolution"].0["amounts/nigh-00001-00000.parquet"].digest
        };
        assert_eq!(digest(b"rows"), Digest::of(b"rows"));
        assert_eq!(digest(b"other rows"), Digest::of(b"other rows"));
    }
}
