//! Collapse: vectors that are identical become one node.
//!
//! This is the virtually-identical clustering itself (Fetterly 2004, section 2: all supershingles
//! agree), since equality needs no propagation. The owner of a vector learns whether an identical
//! one has a smaller number, and the smallest such number. Only the vector with that smallest
//! number, the *representative*, is compared further.
//!
//! Identical vectors have the same first supershingle, so vectors are grouped by it. The owner of a
//! group also sees which representatives share their first supershingle with another one: what
//! `prune` finds out for the other supershingles.
//!
//! ```text
//! record: 24 bits of the first supershingle's hash, 40 of the
//! vector's, and in 16 bits the vector's own number minus
//! that of the record before                                   10 bytes, to the partition of the first supershingle
//! reply: own number, representative's number                  12 bytes, back to the owner of a duplicate, or of a
//!                                                             representative whose first supershingle is shared
//! ```
//!
//! Together with the bits that chose the partition, vectors are compared by 74 bits at 150 million
//! documents and by 77 at a billion. The chance that two different vectors are taken for one is
//! then one in 1.7 million, or one in 300,000.
//!
//! A page that occurs everywhere (a blank one, an error) would make the owner of its partition the
//! bottleneck. So each sender remembers the vectors that it sent recently, and does not send an
//! identical one again.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::stage::{Clustering, check_next};
use crate::kernels::memory::{SIDE_BY_SIDE, advise_huge_pages, fetch_to_write, preload};
use crate::operators::scan::ChunkScan;
use crate::records::{fold, spread};
use crate::structures::{BitColumns, Counters, Numbering, OwnNumbers, Ownership, RankBitmap};

/// A vector on its way to the partition of its first supershingle. Its fields are bytes, so that
/// records are packed.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct VectorRecord {
    key: [u8; 8],
    /// The vector's own number at its sender, minus that of the record before it.
    gap: [u8; 2],
}

impl VectorRecord {
    /// The record of a vector whose hash is `vector`, and whose first supershingle's hash is
    /// `hash`.
    #[inline]
    fn new(hash: u64, vector: u64, gap: u16) -> VectorRecord {
        let key = hash << 40 | vector & 0xFF_FFFF_FFFF;
        VectorRecord { key: key.to_le_bytes(), gap: gap.to_le_bytes() }
    }

    /// 24 bits of the first supershingle's hash, then 40 of the vector's: the same for identical
    /// vectors.
    #[inline]
    fn key(&self) -> u64 {
        u64::from_le_bytes(self.key)
    }

    #[inline]
    fn gap(&self) -> u64 {
        u16::from_le_bytes(self.gap).into()
    }

    /// The bits of the first supershingle's hash, at the top of a word.
    #[inline]
    fn first_hash(&self) -> u32 {
        first_hash(self.key())
    }
}

/// The bits of the first supershingle's hash in a key, at the top of a word.
#[inline]
fn first_hash(key: u64) -> u32 {
    (key >> 32) as u32 & !0xFF
}

/// A reply to the owner of a vector. There is none for a vector that shares its first supershingle
/// with no other one.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct VectorNotice {
    /// The vector's own number.
    own: u32,
    /// The low 32 bits of the number of its representative, which may be the vector itself.
    low: u32,
    /// The high 32 bits.
    high: u32,
}

impl VectorNotice {
    #[inline]
    fn new(own: u32, representative: u64) -> VectorNotice {
        VectorNotice { own, low: representative as u32, high: (representative >> 32) as u32 }
    }

    #[inline]
    fn representative(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// What the notices of a block mean, the same for all of them. It is sent as the block's `common`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoticeKind {
    /// The vectors are representatives whose first supershingle is shared with another one (nearly
    /// always so: a hash decides).
    SharesFirst,
    /// The vectors are duplicates.
    IsDuplicate,
}

impl NoticeKind {
    fn code(self) -> u64 {
        match self {
            NoticeKind::SharesFirst => 0,
            NoticeKind::IsDuplicate => 1,
        }
    }

