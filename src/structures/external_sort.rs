//! Records in order, whatever their number: sorted runs on disk, merged.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record that can be put in order.
pub trait Sortable: Serialize + DeserializeOwned {
    /// What it is ordered by.
    type Key: Ord;

    /// Its place in the order.
    fn key(&self) -> Self::Key;

    /// About how many bytes it takes in memory.
    fn weight(&self) -> usize;
}

/// Collects records, and gives them back in the order of their keys.
pub struct ExternalSort<T> {
    /// The name of a run, up to its number.
    prefix: PathBuf,
    budget: usize,
    records: Vec<T>,
    bytes: usize,
    runs: Vec<PathBuf>,
    merges: usize,
}

/// Runs that are merged into one before there are more.
const MOST_RUNS: usize = 64;

impl<T: Sortable> ExternalSort<T> {
    /// A sorter that holds about `budget` bytes in memory, and puts the rest into files named `prefix` and a number.
    pub fn new(prefix: &Path, budget: u64) -> ExternalSort<T> {
        ExternalSort {
            prefix: prefix.to_owned(),
            budget: budget as usize,
            records: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
            merges: 0,
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, record: T) -> Result<()> {
        self.bytes += record.weight();
        self.records.push(record);
        if self.bytes > self.budget { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<()> {
        let path = self.prefix.with_extension(format!("{}-{}.run", self.merges, self.runs.len()));
        let failed = || format!("cannot write {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(failed)?;
        }
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).with_context(failed)?);
        self.sort();
        let mut buffer = Vec::new();
        for record in self.records.drain(..) {
            buffer = write(&record, buffer, &mut file).with_context(failed)?;
        }
        file.flush().with_context(failed)?;
        self.runs.push(path);
        self.bytes = 0;
        if self.runs.len() >= MOST_RUNS { self.merge() } else { Ok(()) }
    }

    /// Merges all runs into one: each is an open file and a buffer when the records are given back.
    fn merge(&mut self) -> Result<()> {
        self.merges += 1;
        let path = self.prefix.with_extension(format!("merged{}.run", self.merges));
        let failed = || format!("cannot write {}", path.display());
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).with_context(failed)?);
        let mut sorted = Sorted::<T>::open(Vec::new(), std::mem::take(&mut self.runs))?;
        let mut buffer = Vec::new();
        while let Some(record) = sorted.next()? {
            buffer = write(&record, buffer, &mut file).with_context(failed)?;
        }
        file.flush().with_context(failed)?;
        self.runs.push(path);
        Ok(())
    }

    fn sort(&mut self) {
        self.records.sort_unstable_by_key(T::key);
    }

    /// All records in order. The runs are removed as the iterator is dropped.
    ///
    /// # Errors
    /// Names the run that cannot be read.
    pub fn sorted(mut self) -> Result<Sorted<T>> {
        self.sort();
        Sorted::open(std::mem::take(&mut self.records), std::mem::take(&mut self.runs))
    }
}

/// Writes a record behind its length; gives the buffer back, empty.
fn write<T: Serialize>(record: &T, buffer: Vec<u8>, file: &mut impl Write) -> std::io::Result<Vec<u8>> {
    let mut buffer = postcard::to_extend(record, buffer).map_err(std::io::Error::other)?;
    file.write_all(&(buffer.len() as u32).to_le_bytes())?;
    file.write_all(&buffer)?;
    buffer.clear();
    Ok(buffer)
}

/// Records in order: see [`ExternalSort::sorted`].
pub struct Sorted<T> {
    heads: Vec<Option<T>>,
    sources: Vec<Source<T>>,
    runs: Vec<PathBuf>,
}

enum Source<T> {
    Memory(std::vec::IntoIter<T>),
    Run(BufReader<File>, PathBuf),
}

impl<T: Sortable> Source<T> {
    fn next(&mut self) -> Result<Option<T>> {
        match self {
            Source::Memory(records) => Ok(records.next()),
            Source::Run(file, path) => {
                let mut length = [0; 4];
                match file.read_exact(&mut length) {
                    Ok(()) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
                    Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
                }
                let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
                file.read_exact(&mut bytes).with_context(|| format!("{} is cut short", path.display()))?;
                postcard::from_bytes(&bytes).map(Some).with_context(|| format!("{} is damaged", path.display()))
            }
        }
    }
}

impl<T: Sortable> Sorted<T> {
    fn open(records: Vec<T>, runs: Vec<PathBuf>) -> Result<Sorted<T>> {
        let mut sorted = Sorted { heads: Vec::new(), sources: vec![Source::Memory(records.into_iter())], runs };
        for path in &sorted.runs {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            sorted.sources.push(Source::Run(BufReader::with_capacity(1 << 18, file), path.clone()));
        }
        for source in &mut sorted.sources {
            sorted.heads.push(source.next()?);
        }
        Ok(sorted)
    }

    /// The next record.
    ///
    /// # Errors
    /// Names the run that cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<T>> {
        // Few runs: a linear search for the smallest head beats keeping a heap.
        let heads = self.heads.iter().enumerate();
        let smallest = heads.filter_map(|(at, head)| Some((head.as_ref()?.key(), at))).min();
        let Some((_, at)) = smallest else { return Ok(None) };
        let next = self.sources[at].next()?;
        Ok(std::mem::replace(&mut self.heads[at], next))
    }
}

impl<T> Drop for Sorted<T> {
    fn drop(&mut self) {
        for run in &self.runs {
            // A run that stays is removed when the week is begun again, or with the week's folder.
            let _ = std::fs::remove_file(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Sketch;
    use crate::operators::ingest::Capture;
    use crate::records::{UrlHash, mix};

    fn answer(i: u64) -> Capture {
        let url = format!("http://h/{}", mix(i) % 500);
        Capture {
            hash: UrlHash::of(&url),
            file: (i % 3) as u32,
            ordinal: i,
            host: "h".into(),
            url,
            ip: None,
            fetched: Some(-1),
            status: 200,
            media_type: "text/html".into(),
            bytes: 1,
            checksum: i.into(),
            words: 1,
            title: String::new(),
            offset: 0,
            cut: false,
            sketch: Sketch { supershingles: vec![i; 6], features: vec![i as u32; 84] },
            links: vec!["http://h/".into(); (i % 5) as usize],
        }
    }

    fn sorted(budget: u64) -> (Vec<String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = ExternalSort::new(&folder.path().join("spill/wave"), budget);
        (0..1000).for_each(|i| sorter.push(answer(i)).unwrap());
        let runs = sorter.runs.len();
        let mut sorted = sorter.sorted().unwrap();
        let mut all = Vec::new();
        while let Some(answer) = sorted.next().unwrap() {
            all.push(format!("{answer:?}"));
        }
        drop(sorted);
        let left = std::fs::read_dir(folder.path().join("spill")).map_or(0, |files| files.count());
        assert_eq!(left, 0, "runs are removed");
        (all, runs)
    }

    #[test]
    fn the_order_does_not_depend_on_memory() {
        let (in_memory, runs) = sorted(u64::MAX);
        assert_eq!((runs, in_memory.len()), (0, 1000));
        // A few runs, and so many that they were merged.
        for (budget, least, most) in [(50_000, 5, 60), (2_000, 1, 64)] {
            let (spilled, runs) = sorted(budget);
            assert!((least..=most).contains(&runs), "{runs}");
            assert_eq!(spilled, in_memory);
        }
    }
}
