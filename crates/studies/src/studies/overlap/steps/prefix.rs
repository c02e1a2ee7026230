//! Pairs by the set join, expanded from rows to units.
//!
//! The join gives pairs of rows, families of rows, and the sets of each row. Here each pair of
//! units becomes one of two kinds:
//!
//! ```text
//! listed      pairs of two rows that the join lists, and of two sets of one row
//! family      pairs of two units of one family: rows that have most of a collection, or equal rows of at least `family` sets
//! ```
//!
//! All sets of a row in a family are in this family. So a unit is in one family at most, and no
//! pair is of both kinds.
//!
//! If the source knows some pairs and families, the pairs are the others: see
//! [`KnownSet`](crate::operators::set_join::KnownSet).
//!
//! Known limit: the sets of all rows of a worker are in memory, 16 bytes each, and one pair of rows
//! is expanded at once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, Dealer, all_to_all, send_rows};
use serde::{Deserialize, Serialize};

use super::counting::CountingWork;
use super::unit_pairs::{FamilyChunks, FamilyMember, PairTables, SharedPair};
use crate::operators::components::{OwnForest, edge};
use crate::operators::set_join::{FrequentColumn, RowPair, SetJoin, SetJoinStage, SetSource, TooManyPairs, set_join};
use crate::records::{DocId, Edge};
use crate::structures::{CompactSort, ExternalSort, Ownership, Sortable};
use crate::watch::Watch;

/// Bytes of a pair in flight, in all of its forms.
const IN_FLIGHT: u64 = 128;
/// Pairs of rows, or rows, that are named in a refusal.
const NAMED: usize = 10;

/// What is found besides listed pairs.
#[derive(Debug, Default)]
pub struct FamiliesAndEdges {
    /// The own units of families.
    pub families: Vec<FamilyMember>,
    /// The collections of families, each at the owner of the family's name, in their order.
    pub collections: Vec<FamilyChunks>,
    /// Edges whose components are those of all pairs.
    pub edges: Vec<Edge>,
    /// What this worker counted, if pairs are found by counting.
    pub work: CountingWork,
}

/// A pair of rows that the join listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ListedRows {
    own: u32,
    worker: u32,
    other: u32,
    members: [u32; 2],
    shared: u64,
}

impl Sortable for ListedRows {
    type Key = ListedRows;

    fn key(&self) -> ListedRows {
        *self
    }

    fn weight(&self) -> usize {
        size_of::<ListedRows>()
    }
}

/// A unit at the worker of its row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct RowUnit {
    row: u32,
    /// 1 if its pairs with other such units are known.
    is_old: u32,
    unit: DocId,
}

/// A unit that is in pairs with all units of a row of the receiver.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Visitor {
    row: u32,
    is_old: u32,
    unit: DocId,
    shared: u64,
}

/// Finds all pairs of the sets of `source`, and adds those that are listed to `tables`. `family` is
/// the least size of a family; `None` lists all pairs.
///
/// # Errors
/// [`TooManyPairs`], at every worker, before a pair is listed; or if sets or files cannot be read
/// or written, or a worker of this process failed.
pub fn prefix_pairs<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
    family: Option<u64>,
    tables: &mut PairTables,
    owned: &Ownership,
) -> Result<FamiliesAndEdges> {
    let watch = cx.watch().clone();
    let listed = ExternalSort::new(&cx.scratch().join(format!("rows-{}", cx.index())), cx.memory() / 4);
    let listed = Rc::new(RefCell::new((listed, UnitPairs::default(), OwnForest::default())));
    let each = {
        let listed = listed.clone();
        move |pair: RowPair| {
            let RowPair { own, other, names, members, old, shared, .. } = pair;
            let (rows, count, forest) = &mut *listed.borrow_mut();
            let (a, b) = (u64::from(members[0]), u64::from(members[1]));
            count.add(a * b - u64::from(old[0]) * u64::from(old[1]), a + b, names[0].min(names[1]));
            forest.join(names[0], names[1]);
            rows.push(ListedRows { own, worker: other.worker, other: other.number, members, shared: shared[0] })
        }
    };
    let stage =
        SetJoinStage { family: family.unwrap_or(u64::MAX), with_collections: family.is_some(), ..stage.clone() };
    let joined = set_join(cx, &stage, source, each)?;
    let none = ExternalSort::new(&cx.scratch().join("none"), 0);
    let (rows, mut count, forest) = listed.replace((none, UnitPairs::default(), OwnForest::default()));
    let mut found = FamiliesAndEdges { edges: forest.into_edges(), ..FamiliesAndEdges::default() };
    let members = RowMembers::gather(cx, source, stage.has_known, &joined, tables, owned)?;
    let families = families(cx, &joined, &members, stage.family, &mut found)?;
    // Rows whose own pairs are listed.
    let listed_rows: Vec<usize> = (0..joined.rows.len())
        .filter(|row| joined.rows[*row].members > 1 && joined.rows[*row].is_clique)
        .filter(|row| !families.contains_key(row) && joined.rows[*row].known_family == 0)
        .collect();
    for row in listed_rows.iter().map(|row| joined.rows[*row]) {
        count.add(pairs_of(row.members.into()) - pairs_of(row.old.into()), row.members.into(), row.name);
    }
    count.refuse_more(cx, stage.max_pairs)?;
    found.families = family_members(cx, &members, families)?;
    let peers = cx.peers();
    let collections = std::mem::take(&mut found.collections).into_iter();
    let collections = collections.map(|collection| (collection.family.owner(peers), collection)).collect();
    found.collections = send_rows(cx, collections)?;
    found.collections.sort_items();
    let expansion = Expansion { members: &members, most: (cx.memory() / IN_FLIGHT).max(1), watch: &watch };
    let mut rows = rows.sorted()?;
    expansion.of_two_rows(cx, tables, || rows.record())?;
    let mut next = listed_rows.into_iter();
    expansion.of_rows(cx, tables, || next.next().map(|row| (row, joined.rows[row].weight)))?;
    Ok(found)
}

