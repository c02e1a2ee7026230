//! Made-up vectors as Parquet files, one per shard: the input of the cluster stage, without crawls
//! and pages before it.
//!
//! A file has the columns `doc`, `vector` and `supershingles` of the table `features`, and
//! `features` if they are wanted. Supershingles are six little-endian words per row. All columns
//! are plain-encoded, without compression and dictionaries, and here without statistics except for
//! `doc`. A Parquet page has 20,000 rows, nearly 1 MiB.
//!
//! `dataset.json` describes the files. It is written first, and a file gets its name only when it
//! is complete, so an interrupted dataset can be completed by the same call.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fmt, io};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::features::{FEATURES, features};
use super::vectors::{GENERATION, MadeVectors, Noise, WIDTH};
use crate::operators::scan::{VectorFile, VectorFiles};
use crate::records::{DocId, FeatureBits, MAX_SHARDS, fold};
use crate::state::replace;
use crate::tables::{Table, Writer};

/// Shards of the vectors, as in a job.
pub const SHARDS: u32 = 64;

/// The files of these shards, as the cluster stage reads them.
pub fn files(dataset: &Dataset, shards: impl Iterator<Item = u32>) -> VectorFiles {
    let rows = dataset.rows();
    let file = |shard: u32| VectorFile::new(dataset.path(shard).into(), shard, rows[shard as usize]);
    VectorFiles::new(shards.map(file).collect(), WIDTH)
}

/// Documents between two reports of progress.
const STEP: u64 = 1 << 16;

/// A folder of made-up vectors.
#[derive(Debug)]
pub struct Dataset {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The number of documents in all files.
    pub documents: u64,
    /// The number of files.
    pub shards: u32,
}

/// The parameters of a dataset.
#[derive(Clone, Copy, Debug)]
pub struct DatasetPlan {
    /// The number of documents.
    pub documents: u64,
    /// The number of files.
    pub shards: u32,
    /// The supershingles that documents outside clusters borrow.
    pub noise: Noise,
    /// The share of documents that changed since the first week: 0 for the first week itself.
    pub change: f64,
    /// Whether documents have features: then the share of vectors that resemble no other vector of
    /// their cluster.
    pub unlike: Option<f64>,
}

/// The content of `dataset.json`.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    documents: u64,
    shards: u32,
    noise: Noise,
    change: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unlike: Option<f64>,
    generation: u32,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Description { documents, shards, noise, change, unlike, generation } = self;
        let features = unlike.map_or_else(String::new, |unlike| format!(" with features, {unlike} unlike,"));
        write!(
            f,
            "{documents} documents{features} in {shards} shards with the noise {noise}, {change} of them changed, generation {generation}"
        )
    }
}

/// A row of a file.
#[derive(Table)]
#[table(name = "vectors")]
struct SyntheticRow {
    #[column(unique, random)]
    doc: i64,
    #[column(unique, random, unordered)]
    vector: i64,
    #[column(unique, random, unordered)]
    supershingles: [u8; size_of::<[u64; WIDTH]>()],
}

/// A row of a file with features.
#[derive(Table)]
#[table(name = "sketches")]
struct SketchRow {
    #[column(unique, random)]
    doc: i64,
    #[column(unique, random, unordered)]
    vector: i64,
    #[column(unique, random, unordered)]
    supershingles: [u8; size_of::<[u64; WIDTH]>()],
    #[column(unique, random, unordered)]
    features: [u8; size_of::<[FeatureBits; FEATURES]>()],
}

impl SyntheticRow {
    fn new(doc: i64, supershingles: [u64; WIDTH]) -> SyntheticRow {
        // This machine is little-endian: `records` does not compile for others.
        SyntheticRow { doc, vector: fold(&supershingles) as i64, supershingles: bytemuck::cast(supershingles) }
    }
}

