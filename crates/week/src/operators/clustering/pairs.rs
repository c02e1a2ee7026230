//! Pairs: joins survivors that share a key, as a star around the smallest of them.
//!
//! A key is a choice of supershingles: two of six by default, which gives the study's 15
//! megashingles. A star connects the same documents as all pairs would, with one edge for each
//! member except the smallest; connected components need no more.
//!
//! A key that many documents share would make the owner of its partition the bottleneck. Of each
//! shard, only the first [`MOST_PER_SHARD`] documents with a key are sent. The others are
//! *chained*: their worker joins them with the first of them itself. Which documents are chained
//! depends on the shard alone, and so does every neighbour: not on the number of workers, the
//! memory, or which supershingles were taken for shared by mistake.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, SpillBuffer, by_key};

use super::stage::{ClusterStats, Clustering};
use super::survivors::{SurvivorRows, Survivors};
use crate::kernels::memory::SIDE_BY_SIDE;
use crate::records::{Key, spread};
use crate::structures::{ByKey, Grouper, Numbering, OwnNumbers, Ownership, UnionFind};

/// A survivor under a key that it may share. Its fields are bytes, so that records are packed.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct KeyedNode {
    /// Bits of the key, other than those that chose the partition.
    key: [u8; 8],
    /// The survivor's own number at its sender, minus that of the record before it.
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

/// Records of a partition, at most: the tables that group them then stay near the core. Half as
/// many partitions of twice the size are not faster, nor are twice as many.
const MOST_RECORDS: u64 = 3 << 15;
/// Edges that are joined before the middles of their stars get neighbours: so few that both are
/// still near the core.
const EDGE_BATCH: usize = 16 * SIDE_BY_SIDE;
/// Documents of one shard that are sent under one key, at most.
const MOST_PER_SHARD: u32 = 1024;

/// Joins all survivors that share a key, in the union-find of their process. Returns the survivors,
/// and what was done.
///
/// Morally it does this, for keys of `k` agreeing supershingles:
///
/// ```text
/// for each survivor v:
///     for each choice of k of v's shared supershingles:
///         groups[key(choice)].add(v)
/// for each group:
///     middle = min(group)
///     for each v in group except middle:
///         union_find.join(v, middle)
/// ```
///
/// The groups of one partition of keys are made at a time, at the partition's owner, in a table
/// that fits in the cache.
///
/// # Errors
/// Where vectors cannot be read, records cannot be spilled, or a worker of this process failed.
pub fn pairs(
    cx: &mut Context,
    stage: &Clustering,
    owned: &Ownership,
    nodes: &Numbering,
    survivors: Survivors,
    union_find: &Arc<UnionFind>,
) -> Result<(Survivors, ClusterStats)> {
    let all_keys = cx.sum(survivors.keys)?;
    // The rows of one shard are few: those that do not fit spill to a file.
    let row_memory = cx.memory() / 8;
    let record_memory = cx.memory() - row_memory;
    let cut = KeyRanges::new(all_keys, MOST_RECORDS, size_of::<KeyedNode>(), 1, cx.peers(), record_memory);

    let survivors = Rc::new(survivors);
    let numbers = Rc::new(OwnNumbers::new(nodes, cx.peers()));
    let counts = Rc::new(PairCounts::default());
    let source = Rc::new(KeySource {
        worker: cx.index(),
        stage: stage.clone(),
        owned: owned.clone(),
        rows: (row_memory, cx.scratch().to_owned()),
        survivors: survivors.clone(),
        numbers: numbers.clone(),
        union_find: union_find.clone(),
        counts: counts.clone(),
    });
    let mut joiner = PartitionJoiner::new(numbers, union_find.clone());
    let spill = SpillBuffer::new(cx.scratch(), record_memory);
    let open = move || {
        let mut pass = KeyPass::new(source.clone());
        move |deal: &mut RangeDealer<'_, KeyedNode>| pass.next(deal)
    };
    let join = {
        let counts = counts.clone();
        move |partition: &Partition<'_, KeyedNode>, _: &mut Dealer<u64>| {
            add(&counts.joined, joiner.join(partition)?);
            Ok(())
        }
    };
    // The partitions join their edges themselves: no answers come back.
    by_key(cx, "Pairs", cut, spill, open, join, |_| {})?;
    // Every worker of the process has joined its edges before any worker reads a root.
    cx.barrier()?;
    let stats = ClusterStats {
        pair_records: counts.sent.get(),
        edges: counts.joined.get() + counts.chained.get(),
        ..ClusterStats::default()
    };
    // Timely drops its operators, and with them their references to the survivors, at the next step
    // at the latest.
    Ok((Rc::unwrap_or_clone(survivors), stats))
}

