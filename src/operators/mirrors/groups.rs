//! Records that are grouped by a key: those of one cluster, or of one path.

use std::rc::Rc;

use anyhow::Result;
use bytemuck::Pod;
use timely::worker::Worker;

use super::MirrorStage;
use crate::operators::exchange::{Block, Dealer, KeyRanges, RangeDealer, SpillBuffer, all_gather, by_key};
use crate::records::mix;

/// Records of a partition, about: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 13;
/// Records that are dealt at once, between two checks of the clock.
const AT_ONCE: usize = 1 << 13;

/// A record with a key by which it is grouped. Its order begins with the key.
pub(super) trait Keyed: Pod + Send + Ord {
    fn key(&self) -> u64;
}

/// Sends records to the owners of their keys, calls `each` with all records of each key, in their order, and `take` with the answers that
/// `each` deals to the worker. The order of keys depends on the number of workers.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub(super) fn by_group<R: Keyed, A: Pod + Send>(
    worker: &mut Worker,
    stage: &MirrorStage,
    name: &str,
    records: Vec<R>,
    mut each: impl FnMut(&[R], &mut Dealer<A>) + 'static,
    take: impl FnMut(Block<A>) + 'static,
) -> Result<()> {
    let counts = all_gather(worker, vec![records.len() as u64], &stage.watch)?;
    let cut = KeyRanges::new(counts.iter().sum(), MOST_RECORDS, size_of::<R>(), 1, worker.peers(), stage.memory);
    let records = Rc::new(records);
    let open = move || {
        let (records, mut next) = (records.clone(), 0);
        move |deal: &mut RangeDealer<'_, R>| {
            let end = (next + AT_ONCE).min(records.len());
            records[next..end].iter().for_each(|record| deal.deal(0, mix(record.key()), *record));
            next = end;
            Ok(next < records.len())
        }
    };
    let mut sorted: Vec<R> = Vec::new();
    let group = move |partition: &crate::operators::exchange::Partition<'_, R>, answers: &mut Dealer<A>| {
        sorted.clear();
        sorted.reserve(partition.count());
        partition.blocks(|block| sorted.extend_from_slice(block.records()))?;
        sorted.sort_unstable();
        sorted.chunk_by(|a, b| a.key() == b.key()).for_each(|of_key| each(of_key, answers));
        Ok(())
    };
    let waiting = SpillBuffer::new(&stage.scratch, stage.memory);
    by_key(worker, name, cut, waiting, &stage.watch, open, group, take)
}
