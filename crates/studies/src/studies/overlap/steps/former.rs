//! The tables of a former run, and what of them still holds: pairs of texts that both weeks have,
//! families and their collections.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use arrow_array::{Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all};

use super::text_changes::TextChanges;
use super::unit_pairs::{FamilyChunks, FamilyMember, PairTables, SharedPair};
use crate::config::Chunking;
use crate::operators::components::OwnForest;
use crate::records::DocId;
use crate::state::Results;
use crate::structures::{ByKey, Ownership};
use crate::tables::studies::overlap::{FamilyChunkRow, FamilyRow, OverlapRow};
use crate::tables::{Scan, Table, field};

/// Pairs of a round.
const PAIRS: usize = 1 << 18;

/// The tables of a former run, of own shards.
pub struct FormerTables<'a> {
    /// The results of the run.
    pub results: &'a Results,
    /// The pages of this week.
    pub owned: &'a Ownership,
    /// What changed since.
    pub changes: &'a TextChanges,
}

/// A kept pair whose larger page has not its present name yet.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct HalfRenamed {
    a: DocId,
    b: DocId,
    shared: u32,
    sizes: [u32; 2],
    _pad: u32,
}

/// The families of one chunking that a former run found.
#[derive(Debug, Default)]
pub struct FormerFamilies {
    /// Their collections, by the former name of the family, the same at every worker.
    pub collections: Vec<FamilyChunks>,
    /// The members that are left, each at its owner; their families have former names.
    pub members: Vec<FamilyMember>,
}

impl FormerTables<'_> {
    /// Calls `each` with the rows of one chunking in the batches of a table: a batch, and the
    /// numbers of its rows.
    fn each_batch<T: Table>(
        &self,
        columns: &[&str],
        chunking: Chunking,
        mut each: impl FnMut(&RecordBatch, &mut dyn Iterator<Item = usize>) -> Result<()>,
    ) -> Result<()> {
        for (_, rows) in self.results.of_own_shards(T::NAME, self.owned)? {
            Scan::open(rows, columns)?.for_each(|batch| {
                let chunkings: &StringArray = field(batch, "chunking")?;
                each(batch, &mut (0..batch.num_rows()).filter(|row| chunkings.value(*row) == chunking.name()))
            })?;
        }
        Ok(())
    }

    /// Adds the pairs that still hold to `tables`, and joins their pages in `forest`. `pairs` is
    /// the number of pairs that the former run listed.
    ///
    /// # Errors
    /// If a file cannot be read or lacks pairs, or a worker of this process failed.
    pub(super) fn add_pairs(
        &self,
        cx: &mut Context,
        chunking: Chunking,
        pairs: u64,
        tables: &mut PairTables,
        forest: &mut OwnForest,
    ) -> Result<()> {
        let FormerTables { owned, changes, .. } = self;
        let columns = ["chunking", "doc_a", "doc_b", "shared", "containment_a", "containment_b"];
        let own = self.results.of_own_shards(OverlapRow::NAME, owned)?;
        let (mut own, mut scan, mut read) = (own.into_iter(), None, 0);
        let mut is_more = true;
        while cx.any(is_more)? {
            let mut dealer = cx.dealer();
            let mut dealt = 0;
            while is_more && dealt < PAIRS {
                if scan.is_none() {
                    scan = own.next().map(|(_, rows)| Scan::open(rows, &columns)).transpose()?;
                    is_more = scan.is_some();
                }
                let Some(open) = &mut scan else { break };
                let Some(batch) = open.batch()? else {
                    scan = None;
                    continue;
                };
                dealt += batch.num_rows();
                let chunkings: &StringArray = field(&batch, "chunking")?;
                let docs: [&Int64Array; 2] = [field(&batch, "doc_a")?, field(&batch, "doc_b")?];
                let shared: &Int32Array = field(&batch, "shared")?;
                let parts: [&Float64Array; 2] = [field(&batch, "containment_a")?, field(&batch, "containment_b")?];
                for row in (0..batch.num_rows()).filter(|row| chunkings.value(*row) == chunking.name()) {
                    read += 1;
                    let [a, b] = docs.map(|docs| DocId::from_table(docs.value(row)));
                    ensure!(owned.has(a) && owned.knows(b), "the table `overlap` has the unknown page {a} or {b}");
                    let a = changes.renamed[owned.index(a)];
                    if a != DocId::NONE {
                        let shared = shared.value(row) as u32;
                        // A containment is the shared chunks over all.
                        let sizes = parts.map(|part| (f64::from(shared) / part.value(row)).round() as u32);
                        let pair = HalfRenamed { a, b, shared, sizes, _pad: 0 };
                        dealer.deal(b.owner(cx.peers()) as u64, pair);
                    }
                }
            }
            let mut kept = Vec::new();
            for pair in all_to_all(cx, dealer)?.iter().flat_map(|block| block.records()) {
                let b = changes.renamed[owned.index(pair.b)];
                if b != DocId::NONE {
                    let [size_a, size_b] = pair.sizes;
                    let (a, b, sizes) =
                        if pair.a < b { (pair.a, b, [size_a, size_b]) } else { (b, pair.a, [size_b, size_a]) };
                    forest.join(a.to_table() as u64, b.to_table() as u64);
                    kept.push(SharedPair { a, b, shared: pair.shared, sizes, _pad: 0 });
                }
            }
            tables.add(cx, kept)?;
        }
        let all: u64 = cx.sum(read)?;
        ensure!(
            all == pairs,
            "{} has {all} pairs of {}, and its summary says {pairs}: the tables are damaged. With `mode = \"full\"` they are not needed",
            self.results.folder().display(),
            chunking.name()
        );
        Ok(())
    }

    /// Reads the families of a chunking. `counted` is the number of families that the former run
    /// found, and of their pairs.
    ///
    /// # Errors
    /// If a file cannot be read or lacks families, or a worker of this process failed.
    pub(super) fn families(&self, cx: &mut Context, chunking: Chunking, counted: [u64; 2]) -> Result<FormerFamilies> {
        let FormerTables { owned, changes, .. } = self;
        let mut chunks: BTreeMap<DocId, Vec<u64>> = BTreeMap::new();
        self.each_batch::<FamilyChunkRow>(&["chunking", "family", "chunk"], chunking, |batch, rows| {
            let columns: [&Int64Array; 2] = [field(batch, "family")?, field(batch, "chunk")?];
            for row in rows {
                let [family, chunk] = columns.map(|column| column.value(row));
                chunks.entry(DocId::from_table(family)).or_default().push(chunk as u64);
            }
            Ok(())
        })?;
        let own = chunks.into_iter().map(|(family, mut chunks)| {
            chunks.sort_unstable();
            FamilyChunks { family, chunks }
        });
        let collections = cx.sorted(own.collect())?;
        let mut dealer = cx.dealer();
        let mut members_of: BTreeMap<DocId, u64> = BTreeMap::new();
        let mut is_whole = true;
        self.each_batch::<FamilyRow>(&["chunking", "family", "doc", "weight", "of"], chunking, |batch, rows| {
            let columns = ["family", "doc", "weight", "of"].map(|name| field::<Int64Array>(batch, name));
            let [families, docs, weights, of] = columns;
            let (families, docs, weights, of) = (families?, docs?, weights?, of?);
            for row in rows {
                let [family, doc] = [families, docs].map(|column| DocId::from_table(column.value(row)));
                ensure!(owned.has(doc), "the table `families` has the unknown page {doc}");
                *members_of.entry(family).or_default() += 1;
                let collection = collections.binary_search_by_key(&family, |collection| collection.family);
                is_whole &= collection.is_ok_and(|at| collections[at].chunks.len() as i64 == of.value(row));
                let unit = changes.renamed[owned.index(doc)];
                if unit != DocId::NONE {
                    let [weight, of] = [weights, of].map(|column| column.value(row) as u32);
                    let member = FamilyMember { unit, family, weight, of };
                    dealer.deal(unit.owner(cx.peers()) as u64, member);
                }
            }
            Ok(())
        })?;
        let members: Vec<FamilyMember> =
            all_to_all(cx, dealer)?.iter().flat_map(|block| block.records()).copied().collect();
        let own = members_of.into_iter().map(|(family, members)| (family, cx.index(), members)).collect();
        let parts: Vec<(DocId, usize, u64)> = cx.sorted(own)?;
        let is_whole = cx.sorted(vec![is_whole])?.into_iter().all(|is_whole| is_whole);
        let (mut families, mut pairs) = (0u64, 0u64);
        for of_family in parts.chunk_by(|a, b| a.0 == b.0) {
            let members: u64 = of_family.iter().map(|part| part.2).sum();
            (families, pairs) = (families + 1, pairs + members * members.saturating_sub(1) / 2);
        }
        ensure!(
            is_whole && [families, pairs] == counted && collections.len() as u64 == families,
            "{} has {families} families of {} with {pairs} pairs, and its summary says {} and {}; or their collections are not whole: the \
             tables are damaged. With `mode = \"full\"` they are not needed",
            self.results.folder().display(),
            chunking.name(),
            counted[0],
            counted[1]
        );
        Ok(FormerFamilies { collections, members })
    }
}

