//! All-gather, reductions and barrier: every worker receives what all workers have, or only waits
//! for the other workers.
//!
//! They are methods of a [`Context`]. Every worker of every process must call them, in the same
//! order. An all-gather sends every item to every worker, so it is for small results: counts,
//! extremes, lists of a few rows. Records that have one owner go by
//! [`all_to_all`](super::all_to_all()).

use std::sync::Arc;

use anyhow::{Result, ensure};
use nigh_kernels::structures::CompactSort;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::all_to_all::exchange_blocks;
use super::context::Context;
use crate::blocks::block::Block;
use crate::blocks::row_blocks::{RowDealer, rows_of};

impl Context {
    /// Returns the items of all workers, in the order of the workers, at every worker of every
    /// process. It returns when every worker has called it.
    ///
    /// ```
    /// use nigh_exchange::Context;
    ///
    /// let workers = timely::execute(timely::Config::process(2), |worker| {
    ///     let mut cx = Context::alone(worker);
    ///     cx.concat(vec![20 - 10 * cx.index()]).unwrap()
    /// });
    /// for gathered in workers.unwrap().join() {
    ///     assert_eq!(gathered.unwrap(), [20, 10]);
    /// }
    /// ```
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn concat<T: Serialize + DeserializeOwned>(&mut self, items: Vec<T>) -> Result<Vec<T>> {
        let index = self.index();
        let mut dealer = RowDealer::new(index, 1, &Arc::default());
        if self.peers() > 1 {
            items.iter().for_each(|item| dealer.deal(0, item));
        }
        let others = self.broadcast(dealer.finish().collect())?;
        let (before, after) = others.split_at(others.partition_point(|block| (block.from as usize) < index));
        let read = |blocks: &[Block], to: &mut Vec<T>| {
            blocks.iter().flat_map(rows_of).try_for_each(|row| row.map(|row| to.push(row)))
        };
        let mut gathered = Vec::new();
        read(before, &mut gathered)?;
        gathered.extend(items);
        read(after, &mut gathered)?;
        Ok(gathered)
    }

    /// Returns the items of all workers, sorted: see [`Context::concat`].
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn sorted<T: Serialize + DeserializeOwned + Ord>(&mut self, items: Vec<T>) -> Result<Vec<T>> {
        let mut gathered = self.concat(items)?;
        gathered.sort_items();
        Ok(gathered)
    }

    /// Returns the sum of the numbers of all workers.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn sum(&mut self, number: u64) -> Result<u64> {
        self.sums([number]).map(|[sum]| sum)
    }

    /// Returns the sums of several numbers of all workers.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn sums<const N: usize>(&mut self, numbers: [u64; N]) -> Result<[u64; N]> {
        let all = self.concat(numbers.to_vec())?;
        let add =
            |sums: [u64; N], of_worker: &[u64; N]| std::array::from_fn(|at| sums[at].saturating_add(of_worker[at]));
        Ok(all.as_chunks().0.iter().fold([0; N], add))
    }

    /// Returns the smallest of the numbers of all workers.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn min(&mut self, number: u64) -> Result<u64> {
        Ok(self.concat(vec![number])?.into_iter().fold(number, u64::min))
    }

    /// Returns the largest of the numbers of all workers.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn max(&mut self, number: u64) -> Result<u64> {
        Ok(self.concat(vec![number])?.into_iter().fold(number, u64::max))
    }

    /// Whether any worker says so; the same at every worker.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn any(&mut self, says: bool) -> Result<bool> {
        Ok(self.sum(says.into())? > 0)
    }

    /// Returns when every worker of every process has called it.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn barrier(&mut self) -> Result<()> {
        self.sum(0).map(drop)
    }

    /// Sends blocks to all other workers, and returns those that they sent, in the order of the
    /// workers.
    fn broadcast(&mut self, blocks: Vec<Block>) -> Result<Vec<Block>> {
        let (index, peers) = (self.index(), self.peers());
        if peers == 1 {
            ensure!(!self.watch().failed(), "a worker of this process failed");
            return Ok(Vec::new());
        }
        let others = (0..peers as u64).filter(|part| *part != index as u64);
        let to_others = others.flat_map(|part| blocks.iter().map(move |block| Block { part, ..block.clone() }));
        exchange_blocks(self, to_others.collect())
    }
}
