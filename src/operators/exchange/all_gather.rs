//! All-gather and barrier: every worker receives the items of all workers, or only waits for the other workers.
//!
//! Every worker of every process must call them, in the same order. An all-gather sends every item to every worker, so it is
//! for small results: counts, extremes, lists of a few rows. Records that have one owner go by
//! [`all_to_all`](super::all_to_all()).

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use timely::worker::Worker;

use super::all_to_all::exchange_blocks;
use super::block::Block;
use super::rows::{RowDealer, rows_of};
use crate::watch::Watch;

/// Returns the items of all workers, sorted, at every worker of every process. It returns when every worker has called it.
///
/// ```
/// use nigh::operators::exchange::all_gather;
/// use nigh::watch::Watch;
///
/// let workers = timely::execute(timely::Config::process(2), |worker| {
///     let own = vec![10 * worker.index()];
///     all_gather(worker, own, &Watch::default()).unwrap()
/// });
/// for gathered in workers.unwrap().join() {
///     assert_eq!(gathered.unwrap(), [0, 10]);
/// }
/// ```
///
/// # Errors
/// Where a worker of this process failed.
pub fn all_gather<T>(worker: &mut Worker, items: Vec<T>, watch: &Watch) -> Result<Vec<T>>
where
    T: Serialize + DeserializeOwned + Ord,
{
    let mut gathered = concat(worker, items, watch)?;
    gathered.sort_unstable();
    Ok(gathered)
}

/// Returns the items of all workers, in the order of the workers, at every worker of every process.
///
/// # Errors
/// Where a worker of this process failed.
pub fn concat<T: Serialize + DeserializeOwned>(worker: &mut Worker, items: Vec<T>, watch: &Watch) -> Result<Vec<T>> {
    let mut dealer = RowDealer::new(worker.index(), 1, &Arc::default());
    if worker.peers() > 1 {
        items.iter().for_each(|item| dealer.deal(0, item));
    }
    let others = broadcast(worker, dealer.finish().collect(), watch)?;
    let (before, after) = others.split_at(others.partition_point(|block| (block.from as usize) < worker.index()));
    let mut gathered = Vec::new();
    before.iter().flat_map(rows_of).try_for_each(|row| row.map(|row| gathered.push(row)))?;
    gathered.extend(items);
    after.iter().flat_map(rows_of).try_for_each(|row| row.map(|row| gathered.push(row)))?;
    Ok(gathered)
}

/// Sends blocks to all other workers, and returns those that they sent, in the order of the workers.
fn broadcast(worker: &mut Worker, blocks: Vec<Block>, watch: &Watch) -> Result<Vec<Block>> {
    let (index, peers) = (worker.index(), worker.peers());
    let others = (0..peers as u64).filter(|part| *part != index as u64);
    let to_others = others.flat_map(|part| blocks.iter().map(move |block| Block { part, ..block.clone() }));
    exchange_blocks(worker, to_others.collect(), watch)
}

/// Returns when every worker of every process has called it: an all-gather of one byte of each worker.
///
/// # Errors
/// Where a worker of this process failed.
pub fn barrier(worker: &mut Worker, watch: &Watch) -> Result<()> {
    all_gather(worker, vec![0u8], watch).map(drop)
}

/// Whether any worker says so; the same at every worker.
///
/// # Errors
/// Where a worker of this process failed.
pub fn any(worker: &mut Worker, says: bool, watch: &Watch) -> Result<bool> {
    Ok(all_gather(worker, vec![says], watch)?.contains(&true))
}
