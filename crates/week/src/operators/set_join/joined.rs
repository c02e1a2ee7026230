//! What a worker knows after a join.

use std::collections::{BTreeMap, HashMap};

use super::distinct_sets::{DistinctSets, SetLocation};
use super::families::Family;
use super::merged_elements::UnmergedElements;
use super::requirement::Requirement;
use super::stage::{SetJoinStage, SetJoinStats};

/// What a worker knows of its own sets after a join. Sets that are not in `sets` are in no pair.
#[derive(Clone, Debug, Default)]
pub struct SetJoin {
    /// The own sets that may be in pairs: the number of each in the source.
    pub sets: Vec<u32>,
    /// The size of each: the weight of all of its elements.
    pub sizes: Vec<u32>,
    /// The distinct set of each.
    pub distinct_of: Vec<SetLocation>,
    /// The own distinct sets, by the number of the set that stands for each.
    pub distinct: Vec<DistinctSet>,
    /// All families, the same at every worker.
    pub families: Vec<Family>,
    /// If they are wanted: the elements, ascending, of the collections of families, each at the
    /// worker of the distinct set whose elements they are, by its number; and the elements of own
    /// distinct sets that have enough members for a family and are in none.
    pub collections: BTreeMap<usize, Vec<u64>>,
    /// What was done.
    pub stats: SetJoinStats,
}

/// A distinct set after a join: the equal sets that it stands for are its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DistinctSet {
    /// The smallest name of its members.
    pub name: u64,
    /// The number of its members; 0 if another set stands for the set with this number.
    pub members: u32,
    /// The number of its old members.
    pub old: u32,
    /// The known family of its members, or 0.
    pub known_family: u32,
    /// The weight that any two of its members share.
    pub weight: u64,
    /// The size of the member that stands for all.
    pub size: u64,
    /// Whether any two of its members are a pair.
    pub is_clique: bool,
    /// The number of its family, in [`SetJoin::families`].
    pub family: Option<u32>,
    /// The weight that it has of the collection of its family.
    pub of_family: u32,
}

impl SetJoin {
    /// The collections of which own distinct sets have the elements.
    pub(super) fn own_collections(
        &self,
        stage: &SetJoinStage,
        elements: &UnmergedElements,
    ) -> BTreeMap<usize, Vec<u64>> {
        let seeds: HashMap<u64, u32> = self.families.iter().map(|family| family.name).zip(0..).collect();
        let collection = |(number, set): (usize, &DistinctSet)| match set.family {
            Some(family) => {
                (seeds.get(&set.name) == Some(&family)).then(|| (number, elements.of(number, stage.family)))
            }
            None => (u64::from(set.members) >= stage.family).then(|| (number, elements.of(number, 0))),
        };
        self.distinct.iter().enumerate().filter_map(collection).collect()
    }
}

/// The distinct sets before their elements are merged: two members share all that is left of them.
pub(super) fn described(sets: &DistinctSets, requirement: Requirement) -> Vec<DistinctSet> {
    let described = |number: usize| {
        let (weight, size) = (sets.sets.weight_of(number), u64::from(sets.sets.size(number)));
        DistinctSet {
            name: sets.sets.name_of(number),
            members: sets.members[number],
            old: sets.old[number],
            known_family: sets.known_family[number],
            weight,
            size,
            is_clique: requirement.holds([weight, weight], [size, size]),
            family: None,
            of_family: 0,
        }
    };
    (0..sets.sets.count()).map(described).collect()
}
