//! Postings: which documents hold which supershingle, so that a change can be followed without a pass over all vectors.
//!
//! A posting is one word: bits of the hash of a supershingle, and below them the number of a document that holds it. The
//! top bits of the hash tell the partition; a run has a file for each partition, in ascending order:
//!
//! ```text
//! STORE/_postings/postings.json           of which week's vectors they are, and the runs; replaced whole
//! STORE/_postings/run-DATE-KEY/part00007  heads: every 64th posting; then the postings; little-endian words
//! ```
//!
//! The first run has all documents of a week; a later week adds one of those that changed, with which small runs before
//! it are merged. Nothing is retracted: who does not hold a supershingle any more is told by its vector, which must be
//! looked at anyway, for not all bits of the hash are there. When later runs have grown to half of the first, all are
//! made anew from the vectors.
//!
//! Postings are an index of vectors, no table: without them, or with those of another week, a run goes over the vectors. So
//! they are listed after the week is committed, and what is not as it is listed is not used.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::records::{DocId, MAX_SHARDS, mix, short_hash, spread};

/// The version of their layout, and of the hash.
pub(crate) const FORMAT: u32 = 1;

/// Bits that tell the partition, at least: records are exchanged in no fewer than four partitions.
const LEAST_SHARD_BITS: u32 = 2;
/// Postings from one head to the next: 512 bytes.
const STEP: usize = 64;
/// Postings between two that are wanted which are read with them, and postings that are read at once: a call costs as
/// much as some thousand bytes.
const GAP: usize = 512;
const SPAN: usize = 1 << 15;

/// How a supershingle and a document make a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coding {
    /// Bits of the hash that tell the partition: as many as tell the shard of a document, but at least two.
    shard_bits: u32,
    /// Bits of the number of a document.
    number_bits: u32,
}

/// The runs of postings: oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostingRuns {
    /// Of all of them.
    pub coding: Coding,
    /// At least one.
    pub runs: Vec<PostingRun>,
}

/// A run, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostingRun {
    /// Its folder.
    pub(crate) folder: String,
    /// Postings of each partition: one of none has no file.
    postings: Vec<u64>,
}

impl Coding {
    /// For the documents of shards with so many rows, and as many again.
    pub fn new(rows: &[u64]) -> Coding {
        let shard_bits = rows.len().next_power_of_two().trailing_zeros().max(LEAST_SHARD_BITS);
        let most = rows.iter().copied().max().unwrap_or(0);
        Coding { shard_bits, number_bits: shard_bits + u64::BITS - (2 * most).leading_zeros() }
    }

    /// Whether the documents of shards with so many rows have numbers.
    pub fn fits(&self, rows: &[u64]) -> bool {
        let row_bits = self.number_bits - self.shard_bits;
        rows.len() <= self.partitions() && rows.iter().all(|rows| rows.checked_shr(row_bits).unwrap_or(0) == 0)
    }

    /// Partitions of every run.
    pub fn partitions(&self) -> usize {
        1 << self.shard_bits
    }

    /// The hash of a supershingle, given which of the vector it is.
    #[inline]
    pub fn hash(column: usize, supershingle: u64) -> u64 {
        spread(supershingle ^ mix(column as u64))
    }

    /// The partition of a hash.
    #[inline]
    pub fn partition(&self, hash: u64) -> u64 {
        hash >> (u64::BITS - self.shard_bits)
    }

    /// The first posting that a hash may have: its bits, without a document.
    #[inline]
    pub fn first(&self, hash: u64) -> u64 {
        hash << self.shard_bits >> self.number_bits << self.number_bits
    }

    /// The posting of a hash and a document.
    #[inline]
    pub fn posting(&self, hash: u64, doc: DocId) -> u64 {
        self.first(hash) | doc.row() << self.shard_bits | u64::from(doc.shard())
    }

    /// The document of a posting.
    #[inline]
    pub fn doc(&self, posting: u64) -> DocId {
        let number = posting & self.numbers();
        DocId::new((number & (self.partitions() as u64 - 1)) as u32, number >> self.shard_bits)
    }

    /// The bits of a posting that are those of the document.
    fn numbers(&self) -> u64 {
        (1 << self.number_bits) - 1
    }
}

impl PostingRun {
    /// Postings of all partitions.
    fn count(&self) -> u64 {
        self.postings.iter().sum()
    }
}

