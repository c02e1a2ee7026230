//! One exchange of records that are grouped by a key: all records of a key come to one worker, in
//! their order.

use std::rc::Rc;

use anyhow::Result;
use bytemuck::Pod;
use nigh_kernels::records::mix;

use super::by_key::by_key;
use super::kept::KeptRecords;
use super::key_ranges::KeyRanges;
use super::ranges::RangeDealer;
use super::spill::Partition;
use crate::blocks::block::BlockOf;
use crate::blocks::dealer::Dealer;
use crate::context::Context;

/// Records of a partition, about: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 13;
/// Records that are dealt at once, between two checks of the clock.
const AT_ONCE: usize = 1 << 13;

/// A record with a key by which it is grouped. Its order begins with the key.
pub trait Keyed: Pod + Send + Ord {
    /// The key.
    fn key(&self) -> u64;
}

/// The records of one worker, read block by block.
pub trait RecordBlocks<R> {
    /// The number of records, about: memory is planned for so many.
    fn count(&self) -> usize;

    /// Calls `take` with the records of a block, by its number from 0, and returns whether there
    /// are more blocks. They are read in order, from the first one for each range of keys.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    fn read(&self, number: usize, take: impl FnOnce(&[R])) -> Result<bool>;
}

impl<R> RecordBlocks<R> for Vec<R> {
    fn count(&self) -> usize {
        self.len()
    }

    fn read(&self, number: usize, take: impl FnOnce(&[R])) -> Result<bool> {
        let end = ((number + 1) * AT_ONCE).min(self.len());
        take(&self[number * AT_ONCE..end]);
        Ok(end < self.len())
    }
}

impl<R: Pod> RecordBlocks<R> for KeptRecords<R> {
    fn count(&self) -> usize {
        self.len()
    }

    fn read(&self, number: usize, take: impl FnOnce(&[R])) -> Result<bool> {
        self.block(number, take)?;
        Ok(number + 1 < self.blocks())
    }
}

/// Sends records to the owners of their keys, calls `each` with all records of each key, in their
/// order, and `take` with the answers that `each` deals to the worker. The order of keys depends on
/// the number of workers. All records of one key are in the memory of one worker.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn by_group<R: Keyed, A: Pod + Send>(
    cx: &mut Context,
    name: &str,
    records: impl RecordBlocks<R> + 'static,
    mut each: impl FnMut(&[R], &mut Dealer<A>) + 'static,
    take: impl FnMut(BlockOf<A>) + 'static,
) -> Result<()> {
    let counts = cx.sorted(vec![records.count() as u64])?;
    let cut = KeyRanges::new(counts.iter().sum(), MOST_RECORDS, size_of::<R>(), 1, cx.peers(), cx.memory());
    let records = Rc::new(records);
    let open = move || {
        let (records, mut next) = (records.clone(), 0);
        move |deal: &mut RangeDealer<'_, R>| {
            let each = |block: &[R]| block.iter().for_each(|record| deal.deal(0, mix(record.key()), *record));
            let is_more = records.read(next, each)?;
            next += 1;
            Ok(is_more)
        }
    };
    let mut sorted: Vec<R> = Vec::new();
    let group = move |partition: &Partition<'_, R>, answers: &mut Dealer<A>| {
        sorted.clear();
        sorted.reserve(partition.count());
        partition.blocks(|block| sorted.extend_from_slice(block.records()))?;
        sorted.sort_unstable();
        sorted.chunk_by(|a, b| a.key() == b.key()).for_each(|of_key| each(of_key, answers));
        Ok(())
    };
    let waiting = cx.spill_buffer();
    by_key(cx, name, cut, waiting, open, group, take)
}
