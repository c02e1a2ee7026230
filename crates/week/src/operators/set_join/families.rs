//! Families: many rows that have most of one collection of elements, so that any two of them are a
//! pair, and no pair need be looked at.
//!
//! Where thousands of pages share a template, their pairs are the square of them. Two rows that
//! lack little of a collection share the rest of it, by the pigeonhole principle
//! ([`Requirement::least_in_family`]). Collections are the frequent elements of some rows, the *seeds*,
//! chosen by a hash of their names.
//!
//! For [`Requirement::Both`] a family is the rows that have enough weight in one and the same
//! element.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use nigh_exchange::Context;

use super::requirement::Requirement;
use super::row_columns::{RowColumn, SortedSets};
use super::stage::SetJoinStage;
use crate::records::mix;
use crate::structures::ByKey;

/// Rows whose frequent columns may be the collection of a family.
const SEEDS: usize = 1000;
/// Changes names of rows to hashes, by which seeds are chosen.
const CHOICE: u64 = 0x2545_F491_4F6C_DD1D;

/// A family of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Family {
    /// The name of the set whose elements are its collection; of an element of a family by one
    /// element, its id.
    pub name: u64,
    /// What the collection weighs: two sets that have the weights `a` and `b` of it share
    /// `a + b - of` at least. 0 for a family by one element.
    pub of: u64,
    /// The number of its rows.
    pub rows: u64,
}

/// The families of all workers, and those of the own rows.
#[derive(Debug, Default)]
pub(super) struct Families {
    /// All families, the same at every worker.
    pub all: Vec<Family>,
    /// By own row: the number of its family plus one, or 0. Known families have numbers behind
    /// those of all families.
    pub of_row: Vec<u32>,
    /// By own row: the weight that it has of the collection of its family.
    pub weights: Vec<u32>,
}

/// A seed: the hash by which it is chosen, its name and size, and the ids and weights of its
/// frequent columns.
type Seed = (u64, u64, u32, Vec<(u64, u32)>);

/// Finds the families of the own rows.
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn families(cx: &mut Context, stage: &SetJoinStage, rows: &SortedSets) -> Result<Families> {
    let collections = match stage.requirement {
        _ if stage.has_known => FamilyMembers::default(),
        Requirement::Both(least) => by_one_column(cx, stage, rows, least)?,
        _ => by_seeds(cx, stage, rows)?,
    };
    let mut found = Families { all: collections.1, of_row: vec![0; rows.len()], weights: vec![0; rows.len()] };
    for (row, family, weight) in collections.0 {
        found.of_row[row] = family + 1;
        found.weights[row] = weight;
    }
    found.dissolve(cx, stage)?;
    let found_families = found.all.len() as u32;
    for (family, known) in found.of_row.iter_mut().zip(&rows.known_family).filter(|(_, known)| **known > 0) {
        *family = found_families + known;
    }
    Ok(found)
}

/// Rows with the number of their family and their weight in it; and the families.
type FamilyMembers = (Vec<(usize, u32, u32)>, Vec<Family>);

/// The columns of a row that enough rows have for a family.
fn frequent(rows: &SortedSets, row: usize, family: u64) -> &[RowColumn] {
    let columns = rows.columns(row);
    &columns[columns.partition_point(|column| u64::from(column.rows) < family)..]
}

/// Families by the collections of seeds: a row belongs to the first seed of whose collection it has
/// enough.
fn by_seeds(cx: &mut Context, stage: &SetJoinStage, rows: &SortedSets) -> Result<FamilyMembers> {
    let requirement = stage.requirement;
    let mut seeds: Vec<(u64, usize)> = Vec::new();
    for row in rows.living() {
        let weight: u64 = frequent(rows, row, stage.family).iter().map(|column| u64::from(column.weight)).sum();
        if weight > 0 && weight >= requirement.least(rows.sizes[row].into()) {
            seeds.push((mix(rows.names[row] ^ CHOICE), row));
        }
    }
    seeds.sort_unstable_by_key(|(hash, row)| (*hash, rows.names[*row]));
    seeds.truncate(SEEDS);
    // First the hashes alone: collections are large, and few of them are chosen.
    let mut hashes = cx.sorted(seeds.iter().map(|(hash, _)| *hash).collect())?;
    hashes.truncate(SEEDS);
    let last = hashes.last().copied().unwrap_or_default();
    let collection =
        |row: usize| frequent(rows, row, stage.family).iter().map(|column| (column.id, column.weight)).collect();
    let seed = |(hash, row): (u64, usize)| (hash, rows.names[row], rows.sizes[row], collection(row));
    let own: Vec<Seed> = seeds.into_iter().filter(|(hash, _)| *hash <= last).map(seed).collect();
    let mut seeds = cx.sorted(own)?;
    seeds.truncate(SEEDS);
    let index = SeedIndex::new(requirement, seeds);
    let mut counts = vec![0; index.seeds.len()];
    let mut members = Vec::new();
    for row in rows.living() {
        let columns = frequent(rows, row, stage.family).iter().map(|column| (column.id, column.weight));
        if let Some((seed, weight)) = index.family_of(columns, rows.sizes[row].into(), &mut counts) {
            members.push((row, seed as u32, weight as u32));
        }
    }
    let families = index.seeds.iter().map(|seed| Family { name: seed.0, of: seed.1, rows: 0 });
    Ok((members, families.collect()))
}