fn pairs_of(units: u64) -> u64 {
    units * units.saturating_sub(1) / 2
}

/// The pairs of units that will be listed, counted before any is.
#[derive(Default)]
struct UnitPairs {
    sum: u64,
    /// The pairs of rows, and rows, with the most: their pairs, their units, and the name of one.
    most: BTreeSet<(u64, u64, u64)>,
}

impl UnitPairs {
    fn add(&mut self, pairs: u64, units: u64, name: u64) {
        self.sum = self.sum.saturating_add(pairs);
        if self.most.len() < NAMED || self.most.first().is_some_and(|least| pairs > least.0) {
            self.most.insert((pairs, units, name));
            if self.most.len() > NAMED {
                self.most.pop_first();
            }
        }
    }

    /// Refuses to list more pairs than allowed.
    fn refuse_more(self, cx: &mut Context, most: u64) -> Result<()> {
        let pairs = cx.sum(self.sum)?;
        if pairs > most {
            let mut largest = cx.sorted(self.most.into_iter().collect())?;
            largest.reverse();
            largest.truncate(NAMED);
            let column = |(pairs, holders, example)| FrequentColumn { pairs, holders, example };
            anyhow::bail!(TooManyPairs { pairs, most, columns: largest.into_iter().map(column).collect() });
        }
        Ok(())
    }
}

/// The units of each own row.
struct RowMembers {
    /// By row: where its members begin; one more at the end.
    starts: Vec<usize>,
    members: Vec<RowUnit>,
}

impl RowMembers {
    /// Sends every unit to the worker of its row, and notes the sizes of own units.
    fn gather<S: SetSource>(
        cx: &mut Context,
        source: &S,
        has_known: bool,
        joined: &SetJoin,
        tables: &mut PairTables,
        owned: &Ownership,
    ) -> Result<RowMembers> {
        let mut dealer = cx.dealer();
        for ((set, size), place) in joined.sets.iter().zip(&joined.sizes).zip(&joined.row_of) {
            let unit = DocId::from_table(source.name(*set as usize) as i64);
            tables.sizes[owned.index(unit)] = *size;
            let is_old = has_known && source.known(*set as usize).is_old;
            dealer.deal(place.worker.into(), RowUnit { row: place.number, is_old: is_old.into(), unit });
        }
        let blocks = all_to_all(cx, dealer)?;
        let mut members: Vec<RowUnit> = blocks.iter().flat_map(|block| block.records()).copied().collect();
        members.sort_rows();
        let starts = (0..=joined.rows.len()).map(|row| members.partition_point(|member| (member.row as usize) < row));
        let starts = starts.collect();
        Ok(RowMembers { starts, members })
    }

    /// The units of a row: new ones, then old ones.
    fn of(&self, row: usize) -> &[RowUnit] {
        &self.members[self.starts[row]..self.starts[row + 1]]
    }
}

