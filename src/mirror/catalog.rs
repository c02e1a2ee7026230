//! What is in the bucket: the manifest, the lists of files that it names, and the names of objects.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::objects::{Bucket, Digest, Tag};
use crate::records::Week;
use crate::state::Manifest;

/// The version of the layout in a bucket.
const LAYOUT: u32 = 1;
/// The object that says what there is.
pub(super) const MANIFEST: &str = "manifest.json";
/// How often a store that is published while it is read is begun with.
const READINGS: usize = 3;
/// How a store gets an object back.
pub(super) const PUT_BACK: &str =
    "run `nigh vacuum`, with a --keep of all weeks, on a machine whose mirror has it whole: that puts it back";

/// The content of the object `manifest.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Catalog {
    /// The layout's version, [`LAYOUT`].
    objects: u32,
    /// The store's manifest, as it is in a folder.
    manifest: Box<RawValue>,
    /// The store's other folders, by name.
    pub folders: BTreeMap<String, FolderList>,
}

/// Where the list of a folder's files is, and what they come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderList {
    /// The digest of the list, which is in its name.
    pub list: Digest,
    /// How many there are.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The files of a folder: their paths within it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct FileList(pub BTreeMap<String, FileContent>);

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileContent {
    /// Its size.
    pub bytes: u64,
    /// Its digest.
    pub digest: Digest,
}

/// An object that a list names is not there.
#[derive(Debug)]
pub(super) struct MissingObject(pub String);

impl fmt::Display for MissingObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is missing: the store is damaged; {PUT_BACK}", self.0)
    }
}

impl std::error::Error for MissingObject {}

/// A catalog as it was found.
#[derive(Clone, Debug)]
pub(super) struct CatalogVersion {
    pub catalog: Catalog,
    /// The digest of its bytes, by which a mirror knows what it stands on.
    pub digest: Digest,
    /// Which version of the object it is.
    pub tag: Tag,
}

impl Catalog {
    /// The catalog of a store, from the text of its manifest and its folders.
    pub fn new(manifest: String, folders: &BTreeMap<String, FileList>) -> Result<Catalog> {
        let listed = folders.iter().map(|(name, files)| Ok((name.clone(), files.listed()?)));
        let manifest = RawValue::from_string(manifest.trim_end().to_owned()).context("a manifest is JSON")?;
        Ok(Catalog { objects: LAYOUT, manifest, folders: listed.collect::<Result<_>>()? })
    }

    /// Reads the bucket's; `None` where there is none.
    pub fn read(bucket: &Bucket) -> Result<Option<CatalogVersion>> {
        let Some((bytes, tag)) = bucket.get(MANIFEST)? else { return Ok(None) };
        let name = bucket.url(MANIFEST);
        #[derive(Deserialize)]
        struct Version {
            objects: Option<u32>,
        }
        let damaged = || format!("{name} is damaged: restore it, or take another --store");
        let Version { objects } = serde_json::from_slice(&bytes).with_context(damaged)?;
        match objects {
            Some(LAYOUT) => {}
            None => bail!(
                "{name} is that of a folder: a store that was copied into a bucket is none there; copy it to a folder, and use that"
            ),
            Some(other) => bail!(
                "{name} has layout {other}, this program ({}) knows layout {LAYOUT}: use the program that wrote it, or \
                 another --store",
                env!("CARGO_PKG_VERSION")
            ),
        }
        let catalog: Catalog = serde_json::from_slice(&bytes).with_context(damaged)?;
        for folder in catalog.folders.keys() {
            ensure!(is_name(folder), "{}: {folder:?} is no name of a folder", damaged());
        }
        // A newer format is told before anything is fetched.
        Manifest::parse(catalog.manifest(), &name)?;
        Ok(Some(CatalogVersion { catalog, digest: Digest::of(&bytes), tag }))
    }

    /// The text of the store's manifest.
    pub fn manifest(&self) -> &str {
        self.manifest.get()
    }

    /// As it is put into the bucket.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self).context("a catalog is plain data")?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The files of one of its folders.
    ///
    /// # Errors
    /// Names the list that is missing or damaged.
    pub fn files(&self, bucket: &Bucket, folder: &str) -> Result<FileList> {
        let Some(listed) = self.folders.get(folder) else { return Ok(FileList::default()) };
        let key = list_key(folder, listed.list);
        let name = bucket.url(&key);
        let bytes = bucket.get_whole(&key)?.ok_or_else(|| MissingObject(name.clone()))?;
        let found = Digest::of(&bytes);
        let damaged = || {
            format!("{name} is damaged: it has {} bytes, of the digest {found}; remove it, and {PUT_BACK}", bytes.len())
        };
        ensure!(found == listed.list, damaged());
        let files: FileList = serde_json::from_slice(&bytes).with_context(|| format!("{name} is damaged"))?;
        for path in files.0.keys() {
            ensure!(path.split('/').all(is_name), "{name} is damaged: {path:?} is no path of a file");
        }
        Ok(files)
    }
}

