//! Postings: an inverted index from supershingles to the documents that have them. With it a delta
//! finds the documents affected by a change without a scan of all vectors.
//!
//! A posting is one 64-bit word: bits of the hash of a supershingle, and below them the number of a
//! document that has it. The top bits of the hash select the partition, and the word does not
//! repeat them:
//!
//! ```text
//! hash       pppphhhhhhhhhhhhhhhh…                  p: partition (`shard_bits` bits), h: further bits of the hash
//! posting    hhhhhhhhhhhhhhhh rrrrrrrrrrrr ssss     r: row, s: shard of the document (`number_bits` bits together)
//! ```
//!
//! Postings are stored in runs. A run is a folder with one file for each partition that has
//! postings:
//!
//! ```text
//! STORE/_nigh/postings/postings.json           the week that the postings belong to, and the list of runs; replaced atomically
//! STORE/_nigh/postings/run-DATE-KEY/part00007  heads (every 64th posting), checksums, then all postings, ascending
//! ```
//!
//! All are little-endian words. To look up a hash, search the heads, which are in memory, and read
//! only the blocks of 64 postings that can have it. Each block has a checksum (XXH3-64), which
//! every read compares.
//!
//! The first run has all documents of a week. Each later week adds a run with the changed
//! documents, and merges small earlier runs into it. Nothing is retracted. A document that no
//! longer has a supershingle is recognized by its vector, which must be read anyway, because a
//! posting does not have all bits of the hash. When the later runs together exceed half of the
//! first, the index is made again from the vectors.
//!
//! Postings can always be made again from the vectors. Without valid postings of the last week, a
//! delta scans the vectors. So they are listed only after the week is committed, and a file that
//! does not match the list is not used.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::records::{DocId, MAX_SHARDS, mix, short_hash, spread};

/// The version of the layout of postings, and of the hash.
pub(crate) const FORMAT: u32 = 2;

/// The least number of bits that select the partition: records are exchanged in at least four
/// partitions.
const LEAST_SHARD_BITS: u32 = 2;
/// Postings per block, which begins with a head: 512 bytes.
const BLOCK: usize = 64;
/// The largest gap, in postings, that is read along with the wanted postings on both sides: a read
/// call costs as much as reading some thousand bytes.
const GAP: usize = 512;
/// The most postings in one read.
const SPAN: usize = 1 << 15;

/// The layout of a posting: how many bits have the hash, the row and the shard.
///
/// ```
/// use nigh_kernels::records::DocId;
/// use nigh_store::state::Coding;
///
/// let coding = Coding::new(&[1000, 900]);
/// let (hash, doc) = (Coding::hash(0, 77), DocId::new(1, 17));
/// assert_eq!(coding.doc(coding.posting(hash, doc)), doc);
/// assert_eq!(coding.first(hash), coding.posting(hash, DocId::new(0, 0)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coding {
    /// Bits of the hash that select the partition, and bits of the shard of a document: the same
    /// number, at least 2.
    shard_bits: u32,
    /// Bits of the number of a document: its row, and below it its shard.
    number_bits: u32,
}

/// The runs of an index, as `postings.json` lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostingRuns {
    /// The layout of the postings of all runs.
    pub coding: Coding,
    /// The runs, oldest first; at least one.
    pub runs: Vec<PostingRun>,
}

/// A run, as `postings.json` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostingRun {
    /// The name of its folder.
    pub(crate) folder: String,
    /// The number of postings of each partition. A partition without postings has no file.
    postings: Vec<u64>,
}

impl Coding {
    /// A layout for documents of shards with these numbers of rows, with room for twice as many
    /// rows.
    pub fn new(rows: &[u64]) -> Coding {
        let shard_bits = rows.len().next_power_of_two().trailing_zeros().max(LEAST_SHARD_BITS);
        let max_rows = rows.iter().copied().max().unwrap_or(0);
        Coding { shard_bits, number_bits: shard_bits + u64::BITS - (2 * max_rows).leading_zeros() }
    }

    /// Whether the layout has room for documents of shards with these numbers of rows.
    pub fn fits(&self, rows: &[u64]) -> bool {
        let row_bits = self.number_bits - self.shard_bits;
        rows.len() <= self.partitions() && rows.iter().all(|rows| rows.checked_shr(row_bits).unwrap_or(0) == 0)
    }

    /// The number of partitions of every run.
    pub fn partitions(&self) -> usize {
        1 << self.shard_bits
    }

    /// The hash of the supershingle at place `column` of a vector. Equal values at different places
    /// have different hashes.
    #[inline]
    pub fn hash(column: usize, supershingle: u64) -> u64 {
        spread(supershingle ^ mix(column as u64))
    }

