//! Pairs: representatives that share a choice of supershingles are joined, as a star around the smallest of them.
//!
//! A star joins the same documents as all pairs would, with one edge a member; components need no more. (The name is
//! the study's case: two supershingles of six, 15 pairs. The job may ask for other choices.)
//!
//! A key that many share would make its partition's owner the bottleneck. So of each shard only the first [`MOST`] that
//! share a key are sent; the others are *chained* to the first of them where they are. What is chained depends on the
//! shard alone, and with it every neighbour: not on workers, memory, or which supershingles were taken for shared.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::stage::{ClusterStats, Clustering};
use super::survivors::{SurvivorRows, Survivors};
use crate::kernels::memory::SIDE_BY_SIDE;
use crate::operators::exchange::{
    KeyRanges, Partition, RangeDealer, SpillBuffer, all_gather, barrier, each_partition, ranges, run_to_end,
};
use crate::records::{Key, spread};
use crate::structures::{DocHasher, Grouper, Numbering, OwnNumbers, Ownership, UnionFind};

/// A representative under a key that it may share; bytes, since records are packed.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct KeyedNode {
    /// Bits of the key that do not tell the partition.
    key: [u8; 8],
    /// How far the representative lies behind that of the record before it, among the own survivors of its sender.
    gap: [u8; 2],
}

impl KeyedNode {
    #[inline]
    fn new(key: Key, gap: u16) -> KeyedNode {
        KeyedNode { key: key.table_bits().to_le_bytes(), gap: gap.to_le_bytes() }
    }

    #[inline]
    fn bits(&self) -> u64 {
        u64::from_le_bytes(self.key)
    }

    #[inline]
    fn gap(&self) -> u64 {
        u16::from_le_bytes(self.gap).into()
    }
}

/// Records of a partition, at most: what they are grouped with then stays near the core.
const MOST_RECORDS: u64 = 3 << 15;
/// Edges that are joined, and then noted of the middles of their stars: few enough that these still are near the core.
const AT_ONCE: usize = 16 * SIDE_BY_SIDE;
/// Documents of one shard that are sent under one key.
const MOST: u32 = 1024;

/// Joins all survivors that share a key in the forest of their process. Gives them back.
///
/// # Errors
/// Where records cannot be kept, or a worker of this process failed.
pub fn pairs(
    worker: &mut Worker,
    stage: &Clustering,
    owned: &Ownership,
    nodes: &Numbering,
    survivors: Survivors,
    forest: &Arc<UnionFind>,
) -> Result<(Survivors, ClusterStats)> {
    let survivors = Rc::new(survivors);
    let own = vec![(worker.index(), survivors.records)];
    let records = all_gather(worker, own, &stage.watch)?.iter().map(|(_, records)| records).sum();
    // Rows of one shard are few: what there are more of goes to a file.
    let for_rows = stage.memory / 8;
    let for_records = stage.memory - for_rows;
    let cut = KeyRanges::new(records, MOST_RECORDS, size_of::<KeyedNode>(), 1, worker.peers(), for_records);
    let numbers = Rc::new(OwnNumbers::new(nodes, worker.peers()));
    let (index, numbered) = (worker.index(), numbers.clone());
    let chained = Rc::new(Cell::new(0));
    let (probe, watch, width) = (Handle::new(), &stage.watch, stage.files.width);
    let (grouped, chaining, keys) = (probe.clone(), chained.clone(), stage.keys.clone());
    let (sent, chain_in) = (Rc::new(Cell::new(0)), forest.clone());
    let (sending, keyed, reading, owned) = (sent.clone(), survivors.clone(), stage.clone(), owned.clone());
    let open = move || {
        let (survivors, numbers, keys) = (keyed.clone(), numbered.clone(), keys.clone());
        let (chaining, sent, forest, mut chained) = (chaining.clone(), sending.clone(), chain_in.clone(), Vec::new());
        let mut rows = SurvivorRows::new(&reading, &owned, &survivors, for_rows);
        let (mut own, mut often) = (0, Often::default());
        move |deal: &mut RangeDealer<'_, KeyedNode>| {
            rows.next(&survivors, |rows, at| {
                if at == 0 {
                    often.begin(rows, survivors.of_shards[rows.part as usize], width)?;
                }
                let mut walk = numbers.walk(index, own);
                rows.block(at, |block| {
                    for row in block.records().chunks_exact(width + 1) {
                        let (node, frequent) = (walk.number(own) as u32, often.frequent(row));
                        for (choice, key) in keys.numbered(&row[1..], row[0]) {
                            if !deal.takes(key.partition_bits()) {
                                continue;
                            }
                            let may_chain = keys.is_within(choice, frequent);
                            match may_chain.then(|| often.chain(key, node)).flatten() {
                                Some(to) => chained.push((node, to)),
                                None => {
                                    sent.set(sent.get() + 1);
                                    deal.deal_gap(0, key.partition_bits(), own as u32, |gap| KeyedNode::new(key, gap));
                                }
                            }
                        }
                        own += 1;
                    }
                })?;
                chaining.set(chaining.get() + chained.len() as u64);
                join_stars(&chained, &forest)?;
                chained.clear();
                Ok(())
            })
        }
    };
    let mut pairs = Pairs::new(numbers);
    let stash = SpillBuffer::new(&stage.scratch, for_records);
    let (joined, joining) = (Rc::new(Cell::new(0)), forest.clone());
    let counted = joined.clone();
    worker.dataflow::<u64, _, _>(|scope| {
        let shared = ranges(scope, "Megashingles", cut, watch, open, move |range| !grouped.less_than(&(range + 1)));
        let each = move |partition: &Partition<'_, KeyedNode>, _: &mut _| {
            counted.set(counted.get() + pairs.join(partition, &joining)?);
            Ok(())
        };
        each_partition::<_, u64>(shared, "Pairs", stash, watch, each)
            .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "End", |_, _| {
                |input, _| input.for_each(|_, _| {})
            })
            .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    // All have joined before anybody asks for a root.
    barrier(worker, watch)?;
    let took =
        ClusterStats { pair_records: sent.get(), edges: joined.get() + chained.get(), ..ClusterStats::default() };
    // Timely lets go of its operators, and with them of the survivors, at the next step at the latest.
    Ok((Rc::unwrap_or_clone(survivors), took))
}