/// Reads of a store that may be published meanwhile, which removes what it replaces: where something is missing, and the
/// catalog is another one by now, all is read again.
///
/// # Errors
/// Those of `read`; and where the store was published again and again.
pub(super) fn steadily<T>(bucket: &Bucket, mut read: impl FnMut(&Option<CatalogVersion>) -> Result<T>) -> Result<T> {
    let digest = |found: &Option<CatalogVersion>| found.as_ref().map(|found| found.digest);
    let mut found = Catalog::read(bucket)?;
    for _ in 0..READINGS {
        match read(&found) {
            Err(error) if error.is::<MissingObject>() => {
                let now = Catalog::read(bucket)?;
                if digest(&now) == digest(&found) {
                    return Err(error);
                }
                found = now;
            }
            done => return done,
        }
    }
    bail!("{} was published to while it was read, {READINGS} times: run the command again", bucket.url(""))
}

impl FileList {
    /// As the list is put into the bucket.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).context("a list is plain data")
    }

    fn listed(&self) -> Result<FolderList> {
        let bytes = self.0.values().map(|content| content.bytes).sum();
        Ok(FolderList { list: Digest::of(&self.bytes()?), files: self.0.len() as u64, bytes })
    }
}

/// Whether a name from the bucket is that of a file or a folder, and stays where it belongs.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '_']) && !name.contains(['/', '\\', '\0'])
}

/// The name of the object of a file.
pub(super) fn key(folder: &str, path: &str, digest: Digest) -> String {
    let (stem, extension) = path.rsplit_once('.').unwrap_or((path, ""));
    match extension.is_empty() || extension.contains('/') {
        true => format!("{folder}/{path}-{digest}"),
        false => format!("{folder}/{stem}-{digest}.{extension}"),
    }
}

/// The name of the object of a folder's list.
pub(super) fn list_key(folder: &str, digest: Digest) -> String {
    key(folder, "files.json", digest)
}

/// Whether an object is one that nigh put into one of a store's folders, so that it may be removed where nothing names
/// it.
pub(super) fn is_ours(key: &str, folders: &[&str]) -> bool {
    let Some((folder, path)) = key.split_once('/') else { return false };
    let week = folder.strip_prefix("week=").is_some_and(|date| date.parse::<Week>().is_ok());
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let digest = stem.rsplit_once('-').is_some_and(|(_, digest)| digest.parse::<Digest>().is_ok());
    digest && (week || folder == "urls" || folders.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_by_path_and_content() {
        let digest = Digest::of(b"rows");
        let name = key("week=2024-01-08", "clusters/shard00000-wave00001.parquet", digest);
        assert_eq!(name, format!("week=2024-01-08/clusters/shard00000-wave00001-{digest}.parquet"));
        assert_eq!(
            key("urls", "before=2024-01-08/odd.name/file", digest),
            format!("urls/before=2024-01-08/odd.name/file-{digest}")
        );
        assert!(is_ours(&name, &[]) && is_ours(&list_key("week=2024-01-08", digest), &[]));
    }

    #[cfg(feature = "cloud")]
    #[test]
    fn what_is_missing_because_of_a_commit_is_looked_for_again() {
        use crate::config::Method;
        let (bucket, _) = crate::objects::faulty::faulty(std::time::Duration::from_secs(30));
        let publish = |folder: &str| {
            let manifest = serde_json::to_string(&Manifest::new(&Method::default())).unwrap();
            let catalog = Catalog::new(manifest, &BTreeMap::from([(folder.to_owned(), FileList::default())])).unwrap();
            bucket.put(MANIFEST, catalog.bytes().unwrap()).unwrap();
        };
        // The list of the folder is nowhere.
        let list =
            |found: &Option<CatalogVersion>, folder: &str| found.as_ref().unwrap().catalog.files(&bucket, folder);
        publish("first");
        let error = steadily(&bucket, |found| list(found, "first")).unwrap_err();
        assert!(error.is::<MissingObject>() && error.to_string().contains("the store is damaged"), "{error:#}");
        let mut readings = 0;
        let read = steadily(&bucket, |found| {
            readings += 1;
            publish("second");
            list(found, "first")
        });
        assert_eq!((readings, read.unwrap()), (2, FileList::default()));
        let mut readings = 0;
        let error = steadily(&bucket, |found| {
            let now = found.as_ref().unwrap().catalog.folders.keys().next().unwrap().clone();
            readings += 1;
            publish(&format!("other-{readings}"));
            list(found, &now).context("as a caller says it")
        });
        let error = error.unwrap_err().to_string();
        assert!(readings == 3 && error.contains("run the command again") && !error.contains("damaged"), "{error}");
    }

    #[test]
    fn what_others_put_there_is_not_removed() {
        let digest = Digest::of(b"rows");
        for key in [
            "manifest.json".to_owned(),
            "lock.json".to_owned(),
            "week=2024-01-08/notes.txt".to_owned(),
            "week=2024-01-08/clusters/shard00000.parquet".to_owned(),
            format!("week=mine/table-{digest}.parquet"),
            format!("other-store/week=2024-01-08/clusters/shard-{digest}.parquet"),
            format!("evolution/retention/all-{digest}.parquet"),
        ] {
            assert!(!is_ours(&key, &[]), "{key}");
        }
        assert!(is_ours(&format!("evolution/retention/all-{digest}.parquet"), &["evolution"]));
    }
}