/// What the operators of one worker counted.
#[derive(Default)]
struct PairCounts {
    /// Records that were sent.
    sent: Cell<u64>,
    /// Edges of stars at owners of partitions.
    joined: Cell<u64>,
    /// Edges of documents that were chained instead of sent.
    chained: Cell<u64>,
}

fn add(counter: &Cell<u64>, count: u64) {
    counter.set(counter.get() + count);
}

/// What passes over the survivors of one worker need.
struct KeySource {
    /// This worker's index.
    worker: usize,
    stage: Clustering,
    owned: Ownership,
    /// Bytes for the rows of one shard, and the folder to which they spill.
    rows: (u64, PathBuf),
    survivors: Rc<Survivors>,
    numbers: Rc<OwnNumbers>,
    union_find: Arc<UnionFind>,
    counts: Rc<PairCounts>,
}

/// One pass over the own survivors: sends or chains those of their keys that lie in one range.
struct KeyPass {
    source: Rc<KeySource>,
    rows: SurvivorRows,
    /// The own number of the next survivor.
    next: u64,
    common: CommonKeys,
    /// Edges of chained documents that are not joined yet.
    chained: Vec<(u32, u32)>,
}

impl KeyPass {
    fn new(source: Rc<KeySource>) -> KeyPass {
        let rows = {
            let (memory, scratch) = &source.rows;
            SurvivorRows::new(&source.stage.files, &source.owned, &source.survivors, (*memory, scratch))
        };
        KeyPass { source, rows, next: 0, common: CommonKeys::default(), chained: Vec::new() }
    }

    /// Reads some vectors, or deals the keys of one block of rows. Returns `false` at the end of
    /// the pass.
    fn next(&mut self, deal: &mut RangeDealer<'_, KeyedNode>) -> Result<bool> {
        let KeyPass { source, rows, next, common, chained } = self;
        let KeySource { survivors, stage, .. } = &**source;
        rows.next(survivors, |rows, block| {
            if block == 0 {
                let in_shard = survivors.shard_counts[rows.part as usize];
                common.begin_shard(rows, in_shard, stage.files.width)?;
            }
            let sent = rows.block(block, |block| deal_keys(source, block, next, common, chained, deal))?;
            add(&source.counts.sent, sent);
            add(&source.counts.chained, chained.len() as u64);
            join_stars(chained, &source.union_find)?;
            chained.clear();
            Ok(())
        })
    }
}

/// Deals the keys of a block of rows that lie in the range, or adds their edges to `chained`.
/// `next` is the own number of the survivor of the next row. Returns the number of records dealt.
fn deal_keys(
    source: &KeySource,
    block: &BlockOf<u64>,
    next: &mut u64,
    common: &mut CommonKeys,
    chained: &mut Vec<(u32, u32)>,
    deal: &mut RangeDealer<'_, KeyedNode>,
) -> u64 {
    let KeySource { worker, stage, numbers, .. } = source;
    let mut walk = numbers.walk(*worker, *next);
    let mut sent = 0;
    for row in block.records().chunks_exact(stage.files.width + 1) {
        let (node, frequent) = (walk.number(*next) as u32, common.frequent(row));
        for (choice, key) in stage.keys.numbered(&row[1..], row[0]) {
            if !deal.takes(key.partition_bits()) {
                continue;
            }
            let may_be_common = stage.keys.is_within(choice, frequent);
            match may_be_common.then(|| common.chain(key, node)).flatten() {
                Some(first) => chained.push((node, first)),
                None => {
                    sent += 1;
                    deal.deal_gap(0, key.partition_bits(), *next as u32, |gap| KeyedNode::new(key, gap));
                }
            }
        }
        *next += 1;
    }
    sent
}

/// Finds the keys that many documents of a shard share.
///
/// A key has at most as many documents as each of its supershingles, and few supershingles have
/// many. Only keys of which all supershingles may have many documents are counted.
#[derive(Default)]
struct CommonKeys {
    /// Documents by bits of their supershingles, so that each count is an upper bound. Empty if no
    /// supershingle of the shard has too many.
    counts: Vec<u32>,
    /// For each key that was counted: its first document, and how many documents had it so far.
    first_and_count: ByKey<u64, (u32, u32)>,
}

impl CommonKeys {
    /// Begins the next shard, which has `survivors` rows of `width` supershingles: counts the
    /// documents of its supershingles.
    fn begin_shard(&mut self, rows: &Partition<'_, u64>, survivors: u64, width: usize) -> Result<()> {
        self.first_and_count.clear();
        self.counts.clear();
        if survivors <= u64::from(MOST_PER_SHARD) {
            return Ok(());
        }
        // Enough slots that hardly any reaches the limit by supershingles that meet there by
        // chance.
        self.counts.resize((survivors as usize / 8).next_power_of_two().max(1 << 16), 0);
        rows.blocks(|block| {
            for row in block.records().chunks_exact(width + 1) {
                for (_, supershingle) in shared(row) {
                    let slot = slot(supershingle, self.counts.len());
                    self.counts[slot] += 1;
                }
            }
        })?;
        if self.counts.iter().all(|count| *count <= MOST_PER_SHARD) {
            self.counts.clear();
        }
        Ok(())
    }

