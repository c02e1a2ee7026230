//! Rows of any size, in blocks: what is not a record of fixed size, such as texts, lists and notes.
//!
//! A row is bytes. A block of rows has, for each row, its length in 8 bytes, the row, and zeros up
//! to a multiple of 8, so that a row begins at such a multiple, too. Rows are [`serde`] values
//! ([`RowDealer::deal`]), or bytes that the sender and the receiver agree on
//! ([`RowDealer::deal_bytes`]).

use std::sync::Arc;

use anyhow::{Context as _, Result};
use bytemuck::{Pod, Zeroable};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::block::Block;
use super::buffers::BLOCK_BYTES;
use crate::all_to_all::exchange_blocks;
use crate::context::Context;
use crate::watch::Watch;

/// Eight bytes of a row, or its length.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
struct RowWord(u64);

const WORD: usize = size_of::<RowWord>();

/// Collects rows into blocks: one open block for each partition.
///
/// ```
/// use nigh_exchange::{RowDealer, rows_of};
///
/// let mut dealer = RowDealer::new(0, 2, &Default::default());
/// dealer.deal(1, &("a page", 3u32));
/// dealer.deal(1, &("another page", 5u32));
/// let blocks: Vec<_> = dealer.finish().collect();
/// assert_eq!((blocks.len(), blocks[0].part), (1, 1));
/// let rows: Vec<(String, u32)> = rows_of(&blocks[0]).collect::<anyhow::Result<_>>()?;
/// assert_eq!(rows, [("a page".to_owned(), 3), ("another page".to_owned(), 5)]);
/// # anyhow::Ok(())
/// ```
pub struct RowDealer {
    /// The words of the open blocks, by partition.
    open: Vec<Vec<RowWord>>,
    from: u32,
    full: Vec<Block>,
    /// Rows since they were last counted.
    rows: u64,
    /// Room for the bytes of a row.
    row: Vec<u8>,
    watch: Arc<Watch>,
}

impl RowDealer {
    /// Makes a dealer of this worker to the partitions `0..parts`.
    pub fn new(worker: usize, parts: usize, watch: &Arc<Watch>) -> RowDealer {
        let (open, from, watch) = (vec![Vec::new(); parts], worker as u32, watch.clone());
        RowDealer { open, from, full: Vec::new(), rows: 0, row: Vec::new(), watch }
    }

    /// Adds a row to a partition.
    pub fn deal(&mut self, part: usize, row: &impl Serialize) {
        let mut bytes = std::mem::take(&mut self.row);
        bytes.clear();
        bytes = postcard::to_extend(row, bytes).expect("rows are plain data");
        self.deal_bytes(part, &[&bytes]);
        self.row = bytes;
    }

    /// Adds a row that is given as some slices of bytes, one after the other, to a partition.
    pub fn deal_bytes(&mut self, part: usize, row: &[&[u8]]) {
        let length: usize = row.iter().map(|bytes| bytes.len()).sum();
        let words = 1 + length.div_ceil(WORD);
        let at = self.open[part].len();
        if at > 0 && (at + words) * WORD > BLOCK_BYTES {
            self.close(part);
        }
        let open = &mut self.open[part];
        let begin = open.len() + 1;
        open.resize(open.len() + words, RowWord(0));
        open[begin - 1] = RowWord(length as u64);
        let mut rest: &mut [u8] = bytemuck::cast_slice_mut(&mut open[begin..]);
        for bytes in row {
            let (to, after) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            to.copy_from_slice(bytes);
            rest = after;
        }
        self.rows += 1;
    }

    fn close(&mut self, part: usize) {
        let open = &mut self.open[part];
        self.watch.add_exchanged(std::mem::take(&mut self.rows), (open.len() * WORD) as u64);
        self.full.push(Block::of_records(part as u64, 0, self.from, open));
        open.clear();
    }

    /// Takes the full blocks.
    pub fn full(&mut self) -> impl Iterator<Item = Block> {
        self.full.drain(..)
    }

    /// Takes all blocks, full or not.
    pub fn finish(&mut self) -> impl Iterator<Item = Block> {
        (0..self.open.len()).for_each(|part| {
            if !self.open[part].is_empty() {
                self.close(part);
            }
        });
        self.full.drain(..)
    }
}

/// The rows of a block, as bytes. Each begins at a multiple of 8 bytes.
///
/// # Errors
/// If the lengths are not those of a [`RowDealer`].
pub fn bytes_of_rows(block: &Block) -> impl Iterator<Item = Result<&[u8]>> {
    rows_of_words(block.view::<RowWord>().records())
}

impl Block {
    /// A block whose words are whatever some bytes are: for tests of [`bytes_of_rows`]. Bytes after
    /// the last whole word are left out.
    pub fn of_row_bytes(bytes: &[u8]) -> Block {
        let words: Vec<RowWord> = bytes.as_chunks().0.iter().map(|word| RowWord(u64::from_le_bytes(*word))).collect();
        Block::of_records(0, 0, 0, &words)
    }
}