/// The own rows in families: the smallest unit of the family, the weight of the row in it, and that
/// of the collection. Adds the edges of families and rows.
fn families(
    cx: &mut Context,
    joined: &SetJoin,
    members: &RowMembers,
    least: u64,
    found: &mut FamiliesAndEdges,
) -> Result<BTreeMap<usize, (u64, u32, u32)>> {
    let rows = || joined.rows.iter().enumerate().filter(|(_, row)| row.members > 0);
    let mut smallest: BTreeMap<u32, u64> = BTreeMap::new();
    for (_, row) in rows() {
        if let Some(number) = row.family {
            let name = smallest.entry(number).or_insert(row.name);
            *name = row.name.min(*name);
        }
    }
    let mut names = vec![u64::MAX; joined.families.len()];
    for (number, name) in cx.sorted(smallest.into_iter().collect())? {
        names[number as usize] = name.min(names[number as usize]);
    }
    let mut families = BTreeMap::new();
    for (number, row) in rows() {
        let of_row =
            members.of(number).iter().map(|member| member.unit.to_table() as u64).filter(|unit| *unit != row.name);
        found.edges.extend(of_row.filter(|_| row.is_clique).map(|unit| edge(unit, row.name)));
        if let Some(of) = row.family {
            let name = names[of as usize];
            families.insert(number, (name, row.of_family, joined.families[of as usize].of as u32));
            found.edges.extend((name != row.name).then(|| edge(row.name, name)));
        } else if row.is_clique && u64::from(row.members) >= least {
            families.insert(number, (row.name, row.weight as u32, row.weight as u32));
        }
    }
    let collection = |(row, chunks): (&usize, &Vec<u64>)| {
        // Equal sets that share too little are no family.
        let (family, ..) = families.get(row)?;
        Some(FamilyChunks { family: DocId::from_table(*family as i64), chunks: chunks.clone() })
    };
    found.collections = joined.collections.iter().filter_map(collection).collect();
    Ok(families)
}

/// Sends every unit of a family to its owner.
fn family_members(
    cx: &mut Context,
    members: &RowMembers,
    families: BTreeMap<usize, (u64, u32, u32)>,
) -> Result<Vec<FamilyMember>> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for (row, (family, weight, of)) in families {
        let family = DocId::from_table(family as i64);
        for RowUnit { unit, .. } in members.of(row) {
            dealer.deal(unit.owner(peers) as u64, FamilyMember { unit: *unit, family, weight, of });
        }
    }
    let blocks = all_to_all(cx, dealer)?;
    Ok(blocks.iter().flat_map(|block| block.records()).copied().collect())
}

/// From pairs of rows to pairs of units, in rounds.
struct Expansion<'a> {
    members: &'a RowMembers,
    /// Pairs of a round, about.
    most: u64,
    watch: &'a std::sync::Arc<Watch>,
}

impl Expansion<'_> {
    /// The pairs of two rows.
    fn of_two_rows(
        &self,
        cx: &mut Context,
        tables: &mut PairTables,
        mut next: impl FnMut() -> Result<Option<ListedRows>>,
    ) -> Result<()> {
        loop {
            let mut dealer = Dealer::new(cx.index(), cx.peers(), self.watch);
            let (mut dealt, mut is_more) = (0, true);
            while dealt < self.most && is_more {
                match next()? {
                    Some(ListedRows { own, worker: to, other, members, shared }) => {
                        for RowUnit { is_old, unit, .. } in self.members.of(own as usize).iter().copied() {
                            dealer.deal(to.into(), Visitor { row: other, is_old, unit, shared });
                        }
                        dealt += u64::from(members[0]) * u64::from(members[1]);
                    }
                    None => is_more = false,
                }
            }
            let blocks = all_to_all(cx, dealer)?;
            let mut pairs = Vec::new();
            for Visitor { row, is_old, unit, shared } in blocks.iter().flat_map(|block| block.records()) {
                let others = self.members.of(*row as usize).iter().filter(|other| is_old & other.is_old == 0);
                pairs.extend(others.map(|other| SharedPair::new(*unit, other.unit, *shared as u32)));
            }
            drop(blocks);
            tables.add(cx, pairs)?;
            if !cx.any(is_more)? {
                return Ok(());
            }
        }
    }

    /// The pairs within rows.
    fn of_rows(
        &self,
        cx: &mut Context,
        tables: &mut PairTables,
        mut next: impl FnMut() -> Option<(usize, u64)>,
    ) -> Result<()> {
        loop {
            let (mut pairs, mut is_more) = (Vec::new(), true);
            while (pairs.len() as u64) < self.most && is_more {
                match next() {
                    Some((row, shared)) => {
                        let units = self.members.of(row);
                        for (number, a) in units.iter().enumerate() {
                            let others = units[number + 1..].iter().filter(|b| a.is_old & b.is_old == 0);
                            pairs.extend(others.map(|b| SharedPair::new(a.unit, b.unit, shared as u32)));
                        }
                    }
                    None => is_more = false,
                }
            }
            tables.add(cx, pairs)?;
            if !cx.any(is_more)? {
                return Ok(());
            }
        }
    }
}
