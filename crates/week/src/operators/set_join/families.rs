//! Families: many distinct sets that have most of one collection of elements, so that any two of
//! them are a pair, and no pair need be looked at.
//!
//! Where thousands of pages share a template, their pairs are the square of them. Two sets that
//! lack little of a collection share the rest of it, by the pigeonhole principle
//! ([`Requirement::least_in_family`]). Collections are the frequent elements of some sets, the
//! *seeds*, chosen by a hash of their names.
//!
//! For [`Requirement::Both`] a family is the sets that have enough weight in one and the same
//! element.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use nigh_exchange::Context;

use super::merged_elements::{MergedElement, SortedSets};
use super::requirement::Requirement;
use super::stage::SetJoinStage;
use crate::records::mix;
use crate::structures::ByKey;

/// Sets whose frequent elements may be the collection of a family. All workers have the collections
/// of all seeds in memory.
const SEEDS: usize = 1000;
/// Changes names of sets to hashes, by which seeds are chosen.
const CHOICE: u64 = 0x2545_F491_4F6C_DD1D;

/// A family of distinct sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Family {
    /// The name of the set whose elements are its collection; of an element of a family by one
    /// element, its id.
    pub name: u64,
    /// What the collection weighs: two sets that have the weights `a` and `b` of it share
    /// `a + b - of` at least. 0 for a family by one element.
    pub of: u64,
    /// The number of its distinct sets.
    pub sets: u64,
}

/// The families of all workers, and those of the own sets.
#[derive(Debug, Default)]
pub(super) struct Families {
    /// All families, the same at every worker.
    pub all: Vec<Family>,
    /// By own set: the number of its family plus one, or 0. Known families have numbers behind
    /// those of all families.
    pub of_set: Vec<u32>,
    /// By own set: the weight that it has of the collection of its family.
    pub weights: Vec<u32>,
}

/// A seed: the hash by which it is chosen, its name and size, and the ids and weights of its
/// frequent elements.
type Seed = (u64, u64, u32, Vec<(u64, u32)>);

/// Finds the families of the own sets.
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn families(cx: &mut Context, stage: &SetJoinStage, sets: &SortedSets) -> Result<Families> {
    let collections = match stage.requirement {
        _ if stage.has_known => FamilyMembers::default(),
        Requirement::Both(least) => by_one_element(cx, stage, sets, least)?,
        _ => by_seeds(cx, stage, sets)?,
    };
    let mut found = Families { all: collections.1, of_set: vec![0; sets.len()], weights: vec![0; sets.len()] };
    for (set, family, weight) in collections.0 {
        found.of_set[set] = family + 1;
        found.weights[set] = weight;
    }
    found.dissolve(cx, stage)?;
    let found_families = found.all.len() as u32;
    for (family, known) in found.of_set.iter_mut().zip(&sets.known_family).filter(|(_, known)| **known > 0) {
        *family = found_families + known;
    }
    Ok(found)
}

/// Sets with the number of their family and their weight in it; and the families.
type FamilyMembers = (Vec<(usize, u32, u32)>, Vec<Family>);

/// The elements of a set that enough sets have for a family.
fn frequent(sets: &SortedSets, set: usize, family: u64) -> &[MergedElement] {
    let elements = sets.elements(set);
    &elements[elements.partition_point(|element| u64::from(element.sets) < family)..]
}

/// Families by the collections of seeds: a set belongs to the first seed of whose collection it has
/// enough.
fn by_seeds(cx: &mut Context, stage: &SetJoinStage, sets: &SortedSets) -> Result<FamilyMembers> {
    let requirement = stage.requirement;
    let mut seeds: Vec<(u64, usize)> = Vec::new();
    for set in sets.living() {
        let weight: u64 = frequent(sets, set, stage.family).iter().map(|element| u64::from(element.weight)).sum();
        if weight > 0 && weight >= requirement.least(sets.sizes[set].into()) {
            seeds.push((mix(sets.names[set] ^ CHOICE), set));
        }
    }
    seeds.sort_unstable_by_key(|(hash, set)| (*hash, sets.names[*set]));
    seeds.truncate(SEEDS);
    // First the hashes alone: collections are large, and few of them are chosen.
    let mut hashes = cx.sorted(seeds.iter().map(|(hash, _)| *hash).collect())?;
    hashes.truncate(SEEDS);
    let last = hashes.last().copied().unwrap_or_default();
    let collection =
        |set: usize| frequent(sets, set, stage.family).iter().map(|element| (element.id, element.weight)).collect();
    let seed = |(hash, set): (u64, usize)| (hash, sets.names[set], sets.sizes[set], collection(set));
    let own: Vec<Seed> = seeds.into_iter().filter(|(hash, _)| *hash <= last).map(seed).collect();
    let mut seeds = cx.sorted(own)?;
    seeds.truncate(SEEDS);
    let index = SeedIndex::new(requirement, seeds);
    let mut counts = vec![0; index.seeds.len()];
    let mut members = Vec::new();
    for set in sets.living() {
        let elements = frequent(sets, set, stage.family).iter().map(|element| (element.id, element.weight));
        if let Some((seed, weight)) = index.family_of(elements, sets.sizes[set].into(), &mut counts) {
            members.push((set, seed as u32, weight as u32));
        }
    }
    let families = index.seeds.iter().map(|seed| Family { name: seed.0, of: seed.1, sets: 0 });
    Ok((members, families.collect()))
}