    fn of(block: &BlockOf<VectorNotice>) -> NoticeKind {
        if block.common == NoticeKind::SharesFirst.code() { NoticeKind::SharesFirst } else { NoticeKind::IsDuplicate }
    }
}

/// The duplicates among the own vectors.
pub struct Collapsed {
    /// Marks the own vectors that are duplicates, and of the others those whose first supershingle
    /// is shared.
    pub marks: BitColumns,
    /// The number of each duplicate's representative, in the order of the duplicates' own numbers.
    pub firsts: Vec<u64>,
}

/// Records of a partition, at most: see `prune`.
const MOST_RECORDS: u64 = 3 << 16;

/// Vectors that a sender sent recently, by hash, with their numbers: a direct-mapped cache. A
/// vector that one document in a thousand has is found in it 98 times of 100.
struct RecentVectors {
    slots: Vec<(u64, u64)>,
}

impl RecentVectors {
    const SLOTS: usize = 1 << 12;

    fn new() -> RecentVectors {
        let mut slots = vec![(0, 0); RecentVectors::SLOTS];
        // An empty slot must hold a hash that maps to another slot. 0 is a valid hash and maps to
        // slot 0.
        slots[0].0 = u64::MAX;
        RecentVectors { slots }
    }

    /// The slot of a vector, by its hash; the vector is in it if the slot holds the hash.
    #[inline]
    fn slot(&mut self, vector: u64) -> &mut (u64, u64) {
        &mut self.slots[(vector >> 40) as usize % RecentVectors::SLOTS]
    }
}

/// Finds the duplicates among all vectors; this worker returns those of its own ones.
///
/// Morally it does this:
///
/// ```text
/// for each vector v, with its number:
///     representative[v] = min(representative[v], number)
/// for each vector v, with its number:
///     if representative[v] < number:
///         notify v's owner: v is a duplicate of representative[v]
///     else if another representative has the same first supershingle:
///         notify v's owner: v's first supershingle is shared
/// ```
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub fn collapse(cx: &mut Context, stage: &Clustering, owned: &Ownership) -> Result<Collapsed> {
    let vectors = stage.numbering.len();
    let cut = KeyRanges::new(vectors, MOST_RECORDS, size_of::<VectorRecord>(), 1, cx.peers(), cx.memory());
    let replies = Rc::new(RefCell::new(CollapseReplies {
        marks: BitColumns::new(owned.len(), stage.files.width),
        duplicates: Vec::new(),
        unsent: Vec::new(),
    }));
    let open = {
        let (stage, owned, replies) = (Rc::new(stage.clone()), Rc::new(owned.clone()), replies.clone());
        move || {
            let mut pass = VectorPass::new(stage.clone(), owned.clone(), replies.clone());
            move |deal: &mut RangeDealer<'_, VectorRecord>| pass.next(deal)
        }
    };
    let mut collapser = PartitionCollapser::new(OwnNumbers::new(&stage.numbering, cx.peers()));
    let collapse = move |partition: &Partition<'_, VectorRecord>, dealer: &mut Dealer<VectorNotice>| {
        collapser.collapse(partition, dealer)
    };
    let receive = {
        let replies = replies.clone();
        move |block| replies.borrow_mut().receive(block)
    };
    by_key(cx, "Collapse", cut, cx.spill_buffer(), open, collapse, receive)?;
    Ok(replies.take().collapsed(&stage.numbering, owned))
}

/// One pass over the own vectors: sends those whose partitions lie in one range, except repeated
/// ones.
struct VectorPass {
    stage: Rc<Clustering>,
    owned: Rc<Ownership>,
    replies: Rc<RefCell<CollapseReplies>>,
    chunks: ChunkScan,
    recent: RecentVectors,
    /// How many own vectors were read: the own number of the next one.
    read: usize,
}

impl VectorPass {
    fn new(stage: Rc<Clustering>, owned: Rc<Ownership>, replies: Rc<RefCell<CollapseReplies>>) -> VectorPass {
        let chunks = stage.files.chunks();
        VectorPass { stage, owned, replies, chunks, recent: RecentVectors::new(), read: 0 }
    }

    /// Reads one chunk of vectors and deals them. Returns `false` at the end of the pass.
    fn next(&mut self, deal: &mut RangeDealer<'_, VectorRecord>) -> Result<bool> {
        let VectorPass { stage, owned, replies, chunks, recent, read } = self;
        let chunk = chunks.next_chunk()?;
        check_next(chunk.as_ref(), *read, owned)?;
        let Some(chunk) = chunk else { return Ok(false) };
        let (first_own, first_number) = (*read, stage.numbering.first(chunk.shard) + chunk.first);
        let mut replies = replies.borrow_mut();
        for (row, supershingles) in chunk.words().chunks_exact(stage.files.width).enumerate() {
            let (own, number) = ((first_own + row) as u32, first_number + row as u64);
            let (hash, vector) = (spread(supershingles[0]), fold(supershingles));
            let slot = recent.slot(vector);
            if slot.0 != vector {
                *slot = (vector, number);
                deal.deal_gap(0, hash, own, |gap| VectorRecord::new(hash, vector, gap));
            } else if deal.range == 0 {
                // Every pass skips the same vectors; the first pass notes them.
                replies.unsent.push(VectorNotice::new(own, slot.1));
            }
        }
        *read += chunk.rows();
        Ok(true)
    }
}

