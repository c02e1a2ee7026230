//! Pairs by the set join, expanded from distinct sets to units: the members of a distinct set.
//!
//! The join gives pairs of distinct sets, families of distinct sets, and the members of each. Here
//! each pair of units becomes one of two kinds:
//!
//! ```text
//! listed      units of two distinct sets that the join lists, and two units of one distinct set
//! family      two units of one family: sets that have most of a collection, or a distinct set of
//!             at least `family` units
//! ```
//!
//! All units of a distinct set in a family are in this family. So a unit is in one family at most,
//! and no pair is of both kinds.
//!
//! If the source knows some pairs and families, the pairs are the others: see
//! [`KnownSet`](crate::operators::set_join::KnownSet).
//!
//! Known limit: the units of all distinct sets of a worker are in memory, 16 bytes each, and one
//! pair of distinct sets is expanded at once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, Dealer, all_to_all, send_rows};
use serde::{Deserialize, Serialize};

use super::found_pairs::FamiliesAndEdges;
use super::unit_pairs::{FamilyChunks, FamilyMember, PairTables, SharedPair};
use crate::operators::components::{OwnForest, edge};
use crate::operators::set_join::{FrequentElement, SetJoin, SetJoinStage, SetPair, SetSource, TooManyPairs, set_join};
use crate::records::DocId;
use crate::structures::{CompactSort, ExternalSort, Ownership, Sortable};
use crate::watch::Watch;

/// Bytes of a pair in flight, in all of its forms.
const IN_FLIGHT: u64 = 128;
/// Distinct sets, or pairs of them, that are named in a refusal.
const NAMED: usize = 10;

/// A pair of distinct sets that the join listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ListedSets {
    own: u32,
    worker: u32,
    other: u32,
    members: [u32; 2],
    shared: u64,
}

impl Sortable for ListedSets {
    type Key = ListedSets;

    fn key(&self) -> ListedSets {
        *self
    }

    fn weight(&self) -> usize {
        size_of::<ListedSets>()
    }
}

/// A unit at the worker of its distinct set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct MemberUnit {
    distinct: u32,
    /// 1 if its pairs with other such units are known.
    is_old: u32,
    unit: DocId,
}

/// A unit that is in pairs with all units of a distinct set of the receiver.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Visitor {
    distinct: u32,
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
    let listed = ExternalSort::new(&cx.scratch().join(format!("sets-{}", cx.index())), cx.memory() / 4);
    let listed = Rc::new(RefCell::new((listed, UnitPairs::default(), OwnForest::default())));
    let each = {
        let listed = listed.clone();
        move |pair: SetPair| {
            let SetPair { own, other, names, members, old, shared, .. } = pair;
            let (pairs, count, forest) = &mut *listed.borrow_mut();
            let (a, b) = (u64::from(members[0]), u64::from(members[1]));
            count.add(a * b - u64::from(old[0]) * u64::from(old[1]), a + b, names[0].min(names[1]));
            forest.join(names[0], names[1]);
            pairs.push(ListedSets { own, worker: other.worker, other: other.number, members, shared: shared[0] })
        }
    };
    let stage =
        SetJoinStage { family: family.unwrap_or(u64::MAX), with_collections: family.is_some(), ..stage.clone() };
    let joined = set_join(cx, &stage, source, each)?;
    let none = ExternalSort::new(&cx.scratch().join("none"), 0);
    let (pairs, mut count, forest) = listed.replace((none, UnitPairs::default(), OwnForest::default()));
    let mut found = FamiliesAndEdges { edges: forest.into_edges(), ..FamiliesAndEdges::default() };
    let members = SetMembers::gather(cx, source, stage.has_known, &joined, tables, owned)?;
    let families = families(cx, &joined, &members, stage.family, &mut found)?;
    // Distinct sets whose own pairs are listed.
    let listed_sets: Vec<usize> = (0..joined.distinct.len())
        .filter(|set| joined.distinct[*set].members > 1 && joined.distinct[*set].is_clique)
        .filter(|set| !families.contains_key(set) && joined.distinct[*set].known_family == 0)
        .collect();
    for set in listed_sets.iter().map(|set| joined.distinct[*set]) {
        count.add(pairs_of(set.members.into()) - pairs_of(set.old.into()), set.members.into(), set.name);
    }
    // Before the first pair is written. The join has refused too many pairs of distinct sets; each
    // of these is as many pairs of units as the product of their members.
    count.refuse_more(cx, stage.max_pairs)?;
    found.families = family_members(cx, &members, families)?;
    let peers = cx.peers();
    let collections = std::mem::take(&mut found.collections).into_iter();
    let collections = collections.map(|collection| (collection.family.owner(peers), collection)).collect();
    found.collections = send_rows(cx, collections)?;
    found.collections.sort_items();
    let expansion = Expansion { members: &members, most: (cx.memory() / IN_FLIGHT).max(1), watch: &watch };
    let mut pairs = pairs.sorted()?;
    expansion.of_two_sets(cx, tables, || pairs.record())?;
    let mut next = listed_sets.into_iter();
    expansion.of_sets(cx, tables, || next.next().map(|set| (set, joined.distinct[set].weight)))?;
    Ok(found)
}

