//! External sort of rows: bytes in the order of keys of a fixed size, in bounded memory.
//!
//! Rows lie one after the other in large buffers, a long one in a buffer of its own, and only keys
//! and places are sorted: a row costs its bytes, its key and 8 bytes more, and no allocation of its
//! own. When keys and rows exceed the budget they are written to a *run*, a file that is sorted. At
//! the end the runs and what is in memory are merged. When there are 64 runs they are merged into
//! one, so the number of open files is bounded. Rows with equal keys come in no particular order.
//!
//! Records that are values and not bytes are sorted by [`external_sort`](super::external_sort).

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytemuck::Pod;

use super::external_sort::{MOST_RUNS, Run, create, unread};
use crate::kernels::memory::advise_huge_pages;

/// The bytes of each of the first buffers.
const CHUNK_BYTES: usize = 256 << 10;
/// How many buffers are of that size.
const SMALL_CHUNKS: usize = 8;
/// The bytes of a later buffer, which asks for huge pages.
const LARGE_CHUNK_BYTES: usize = 4 << 20;
/// A row with more bytes has a buffer of its own, as long as the row: so at most this much of
/// another buffer stays unused.
const OWN_BYTES: usize = CHUNK_BYTES / 8;

/// Where a row is.
#[derive(Clone, Copy)]
struct RowPlace {
    chunk: u32,
    /// Where in the chunk its length is, in 4 bytes, with the row behind it.
    offset: u32,
}

/// Rows in memory.
#[derive(Default)]
struct Arena {
    chunks: Vec<Vec<u8>>,
    /// The one to which rows are added.
    open: Option<usize>,
}

impl Arena {
    /// Adds a row that is given as some slices of bytes, one after the other.
    fn push(&mut self, row: &[&[u8]]) -> Result<RowPlace> {
        let length: usize = row.iter().map(|bytes| bytes.len()).sum();
        let head = u32::try_from(length).context("a row has 4 GiB or more")?.to_le_bytes();
        let needed = head.len() + length;
        let number = self.chunk_for(needed);
        let chunk = &mut self.chunks[number];
        // A row begins at 0, or within the first `LARGE_CHUNK_BYTES`.
        let place = RowPlace { chunk: number as u32, offset: chunk.len() as u32 };
        chunk.extend_from_slice(&head);
        row.iter().for_each(|bytes| chunk.extend_from_slice(bytes));
        Ok(place)
    }

    /// The number of a chunk with room for so many bytes.
    fn chunk_for(&mut self, needed: usize) -> usize {
        let next = self.chunks.len();
        if needed > OWN_BYTES {
            self.chunks.push(Vec::with_capacity(needed));
            return next;
        }
        let has_room = |chunk: &usize| self.chunks[*chunk].capacity() - self.chunks[*chunk].len() >= needed;
        let open = self.open.filter(has_room).unwrap_or(next);
        if open == next {
            let is_large = next >= SMALL_CHUNKS;
            let mut chunk = Vec::with_capacity(if is_large { LARGE_CHUNK_BYTES } else { CHUNK_BYTES });
            if is_large {
                advise_huge_pages(chunk.spare_capacity_mut());
            }
            self.chunks.push(chunk);
        }
        self.open = Some(open);
        open
    }

    fn row(&self, RowPlace { chunk, offset }: RowPlace) -> &[u8] {
        let (head, rest) = self.chunks[chunk as usize][offset as usize..].split_at(4);
        &rest[..u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize]
    }
}