/// The replies to the owner of vectors, and the vectors that it did not send.
#[derive(Default)]
struct CollapseReplies {
    marks: BitColumns,
    /// Notices of duplicates, in the order of arrival.
    duplicates: Vec<BlockOf<VectorNotice>>,
    /// Vectors that were not sent, each with the number of an identical one that was sent.
    unsent: Vec<VectorNotice>,
}

impl CollapseReplies {
    fn receive(&mut self, block: BlockOf<VectorNotice>) {
        let vectors = block.records().iter().map(|notice| notice.own);
        match NoticeKind::of(&block) {
            NoticeKind::SharesFirst => self.marks.share(0, vectors),
            NoticeKind::IsDuplicate => {
                self.marks.set_duplicates(vectors);
                self.duplicates.push(block);
            }
        }
    }

    /// Puts the representatives of duplicates in the order of the duplicates' own numbers.
    fn collapsed(self, numbering: &Numbering, owned: &Ownership) -> Collapsed {
        let CollapseReplies { mut marks, duplicates, unsent } = self;
        marks.set_duplicates(unsent.iter().map(|notice| notice.own));
        let ranks = RankBitmap::of_bits(marks.duplicate_bits());
        let mut firsts = vec![0; ranks.count()];
        advise_huge_pages(&mut firsts);
        for block in duplicates {
            for notices in block.records().chunks(SIDE_BY_SIDE) {
                let mut ranks_of = [(true, 0); SIDE_BY_SIDE];
                ranks.get_all(notices.iter().map(|notice| notice.own as usize), &mut ranks_of);
                let ranks_of = &ranks_of[..notices.len()];
                ranks_of.iter().for_each(|(_, rank)| fetch_to_write(&firsts, *rank));
                ranks_of.iter().zip(notices).for_each(|((_, rank), notice)| firsts[*rank] = notice.representative());
            }
        }
        // The identical vector that was sent is either a duplicate, whose representative is known
        // by now, or a representative.
        for notice in unsent {
            let sent = notice.representative();
            let first = match ranks.get(owned.index(numbering.id(sent))) {
                (true, rank) => firsts[rank],
                (false, _) => sent,
            };
            firsts[ranks.get(notice.own as usize).1] = first;
        }
        Collapsed { marks, firsts }
    }
}

/// Finds the identical vectors of a partition.
struct PartitionCollapser {
    numbers: OwnNumbers,
    counters: Counters,
    /// Room for the vectors of one block whose first supershingle occurs again: key and own number
    /// at the sender.
    shared: Vec<(u64, u64)>,
    candidates: Vec<CollapseCandidate>,
    /// Room for the slots of [`RepresentativeTable`].
    slots: Vec<u32>,
    representatives: Vec<Representative>,
}

/// A vector whose first supershingle occurs again.
struct CollapseCandidate {
    origin: VectorOrigin,
    /// The index of its representative.
    representative: u32,
}

/// A vector by its sender and its own number there.
#[derive(Clone, Copy, PartialEq, Eq)]
struct VectorOrigin {
    sender: u32,
    own: u32,
}

/// Of the identical vectors seen so far, the one with the smallest number.
struct Representative {
    key: u64,
    number: u64,
    origin: VectorOrigin,
}

impl PartitionCollapser {
    fn new(numbers: OwnNumbers) -> PartitionCollapser {
        PartitionCollapser {
            numbers,
            counters: Counters::default(),
            shared: Vec::new(),
            candidates: Vec::new(),
            slots: Vec::new(),
            representatives: Vec::new(),
        }
    }

