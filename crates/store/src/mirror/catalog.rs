//! The catalog of a store in a bucket: the object `_nigh/manifest.json`, the lists of files that it
//! names, and the keys of objects.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::objects::{Bucket, Digest, FileContent, ObjectVersion};
use crate::state::{Manifest, OWN, commit_of};
use crate::tables::tables_of_weeks;

/// The version of the layout in a bucket.
const LAYOUT: u32 = 2;
/// The key of the catalog.
pub(super) const MANIFEST: &str = "_nigh/manifest.json";
/// The key of the catalog in layout 1, and of the manifest of stores up to format 4.
const OLD_MANIFEST: &str = "manifest.json";
/// How often a store that is published meanwhile is read from the beginning.
pub(super) const READINGS: usize = 3;
/// How a user restores a missing object.
pub(super) const PUT_BACK: &str =
    "run `nigh vacuum`, with a --keep of all weeks, on a machine whose mirror has the file: that puts it back";

/// The content of the object `_nigh/manifest.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Catalog {
    /// The layout's version, [`LAYOUT`].
    objects: u32,
    /// The store's manifest, as it is in a folder.
    manifest: Box<RawValue>,
    /// The folders of the store, by name.
    pub folders: BTreeMap<String, FolderList>,
}

/// A reference to the list of a folder's files, with their number and total size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderList {
    /// The digest of the list, which is part of its key.
    pub list: Digest,
    /// The number of files.
    pub files: u64,
    /// The size of all files together, in bytes.
    pub bytes: u64,
}

/// The files of a folder, by their paths within it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct FileList(pub BTreeMap<String, FileContent>);

/// The error that an object is missing although a list names it; the URL of the object.
#[derive(Debug)]
pub(super) struct MissingObject(pub String);

impl fmt::Display for MissingObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is missing: the store is damaged; {PUT_BACK}", self.0)
    }
}

impl std::error::Error for MissingObject {}

/// A catalog as it was read from the bucket.
#[derive(Clone, Debug)]
pub(super) struct CatalogVersion {
    pub catalog: Catalog,
    /// The digest of the catalog's bytes; a mirror records it as its base.
    pub digest: Digest,
    /// The version of the object.
    pub tag: ObjectVersion,
}

impl Catalog {
    /// The catalog of a store, made from the text of its manifest and the files of its folders.
    pub fn new(manifest: String, folders: &BTreeMap<String, FileList>) -> Result<Catalog> {
        let listed = folders.iter().map(|(name, files)| Ok((name.clone(), files.listed()?)));
        let manifest = RawValue::from_string(manifest.trim_end().to_owned()).context("a manifest is JSON")?;
        Ok(Catalog { objects: LAYOUT, manifest, folders: listed.collect::<Result<_>>()? })
    }

    /// Reads the catalog of the bucket; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or has an unknown format.
    pub fn read(bucket: &Bucket) -> Result<Option<CatalogVersion>> {
        let Some((bytes, tag)) = bucket.get(MANIFEST)? else {
            ensure!(
                bucket.size(OLD_MANIFEST)?.is_none(),
                "{} is of an older version of nigh: use the program that made the store, or make the weeks again in another --store",
                bucket.url(OLD_MANIFEST)
            );
            return Ok(None);
        };
        let name = bucket.url(MANIFEST);
        #[derive(Deserialize)]
        struct Version {
            objects: Option<u32>,
        }
        let damaged = || format!("{name} is damaged: restore it, or use another --store");
        let Version { objects } = serde_json::from_slice(&bytes).with_context(damaged)?;
        match objects {
            Some(LAYOUT) => {}
            None => bail!(
                "{name} is the manifest of a folder: a store does not work after a copy into a bucket; copy it to a folder and use that"
            ),
            Some(other) => bail!(
                "{name} has layout {other}, this program ({}) knows layout {LAYOUT}: use the program that wrote it, or \
                 another --store",
                env!("CARGO_PKG_VERSION")
            ),
        }
        let catalog: Catalog = serde_json::from_slice(&bytes).with_context(damaged)?;
        for folder in catalog.folders.keys() {
            ensure!(folder == OWN || is_name(folder), "{}: {folder:?} is not the name of a folder", damaged());
        }
        // Fails on a newer format before anything is fetched.
        Manifest::parse(catalog.manifest(), &name)?;
        Ok(Some(CatalogVersion { catalog, digest: Digest::of(&bytes), tag }))
    }

