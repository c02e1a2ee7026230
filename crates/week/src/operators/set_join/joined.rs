//! What a worker knows after a join.

use std::collections::{BTreeMap, HashMap};

use super::families::Family;
use super::joined_rows::{RowSets, SetPlace};
use super::requirement::Requirement;
use super::row_columns::RowElements;
use super::stage::{SetJoinStage, SetJoinStats};

/// What a worker knows of its own sets after a join. Sets that are not in `sets` are in no pair.
#[derive(Clone, Debug, Default)]
pub struct SetJoin {
    /// The own sets that may be in pairs: the place of each in the source.
    pub sets: Vec<u32>,
    /// The size of each: the weight of all of its elements.
    pub sizes: Vec<u32>,
    /// The row of each.
    pub row_of: Vec<SetPlace>,
    /// The own rows, by the number of the set that stands for the row.
    pub rows: Vec<JoinedRow>,
    /// All families, the same at every worker.
    pub families: Vec<Family>,
    /// If they are wanted: the elements, ascending, of the collections of families, each at the
    /// worker of the row whose elements they are, by that row; and the elements of own rows that
    /// have enough sets for a family and are in none.
    pub collections: BTreeMap<usize, Vec<u64>>,
    /// What was done.
    pub stats: SetJoinStats,
}

/// A row after a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinedRow {
    /// The smallest name of its sets.
    pub name: u64,
    /// The number of its sets; 0 if the set with this number does not stand for a row.
    pub members: u32,
    /// The number of its old sets.
    pub old: u32,
    /// The known family of its sets, or 0.
    pub known_family: u32,
    /// The weight that any two of its sets share.
    pub weight: u64,
    /// The size of the set that stands for the row.
    pub size: u64,
    /// Whether any two of its sets are a pair.
    pub is_clique: bool,
    /// The number of its family, in [`SetJoin::families`].
    pub family: Option<u32>,
    /// The weight that it has of the collection of its family.
    pub of_family: u32,
}

impl SetJoin {
    /// The collections of which own rows have the elements.
    pub(super) fn own_collections(&self, stage: &SetJoinStage, elements: &RowElements) -> BTreeMap<usize, Vec<u64>> {
        let seeds: HashMap<u64, u32> = self.families.iter().map(|family| family.name).zip(0..).collect();
        let collection = |(number, row): (usize, &JoinedRow)| match row.family {
            Some(family) => {
                (seeds.get(&row.name) == Some(&family)).then(|| (number, elements.of(number, stage.family)))
            }
            None => (u64::from(row.members) >= stage.family).then(|| (number, elements.of(number, 0))),
        };
        self.rows.iter().enumerate().filter_map(collection).collect()
    }
}

/// The rows before their columns are known: two sets of a row share what is left of them.
pub(super) fn joined_rows(rows: &RowSets, requirement: Requirement) -> Vec<JoinedRow> {
    let row = |number: usize| {
        let (weight, size) = (rows.sets.weight_of(number), u64::from(rows.sets.size(number)));
        JoinedRow {
            name: rows.sets.name_of(number),
            members: rows.members[number],
            old: rows.old[number],
            known_family: rows.known_family[number],
            weight,
            size,
            is_clique: requirement.holds([weight, weight], [size, size]),
            family: None,
            of_family: 0,
        }
    };
    (0..rows.sets.count()).map(row).collect()
}