fn pairs_of(units: u64) -> u64 {
    units * units.saturating_sub(1) / 2
}

/// The pairs of units that will be listed, counted before any is.
#[derive(Default)]
struct UnitPairs {
    sum: u64,
    /// The distinct sets, and pairs of them, with the most: their pairs, units, and the name of
    /// one.
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
            let element = |(pairs, sets, example)| FrequentElement { pairs, sets, example };
            anyhow::bail!(TooManyPairs { pairs, most, elements: largest.into_iter().map(element).collect() });
        }
        Ok(())
    }
}

/// The units of each own distinct set.
struct SetMembers {
    /// By distinct set: where its members begin; one more at the end.
    starts: Vec<usize>,
    members: Vec<MemberUnit>,
}

impl SetMembers {
    /// Sends every unit to the worker of its distinct set, and notes the sizes of own units.
    fn gather<S: SetSource>(
        cx: &mut Context,
        source: &S,
        has_known: bool,
        joined: &SetJoin,
        tables: &mut PairTables,
        owned: &Ownership,
    ) -> Result<SetMembers> {
        let mut dealer = cx.dealer();
        for ((set, size), distinct) in joined.sets.iter().zip(&joined.sizes).zip(&joined.distinct_of) {
            let unit = DocId::from_table(source.name(*set as usize) as i64);
            tables.sizes[owned.index(unit)] = *size;
            let is_old = has_known && source.known(*set as usize).is_old;
            dealer.deal(distinct.worker.into(), MemberUnit { distinct: distinct.number, is_old: is_old.into(), unit });
        }
        let blocks = all_to_all(cx, dealer)?;
        let mut members: Vec<MemberUnit> = blocks.iter().flat_map(|block| block.records()).copied().collect();
        // By distinct set, then new units before old ones: see `SetMembers::of`.
        members.sort_rows();
        let starts =
            (0..=joined.distinct.len()).map(|set| members.partition_point(|member| (member.distinct as usize) < set));
        let starts = starts.collect();
        Ok(SetMembers { starts, members })
    }

    /// The units of a distinct set: new ones, then old ones.
    fn of(&self, set: usize) -> &[MemberUnit] {
        &self.members[self.starts[set]..self.starts[set + 1]]
    }
}