/// Collects rows, then returns them in the order of their keys.
///
/// ```
/// use nigh_kernels::structures::RowSort;
///
/// # let folder = tempfile::tempdir()?;
/// // A budget of one byte: every row becomes a run.
/// let mut sort = RowSort::new(&folder.path().join("rows"), 1);
/// for (key, row) in [(5u64, "five"), (2, "two"), (3, "three")] {
///     sort.push(key, &[row.as_bytes()])?;
/// }
/// let mut sorted = sort.sorted()?;
/// assert_eq!((sorted.key(), sorted.row()), (Some(2), &b"two"[..]));
/// sorted.advance()?;
/// assert_eq!((sorted.key(), sorted.row()), (Some(3), &b"three"[..]));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct RowSort<K> {
    /// The path of a run, without the extension that numbers it.
    prefix: PathBuf,
    /// Bytes of keys and rows at which they are written to a run.
    budget: usize,
    arena: Arena,
    keys: Vec<(K, RowPlace)>,
    bytes: usize,
    runs: Vec<Run>,
    /// How often runs were merged into one.
    merges: usize,
}

impl<K: Pod + Ord> RowSort<K> {
    /// A sort that keeps about `budget` bytes in memory, and writes the rest to runs: files named
    /// `prefix` with an extension that numbers them. Their folder is created with the first run.
    pub fn new(prefix: &Path, budget: u64) -> RowSort<K> {
        RowSort {
            prefix: prefix.to_owned(),
            budget: budget as usize,
            arena: Arena::default(),
            keys: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
            merges: 0,
        }
    }

    /// Adds a row that is given as some slices of bytes, one after the other; writes a run if the
    /// budget is exceeded.
    ///
    /// # Errors
    /// If a run cannot be written: names its file. If the row has 4 GiB or more.
    pub fn push(&mut self, key: K, row: &[&[u8]]) -> Result<()> {
        let place = self.arena.push(row)?;
        self.keys.push((key, place));
        self.bytes += size_of::<(K, RowPlace)>() + 4 + row.iter().map(|bytes| bytes.len()).sum::<usize>();
        if self.bytes > self.budget { self.spill() } else { Ok(()) }
    }

    /// Writes what is in memory to a new run.
    fn spill(&mut self) -> Result<()> {
        self.bytes = 0;
        let path = self.prefix.with_extension(format!("{}-{}.run", self.merges, self.runs.len()));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let memory = self.take_memory();
        self.runs.push(write_run(path, SortedRows::of(vec![memory])?)?);
        if self.runs.len() >= MOST_RUNS { self.merge() } else { Ok(()) }
    }

    /// Merges all runs into one: each run costs an open file and a buffer while rows are returned.
    fn merge(&mut self) -> Result<()> {
        self.merges += 1;
        let path = self.prefix.with_extension(format!("merged{}.run", self.merges));
        let runs = std::mem::take(&mut self.runs).into_iter().map(RowStream::run).collect::<Result<_>>()?;
        self.runs.push(write_run(path, SortedRows::<K>::of(runs)?)?);
        Ok(())
    }

    fn take_memory(&mut self) -> RowStream<K> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.sort_unstable_by_key(|(key, _)| *key);
        RowStream::Memory { arena: std::mem::take(&mut self.arena), rest: keys.into_iter(), head: None }
    }

    /// Returns all rows in order. The runs are removed when [`SortedRows`] is dropped.
    ///
    /// # Errors
    /// If a run cannot be read: names its file.
    pub fn sorted(mut self) -> Result<SortedRows<K>> {
        let mut sources = vec![self.take_memory()];
        for run in std::mem::take(&mut self.runs) {
            sources.push(RowStream::run(run)?);
        }
        SortedRows::of(sources)
    }
}

/// Writes rows to a file: for each its key, its length in 4 bytes, and its bytes.
fn write_run<K: Pod + Ord>(path: PathBuf, mut rows: SortedRows<K>) -> Result<Run> {
    let failed = || format!("cannot write {}", path.display());
    let mut file = BufWriter::with_capacity(1 << 20, create(&path).with_context(failed)?);
    let mut records = 0;
    while let Some(key) = rows.key() {
        let row = rows.row();
        let parts = [bytemuck::bytes_of(&key), &(row.len() as u32).to_le_bytes(), row];
        parts.into_iter().try_for_each(|part| file.write_all(part)).with_context(failed)?;
        records += 1;
        rows.advance()?;
    }
    file.flush().with_context(failed)?;
    Ok(Run { path, records })
}