/// Keys that many documents of a shard share.
///
/// No key has more documents than each of its supershingles has, and few supershingles have many. Only keys of such
/// supershingles are counted.
#[derive(Default)]
struct Often {
    /// Documents by bits of their supershingles: none has more than its slot says. Empty where none can have too many.
    counts: Vec<u32>,
    /// Of keys that may have too many: the first document, and how many there were.
    known: HashMap<u64, (u32, u32), BuildHasherDefault<DocHasher>>,
}

impl Often {
    /// Counts the supershingles of the next shard, which has `count` survivors.
    fn begin(&mut self, rows: &Partition<'_, u64>, count: u64, width: usize) -> Result<()> {
        self.known.clear();
        self.counts.clear();
        if count <= u64::from(MOST) {
            return Ok(());
        }
        // Few enough in each slot that hardly one is full by chance.
        self.counts.resize((count as usize / 8).next_power_of_two().max(1 << 16), 0);
        rows.blocks(|block| {
            for row in block.records().chunks_exact(width + 1) {
                for (_, word) in shared(row) {
                    let slot = slot(word, self.counts.len());
                    self.counts[slot] += 1;
                }
            }
        })?;
        if self.counts.iter().all(|count| *count <= MOST) {
            self.counts.clear();
        }
        Ok(())
    }

    /// Which of a document's shared supershingles may be those of too many, by bit.
    #[inline]
    fn frequent(&self, row: &[u64]) -> u64 {
        if self.counts.is_empty() {
            return 0;
        }
        let many = |word| u64::from(self.counts[slot(word, self.counts.len())] > MOST);
        shared(row).fold(0, |mask, (column, word)| mask | many(word) << column)
    }

    /// Whom a document that has a key is chained to, if enough had the key before.
    fn chain(&mut self, key: Key, node: u32) -> Option<u32> {
        let (first, had) = self.known.entry(key.table_bits()).or_insert((node, 0));
        *had += 1;
        (*had > MOST).then_some(*first)
    }
}

/// The shared supershingles of a survivor, each with its place in the vector. `row` is a mask of them, then the vector.
fn shared(row: &[u64]) -> impl Iterator<Item = (u32, u64)> {
    let (mask, words) = (row[0], row[1..].iter().copied());
    (0..).zip(words).filter(move |(column, _)| mask >> column & 1 == 1)
}

/// The slot of a supershingle, of so many: a power of two.
#[inline]
fn slot(word: u64, slots: usize) -> usize {
    (spread(word) >> 20) as usize & (slots - 1)
}

/// Joins the representatives of a partition.
struct Pairs {
    numbers: Rc<OwnNumbers>,
    grouper: Grouper,
    edges: Vec<(u32, u32)>,
    /// The middle of each star, and the smallest of its other nodes.
    middles: Vec<(u32, u32)>,
}

/// Joins edges from the nodes of stars to their middles, and notes these as neighbours.
fn join_stars(edges: &[(u32, u32)], forest: &UnionFind) -> Result<()> {
    edges.chunks(SIDE_BY_SIDE).try_for_each(|batch| {
        forest.join(batch)?;
        forest.note_neighbours(batch);
        Ok(())
    })
}

impl Pairs {
    fn new(numbers: Rc<OwnNumbers>) -> Pairs {
        Pairs { numbers, grouper: Grouper::default(), edges: Vec::new(), middles: Vec::new() }
    }

    /// Joins all that share a key in the forest, and notes there the smallest other member of a key that each node
    /// shares: a neighbour that is smaller than the node where there is one. Returns the number of edges.
    fn join(&mut self, partition: &Partition<'_, KeyedNode>, forest: &UnionFind) -> Result<u64> {
        let Pairs { numbers, grouper, edges, middles } = self;
        grouper.clear(partition.count());
        partition.blocks(|block| {
            let (mut own, mut walk) = (block.common, numbers.walk(block.from as usize, block.common));
            grouper.add_all(block.records().iter().map(|record| {
                own += record.gap();
                (record.bits(), walk.number(own) as u32)
            }));
        })?;
        let mut count = 0;
        let mut join = |edges: &mut Vec<(u32, u32)>, middles: &mut Vec<(u32, u32)>| {
            count += edges.len() as u64;
            join_stars(edges, forest)?;
            forest.note_neighbours(middles);
            edges.clear();
            middles.clear();
            anyhow::Ok(())
        };
        // Star by star: what was fetched of a middle is there for all of its edges.
        for (middle, others) in grouper.stars() {
            let before = edges.len();
            edges.extend(others.map(|node| (node, middle)));
            middles.extend(edges[before..].iter().map(|(node, _)| *node).min().map(|second| (middle, second)));
            if edges.len() >= AT_ONCE {
                join(edges, middles)?;
            }
        }
        join(edges, middles)?;
        Ok(count)
    }
}
