//! Pairs of units: each at the owner of its smaller unit, with the sizes of both; and the partners
//! of each unit.
//!
//! ```text
//! (a, b, shared) ─▶ owner of b: adds b's size and pages ─▶ owner of a: keeps the pair, counts b's pages for a
//!                                                      ─▶ owner of b: counts a's pages for b
//! ```
//!
//! Pairs come in rounds, so that few are in flight, and are sorted on disk beyond the memory for
//! them.

use std::path::Path;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all, send_rows};
use serde::{Deserialize, Serialize};

use super::units::Units;
use crate::records::DocId;
use crate::structures::{ByKey, ExternalSort, Ownership, Sortable, Sorted};

/// A pair of units that share enough chunks, on its way; `a < b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct SharedPair {
    /// The smaller unit.
    pub a: DocId,
    /// The larger unit.
    pub b: DocId,
    /// The chunks that both have.
    pub shared: u32,
    /// The chunks of each, if they are known already; else 0.
    pub sizes: [u32; 2],
    pub(super) _pad: u32,
}

impl Sortable for SharedPair {
    type Key = (DocId, DocId);

    fn key(&self) -> (DocId, DocId) {
        (self.a, self.b)
    }

    fn weight(&self) -> usize {
        size_of::<SharedPair>()
    }
}

/// A pair that knows its larger unit.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct HalfPair {
    pair: SharedPair,
    /// The chunks of `b`.
    size: u32,
    /// The pages of `b`, copies included.
    pages: u32,
}

/// Pages that count for a unit.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Partner {
    unit: DocId,
    pages: u64,
}

/// A pair of units in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitPair {
    /// The number of the chunking in the job.
    pub chunking: u8,
    /// The smaller unit, which this worker owns.
    pub a: DocId,
    /// The larger unit.
    pub b: DocId,
    /// The chunks that both have.
    pub shared: u32,
    /// The chunks of each.
    pub sizes: [u32; 2],
}

impl Sortable for UnitPair {
    type Key = (u32, u8, DocId, DocId);

    fn key(&self) -> Self::Key {
        (self.a.shard(), self.chunking, self.a, self.b)
    }

    fn weight(&self) -> usize {
        size_of::<UnitPair>()
    }
}

impl SharedPair {
    /// The pair of two units, of which the sizes are not known here.
    pub(super) fn new(one: DocId, other: DocId, shared: u32) -> SharedPair {
        SharedPair { a: one.min(other), b: one.max(other), shared, sizes: [0, 0], _pad: 0 }
    }
}

/// A member of a family: any two members share at least the sum of their weights less `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct FamilyMember {
    /// The member, which this worker owns.
    pub unit: DocId,
    /// The smallest member.
    pub family: DocId,
    /// The chunks of the family's collection that the member has.
    pub weight: u32,
    /// The chunks of the collection.
    pub of: u32,
}

/// The collection of a family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FamilyChunks {
    /// The family: its smallest member.
    pub family: DocId,
    /// The chunks, ascending.
    pub chunks: Vec<u64>,
}

/// The pairs of all chunkings, and what is counted for the own units of one of them.
pub struct PairTables {
    owned: Ownership,
    /// The number of the chunking.
    chunking: u8,
    pairs: ExternalSort<UnitPair>,
    /// By own number: the pages, copies included, that a unit stands for.
    pages: Vec<u32>,
    /// By own number: the chunks of the unit, if it may be in pairs.
    pub sizes: Vec<u32>,
    /// By own number: the pages of all units that overlap with this unit.
    pub partners: Vec<u64>,
    /// The pairs of this chunking that are kept here.
    pub listed: u64,
    /// The names of the larger units of kept pairs, if units are hosts; empty until they are asked
    /// for.
    names: Option<ByKey<u64, String>>,
}

