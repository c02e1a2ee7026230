//! Prune: finds the supershingles that occur in more than one representative, and drops
//! representatives with too few of them.
//!
//! Two documents that agree in k supershingles share each of the k. A document with fewer than k
//! supershingles that occur elsewhere can therefore agree with none. For the other documents, only
//! choices of shared supershingles are worth sending: 0.8 records a document instead of 15
//! (`pairs`). The test need not be exact: a supershingle that is taken for a shared one by mistake
//! costs a record, and changes no result.
//!
//! Records and replies are those of `sighting`: the holder of a supershingle is its vector.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::stage::{Clustering, check_next};
use super::survivors::Survivors;
use crate::operators::scan::ChunkScan;
use crate::operators::sighting::{SharedFinder, Sighting};
use crate::records::spread;
use crate::structures::{BitColumns, Ownership};

/// Records of a partition, at most: so few that the table that counts them stays in the
/// second-level cache.
const MOST_RECORDS: u64 = 3 << 16;

/// Ranges of one or several columns, at least. The memory of the phase before holds two columns of
/// five; to take newly allocated memory costs more than to read all vectors again. And a later
/// range can skip vectors: of the last column, only those are sent that may still reach enough
/// shared supershingles. Two ranges instead of three take a tenth longer.
const RANGES: u64 = 3;

/// Finds the representatives that may agree with another one in enough supershingles. `marks` are
/// the results of `collapse`; `representatives` is how many own vectors are not duplicates.
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
    cx: &mut Context,
    stage: &Clustering,
    owned: &Ownership,
    marks: BitColumns,
    representatives: u64,
) -> Result<Survivors> {
    let width = stage.files.width;
    let (size, columns) = (size_of::<Sighting>(), (width - 1).max(1));
    let all = cx.sum(representatives)?;
    let cut =
        KeyRanges::new(all, MOST_RECORDS, size, columns, cx.peers(), cx.memory()).at_least(RANGES.min(columns as u64));
    let marks = Rc::new(RefCell::new(marks));
    let open = {
        let (stage, owned, marks) = (Rc::new(stage.clone()), Rc::new(owned.clone()), marks.clone());
        move || {
            let mut pass = SupershinglePass::new(stage.clone(), owned.clone(), marks.clone());
            move |deal: &mut RangeDealer<'_, Sighting>| pass.next(deal)
        }
    };
    let mut columns = SharedColumns { cut, finder: SharedFinder::default(), column: 0 };
    let find = move |partition: &Partition<'_, Sighting>, dealer: &mut Dealer<u32>| columns.find(partition, dealer);
    let mark = {
        let marks = marks.clone();
        move |block: BlockOf<u32>| marks.borrow_mut().share(column_of(&block), block.records().iter().copied())
    };
    by_key(cx, "Prune", cut, cx.spill_buffer(), open, find, mark)?;
    let survivors = Survivors::new(stage, owned, marks.take());
    // The next phase needs memory: no worker begins it before all workers have released that of
    // this phase.
    cx.barrier()?;
    Ok(survivors)
}

/// The column that the vectors of a block share: what [`SharedColumns::find`] sets at its dealer.
fn column_of(shared: &BlockOf<u32>) -> usize {
    shared.common as usize
}

/// One pass over the own vectors: sends the supershingles of representatives whose partitions lie
/// in one range.
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

    /// Reads one chunk of vectors and deals their supershingles. Returns `false` at the end of the
    /// pass.
    fn next(&mut self, deal: &mut RangeDealer<'_, Sighting>) -> Result<bool> {
        let SupershinglePass { stage, owned, marks, chunks, read, rows } = self;
        let (width, first) = (stage.files.width, *read);
        let chunk = chunks.next_chunk()?;
        check_next(chunk.as_ref(), first, owned)?;
        let Some(chunk) = chunk else { return Ok(false) };
        let words = chunk.words();
        let columns = deal.spaces().start + 1..width.min(deal.spaces().end + 1);
        // Results for the columns before these are in the marks already: the probe that ends a
        // range is downstream of them.
        let least = stage.agreements.saturating_sub(width - columns.start);
        rows.clear();
        let vectors = first..first + chunk.rows();
        marks.borrow().representatives(vectors, least, |vector| rows.push((vector - first) as u32));
        // Column by column: one column has so few open blocks that the ends of all of them stay
        // near the core.
        for column in columns {
            let words = &words[column..];
            for row in rows.iter() {
                let hash = spread(words[*row as usize * width]);
                deal.deal_gap(column - 1, hash, first as u32 + row, |gap| Sighting::new((hash as u32) << 8, gap));
            }
        }
        *read += chunk.rows();
        Ok(true)
    }
}

/// Finds the shared supershingles of a partition.
struct SharedColumns {
    cut: KeyRanges,
    finder: SharedFinder,
    /// The column of the last partition.
    column: usize,
}

impl SharedColumns {
    /// Sends to the owners of vectors whose supershingle in this partition is shared the own
    /// numbers of these vectors, in blocks with the column as their base.
    fn find(&mut self, supershingles: &Partition<'_, Sighting>, dealer: &mut Dealer<u32>) -> Result<()> {
        let column = 1 + (supershingles.part / self.cut.partitions) as usize;
        if column != self.column {
            dealer.set_common(column as u64);
            self.column = column;
        }
        self.finder.find(supershingles, dealer)
    }
}