impl PostingRuns {
    /// Only a first run, of these postings in each partition, in the folder of that name.
    pub fn first(coding: Coding, folder: String, postings: Vec<u64>) -> PostingRuns {
        PostingRuns { coding, runs: vec![PostingRun { folder, postings }] }
    }

    /// Whether a list could have been written by this program.
    pub(crate) fn can_be(&self) -> bool {
        let Coding { shard_bits, number_bits } = self.coding;
        let most_shards = MAX_SHARDS.trailing_zeros();
        (LEAST_SHARD_BITS..=most_shards).contains(&shard_bits)
            && (shard_bits..u64::BITS).contains(&number_bits)
            && !self.runs.is_empty()
            && self.runs.iter().all(|run| run.postings.len() == self.coding.partitions())
    }

    /// A short hash of the list.
    pub fn digest(&self) -> String {
        short_hash(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// How many of the last runs a new one of so many postings is merged with: those that are at most twice as large as
    /// all behind them. A run is then merged only as often as what comes doubles it.
    pub fn to_merge(&self, postings: u64) -> usize {
        let mut sum = postings;
        let later = self.runs.iter().skip(1).rev();
        let merged = later.take_while(|run| {
            let small = run.count() <= 2 * sum;
            sum += run.count();
            small
        });
        merged.count()
    }

    /// These, and a new run in the place of the `merged` last ones.
    pub fn and(&self, folder: String, postings: Vec<u64>, merged: usize) -> PostingRuns {
        let mut runs = self.runs[..self.runs.len() - merged].to_vec();
        runs.push(PostingRun { folder, postings });
        PostingRuns { coding: self.coding, runs }
    }

    /// Whether so much came since the first run that all should be made anew.
    pub fn has_grown(&self) -> bool {
        self.runs.first().is_none_or(|first| {
            let later: u64 = self.runs[1..].iter().map(PostingRun::count).sum();
            later > first.count() / 2
        })
    }

    /// The files of a partition in a folder of postings: of each run, oldest first, where it has any.
    ///
    /// # Errors
    /// Names the file that cannot be read, or is not as it is listed.
    pub fn files(&self, folder: &Path, partition: usize) -> Result<Vec<Option<PostingFile>>> {
        let files = self.runs.iter().map(|run| {
            let postings = run.postings.get(partition).copied().unwrap_or(0);
            let open = || PostingFile::open(&file(&folder.join(&run.folder), partition), postings);
            (postings > 0).then(open).transpose()
        });
        files.collect()
    }
}

/// The file of a partition in the folder of a run.
fn file(run: &Path, partition: usize) -> PathBuf {
    run.join(format!("part{partition:05}"))
}

/// Writes the postings of a partition, which ascend, into the folder of a run.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write_postings(run: &Path, partition: usize, postings: &[u64]) -> Result<()> {
    debug_assert!(postings.is_sorted());
    if postings.is_empty() {
        return Ok(());
    }
    let path = file(run, partition);
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(run)?;
        let mut file = BufWriter::with_capacity(SPAN * 8, File::create(&path)?);
        let heads: Vec<u64> = postings.iter().copied().step_by(STEP).collect();
        // This machine is little-endian: `records` sees to it.
        file.write_all(bytemuck::cast_slice(&heads))?;
        file.write_all(bytemuck::cast_slice(postings))?;
        file.flush()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// The postings of a partition of a run. Its file is open only while it is read: a store may have more shards than a process
/// may have open files.
pub struct PostingFile {
    path: PathBuf,
    heads: Vec<u64>,
    postings: usize,
}

impl PostingFile {
    /// Opens the file at `path`, which is listed with so many postings.
    fn open(path: &Path, postings: u64) -> Result<PostingFile> {
        let failed = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        let bytes = postings.div_ceil(STEP as u64).saturating_add(postings).saturating_mul(8);
        let found = file.metadata().with_context(failed)?.len();
        ensure!(found == bytes, "{} has {found} bytes, {bytes} were expected", path.display());
        let postings = usize::try_from(postings).with_context(failed)?;
        let mut heads = vec![0; postings.div_ceil(STEP)];
        file.read_exact_at(bytemuck::cast_slice_mut(&mut heads), 0).with_context(failed)?;
        ensure!(heads.is_sorted(), "{} is damaged", path.display());
        Ok(PostingFile { path: path.to_owned(), heads, postings })
    }

    /// Calls `each` with all postings of some hashes. `firsts` are what [`Coding::first`] gives of these, ascending.
    ///
    /// # Errors
    /// Names the file that cannot be read, or is damaged.
    pub fn of(&self, coding: Coding, firsts: &[u64], mut each: impl FnMut(u64)) -> Result<()> {
        let (file, mut words, mut rest, mut from) = (self.file()?, Vec::new(), firsts, 0);
        while let Some(first) = rest.first() {
            // Blocks, from one head to the next, that may hold what is wanted; of several hashes, where they lie near each other.
            let (begin, mut end) = self.blocks(from, *first, first | coding.numbers());
            let mut together = 1;
            for next in &rest[1..] {
                let (also, to) = self.blocks(end.saturating_sub(1), *next, next | coding.numbers());
                if STEP * also.saturating_sub(end) > GAP || STEP * (to - begin) > SPAN {
                    break;
                }
                (end, together) = (to, together + 1);
            }
            self.read(&file, begin..end, &mut words)?;
            let (these, others) = rest.split_at(together);
            let mut at = 0;
            for first in these {
                at += words[at..].partition_point(|posting| posting < first);
                let of_hash = words[at..].iter().take_while(|posting| **posting <= first | coding.numbers());
                of_hash.for_each(|posting| each(*posting));
            }
            (rest, from) = (others, end.saturating_sub(1));
        }
        Ok(())
    }

    /// The blocks that may hold the postings from `first` to `last`, none of which is before the block `from`.
    fn blocks(&self, from: usize, first: u64, last: u64) -> (usize, usize) {
        // What is asked for ascends: most of it lies near what was asked for before.
        let heads = &self.heads[from..];
        let mut near = 1;
        while near < heads.len() && heads[near] <= last {
            near *= 2;
        }
        let heads = &heads[..near.min(heads.len())];
        let begin = heads.partition_point(|head| *head < first);
        let end = begin + heads[begin..].partition_point(|head| *head <= last);
        // The block before may end with some.
        (from + begin.saturating_sub(1), from + end)
    }

    /// All postings.
    ///
    /// # Errors
    /// As [`PostingFile::of`].
    pub fn all(&self) -> Result<Vec<u64>> {
        let mut words = Vec::new();
        self.read(&self.file()?, 0..self.heads.len(), &mut words)?;
        Ok(words)
    }

    fn file(&self) -> Result<File> {
        File::open(&self.path).with_context(|| format!("cannot read {}", self.path.display()))
    }

    /// Reads the postings of some blocks.
    fn read(&self, file: &File, blocks: std::ops::Range<usize>, words: &mut Vec<u64>) -> Result<()> {
        let end = (blocks.end * STEP).min(self.postings);
        words.resize(end.saturating_sub(blocks.start * STEP), 0);
        let at = 8 * (self.heads.len() + blocks.start * STEP) as u64;
        let read = file.read_exact_at(bytemuck::cast_slice_mut(words), at);
        read.with_context(|| format!("cannot read {}", self.path.display()))?;
        let heads = words.iter().step_by(STEP).eq(&self.heads[blocks.start..blocks.end.max(blocks.start)]);
        ensure!(
            heads && words.is_sorted(),
            "{} is damaged: remove the store's _postings, which are made anew",
            self.path.display()
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coding() -> Coding {
        Coding::new(&[1000, 900, 0, 17])
    }

    /// Some hashes of one partition, as their first postings, ascending.
    fn hashes(count: u64) -> Vec<u64> {
        let mut firsts: Vec<u64> = (0..count).map(|number| coding().first(mix(number))).collect();
        firsts.sort_unstable();
        firsts
    }

    #[test]
    fn a_posting_tells_its_document() {
        let coding = coding();
        assert_eq!(coding.partitions(), 4);
        for (number, doc) in [(0, 0), (1, 899), (3, 1999)].map(|(shard, row)| DocId::new(shard, row)).iter().enumerate()
        {
            let hash = Coding::hash(number, 77);
            assert_eq!(coding.doc(coding.posting(hash, *doc)), *doc);
            assert_eq!(coding.posting(hash, *doc) & !coding.numbers(), coding.first(hash));
        }
        assert_ne!(Coding::hash(0, 77), Coding::hash(1, 77), "each in its place of the vector");
        assert!(coding.fits(&[2047, 0, 0, 5]) && !coding.fits(&[2048, 0, 0, 0]) && !coding.fits(&[1; 5]));
        let one = Coding::new(&[5]);
        assert_eq!((one.partitions(), one.partition(u64::MAX)), (4, 3));
        assert_eq!(one.doc(one.posting(u64::MAX, DocId::new(0, 4))), DocId::new(0, 4));
    }

    #[test]
    fn the_postings_of_hashes_are_found_and_no_others() {
        let (folder, coding) = (tempfile::tempdir().unwrap(), coding());
        for (partition, of_hash) in [1, 3, 700].into_iter().enumerate() {
            let firsts = hashes(20_000 / of_hash);
            let mut postings: Vec<u64> =
                firsts.iter().flat_map(|first| (0..of_hash).map(move |doc| first | (mix(doc) % 4000))).collect();
            postings.sort_unstable();
            write_postings(folder.path(), partition, &postings).unwrap();
            let file = PostingFile::open(&file(folder.path(), partition), postings.len() as u64).unwrap();
            assert_eq!(file.all().unwrap(), postings);
            for step in [1, 2, 7, 90, 5000] {
                // Every other one is of no posting.
                let asked = firsts.iter().step_by(step).flat_map(|first| [*first, first + (1 << coding.number_bits)]);
                let mut asked: Vec<u64> = asked.collect();
                asked.sort_unstable();
                asked.dedup();
                let mut found = Vec::new();
                file.of(coding, &asked, |posting| found.push(posting)).unwrap();
                let has = |posting: &&u64| asked.binary_search(&(**posting & !coding.numbers())).is_ok();
                assert!(found.iter().eq(postings.iter().filter(has)), "every {step}, {of_hash} of each");
            }
        }
    }

    #[test]
    fn a_file_that_is_not_as_it_is_listed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let postings: Vec<u64> = (0..1000).map(|number| number << 40).collect();
        write_postings(folder.path(), 3, &postings).unwrap();
        let path = file(folder.path(), 3);
        let open = |postings| PostingFile::open(&path, postings).map(|file| file.all()).map(|all| all.is_ok());
        assert!(open(999).err().unwrap().to_string().contains("part00003"));
        assert!(open(1000).unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[8 * (16 + 500) + 7] ^= 0x40;
        std::fs::write(&path, &bytes).unwrap();
        assert!(!open(1000).unwrap(), "postings that do not ascend");
    }

    #[test]
    fn a_list_that_cannot_be_is_not_used() {
        let runs = |shard_bits, number_bits, partitions| PostingRuns {
            coding: Coding { shard_bits, number_bits },
            runs: vec![PostingRun { folder: "run".into(), postings: vec![1; partitions] }],
        };
        assert!(runs(2, 20, 4).can_be() && runs(16, 56, 1 << 16).can_be());
        for (shard_bits, number_bits, partitions) in
            [(1, 20, 2), (64, 20, 4), (17, 20, 1 << 17), (2, 64, 4), (2, 20, 3)]
        {
            assert!(!runs(shard_bits, number_bits, partitions).can_be(), "{shard_bits} {number_bits} {partitions}");
        }
        assert!(!PostingRuns { runs: vec![], ..runs(2, 20, 4) }.can_be());
        let folder = tempfile::tempdir().unwrap();
        let (path, huge) = (file(folder.path(), 0), u64::MAX - 5);
        std::fs::write(&path, [0; 80]).unwrap();
        assert!(PostingFile::open(&path, huge).err().unwrap().to_string().contains("80 bytes"));
    }

    #[test]
    fn small_runs_are_merged_and_many_postings_made_anew() {
        let runs = |counts: &[u64]| {
            let runs = counts.iter().map(|count| PostingRun { folder: count.to_string(), postings: vec![*count] });
            PostingRuns { coding: coding(), runs: runs.collect() }
        };
        assert_eq!(runs(&[1000]).to_merge(5000), 0, "the first run is not merged");
        assert_eq!(runs(&[1000, 100]).to_merge(10), 0);
        assert_eq!(runs(&[1000, 100]).to_merge(50), 1);
        assert_eq!(runs(&[1000, 100, 40, 20]).to_merge(10), 3);
        assert_eq!(runs(&[1000, 200, 40, 20]).to_merge(10), 2);
        let merged = runs(&[1000, 200, 40, 20]).and("new".into(), vec![70], 2);
        assert_eq!(merged.runs.iter().map(PostingRun::count).collect::<Vec<_>>(), [1000, 200, 70]);
        assert!(!runs(&[1000, 300, 200]).has_grown() && runs(&[1000, 300, 201]).has_grown());
    }
}