impl Dataset {
    /// Writes the files of a dataset, `threads` at a time; files of the same dataset that the
    /// folder already has are kept. Calls `progress` with the number of documents added to those
    /// done.
    ///
    /// # Errors
    /// If the folder has other files, or a file cannot be written.
    pub fn make(folder: &Path, plan: &DatasetPlan, threads: usize, progress: impl Fn(u64) + Sync) -> Result<Dataset> {
        let DatasetPlan { documents, shards, noise, change, unlike } = *plan;
        if !(1..=MAX_SHARDS).contains(&shards) {
            bail!("a dataset has from 1 to {MAX_SHARDS} shards, not {shards}");
        }
        describe(folder, &Description { documents, shards, noise, change, unlike, generation: GENERATION })?;
        let dataset = Dataset { folder: folder.to_owned(), documents, shards };
        let synthetic = MadeVectors::new(documents, noise).later(change);
        let next = AtomicU32::new(0);
        let work = || -> Result<()> {
            loop {
                let shard = next.fetch_add(1, Ordering::Relaxed);
                if shard >= shards {
                    return Ok(());
                }
                // After a failure the other threads stop. There are at most 2^16 shards, so their
                // additions do not overflow.
                let written = match unlike {
                    None => dataset
                        .write(shard, &progress, |doc, document| SyntheticRow::new(doc, synthetic.vector(document))),
                    Some(unlike) => dataset.write(shard, &progress, |doc, document| {
                        let supershingles = synthetic.vector(document);
                        let features = features(synthetic.cluster(document), &supershingles, unlike);
                        let SyntheticRow { doc, vector, supershingles } = SyntheticRow::new(doc, supershingles);
                        SketchRow { doc, vector, supershingles, features: bytemuck::cast(features) }
                    }),
                };
                written.inspect_err(|_| next.store(shards, Ordering::Relaxed))?;
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            let mut results = threads.into_iter().map(|thread| thread.join());
            results.try_for_each(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        Ok(dataset)
    }

    /// The path of the file of a shard.
    pub fn path(&self, shard: u32) -> PathBuf {
        self.folder.join(format!("shard{shard:05}.parquet"))
    }

    /// The number of documents of each shard.
    pub fn rows(&self) -> Vec<u64> {
        (0..self.shards).map(|shard| self.first(shard + 1) - self.first(shard)).collect()
    }

    /// Drops the files from the page cache, so that the next read comes from the disk.
    ///
    /// # Errors
    /// If a file cannot be opened, or the system cannot do it.
    pub fn forget(&self) -> Result<()> {
        for shard in 0..self.shards {
            let path = self.path(shard);
            // Only pages that are on the disk can be dropped.
            let drop = || File::open(&path).and_then(|file| file.sync_all().and_then(|()| forget(&file)));
            drop().with_context(|| format!("cannot drop {} from the page cache", path.display()))?;
        }
        Ok(())
    }

    /// The first document of a shard. Shards are ranges of documents, and their lengths differ by
    /// one at most.
    fn first(&self, shard: u32) -> u64 {
        (u128::from(shard) * u128::from(self.documents) / u128::from(self.shards)) as u64
    }

    fn write<T: Table>(&self, shard: u32, progress: &impl Fn(u64), row: impl Fn(i64, u64) -> T) -> Result<()> {
        let (path, range) = (self.path(shard), self.first(shard)..self.first(shard + 1));
        if path.exists() {
            progress(range.end - range.start);
            return Ok(());
        }
        let mut writer = Writer::create(&path)?;
        for start in range.clone().step_by(STEP as usize) {
            let end = range.end.min(start + STEP);
            for document in start..end {
                let doc = DocId::new(shard, document - range.start).to_table();
                writer.push(row(doc, document))?;
            }
            progress(end - start);
        }
        writer.finish()?;
        Ok(())
    }
}

/// Checks that a folder belongs to this dataset; a missing or empty folder gets its `dataset.json`.
fn describe(folder: &Path, wanted: &Description) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let path = folder.join("dataset.json");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut entries = folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))?;
            if entries.next().is_some() {
                bail!(
                    "{} is not empty and has no dataset.json: give a folder of its own to the vectors",
                    folder.display()
                );
            }
            let described = serde_json::to_vec_pretty(wanted).context("a description is plain data")?;
            return replace(&path, &described);
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let present: Description = serde_json::from_slice(&text)
        .with_context(|| format!("{} does not describe vectors of this program", path.display()))?;
    if present != *wanted {
        bail!("{} holds {present}, not {wanted}: give another folder", folder.display());
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn forget(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

#[cfg(not(target_os = "linux"))]
fn forget(_: &File) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system cannot do it"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use arrow_array::{Array, FixedSizeBinaryArray};
    use parquet::basic::{Compression, Encoding};
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::tables::{Scan, field};

    fn make(folder: &Path, documents: u64, shards: u32, threads: usize) -> Result<Dataset> {
        let noise = Noise::default();
        let done = AtomicU64::new(0);
        let progress = |more| _ = done.fetch_add(more, Ordering::Relaxed);
        let plan = DatasetPlan { documents, shards, noise, change: 0.0, unlike: None };
        let dataset = Dataset::make(folder, &plan, threads, progress)?;
        assert_eq!(done.into_inner(), documents);
        Ok(dataset)
    }

    fn read(dataset: &Dataset) -> Vec<[u64; WIDTH]> {
        let mut vectors = Vec::new();
        for (shard, rows) in (0..dataset.shards).zip(dataset.rows()) {
            let before = vectors.len() as u64;
            let scan = Scan::open(dataset.path(shard), &["supershingles"]).unwrap();
            scan.for_each(|batch| {
                let column: &FixedSizeBinaryArray = field(batch, "supershingles")?;
                assert_eq!(column.value_length(), 48);
                for row in 0..column.len() {
                    let words = column.value(row).as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
                    vectors.push(<[u64; WIDTH]>::try_from(words.collect::<Vec<_>>()).unwrap());
                }
                Ok(())
            })
            .unwrap();
            assert_eq!(vectors.len() as u64 - before, rows);
        }
        vectors
    }

    #[test]
    fn vectors_are_read_as_they_were_made() {
        for (documents, shards, threads) in [(0, 1, 1), (5, 8, 3), (10_000, 7, 2), (70_000, 1, 0)] {
            let folder = tempfile::tempdir().unwrap();
            let dataset = make(folder.path(), documents, shards, threads).unwrap();
            let synthetic = MadeVectors::new(documents, Noise::default());
            let expected: Vec<_> = (0..documents).map(|document| synthetic.vector(document)).collect();
            assert!(read(&dataset) == expected, "{documents} documents in {shards} shards");
        }
    }

    #[test]
    fn vectors_are_plain_in_large_pages() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = make(folder.path(), 140_000, 1, 1).unwrap();
        let file = SerializedFileReader::new(File::open(dataset.path(0)).unwrap()).unwrap();
        let groups: Vec<i64> = file.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [1 << 17, 140_000 - (1 << 17)]);
        for column in 0..3 {
            let described = file.metadata().row_group(0).column(column);
            assert_eq!(described.compression(), Compression::UNCOMPRESSED);
            assert!(described.encodings().all(|encoding| matches!(encoding, Encoding::PLAIN | Encoding::RLE)));
            assert_eq!(described.statistics().is_some(), column == 0, "documents are looked up by order");
            let pages = file.get_row_group(0).unwrap().get_column_page_reader(column).unwrap().count();
            assert_eq!(pages, 7);
        }
        assert!(
            dataset.path(0).metadata().unwrap().len() < 140_000 * 64 + 16_384,
            "the values take nearly all of the file"
        );
    }