impl FormerFamilies {
    /// The number of the known family of each own page that is a member, from 1, by the page.
    pub(super) fn numbers(&self) -> ByKey<u64, u32> {
        let number =
            |family: DocId| self.collections.partition_point(|collection| collection.family < family) as u32 + 1;
        self.members.iter().map(|member| (member.unit.to_table() as u64, number(member.family))).collect()
    }
}

/// Finds the families that a new page joins: those of whose collections it has enough.
pub(super) struct FamilyIndex<'a> {
    collections: &'a [FamilyChunks],
    /// The numbers of the collections that have a chunk.
    with: ByKey<u64, Vec<u32>>,
    counts: Vec<u32>,
}

impl FamilyIndex<'_> {
    pub(super) fn new(collections: &[FamilyChunks]) -> FamilyIndex<'_> {
        let mut with: ByKey<u64, Vec<u32>> = ByKey::default();
        for (number, collection) in (0..).zip(collections) {
            collection.chunks.iter().for_each(|chunk| with.entry(*chunk).or_default().push(number));
        }
        FamilyIndex { collections, with, counts: vec![0; collections.len()] }
    }

    /// The first family of whose collection a page has enough, so that it shares `least` chunks
    /// with each member: its number, and the chunks that the page has of it.
    pub(super) fn family_of(&mut self, chunks: &[u64], least: u32) -> Option<(usize, u32)> {
        let mut touched = BTreeSet::new();
        for number in chunks.iter().filter_map(|chunk| self.with.get(chunk)).flatten() {
            self.counts[*number as usize] += 1;
            touched.insert(*number as usize);
        }
        let requirement = crate::operators::set_join::Requirement::Shared(least);
        let has_enough = |number: &usize| {
            let of = self.collections[*number].chunks.len() as u64;
            let least = requirement.least_in_family(of, chunks.len() as u64);
            least.is_some_and(|least| u64::from(self.counts[*number]) >= least)
        };
        let first = touched.iter().copied().find(has_enough).map(|number| (number, self.counts[number]));
        touched.into_iter().for_each(|number| self.counts[number] = 0);
        first
    }
}
