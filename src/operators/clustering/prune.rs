//! Prune: which supershingles of a vector occur in another one.
//!
//! Two documents that agree in k supershingles share each of these. So a document of which fewer than k
//! supershingles occur elsewhere has nobody to agree with, and of the others only choices of shared supershingles
//! can be shared: 0.8 records a document instead of 15 (`pairs`). Nothing need be exact: a supershingle that is taken
//! for a shared one costs a record, and no more.
//!
//! ```text
//! 24 bits of a supershingle's hash, and in 16 how far its
//! vector lies behind that of the record before it         5 bytes, to the supershingle's partition
//! vector, where the supershingle is shared                4 bytes back
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::stage::{CHANGED, Clustering, is_expected};
use super::survivors::Survivors;
use crate::operators::exchange::{
    Block, Dealer, KeyRanges, Partition, RangeDealer, all_gather, barrier, each_partition, ranges, received, run_to_end,
};
use crate::records::spread;
use crate::structures::{BitColumns, Counters, Ownership};

/// Supershingles of a partition, at most: so few that the table in which they are counted stays in the second-level cache.
const MOST: u64 = 3 << 16;

/// Ranges, at least, of one column or several. The memory of the former phase is there for two columns of five: to take what
/// is fresh costs more than to read all vectors again. And of the last column only those vectors are asked that may
/// share enough with it.
const RANGES: u64 = 3;

/// A supershingle of a representative: bits of its hash that do not tell the partition, and how far its number among
/// the own vectors of its sender is from that of the record before it.
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

    /// The rest of the hash, at the top of a word.
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

/// Tells which representatives, of which there are so many own ones, may agree with somebody in `agreements`
/// supershingles.
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
    let (width, agreements, watch) = (stage.files.width, stage.agreements, &stage.watch);
    let (size, spaces) = (size_of::<Supershingle>(), (width - 1).max(1));
    let own = vec![(worker.index(), representatives)];
    let all = all_gather(worker, own, watch)?.iter().map(|(_, representatives)| representatives).sum();
    let cut = KeyRanges::new(all, MOST, size, spaces, worker.peers(), stage.memory).at_least(RANGES.min(spaces as u64));
    let marks = Rc::new(RefCell::new(marks));
    let (probe, sending) = (Handle::new(), stage.files.clone());
    let (grouped, known, vectors) = (probe.clone(), marks.clone(), Rc::new(owned.clone()));
    let open = move || {
        let (mut chunks, marks, vectors) = (sending.chunks(), known.clone(), vectors.clone());
        let (mut before, mut rows) = (0, Vec::new());
        move |deal: &mut RangeDealer<'_, Supershingle>| {
            let chunk = chunks.next()?;
            ensure!(is_expected(chunk.as_ref(), before, &vectors), CHANGED);
            let Some(chunk) = chunk else { return Ok(false) };
            let (words, marks) = (chunk.words(), marks.borrow());
            let columns = deal.spaces().start + 1..width.min(deal.spaces().end + 1);
            // What was found of the columns before these is known: the probe that ends a range is behind the marks.
            let least = agreements.saturating_sub(width - columns.start);
            rows.clear();
            marks.representatives(before..before + chunk.rows(), least, |vector| rows.push((vector - before) as u32));
            // Column by column: of one there are so few open blocks that the ends of all stay near the core.
            for column in columns {
                let words = &words[column..];
                for row in &rows {
                    let hash = spread(words[*row as usize * width]);
                    deal.deal_gap(column - 1, hash, before as u32 + row, |gap| Supershingle::new(hash, gap));
                }
            }
            before += chunk.rows();
            Ok(true)
        }
    };
    let mut prune = Prune { cut, counters: Counters::default(), shared: Vec::new(), column: 0 };
    let (stash, marking) = (stage.stash(), marks.clone());
    worker.dataflow::<u64, _, _>(|scope| {
        let dealt = ranges(scope, "Supershingles", cut, watch, open, move |range| !grouped.less_than(&(range + 1)));
        let each = move |partition: &Partition<'_, Supershingle>, dealer: &mut _| prune.tell(partition, dealer);
        received(each_partition(dealt, "Prune", stash, watch, each), move |block: Block<u32>| {
            let (mut marks, column) = (marking.borrow_mut(), block.common as usize);
            marks.share(column, block.records().iter().copied());
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let survivors = Survivors::new(stage, owned, marks.take());
    // Nobody goes on to what needs memory while another one still holds what this phase needed.
    barrier(worker, watch)?;
    Ok(survivors)
}

/// Finds shared supershingles in a partition.
struct Prune {
    cut: KeyRanges,
    counters: Counters,
    /// Who has them, of a block.
    shared: Vec<u32>,
    /// Which of the vectors' supershingles the last partition was of.
    column: usize,
}

impl Prune {
    /// Tells the senders of a partition's records which of them are shared.
    fn tell(&mut self, supershingles: &Partition<'_, Supershingle>, dealer: &mut Dealer<u32>) -> Result<()> {
        let Prune { cut, counters, shared, column } = self;
        let this = 1 + (supershingles.part / cut.partitions) as usize;
        if this != *column {
            dealer.set_common(this as u64);
            *column = this;
        }
        counters.clear(supershingles.count());
        supershingles.blocks(|block| block.records().iter().for_each(|record| counters.add(record.hash())))?;
        supershingles.blocks(|block| {
            let records = block.records();
            shared.resize(records.len().max(shared.len()), 0);
            // No branch: a fifth of them are shared.
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