    /// Returns a mask of a document's shared supershingles that may belong to too many documents,
    /// by bit.
    #[inline]
    fn frequent(&self, row: &[u64]) -> u64 {
        if self.counts.is_empty() {
            return 0;
        }
        let is_frequent = |word| u64::from(self.counts[slot(word, self.counts.len())] > MOST_PER_SHARD);
        shared(row).fold(0, |mask, (column, word)| mask | is_frequent(word) << column)
    }

    /// Counts a document of a key. Returns the key's first document if enough documents had the key
    /// before: this document is then chained to it.
    fn chain(&mut self, key: Key, node: u32) -> Option<u32> {
        let (first, count) = self.first_and_count.entry(key.table_bits()).or_insert((node, 0));
        *count += 1;
        (*count > MOST_PER_SHARD).then_some(*first)
    }
}

/// Returns the shared supershingles of a survivor, each with its column. A row is a mask of them,
/// then all supershingles.
fn shared(row: &[u64]) -> impl Iterator<Item = (u32, u64)> {
    let (mask, words) = (row[0], row[1..].iter().copied());
    (0..).zip(words).filter(move |(column, _)| mask >> column & 1 == 1)
}

/// The slot of a supershingle among `slots`, a power of two.
#[inline]
fn slot(supershingle: u64, slots: usize) -> usize {
    (spread(supershingle) >> 20) as usize & (slots - 1)
}

/// Joins the ends of edges that lead from the nodes of stars to their middles, and notes each
/// middle as its nodes' neighbour.
fn join_stars(edges: &[(u32, u32)], union_find: &UnionFind) -> Result<()> {
    edges.chunks(SIDE_BY_SIDE).try_for_each(|batch| {
        union_find.join(batch)?;
        union_find.note_neighbours(batch);
        Ok(())
    })
}

/// Joins the survivors of a partition that share a key.
struct PartitionJoiner {
    numbers: Rc<OwnNumbers>,
    union_find: Arc<UnionFind>,
    grouper: Grouper,
    /// Edges from nodes to the middles of their stars, which are not joined yet.
    edges: Vec<(u32, u32)>,
    /// The middle of each of these stars, with the smallest of its other nodes.
    middles: Vec<(u32, u32)>,
}

impl PartitionJoiner {
    fn new(numbers: Rc<OwnNumbers>, union_find: Arc<UnionFind>) -> PartitionJoiner {
        PartitionJoiner { numbers, union_find, grouper: Grouper::default(), edges: Vec::new(), middles: Vec::new() }
    }

    /// Joins all nodes of the partition that share a key, and returns the number of edges.
    ///
    /// For each node and each key that it shares it notes the smallest other node of the key as a
    /// neighbour. That one is smaller than the node, except for the smallest node of the key.
    fn join(&mut self, partition: &Partition<'_, KeyedNode>) -> Result<u64> {
        self.group(partition)?;
        let PartitionJoiner { union_find, grouper, edges, middles, .. } = self;
        let mut count = 0;
        let mut join_batch = |edges: &mut Vec<(u32, u32)>, middles: &mut Vec<(u32, u32)>| {
            count += edges.len() as u64;
            join_stars(edges, union_find)?;
            union_find.note_neighbours(middles);
            edges.clear();
            middles.clear();
            anyhow::Ok(())
        };
        // Star by star, so that the cache lines of a middle are fetched once for all of its edges.
        // To prefetch the nodes of the next edges was not faster.
        for (middle, others) in grouper.stars() {
            let before = edges.len();
            edges.extend(others.map(|node| (node, middle)));
            middles.extend(edges[before..].iter().map(|(node, _)| *node).min().map(|second| (middle, second)));
            if edges.len() >= EDGE_BATCH {
                join_batch(edges, middles)?;
            }
        }
        join_batch(edges, middles)?;
        Ok(count)
    }

    /// Groups the nodes of the partition by key.
    fn group(&mut self, partition: &Partition<'_, KeyedNode>) -> Result<()> {
        let PartitionJoiner { numbers, grouper, .. } = self;
        grouper.clear(partition.count());
        partition.blocks(|block| {
            let (mut own, mut walk) = (block.common, numbers.walk(block.from as usize, block.common));
            grouper.add_all(block.records().iter().map(|record| {
                own += record.gap();
                (record.bits(), walk.number(own) as u32)
            }));
        })
    }
}