/// The seeds that are of their own family, and of which none is of the family of one before it.
struct SeedIndex {
    requirement: Requirement,
    /// The name of each seed, and what its collection weighs.
    seeds: Vec<(u64, u64)>,
    /// The seeds that have an element.
    with: ByKey<u64, Vec<u32>>,
}

impl SeedIndex {
    fn new(requirement: Requirement, seeds: Vec<Seed>) -> SeedIndex {
        let mut index = SeedIndex { requirement, seeds: Vec::new(), with: ByKey::default() };
        let mut counts = vec![0; seeds.len()];
        for (_, name, size, elements) in seeds {
            let of = elements.iter().map(|(_, weight)| u64::from(*weight)).sum();
            // The seed is of its own family, so that some worker has the collection.
            let is_own = requirement.least_in_family(of, size.into()).is_some_and(|least| of >= least);
            if is_own && index.family_of(elements.iter().copied(), size.into(), &mut counts).is_none() {
                let number = index.seeds.len() as u32;
                index.seeds.push((name, of));
                elements.iter().for_each(|(id, _)| index.with.entry(*id).or_default().push(number));
            }
        }
        index
    }

    /// The first seed of whose collection a set has enough, and the weight that it has. `counts`
    /// has a zero for each seed, also afterwards.
    fn family_of(
        &self,
        elements: impl Iterator<Item = (u64, u32)>,
        size: u64,
        counts: &mut [u64],
    ) -> Option<(usize, u64)> {
        let mut touched = Vec::new();
        for (id, weight) in elements {
            for seed in self.with.get(&id).into_iter().flatten() {
                let count = &mut counts[*seed as usize];
                if *count == 0 {
                    touched.push(*seed as usize);
                }
                *count += u64::from(weight);
            }
        }
        let is_member = |seed: &usize| {
            let least = self.requirement.least_in_family(self.seeds[*seed].1, size);
            least.is_some_and(|least| counts[*seed] >= least)
        };
        let first = touched.iter().copied().filter(is_member).min().map(|seed| (seed, counts[seed]));
        touched.into_iter().for_each(|seed| counts[seed] = 0);
        first
    }
}

/// Families by one element: of those in which a set weighs enough by itself, the one that most sets
/// have.
fn by_one_element(cx: &mut Context, stage: &SetJoinStage, sets: &SortedSets, least: u32) -> Result<FamilyMembers> {
    let mut chosen: Vec<(usize, MergedElement)> = Vec::new();
    let mut own: BTreeSet<u64> = BTreeSet::new();
    for set in sets.living() {
        let heavy = frequent(sets, set, stage.family).iter().rev().find(|element| element.weight >= least);
        if let Some(element) = heavy {
            chosen.push((set, *element));
            own.insert(element.id);
        }
    }
    let all: BTreeSet<u64> = cx.sorted(own.into_iter().collect())?.into_iter().collect();
    let numbers: BTreeMap<u64, u32> = all.into_iter().zip(0..).collect();
    let members =
        chosen.into_iter().filter_map(|(set, element)| Some((set, *numbers.get(&element.id)?, element.weight)));
    let families = numbers.keys().map(|id| Family { name: *id, of: 0, sets: 0 }).collect();
    Ok((members.collect(), families))
}

impl Families {
    /// Counts the sets of the families, and dissolves those that have too few.
    fn dissolve(&mut self, cx: &mut Context, stage: &SetJoinStage) -> Result<()> {
        let mut own: BTreeMap<u32, u64> = BTreeMap::new();
        self.of_set.iter().filter(|family| **family > 0).for_each(|family| *own.entry(*family).or_default() += 1);
        for (family, count) in cx.sorted(own.into_iter().collect())? {
            self.all[family as usize - 1].sets += count;
        }
        let mut numbers = vec![0u32];
        let mut left = Vec::new();
        for family in &self.all {
            let stays = family.sets >= stage.family.max(2);
            left.extend(stays.then_some(*family));
            numbers.push(if stays { left.len() as u32 } else { 0 });
        }
        self.all = left;
        self.of_set.iter_mut().for_each(|family| *family = numbers[*family as usize]);
        Ok(())
    }
}