impl PairTables {
    /// No pairs. `pages` has the pages that each own unit stands for. `budget` is the memory for
    /// sorted pairs, in bytes.
    pub fn new(units: &Units, pages: Vec<u32>, scratch: &Path, budget: u64) -> PairTables {
        PairTables {
            owned: units.owned.clone(),
            chunking: 0,
            pairs: ExternalSort::new(&scratch.join("pairs"), budget),
            sizes: vec![0; pages.len()],
            partners: vec![0; pages.len()],
            pages,
            listed: 0,
            names: (!units.names.is_empty()).then(ByKey::default),
        }
    }

    /// The pages that each own unit stands for.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// Begins with another chunking.
    pub fn turn_to(&mut self, chunking: u8) {
        self.chunking = chunking;
        self.sizes.fill(0);
        self.partners.fill(0);
        self.listed = 0;
    }

    /// Adds pairs that this worker found. All workers call it, in rounds. The sizes of all own
    /// units are known, except of those in pairs that have them.
    ///
    /// # Errors
    /// If a file cannot be written, or a worker of this process failed.
    pub fn add(&mut self, cx: &mut Context, pairs: Vec<SharedPair>) -> Result<()> {
        let peers = cx.peers();
        let mut dealer = cx.dealer();
        pairs.into_iter().for_each(|pair| dealer.deal(pair.b.owner(peers) as u64, pair));
        let to_larger = all_to_all(cx, dealer)?;
        let mut dealer = cx.dealer();
        for pair in to_larger.iter().flat_map(|block| block.records()) {
            let b = self.owned.index(pair.b);
            let size = if pair.sizes[1] > 0 { pair.sizes[1] } else { self.sizes[b] };
            let half = HalfPair { pair: *pair, size, pages: self.pages[b] };
            dealer.deal(pair.a.owner(peers) as u64, half);
        }
        // The next exchange has all of it.
        drop(to_larger);
        let to_smaller = all_to_all(cx, dealer)?;
        let mut dealer = cx.dealer();
        for HalfPair { pair, size, pages } in to_smaller.iter().flat_map(|block| block.records()).copied() {
            let SharedPair { a, b, shared, sizes: [known, _], .. } = pair;
            let unit = self.owned.index(a);
            self.partners[unit] += u64::from(pages);
            dealer.deal(b.owner(peers) as u64, Partner { unit: b, pages: self.pages[unit].into() });
            let sizes = [if known > 0 { known } else { self.sizes[unit] }, size];
            self.pairs.push(UnitPair { chunking: self.chunking, a, b, shared, sizes })?;
            self.listed += 1;
            if let Some(names) = &mut self.names {
                names.entry(b.to_table() as u64).or_default();
            }
        }
        drop(to_smaller);
        for block in all_to_all(cx, dealer)? {
            for Partner { unit, pages } in block.records() {
                self.partners[self.owned.index(*unit)] += pages;
            }
        }
        Ok(())
    }

    /// All pairs, by shard of the smaller unit, chunking and units; and the names of their larger
    /// units, if units are hosts.
    ///
    /// # Errors
    /// If a file cannot be read, or a worker of this process failed.
    pub fn sorted(self, cx: &mut Context, units: &Units) -> Result<(Sorted<UnitPair>, ByKey<u64, String>)> {
        let mut names = ByKey::default();
        // All units are hosts, or none; a worker may have no host.
        let (index, peers) = (cx.index(), cx.peers());
        let asked = self.names.unwrap_or_default().into_keys();
        let questions = asked.map(|host| (DocId::from_table(host as i64).owner(peers), (index, host))).collect();
        let received = send_rows::<(usize, u64)>(cx, questions)?;
        let name = |host: u64| units.names[units.owned.index(DocId::from_table(host as i64))].clone();
        let answers = received.into_iter().map(|(from, host)| (from, (host, name(host)))).collect();
        names.extend(send_rows::<(u64, String)>(cx, answers)?);
        Ok((self.pairs.sorted()?, names))
    }
}