    /// The partition of a hash.
    #[inline]
    pub fn partition(&self, hash: u64) -> u64 {
        hash >> (u64::BITS - self.shard_bits)
    }

    /// The smallest posting of a hash: its bits, with the document number 0.
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
        let number = posting & self.number_mask();
        DocId::new((number & (self.partitions() as u64 - 1)) as u32, number >> self.shard_bits)
    }

    /// A mask of the bits of a posting that are the document number.
    fn number_mask(&self) -> u64 {
        (1 << self.number_bits) - 1
    }
}

impl PostingRun {
    /// The number of postings of all partitions.
    fn count(&self) -> u64 {
        self.postings.iter().sum()
    }
}

impl PostingRuns {
    /// The list of a first run with these numbers of postings by partition, in the folder of this
    /// name.
    pub fn first(coding: Coding, folder: String, postings: Vec<u64>) -> PostingRuns {
        PostingRuns { coding, runs: vec![PostingRun { folder, postings }] }
    }

    /// Whether this program could have written the list. A damaged list is not used.
    pub(crate) fn is_plausible(&self) -> bool {
        let Coding { shard_bits, number_bits } = self.coding;
        let max_shard_bits = MAX_SHARDS.trailing_zeros();
        (LEAST_SHARD_BITS..=max_shard_bits).contains(&shard_bits)
            && (shard_bits..u64::BITS).contains(&number_bits)
            && !self.runs.is_empty()
            && self.runs.iter().all(|run| run.postings.len() == self.coding.partitions())
    }

