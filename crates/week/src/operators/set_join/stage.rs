//! The parameters of a join and what it counts.

use super::requirement::Requirement;

/// The parameters of a join, for one worker.
#[derive(Clone)]
pub struct SetJoinStage {
    /// What two sets must have in common.
    pub requirement: Requirement,
    /// Distinct sets that a family has at least; elements of fewer sets make no family.
    pub family: u64,
    /// Whether the elements of the collections of families are wanted, in
    /// [`SetJoin::collections`](super::SetJoin::collections).
    pub with_collections: bool,
    /// Whether the source knows some pairs, which the join leaves out: see
    /// [`KnownSet`](super::KnownSet). Such a join finds no further families.
    pub has_known: bool,
    /// Whether sets fall until none does. Then which pairs are looked at depends on no set that
    /// shares nothing with theirs; else a last few sets may stay that cannot be in pairs, which is
    /// faster.
    pub thorough: bool,
    /// The most pairs of distinct sets to look at, each counted for every element that proposes it:
    /// a join of more is refused before it looks at any.
    pub max_pairs: u64,
}

/// The most pairs that a join for components looks at, if nothing else is said: more are a cluster
/// that no join can finish.
const MOST_PAIRS: u64 = 100_000_000_000;

impl SetJoinStage {
    /// A join that is asked for components alone: it needs no families.
    pub fn of_components(requirement: Requirement) -> SetJoinStage {
        SetJoinStage {
            requirement,
            family: u64::MAX,
            with_collections: false,
            has_known: false,
            thorough: false,
            max_pairs: MOST_PAIRS,
        }
    }
}

/// What one worker did; over workers these are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetJoinStats {
    /// Own sets.
    pub sets: u64,
    /// Sets that are left without elements that they have alone.
    pub kept: u64,
    /// Their elements.
    pub kept_elements: u64,
    /// Distinct sets that can be in pairs with others.
    pub distinct: u64,
    /// Their merged elements, each counted in every set that has it.
    pub merged: u64,
    /// Distinct sets in families.
    pub family_sets: u64,
    /// Elements in prefixes: what is exchanged to find pairs.
    pub postings: u64,
    /// Pairs of distinct sets that were compared.
    pub candidates: u64,
    /// Pairs of distinct sets that meet the requirement, without those of a family.
    pub pairs: u64,
}