/// Rows in the order of their keys: see [`RowSort::sorted`].
pub struct SortedRows<K> {
    sources: Vec<RowStream<K>>,
    /// The source of the row at hand; `None` at the end.
    at: Option<usize>,
}

/// Sorted rows: the ones that stayed in memory, or a run.
enum RowStream<K> {
    Memory {
        arena: Arena,
        rest: std::vec::IntoIter<(K, RowPlace)>,
        head: Option<(K, RowPlace)>,
    },
    /// `left` rows come after the one at hand.
    Run {
        file: BufReader<File>,
        path: PathBuf,
        left: u64,
        key: Option<K>,
        row: Vec<u8>,
    },
}

impl<K: Pod + Ord> RowStream<K> {
    fn run(Run { path, records: left }: Run) -> Result<RowStream<K>> {
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(RowStream::Run { file: BufReader::with_capacity(1 << 18, file), path, left, key: None, row: Vec::new() })
    }

    fn key(&self) -> Option<K> {
        match self {
            RowStream::Memory { head, .. } => head.map(|(key, _)| key),
            RowStream::Run { key, .. } => *key,
        }
    }

    fn row(&self) -> &[u8] {
        match self {
            RowStream::Memory { arena, head, .. } => head.map_or(&[], |(_, place)| arena.row(place)),
            RowStream::Run { row, .. } => row,
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            RowStream::Memory { rest, head, .. } => *head = rest.next(),
            RowStream::Run { left: 0, key, .. } => *key = None,
            RowStream::Run { file, path, left, key, row } => {
                *left -= 1;
                let mut read = || -> std::io::Result<K> {
                    let (mut next, mut length) = (K::zeroed(), [0; 4]);
                    file.read_exact(bytemuck::bytes_of_mut(&mut next))?;
                    file.read_exact(&mut length)?;
                    row.resize(u32::from_le_bytes(length) as usize, 0);
                    file.read_exact(row)?;
                    Ok(next)
                };
                *key = Some(read().map_err(|error| unread(error, path))?);
            }
        }
        Ok(())
    }
}

impl<K: Pod + Ord> SortedRows<K> {
    fn of(mut sources: Vec<RowStream<K>>) -> Result<SortedRows<K>> {
        sources.iter_mut().try_for_each(RowStream::advance)?;
        let mut rows = SortedRows { sources, at: None };
        rows.find();
        Ok(rows)
    }

    /// Finds the smallest key. There are at most 65 sources: a search through all is faster than a
    /// heap.
    fn find(&mut self) {
        let keys = self.sources.iter().enumerate().filter_map(|(number, source)| Some((source.key()?, number)));
        self.at = keys.min().map(|(_, number)| number);
    }

    /// The key of the row at hand; `None` at the end.
    pub fn key(&self) -> Option<K> {
        self.sources[self.at?].key()
    }

    /// The row at hand; empty at the end.
    pub fn row(&self) -> &[u8] {
        self.at.map_or(&[], |at| self.sources[at].row())
    }

    /// Goes to the next row.
    ///
    /// # Errors
    /// If a run cannot be read, or ends too early: names its file.
    pub fn advance(&mut self) -> Result<()> {
        if let Some(at) = self.at {
            self.sources[at].advance()?;
            self.find();
        }
        Ok(())
    }
}

