//! Prune: finds the supershingles that occur in more than one representative, and drops representatives with too few of them.
//!
//! Two documents that agree in k supershingles share each of the k. A document with fewer than k supershingles that occur
//! elsewhere can therefore agree with none. For the other documents, only choices of shared supershingles are worth sending:
//! 0.8 records a document instead of 15 (`pairs`). The test need not be exact: a supershingle that is taken for a shared one by
//! mistake costs a record, and changes no result.
//!
//! ```text
//! record: 24 bits of a supershingle's hash, and in 16 bits
//! its vector's own number minus that of the record before     5 bytes, to the supershingle's partition
//! reply: own number of a vector with a shared supershingle    4 bytes, back to its owner
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::stage::{Clustering, check_next};
use super::survivors::Survivors;
use crate::operators::exchange::{
    Block, Dealer, KeyRanges, Partition, RangeDealer, all_gather, barrier, each_partition, ranges, received, run_to_end,
};
use crate::operators::scan::ChunkScan;
use crate::records::spread;
use crate::structures::{BitColumns, Counters, Ownership};

/// Records of a partition, at most: so few that the table that counts them stays in the second-level cache.
const MOST_RECORDS: u64 = 3 << 16;

/// Ranges of one or several columns, at least. The memory of the phase before holds two columns of five; to take newly allocated
/// memory costs more than to read all vectors again. And a later range can skip vectors: of the last column, only those are
/// sent that may still reach enough shared supershingles.
const RANGES: u64 = 3;

/// A supershingle of a representative: bits of its hash, other than those that chose the partition, and the vector's own number
/// at its sender minus that of the record before it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Supershingle {
    rest: [u8; 3],
    gap: [u8; 2],
}

impl Supershingle {
    #[inline]
    fn new(hash: u64, gap: u16) -> Supershingle {
        let [a, b, c, ..] = hash.to_le_bytes();
        Supershingle { rest: [a, b, c], gap: gap.to_le_bytes() }
    }

    /// The 24 bits of the hash, at the top of a word.
    #[inline]
    fn hash(self) -> u32 {
        let [a, b, c] = self.rest;
        u32::from_le_bytes([0, a, b, c])
    }

    #[inline]
    fn gap(self) -> u32 {
        u16::from_le_bytes(self.gap).into()
    }
}

/// Finds the representatives that may agree with another one in enough supershingles. `marks` are the results of `collapse`;
/// `representatives` is how many own vectors are not duplicates.
///
/// Morally it does this, where `k` is the number of agreements:
///
/// ```text
/// for each column c of supershingles:          # the first one is done in `collapse`
///     for each representative v that can still reach k:
///         count[c, v[c]] += 1
///     for each representative v that can still reach k:
///         shared[v, c] = count[c, v[c]] >= 2
/// survivors = each representative v with at least k of shared[v, ..]
/// ```
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub fn prune(
    worker: &mut Worker,
    stage: &Clustering,
    owned: &Ownership,
    marks: BitColumns,
    representatives: u64,
) -> Result<Survivors> {
    let (width, watch) = (stage.files.width, &stage.watch);
    let (size, columns) = (size_of::<Supershingle>(), (width - 1).max(1));
    let counts = all_gather(worker, vec![(worker.index(), representatives)], watch)?;
    let all = counts.iter().map(|(_, representatives)| representatives).sum();
    let cut = KeyRanges::new(all, MOST_RECORDS, size, columns, worker.peers(), stage.memory)
        .at_least(RANGES.min(columns as u64));
    let marks = Rc::new(RefCell::new(marks));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let open = {
            let (stage, owned, marks) = (Rc::new(stage.clone()), Rc::new(owned.clone()), marks.clone());
            move || {
                let mut pass = SupershinglePass::new(stage.clone(), owned.clone(), marks.clone());
                move |deal: &mut RangeDealer<'_, Supershingle>| pass.next(deal)
            }
        };
        let is_grouped = {
            let probe = probe.clone();
            move |range: u64| !probe.less_than(&(range + 1))
        };
        let supershingles = ranges(scope, "Supershingles", cut, watch, open, is_grouped);
        let mut finder = SharedFinder { cut, counters: Counters::default(), shared: Vec::new(), column: 0 };
        let find =
            move |partition: &Partition<'_, Supershingle>, dealer: &mut Dealer<u32>| finder.find(partition, dealer);
        let shared = each_partition(supershingles, "Prune", stage.spill_buffer(), watch, find);
        let mark = {
            let marks = marks.clone();
            move |block: Block<u32>| marks.borrow_mut().share(column_of(&block), block.records().iter().copied())
        };
        received(shared, mark).probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let survivors = Survivors::new(stage, owned, marks.take());
    // The next phase needs memory: no worker begins it before all workers have released that of this phase.
    barrier(worker, watch)?;
    Ok(survivors)
}