    /// Sends the notices of a partition's vectors to their owners.
    fn collapse(&mut self, vectors: &Partition<'_, VectorRecord>, dealer: &mut Dealer<VectorNotice>) -> Result<()> {
        self.find_representatives(vectors)?;
        let PartitionCollapser { counters, candidates, representatives, .. } = self;
        counters.clear(representatives.len());
        representatives.iter().for_each(|first| counters.add(first_hash(first.key)));
        dealer.set_common(NoticeKind::SharesFirst.code());
        for first in representatives.iter().filter(|first| counters.again(first_hash(first.key))) {
            dealer.deal(first.origin.sender.into(), VectorNotice::new(first.origin.own, first.number));
        }
        dealer.set_common(NoticeKind::IsDuplicate.code());
        for CollapseCandidate { origin, representative } in candidates.iter() {
            let first = &representatives[*representative as usize];
            if *origin != first.origin {
                dealer.deal(origin.sender.into(), VectorNotice::new(origin.own, first.number));
            }
        }
        Ok(())
    }

    /// Fills `candidates` and `representatives` from the vectors whose first supershingle occurs
    /// again.
    fn find_representatives(&mut self, vectors: &Partition<'_, VectorRecord>) -> Result<()> {
        let PartitionCollapser { numbers, counters, shared, candidates, slots, representatives } = self;
        counters.clear(vectors.count());
        vectors.blocks(|block| block.records().iter().for_each(|record| counters.add(record.first_hash())))?;
        candidates.clear();
        representatives.clear();
        // A third of all vectors share their first supershingle, and these have a tenth as many
        // different values as there are vectors. The table begins small, so that it stays near the
        // core, and grows.
        let mut table = RepresentativeTable::new(slots, vectors.count() / 8);
        vectors.blocks(|block| {
            shared.resize(block.records().len().max(shared.len()), (0, 0));
            // Written without a branch: a third of them are candidates.
            let (mut own, mut count) = (block.common, 0);
            for record in block.records() {
                own += record.gap();
                shared[count] = (record.key(), own);
                count += usize::from(counters.again(record.first_hash()));
            }
            let mut walk = numbers.walk(block.from as usize, block.common);
            for batch in shared[..count].chunks(SIDE_BY_SIDE) {
                table.prefetch(representatives, batch);
                for (key, own) in batch {
                    let origin = VectorOrigin { sender: block.from, own: *own as u32 };
                    let vector = Representative { key: *key, number: walk.number(*own), origin };
                    let representative = table.representative(representatives, vector);
                    candidates.push(CollapseCandidate { origin, representative });
                }
            }
        })
    }
}

/// A hash table of representatives by key, with open addressing: a slot holds the index of a
/// representative plus one, or 0.
struct RepresentativeTable<'a> {
    slots: &'a mut Vec<u32>,
    shift: u32,
}

impl RepresentativeTable<'_> {
    fn new(slots: &mut Vec<u32>, expected: usize) -> RepresentativeTable<'_> {
        let capacity = (expected * 2).next_power_of_two().max(16);
        slots.clear();
        slots.resize(capacity, 0);
        RepresentativeTable { shift: 64 - capacity.trailing_zeros(), slots }
    }

    /// The first slot of a key. The keys of a partition may have their high bits in common, and
    /// representatives their first supershingle; `spread` brings in the low bits.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        (spread(key) >> self.shift) as usize
    }

    /// Prefetches the representatives of some vectors, so that the branches of `representative` do
    /// not stall on cache misses. For an empty slot it fetches the first representative, without a
    /// branch.
    fn prefetch(&self, all: &[Representative], vectors: &[(u64, u64)]) {
        if !all.is_empty() {
            let number = |key| all[(self.slots[self.slot(key)] as usize).saturating_sub(1)].number;
            preload(vectors.iter().map(|(key, _)| number(*key)));
        }
    }

    /// Returns the index of a vector's representative, which becomes the vector itself if its
    /// number is smaller.
    fn representative(&mut self, all: &mut Vec<Representative>, vector: Representative) -> u32 {
        if all.len() * 2 >= self.slots.len() {
            self.grow(all);
        }
        let mut slot = self.slot(vector.key);
        loop {
            match self.slots[slot] {
                0 => {
                    all.push(vector);
                    self.slots[slot] = all.len() as u32;
                    return all.len() as u32 - 1;
                }
                taken => {
                    let first = &mut all[taken as usize - 1];
                    if first.key == vector.key {
                        if vector.number < first.number {
                            *first = vector;
                        }
                        return taken - 1;
                    }
                    slot = (slot + 1) & (self.slots.len() - 1);
                }
            }
        }
    }

    fn grow(&mut self, all: &[Representative]) {
        let capacity = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(capacity, 0);
        self.shift -= 1;
        for (index, first) in all.iter().enumerate() {
            let mut slot = self.slot(first.key);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (capacity - 1);
            }
            self.slots[slot] = index as u32 + 1;
        }
    }
}