/// The own distinct sets in families: the smallest unit of the family, the weight of the set in it,
/// and that of the collection. Adds the edges of families and of distinct sets.
fn families(
    cx: &mut Context,
    joined: &SetJoin,
    members: &SetMembers,
    least: u64,
    found: &mut FamiliesAndEdges,
) -> Result<BTreeMap<usize, (u64, u32, u32)>> {
    let sets = || joined.distinct.iter().enumerate().filter(|(_, set)| set.members > 0);
    let mut smallest: BTreeMap<u32, u64> = BTreeMap::new();
    for (_, set) in sets() {
        if let Some(number) = set.family {
            let name = smallest.entry(number).or_insert(set.name);
            *name = set.name.min(*name);
        }
    }
    let mut names = vec![u64::MAX; joined.families.len()];
    for (number, name) in cx.sorted(smallest.into_iter().collect())? {
        names[number as usize] = name.min(names[number as usize]);
    }
    let mut families = BTreeMap::new();
    for (number, set) in sets() {
        let of_set =
            members.of(number).iter().map(|member| member.unit.to_table() as u64).filter(|unit| *unit != set.name);
        found.edges.extend(of_set.filter(|_| set.is_clique).map(|unit| edge(unit, set.name)));
        if let Some(of) = set.family {
            let name = names[of as usize];
            families.insert(number, (name, set.of_family, joined.families[of as usize].of as u32));
            found.edges.extend((name != set.name).then(|| edge(set.name, name)));
        } else if set.is_clique && u64::from(set.members) >= least {
            families.insert(number, (set.name, set.weight as u32, set.weight as u32));
        }
    }
    let collection = |(set, chunks): (&usize, &Vec<u64>)| {
        // Equal sets that share too little are no family.
        let (family, ..) = families.get(set)?;
        Some(FamilyChunks { family: DocId::from_table(*family as i64), chunks: chunks.clone() })
    };
    found.collections = joined.collections.iter().filter_map(collection).collect();
    Ok(families)
}

/// Sends every unit of a family to its owner.
fn family_members(
    cx: &mut Context,
    members: &SetMembers,
    families: BTreeMap<usize, (u64, u32, u32)>,
) -> Result<Vec<FamilyMember>> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for (set, (family, weight, of)) in families {
        let family = DocId::from_table(family as i64);
        for MemberUnit { unit, .. } in members.of(set) {
            dealer.deal(unit.owner(peers) as u64, FamilyMember { unit: *unit, family, weight, of });
        }
    }
    let blocks = all_to_all(cx, dealer)?;
    Ok(blocks.iter().flat_map(|block| block.records()).copied().collect())
}

/// From pairs of distinct sets to pairs of units, in rounds.
struct Expansion<'a> {
    members: &'a SetMembers,
    /// Pairs of a round, about.
    most: u64,
    watch: &'a std::sync::Arc<Watch>,
}

impl Expansion<'_> {
    /// The pairs of units of two distinct sets.
    fn of_two_sets(
        &self,
        cx: &mut Context,
        tables: &mut PairTables,
        mut next: impl FnMut() -> Result<Option<ListedSets>>,
    ) -> Result<()> {
        loop {
            let mut dealer = Dealer::new(cx.index(), cx.peers(), self.watch);
            let (mut dealt, mut is_more) = (0, true);
            while dealt < self.most && is_more {
                match next()? {
                    Some(ListedSets { own, worker: to, other, members, shared }) => {
                        for MemberUnit { is_old, unit, .. } in self.members.of(own as usize).iter().copied() {
                            dealer.deal(to.into(), Visitor { distinct: other, is_old, unit, shared });
                        }
                        dealt += u64::from(members[0]) * u64::from(members[1]);
                    }
                    None => is_more = false,
                }
            }
            let blocks = all_to_all(cx, dealer)?;
            let mut pairs = Vec::new();
            for Visitor { distinct, is_old, unit, shared } in blocks.iter().flat_map(|block| block.records()) {
                let others = self.members.of(*distinct as usize).iter().filter(|other| is_old & other.is_old == 0);
                pairs.extend(others.map(|other| SharedPair::new(*unit, other.unit, *shared as u32)));
            }
            drop(blocks);
            tables.add(cx, pairs)?;
            if !cx.any(is_more)? {
                return Ok(());
            }
        }
    }

    /// The pairs of units of one distinct set.
    fn of_sets(
        &self,
        cx: &mut Context,
        tables: &mut PairTables,
        mut next: impl FnMut() -> Option<(usize, u64)>,
    ) -> Result<()> {
        loop {
            let (mut pairs, mut is_more) = (Vec::new(), true);
            while (pairs.len() as u64) < self.most && is_more {
                match next() {
                    Some((set, shared)) => {
                        let units = self.members.of(set);
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