impl<K> Drop for SortedRows<K> {
    fn drop(&mut self) {
        for source in &self.sources {
            if let RowStream::Run { path, .. } = source {
                // A run that cannot be removed now is removed when the week starts again, or with
                // the week's folder.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    /// Rows of many lengths: none, some, and more than a buffer has.
    fn made(number: u64) -> ([u64; 2], Vec<u8>) {
        let length = match number {
            17 => CHUNK_BYTES + 3,
            18 => CHUNK_BYTES - 4,
            19 => OWN_BYTES - 4,
            20 => OWN_BYTES - 3,
            _ => (mix(number) % 900) as usize,
        };
        ([mix(number) % 300, number], vec![number as u8; length])
    }

    fn sort_of(prefix: &Path, budget: u64) -> RowSort<[u64; 2]> {
        let mut sort = RowSort::new(prefix, budget);
        for (key, row) in (0..1000).map(made) {
            let (first, rest) = row.split_at(row.len() / 3);
            sort.push(key, &[first, rest]).unwrap();
        }
        sort
    }

    #[test]
    fn rows_come_in_the_order_of_their_keys_whatever_the_memory() {
        let mut wanted: Vec<_> = (0..1000).map(made).collect();
        wanted.sort();
        for (budget, least, most) in [(u64::MAX, 0, 0), (50_000, 5, 60), (2_000, 1, 64)] {
            let folder = tempfile::tempdir().unwrap();
            let sort = sort_of(&folder.path().join("spill/wave"), budget);
            assert!((least..=most).contains(&sort.runs.len()), "{}", sort.runs.len());
            let mut sorted = sort.sorted().unwrap();
            let mut all = Vec::new();
            while let Some(key) = sorted.key() {
                all.push((key, sorted.row().to_vec()));
                sorted.advance().unwrap();
            }
            sorted.advance().unwrap();
            assert_eq!((sorted.key(), sorted.row()), (None, &[][..]));
            assert!(all == wanted, "{budget}");
            drop(sorted);
            let left = std::fs::read_dir(folder.path().join("spill")).map_or(0, |files| files.count());
            assert_eq!(left, 0, "runs are removed");
        }
    }

    #[test]
    fn little_more_memory_is_taken_than_rows_have_bytes() {
        for lengths in
            [[100, CHUNK_BYTES + 1], [100, OWN_BYTES - 4], [100, OWN_BYTES - 3], [CHUNK_BYTES / 2, 0], [1, 2]]
        {
            let (mut arena, mut bytes) = (Arena::default(), 0);
            for length in lengths.into_iter().cycle().take(400) {
                let row = vec![7; length];
                let place = arena.push(&[&row]).unwrap();
                assert!(arena.row(place) == row);
                bytes += 4 + length;
            }
            // Behind its rows the open buffer has not been written to: no memory is taken there,
            // except the rest of a huge page.
            let is_open = |number: usize| arena.open == Some(number);
            let taken =
                |(number, chunk): (usize, &Vec<u8>)| if is_open(number) { chunk.len() } else { chunk.capacity() };
            let taken: usize = arena.chunks.iter().enumerate().map(taken).sum();
            assert!(taken <= bytes + bytes / 7 + CHUNK_BYTES, "{lengths:?}: {taken} of {bytes}");
        }
    }

    #[test]
    fn without_rows_there_is_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let sorted = RowSort::<u64>::new(&folder.path().join("none"), 0).sorted().unwrap();
        assert_eq!((sorted.key(), sorted.row()), (None, &[][..]));
    }

    #[test]
    fn a_run_that_is_cut_short_is_named_wherever_it_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let mut sort = RowSort::new(&folder.path().join("made"), u64::MAX);
        [(1u64, "one"), (2, "two")].iter().for_each(|(key, row)| sort.push(*key, &[row.as_bytes()]).unwrap());
        let records = write_run(run.clone(), sort.sorted().unwrap()).unwrap().records;
        let bytes = std::fs::read(&run).unwrap();
        assert_eq!((records, bytes.len()), (2, 2 * (8 + 4 + 3)));
        for cut in 0..bytes.len() {
            std::fs::write(&run, &bytes[..cut]).unwrap();
            let mut rows = 0;
            let source = RowStream::run(Run { path: run.clone(), records }).unwrap();
            let end = SortedRows::<u64>::of(vec![source]).and_then(|mut sorted| {
                while sorted.key().is_some() {
                    rows += 1;
                    sorted.advance()?;
                }
                Ok(())
            });
            let error = format!("{:#}", end.unwrap_err());
            assert!(error.contains("run was changed while it was in use"), "{cut}: {error}");
            assert_eq!(rows, cut / 15, "{cut}");
        }
    }
}