    /// The number of postings of all runs.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(PostingRun::count).sum()
    }

    /// A short hash of the list, as 16 hexadecimal digits.
    pub fn digest(&self) -> String {
        short_hash(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// How many of the last runs are merged into a new run of `postings` postings.
    ///
    /// From the last run back, a run is merged if it is at most twice as large as everything after
    /// it, the new run included. The first run is never merged. So the postings of a run are copied
    /// again only when later runs have grown to half of it.
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

    /// The list with a new run in place of the last `merged` ones.
    pub fn and(&self, folder: String, postings: Vec<u64>, merged: usize) -> PostingRuns {
        let mut runs = self.runs[..self.runs.len() - merged].to_vec();
        runs.push(PostingRun { folder, postings });
        PostingRuns { coding: self.coding, runs }
    }

    /// Whether the later runs together are larger than half of the first, so that the index should
    /// be made again.
    pub fn has_grown(&self) -> bool {
        self.runs.first().is_none_or(|first| {
            let later: u64 = self.runs[1..].iter().map(PostingRun::count).sum();
            later > first.count() / 2
        })
    }

    /// Whether all files below `folder` are there and match the list.
    pub fn are_whole(&self, folder: &Path) -> bool {
        (0..self.coding.partitions()).all(|partition| self.files(folder, partition).is_ok())
    }

    /// Opens the files of a partition below `folder`: one for each run, oldest first; `None` for a
    /// run without postings there.
    ///
    /// # Errors
    /// If a file cannot be read, or does not match the list.
    pub fn files(&self, folder: &Path, partition: usize) -> Result<Vec<Option<PostingFile>>> {
        let files = self.runs.iter().map(|run| {
            let postings = run.postings.get(partition).copied().unwrap_or(0);
            let open = || PostingFile::open(&file(&folder.join(&run.folder), partition), postings);
            (postings > 0).then(open).transpose()
        });
        files.collect()
    }
}

/// The path of the file of a partition in the folder of a run.
fn file(run: &Path, partition: usize) -> PathBuf {
    run.join(format!("part{partition:05}"))
}

/// Writes the postings of a partition, which ascend, to its file in the folder `run`. Writes no
/// file if there are none.
///
/// # Errors
/// If the file cannot be written.
pub fn write_postings(run: &Path, partition: usize, postings: &[u64]) -> Result<()> {
    debug_assert!(postings.is_sorted());
    if postings.is_empty() {
        return Ok(());
    }
    let path = file(run, partition);
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(run)?;
        let mut file = BufWriter::with_capacity(SPAN * 8, File::create(&path)?);
        let heads: Vec<u64> = postings.iter().copied().step_by(BLOCK).collect();
        let checksums: Vec<u64> = postings.chunks(BLOCK).map(checksum_of).collect();
        // This machine is little-endian: `records` does not compile for others.
        file.write_all(bytemuck::cast_slice(&heads))?;
        file.write_all(bytemuck::cast_slice(&checksums))?;
        file.write_all(bytemuck::cast_slice(postings))?;
        file.flush()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// The checksum of a block of postings.
fn checksum_of(block: &[u64]) -> u64 {
    xxh3_64(bytemuck::cast_slice(block))
}

/// The postings of one partition of one run. The heads and checksums are in memory. The file is
/// open only during a read, because a store may have more shards than a process may have open
/// files.
pub struct PostingFile {
    path: PathBuf,
    heads: Vec<u64>,
    /// The checksum of each block.
    checksums: Vec<u64>,
    postings: usize,
}

impl PostingFile {
    /// Reads the heads of the file at `path`, which must have `postings` postings.
    fn open(path: &Path, postings: u64) -> Result<PostingFile> {
        let failed = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        let bytes = postings.div_ceil(BLOCK as u64).saturating_mul(2).saturating_add(postings).saturating_mul(8);
        let size = file.metadata().with_context(failed)?.len();
        ensure!(size == bytes, "{} has {size} bytes instead of {bytes}", path.display());
        let postings = usize::try_from(postings).with_context(failed)?;
        let mut heads = vec![0; 2 * postings.div_ceil(BLOCK)];
        file.read_exact_at(bytemuck::cast_slice_mut(&mut heads), 0).with_context(failed)?;
        let checksums = heads.split_off(postings.div_ceil(BLOCK));
        ensure!(heads.is_sorted(), "{} is damaged", path.display());
        Ok(PostingFile { path: path.to_owned(), heads, checksums, postings })
    }

    /// Calls `each` with all postings of some hashes. `firsts` are the values of [`Coding::first`]
    /// for these hashes, ascending.
    ///
    /// Blocks of several hashes are read together if they are near each other. In short, it does
    /// this:
    ///
    /// ```text
    /// for first in firsts:
    ///     blocks = those whose heads say that they may have postings from first to first | mask
    ///     for posting in read(blocks): if first <= posting <= first | mask: each(posting)
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged.
    pub fn of(&self, coding: Coding, firsts: &[u64], mut each: impl FnMut(u64)) -> Result<()> {
        let (file, mut postings, mut rest, mut from) = (self.file()?, Vec::new(), firsts, 0);
        while let Some(first) = rest.first() {
            // The blocks `begin..end` of this hash, and of the next ones as long as the gap and the
            // read stay small.
            let (begin, mut end) = self.blocks(from, *first, first | coding.number_mask());
            let mut hashes = 1;
            for next in &rest[1..] {
                let (next_begin, next_end) = self.blocks(end.saturating_sub(1), *next, next | coding.number_mask());
                if BLOCK * next_begin.saturating_sub(end) > GAP || BLOCK * (next_end - begin) > SPAN {
                    break;
                }
                (end, hashes) = (next_end, hashes + 1);
            }
            self.read(&file, begin..end, &mut postings)?;
            let (in_blocks, others) = rest.split_at(hashes);
            let mut position = 0;
            for first in in_blocks {
                position += postings[position..].partition_point(|posting| posting < first);
                let of_hash =
                    postings[position..].iter().take_while(|posting| **posting <= first | coding.number_mask());
                of_hash.for_each(|posting| each(*posting));
            }
            (rest, from) = (others, end.saturating_sub(1));
        }
        Ok(())
    }

    /// The range of blocks that may have postings from `first` to `last`; the search starts at
    /// block `from`.
    fn blocks(&self, from: usize, first: u64, last: u64) -> (usize, usize) {
        // Hashes ascend, so most are near the one before: search by doubling steps.
        let heads = &self.heads[from..];
        let mut near = 1;
        while near < heads.len() && heads[near] <= last {
            near *= 2;
        }
        let heads = &heads[..near.min(heads.len())];
        let begin = heads.partition_point(|head| *head < first);
        let end = begin + heads[begin..].partition_point(|head| *head <= last);
        // The block before that head may end with such postings.
        (from + begin.saturating_sub(1), from + end)
    }

    /// All postings of the file, ascending.
    ///
    /// # Errors
    /// As [`PostingFile::of`].
    pub fn all(&self) -> Result<Vec<u64>> {
        let mut postings = Vec::new();
        self.read(&self.file()?, 0..self.heads.len(), &mut postings)?;
        Ok(postings)
    }

    fn file(&self) -> Result<File> {
        File::open(&self.path).with_context(|| format!("cannot read {}", self.path.display()))
    }

    /// Reads the postings of some blocks, and checks them against their heads and checksums.
    fn read(&self, file: &File, blocks: std::ops::Range<usize>, postings: &mut Vec<u64>) -> Result<()> {
        let end = (blocks.end * BLOCK).min(self.postings);
        postings.resize(end.saturating_sub(blocks.start * BLOCK), 0);
        let offset = 8 * (self.heads.len() + self.checksums.len() + blocks.start * BLOCK) as u64;
        let read = file.read_exact_at(bytemuck::cast_slice_mut(postings), offset);
        read.with_context(|| format!("cannot read {}", self.path.display()))?;
        let blocks = blocks.start..blocks.end.max(blocks.start);
        let heads_match = postings.iter().step_by(BLOCK).eq(&self.heads[blocks.clone()]);
        let checksums_match = postings.chunks(BLOCK).map(checksum_of).eq(self.checksums[blocks].iter().copied());
        ensure!(
            heads_match && checksums_match && postings.is_sorted(),
            "{} is damaged: remove the folder _nigh/postings of the store, and the next run makes it again",
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

    /// The first postings of `count` hashes of one partition, ascending.
    fn hashes(count: u64) -> Vec<u64> {
        let mut firsts: Vec<u64> = (0..count).map(|number| coding().first(mix(number))).collect();
        firsts.sort_unstable();
        firsts
    }

    #[test]
    fn a_posting_has_its_document_and_its_hash() {
        let coding = coding();
        assert_eq!(coding.partitions(), 4);
        for (number, doc) in [(0, 0), (1, 899), (3, 1999)].map(|(shard, row)| DocId::new(shard, row)).iter().enumerate()
        {
            let hash = Coding::hash(number, 77);
            assert_eq!(coding.doc(coding.posting(hash, *doc)), *doc);
            assert_eq!(coding.posting(hash, *doc) & !coding.number_mask(), coding.first(hash));
        }
        assert_ne!(Coding::hash(0, 77), Coding::hash(1, 77), "each place of the vector has its own hashes");
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
                // Every second one has no postings.
                let asked = firsts.iter().step_by(step).flat_map(|first| [*first, first + (1 << coding.number_bits)]);
                let mut asked: Vec<u64> = asked.collect();
                asked.sort_unstable();
                asked.dedup();
                let mut visited = Vec::new();
                file.of(coding, &asked, |posting| visited.push(posting)).unwrap();
                let has = |posting: &&u64| asked.binary_search(&(**posting & !coding.number_mask())).is_ok();
                assert!(visited.iter().eq(postings.iter().filter(has)), "every {step}, {of_hash} of each");
            }
        }
    }

    #[test]
    fn a_file_that_does_not_match_the_list_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let postings: Vec<u64> = (0..1000).map(|number| number << 40).collect();
        write_postings(folder.path(), 3, &postings).unwrap();
        let path = file(folder.path(), 3);
        let open = |postings| PostingFile::open(&path, postings).map(|file| file.all()).map(|all| all.is_ok());
        assert!(open(999).err().unwrap().to_string().contains("part00003"));
        assert!(open(1000).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        // A bit of a hash, so that the postings do not ascend; then one of a document number, so
        // that they do.
        for (byte, bit) in [(7, 0x40), (0, 0x04)] {
            let mut bytes = bytes.clone();
            bytes[8 * (2 * 16 + 500) + byte] ^= bit;
            std::fs::write(&path, &bytes).unwrap();
            assert!(!open(1000).unwrap(), "{byte}");
        }
    }

    #[test]
    fn an_implausible_list_is_not_used() {
        let runs = |shard_bits, number_bits, partitions| PostingRuns {
            coding: Coding { shard_bits, number_bits },
            runs: vec![PostingRun { folder: "run".into(), postings: vec![1; partitions] }],
        };
        assert!(runs(2, 20, 4).is_plausible() && runs(16, 56, 1 << 16).is_plausible());
        for (shard_bits, number_bits, partitions) in
            [(1, 20, 2), (64, 20, 4), (17, 20, 1 << 17), (2, 64, 4), (2, 20, 3)]
        {
            assert!(
                !runs(shard_bits, number_bits, partitions).is_plausible(),
                "{shard_bits} {number_bits} {partitions}"
            );
        }
        assert!(!PostingRuns { runs: vec![], ..runs(2, 20, 4) }.is_plausible());
        let folder = tempfile::tempdir().unwrap();
        let (path, huge) = (file(folder.path(), 0), u64::MAX - 5);
        std::fs::write(&path, [0; 80]).unwrap();
        assert!(PostingFile::open(&path, huge).err().unwrap().to_string().contains("80 bytes"));
    }

    #[test]
    fn small_runs_are_merged_and_a_grown_index_is_made_again() {
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