/// The column that the vectors of a block share: what [`SharedFinder::find`] sets at its dealer.
fn column_of(shared: &Block<u32>) -> usize {
    shared.common as usize
}

/// One pass over the own vectors: sends the supershingles of representatives whose partitions lie in one range.
struct SupershinglePass {
    stage: Rc<Clustering>,
    owned: Rc<Ownership>,
    marks: Rc<RefCell<BitColumns>>,
    chunks: ChunkScan,
    /// How many own vectors were read: the own number of the next one.
    read: usize,
    /// The rows of a chunk that are sent.
    rows: Vec<u32>,
}

impl SupershinglePass {
    fn new(stage: Rc<Clustering>, owned: Rc<Ownership>, marks: Rc<RefCell<BitColumns>>) -> SupershinglePass {
        let chunks = stage.files.chunks();
        SupershinglePass { stage, owned, marks, chunks, read: 0, rows: Vec::new() }
    }

    /// Reads one chunk of vectors and deals their supershingles. Returns `false` at the end of the pass.
    fn next(&mut self, deal: &mut RangeDealer<'_, Supershingle>) -> Result<bool> {
        let SupershinglePass { stage, owned, marks, chunks, read, rows } = self;
        let (width, first) = (stage.files.width, *read);
        let chunk = chunks.next()?;
        check_next(chunk.as_ref(), first, owned)?;
        let Some(chunk) = chunk else { return Ok(false) };
        let words = chunk.words();
        let columns = deal.spaces().start + 1..width.min(deal.spaces().end + 1);
        // Results for the columns before these are in the marks already: the probe that ends a range is downstream of them.
        let least = stage.agreements.saturating_sub(width - columns.start);
        rows.clear();
        let vectors = first..first + chunk.rows();
        marks.borrow().representatives(vectors, least, |vector| rows.push((vector - first) as u32));
        // Column by column: one column has so few open blocks that the ends of all of them stay near the core.
        for column in columns {
            let words = &words[column..];
            for row in rows.iter() {
                let hash = spread(words[*row as usize * width]);
                deal.deal_gap(column - 1, hash, first as u32 + row, |gap| Supershingle::new(hash, gap));
            }
        }
        *read += chunk.rows();
        Ok(true)
    }
}

/// Finds the shared supershingles of a partition.
struct SharedFinder {
    cut: KeyRanges,
    counters: Counters,
    /// Room for the own numbers of the vectors of one block that share their supershingle.
    shared: Vec<u32>,
    /// The column of the last partition.
    column: usize,
}

impl SharedFinder {
    /// Sends to the owners of vectors whose supershingle in this partition is shared the own numbers of these vectors, in
    /// blocks with the column as their base.
    fn find(&mut self, supershingles: &Partition<'_, Supershingle>, dealer: &mut Dealer<u32>) -> Result<()> {
        let SharedFinder { cut, counters, shared, column: last_column } = self;
        let column = 1 + (supershingles.part / cut.partitions) as usize;
        if column != *last_column {
            dealer.set_common(column as u64);
            *last_column = column;
        }
        counters.clear(supershingles.count());
        supershingles.blocks(|block| block.records().iter().for_each(|record| counters.add(record.hash())))?;
        supershingles.blocks(|block| {
            let records = block.records();
            shared.resize(records.len().max(shared.len()), 0);
            // Written without a branch: a fifth of them are shared.
            let (mut own, mut count) = (block.common as u32, 0);
            for record in records {
                own += record.gap();
                shared[count] = own;
                count += usize::from(counters.again(record.hash()));
            }
            shared[..count].iter().for_each(|own| dealer.deal(block.from.into(), *own));
        })
    }
}