    #[test]
    fn a_dataset_is_made_once_and_completed_if_a_file_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = make(folder.path(), 1000, 4, 2).unwrap();
        let whole = read(&dataset);
        let kept = dataset.path(0).metadata().unwrap().modified().unwrap();
        std::fs::remove_file(dataset.path(3)).unwrap();
        std::fs::write(folder.path().join("shard00003.parquet.tmp"), "half a file").unwrap();
        assert!(read(&make(folder.path(), 1000, 4, 2).unwrap()) == whole);
        assert_eq!(dataset.path(0).metadata().unwrap().modified().unwrap(), kept);
        dataset.forget().unwrap();
        assert!(read(&dataset) == whole);
    }

    #[test]
    fn a_folder_with_other_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), 1000, 4, 1).unwrap();
        let error = |documents, shards| format!("{:#}", make(folder.path(), documents, shards, 1).unwrap_err());
        assert!(error(999, 4).contains("holds 1000 documents in 4 shards"), "{}", error(999, 4));
        assert!(error(1000, 0).contains("from 1 to 65536 shards"), "{}", error(1000, 0));
        std::fs::write(folder.path().join("dataset.json"), "{}").unwrap();
        assert!(error(1000, 4).contains("does not describe vectors"), "{}", error(1000, 4));
        std::fs::remove_file(folder.path().join("dataset.json")).unwrap();
        assert!(error(1000, 4).contains("not empty"), "{}", error(1000, 4));
        assert!(Path::new(folder.path()).join("shard00003.parquet").exists());
    }
}