/// The seeds that are of their own family, and of which none is of the family of one before it.
struct SeedIndex {
    requirement: Requirement,
    /// The name of each seed, and what its collection weighs.
    seeds: Vec<(u64, u64)>,
    /// The seeds that have a column.
    with: ByKey<u64, Vec<u32>>,
}

impl SeedIndex {
    fn new(requirement: Requirement, seeds: Vec<Seed>) -> SeedIndex {
        let mut index = SeedIndex { requirement, seeds: Vec::new(), with: ByKey::default() };
        let mut counts = vec![0; seeds.len()];
        for (_, name, size, columns) in seeds {
            let of = columns.iter().map(|(_, weight)| u64::from(*weight)).sum();
            // Its own row is of its family, so that some worker has the collection.
            let is_own = requirement.least_in_family(of, size.into()).is_some_and(|least| of >= least);
            if is_own && index.family_of(columns.iter().copied(), size.into(), &mut counts).is_none() {
                let number = index.seeds.len() as u32;
                index.seeds.push((name, of));
                columns.iter().for_each(|(id, _)| index.with.entry(*id).or_default().push(number));
            }
        }
        index
    }

    /// The first seed of whose collection a row has enough, and the weight that it has. `counts`
    /// has a zero for each seed, also afterwards.
    fn family_of(
        &self,
        columns: impl Iterator<Item = (u64, u32)>,
        size: u64,
        counts: &mut [u64],
    ) -> Option<(usize, u64)> {
        let mut touched = Vec::new();
        for (id, weight) in columns {
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

/// Families by one column: of those in which a row weighs enough by itself, the one that most rows
/// have.
fn by_one_column(cx: &mut Context, stage: &SetJoinStage, rows: &SortedSets, least: u32) -> Result<FamilyMembers> {
    let mut chosen: Vec<(usize, RowColumn)> = Vec::new();
    let mut own: BTreeSet<u64> = BTreeSet::new();
    for row in rows.living() {
        let heavy = frequent(rows, row, stage.family).iter().rev().find(|column| column.weight >= least);
        if let Some(column) = heavy {
            chosen.push((row, *column));
            own.insert(column.id);
        }
    }
    let all: BTreeSet<u64> = cx.sorted(own.into_iter().collect())?.into_iter().collect();
    let numbers: BTreeMap<u64, u32> = all.into_iter().zip(0..).collect();
    let members = chosen.into_iter().filter_map(|(row, column)| Some((row, *numbers.get(&column.id)?, column.weight)));
    let families = numbers.keys().map(|id| Family { name: *id, of: 0, rows: 0 }).collect();
    Ok((members.collect(), families))
}

impl Families {
    /// Counts the rows of the families, and dissolves those that have too few.
    fn dissolve(&mut self, cx: &mut Context, stage: &SetJoinStage) -> Result<()> {
        let mut own: BTreeMap<u32, u64> = BTreeMap::new();
        self.of_row.iter().filter(|family| **family > 0).for_each(|family| *own.entry(*family).or_default() += 1);
        for (family, count) in cx.sorted(own.into_iter().collect())? {
            self.all[family as usize - 1].rows += count;
        }
        let mut numbers = vec![0u32];
        let mut left = Vec::new();
        for family in &self.all {
            let stays = family.rows >= stage.family.max(2);
            left.extend(stays.then_some(*family));
            numbers.push(if stays { left.len() as u32 } else { 0 });
        }
        self.all = left;
        self.of_row.iter_mut().for_each(|family| *family = numbers[*family as usize]);
        Ok(())
    }
}