/// The rows in some words: see [`bytes_of_rows`].
fn rows_of_words(words: &[RowWord]) -> impl Iterator<Item = Result<&[u8]>> {
    let mut words = words;
    std::iter::from_fn(move || {
        let (length, rest) = words.split_first()?;
        let length = usize::try_from(length.0).unwrap_or(usize::MAX);
        let row = rest.split_at_checked(length.div_ceil(WORD));
        words = row.map_or(&[], |(_, after)| after);
        let bytes = row.map(|(row, _)| &bytemuck::cast_slice::<RowWord, u8>(row)[..length]);
        Some(bytes.context("a block of rows from another worker is damaged"))
    })
}

/// The rows of a block, read as values of the type that was dealt.
///
/// # Errors
/// If a row is not such a value.
pub fn rows_of<T: DeserializeOwned>(block: &Block) -> impl Iterator<Item = Result<T>> {
    bytes_of_rows(block).map(|bytes| postcard::from_bytes(bytes?).context("a row from another worker cannot be read"))
}

/// Sends rows to the workers that they are for, and returns the received ones: those of one sender
/// in their order, and the senders by their index. All rows are in memory at once, at the sender
/// and at the receiver. Records of a fixed size travel by [`all_to_all`](crate::all_to_all()).
///
/// # Errors
/// If a worker of this process failed.
pub fn send_rows<T: Serialize + DeserializeOwned>(cx: &mut Context, rows: Vec<(usize, T)>) -> Result<Vec<T>> {
    let mut dealer = RowDealer::new(cx.index(), cx.peers(), &Arc::default());
    rows.into_iter().for_each(|(to, row)| dealer.deal(to, &row));
    let blocks = exchange_blocks(cx, dealer.finish().collect())?;
    blocks.iter().flat_map(rows_of).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of many lengths: none, some, and more than a block holds.
    fn made(count: usize) -> Vec<String> {
        (0..count).map(|row| "x".repeat(row * row * 7 % 5000 + if row == 3 { 3 * BLOCK_BYTES } else { 0 })).collect()
    }

    #[test]
    fn rows_come_back_as_they_were_dealt_in_blocks_of_their_own() {
        let mut dealer = RowDealer::new(3, 2, &Arc::default());
        let rows = made(100);
        rows.iter().enumerate().for_each(|(number, row)| dealer.deal(number % 2, row));
        let blocks: Vec<Block> = dealer.finish().collect();
        assert!(blocks.iter().all(|block| block.from == 3));
        let long = blocks.iter().filter(|block| block.bytes().len() > BLOCK_BYTES).count();
        assert_eq!((long, dealer.finish().count()), (1, 0), "a block is longer only for a row that needs it");
        for part in 0..2 {
            let of_part = blocks.iter().filter(|block| block.part == part as u64);
            let read: Vec<String> = of_part.flat_map(rows_of).collect::<Result<_>>().unwrap();
            assert!(read.iter().eq(rows.iter().skip(part).step_by(2)));
        }
    }

    #[test]
    fn a_row_of_another_type_is_an_error() {
        let mut dealer = RowDealer::new(0, 1, &Arc::default());
        dealer.deal_bytes(0, &[&[200]]);
        let block = dealer.finish().next().unwrap();
        let error = rows_of::<String>(&block).next().unwrap().unwrap_err();
        assert!(format!("{error:#}").starts_with("a row from another worker cannot be read"), "{error:#}");
    }

    #[test]
    fn rows_reach_the_workers_that_they_are_for() {
        for workers in [1, 2, 4] {
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let index = cx.index();
                let rows =
                    made(50).into_iter().enumerate().map(|(number, row)| (number % workers, (number, index, row)));
                let received = send_rows(cx, rows.collect()).unwrap();
                let wanted: Vec<(usize, usize, String)> = (0..workers)
                    .flat_map(|from| made(50).into_iter().enumerate().map(move |(number, row)| (number, from, row)))
                    .filter(|(number, ..)| number % workers == index)
                    .collect();
                assert_eq!(received, wanted);
            });
            guards.unwrap().join().into_iter().for_each(|end| end.unwrap());
        }
    }

    proptest! {
        #[test]
        fn damaged_lengths_are_errors_and_never_rows_beyond_the_block(words in prop::collection::vec(any::<[u8; 8]>(), 0..20), short: bool) {
            let words: Vec<RowWord> = words.into_iter().map(|word| RowWord(u64::from_le_bytes(word) >> if short { 56 } else { 0 })).collect();
            let rows: Vec<Result<&[u8]>> = rows_of_words(&words).collect();
            let read: usize = rows.iter().flatten().map(|row| row.len().next_multiple_of(WORD) + WORD).sum();
            prop_assert!(read <= WORD * words.len());
            // A length that is too large ends the block.
            let damaged = rows.iter().position(Result::is_err);
            prop_assert!(damaged.is_none_or(|at| at + 1 == rows.len()));
        }
    }
}