    /// The text of the store's manifest.
    pub fn manifest(&self) -> &str {
        self.manifest.get()
    }

    /// The bytes that are put into the bucket.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self).context("a catalog is plain data")?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads the list of files of one of the store's folders; it is empty if the catalog has no
    /// such folder.
    ///
    /// # Errors
    /// Names the list that is missing or damaged.
    pub fn files(&self, bucket: &Bucket, folder: &str) -> Result<FileList> {
        let Some(listed) = self.folders.get(folder) else { return Ok(FileList::default()) };
        let key = list_key(folder, listed.list);
        let name = bucket.url(&key);
        let bytes = bucket.get_whole(&key)?.ok_or_else(|| MissingObject(name.clone()))?;
        let digest = Digest::of(&bytes);
        let damaged = || {
            format!("{name} is damaged: it has {} bytes, with digest {digest}; remove it, and {PUT_BACK}", bytes.len())
        };
        ensure!(digest == listed.list, damaged());
        let files: FileList = serde_json::from_slice(&bytes).with_context(|| format!("{name} is damaged"))?;
        for path in files.0.keys() {
            ensure!(path.split('/').all(is_name), "{name} is damaged: {path:?} is not the path of a file");
        }
        Ok(files)
    }
}

/// Calls `read` with the current catalog, and again with a newer one if an object is missing
/// because another run published the store meanwhile, which removes the objects that it replaces.
///
/// # Errors
/// Those of `read`; and if the store was published during each of [`READINGS`] calls.
pub(super) fn retry_if_published<T>(
    bucket: &Bucket,
    mut read: impl FnMut(&Option<CatalogVersion>) -> Result<T>,
) -> Result<T> {
    let digest = |version: &Option<CatalogVersion>| version.as_ref().map(|version| version.digest);
    let mut current = Catalog::read(bucket)?;
    for _ in 0..READINGS {
        match read(&current) {
            Err(error) if error.is::<MissingObject>() => {
                let newer = Catalog::read(bucket)?;
                if digest(&newer) == digest(&current) {
                    return Err(error);
                }
                current = newer;
            }
            result => return result,
        }
    }
    bail!("{} was published to while it was read, {READINGS} times: run the command again", bucket.url(""))
}

impl FileList {
    /// The bytes of the list that are put into the bucket.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).context("a list is plain data")
    }

    fn listed(&self) -> Result<FolderList> {
        let bytes = self.0.values().map(|content| content.bytes).sum();
        Ok(FolderList { list: Digest::of(&self.bytes()?), files: self.0.len() as u64, bytes })
    }
}

/// Whether a name from the bucket may be that of a file or a folder: it must not lead out of the
/// store, or be hidden.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '_']) && !name.contains(['/', '\\', '\0'])
}

/// The key of a file's object: the digest stands before the extension.
pub(super) fn key(folder: &str, path: &str, digest: Digest) -> String {
    let (stem, extension) = path.rsplit_once('.').unwrap_or((path, ""));
    if extension.is_empty() || extension.contains('/') {
        format!("{folder}/{path}-{digest}")
    } else {
        format!("{folder}/{stem}-{digest}.{extension}")
    }
}

/// The key of the list of a folder's files. It does not lie among the files of a table: query
/// engines would read it.
pub(super) fn list_key(folder: &str, digest: Digest) -> String {
    key(OWN, &format!("files/{folder}.json"), digest)
}

/// Whether nigh put this object into one of the store's folders. Such an object may be removed if
/// nothing names it.
pub(super) fn is_ours(key: &str, folders: &[&str]) -> bool {
    let Some((folder, path)) = key.split_once('/') else { return false };
    let name = path.rsplit('/').next().unwrap_or_default();
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let Some((stem, digest)) = stem.rsplit_once('-') else { return false };
    let is_table = folders.contains(&folder) || tables_of_weeks().any(|table| table.name == folder);
    let is_part = commit_of(&format!("{stem}.{extension}")).is_some();
    digest.parse::<Digest>().is_ok() && (folder == OWN || (is_table && is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_path_and_the_digest_of_the_file() {
        let digest = Digest::of(b"rows");
        let name = key("clusters", "week=2024-01-08/nigh-00001-00000.parquet", digest);
        assert_eq!(name, format!("clusters/week=2024-01-08/nigh-00001-00000-{digest}.parquet"));
        assert_eq!(
            key("_nigh", "before=2024-01-08/odd.name/file", digest),
            format!("_nigh/before=2024-01-08/odd.name/file-{digest}")
        );
        assert!(is_ours(&name, &[]) && is_ours(&list_key("clusters", digest), &[]));
        assert_eq!(list_key("clusters", digest), format!("_nigh/files/clusters-{digest}.json"));
        // Objects that a user put there, and the two objects that are replaced in place.
        for key in [
            format!("clusters/week=2024-01-08/mine-{digest}.parquet"),
            format!("notes/nigh-00001-00000-{digest}.parquet"),
            "clusters/week=2024-01-08/nigh-00001-00000.parquet".into(),
            MANIFEST.into(),
            "_nigh/lock.json".into(),
        ] {
            assert!(!is_ours(&key, &[]), "{key}");
        }
    }

    #[cfg(feature = "cloud")]
    #[test]
    fn a_store_that_is_published_meanwhile_is_read_again() {
        use crate::config::Method;
        let (bucket, _) = crate::objects::faulty::faulty(std::time::Duration::from_secs(30));
        let publish = |folder: &str| {
            let manifest = serde_json::to_string(&Manifest::new(&Method::default())).unwrap();
            let catalog = Catalog::new(manifest, &BTreeMap::from([(folder.to_owned(), FileList::default())])).unwrap();
            bucket.put(MANIFEST, catalog.bytes().unwrap()).unwrap();
        };
        // No list of a folder exists, so that reading the current catalog's one always fails.
        let list =
            |version: &Option<CatalogVersion>, folder: &str| version.as_ref().unwrap().catalog.files(&bucket, folder);
        publish("first");
        let error = retry_if_published(&bucket, |version| list(version, "first")).unwrap_err();
        assert!(error.is::<MissingObject>() && error.to_string().contains("the store is damaged"), "{error:#}");
        let mut readings = 0;
        let read = retry_if_published(&bucket, |version| {
            readings += 1;
            publish("second");
            list(version, "first")
        });
        assert_eq!((readings, read.unwrap()), (2, FileList::default()));
        let mut readings = 0;
        let error = retry_if_published(&bucket, |version| {
            let folder = version.as_ref().unwrap().catalog.folders.keys().next().unwrap().clone();
            readings += 1;
            publish(&format!("other-{readings}"));
            list(version, &folder).context("a caller's context")
        });
        let error = error.unwrap_err().to_string();
        assert!(readings == 3 && error.contains("run the command again") && !error.contains("damaged"), "{error}");
    }

    #[test]
    fn objects_that_nigh_did_not_put_are_not_removed() {
        let digest = Digest::of(b"rows");
        for key in [
            "manifest.json".to_owned(),
            "lock.json".to_owned(),
            "week=2024-01-08/notes.txt".to_owned(),
            "week=2024-01-08/clusters/shard00000.parquet".to_owned(),
            format!("week=mine/table-{digest}.parquet"),
            format!("other-store/clusters/week=2024-01-08/nigh-00001-00000-{digest}.parquet"),
            format!("evolution/retention/nigh-00001-00000-{digest}.parquet"),
        ] {
            assert!(!is_ours(&key, &[]), "{key}");
        }
        assert!(is_ours(&format!("evolution/retention/nigh-00001-00000-{digest}.parquet"), &["evolution"]));
        assert!(!is_ours(&format!("evolution/retention/all-{digest}.parquet"), &["evolution"]));
    }
}
