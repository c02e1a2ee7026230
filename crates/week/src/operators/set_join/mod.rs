//! The set join: all pairs of sets that have enough in common, exactly.
//!
//! Three studies ask for it: hosts over clusters (mirrors by content: Fetterly 2004, section 4),
//! documents over chunks (overlap of all pairs: Shivakumar 1998), and documents over shingle
//! paragraphs (Pereira 2006). No element is left out because it is frequent.
//!
//! ```text
//! sets ─▶ held             elements that two sets have, nearly exactly; sets that are too light fall
//!      ─▶ alone            elements that one set has alone fall, exactly; sets that are too light fall
//!      ─▶ distinct_sets    equal sets become one distinct set: they are its members
//!      ─▶ merged_elements  elements of the same sets become one; a set has its rarest elements first
//!      ─▶ families         sets that have most of one collection: any two are a pair, none is looked at
//!      ─▶ prefixes         the rarest elements of a set; how many pairs they propose: not too many
//!      ─▶ meet             the postings of an element: sets with it in their prefixes are candidates
//!      ─▶ compare          what the two sets of a candidate share, exactly
//! ```
//!
//! The words are those of the literature: a set has *elements*; its *prefix* is its rarest ones; a
//! *posting* is one set in the list of those that have an element in their prefixes (the inverted
//! index). From `families` on, a set is a distinct one, and an element is a merged one.
//!
//! The pairs of the join are three kinds, and no pair is of two: two members of one distinct set
//! ([`SetPair`] has none of them), two distinct sets of one family, and the pairs of distinct sets
//! that are listed. So their numbers, the replicas of a set and the components follow without a
//! list of all.
//!
//! What is of which kind depends on the sets alone: not on the number of workers, nor on the
//! memory. Exact means up to collisions of 64-bit hashes, those of elements and of merged ones.
//!
//! Memory: a worker holds its sets that are left, 12 bytes for each of their elements; records in
//! flight go to disk beyond `memory`, and candidates, too. Known limit: all records of one element,
//! or of one set with many copies, are grouped in the memory of one worker: some 30 bytes for each
//! set that has it.
//!
//! If components alone are wanted, fewer pairs need be looked at: see [`chains`](chains()).
//!
//! If some pairs are known before, the join finds the others only: see `known`, which then takes
//! the place of `held`.
//!
//! In reading order: `requirement`, `sets` (what a job gives), `stage` (the parameters), then the
//! steps as above: `prefixes` and `meet` are in `candidates`, and `compare` has the marks that it
//! compares by (`marked_elements`).
//!
//! The prefixes and the bounds on sizes and on what is left are those of the literature on joins of
//! sets (Chaudhuri, Ganti, Kaushik: *A primitive operator for similarity joins in data cleaning*,
//! 2006; Xiao, Wang, Lin, Yu: *Efficient similarity joins for near duplicate detection*, 2008).
//! Families by the pigeonhole principle, and elements merged by sums of codes, are nigh's.

mod alone;
mod candidates;
mod chains;
mod compare;
mod distinct_sets;
mod families;
mod held;
mod joined;
mod known;
mod merged_elements;
mod prepared;
mod requirement;
mod sets;
mod stage;

use nigh_exchange::Context;
use std::rc::Rc;

use anyhow::Result;

pub use self::candidates::prefixes::{FrequentElement, TooManyPairs};
pub use self::chains::{Chains, NearestSet, chains};
pub use self::compare::{SetPair, SetsInProcess};
pub use self::distinct_sets::SetLocation;
pub use self::families::Family;
pub use self::joined::{DistinctSet, SetJoin};
pub use self::requirement::{ExactShare, Requirement};
pub use self::sets::{Element, KnownSet, SetPass, SetSource, SetsPass, WeightedSets};
pub use self::stage::{SetJoinStage, SetJoinStats};

use self::candidates::meet::{Meeting, candidates};
use self::candidates::prefixes::proposed;
use self::compare::compare;
use self::prepared::{PreparedSets, prepare};

/// Finds all pairs of sets that meet the requirement, and calls `each` with the pairs of distinct
/// sets that are listed: each at the worker of one of the two. Every worker of every process calls
/// it with its own sets.
///
/// # Errors
/// [`TooManyPairs`], at every worker; or if sets or files cannot be read, `each` fails, or a worker
/// of this process failed.
pub fn set_join<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
    each: impl FnMut(SetPair) -> Result<()> + 'static,
) -> Result<SetJoin> {
    let (PreparedSets { mut joined, sets }, elements) = prepare(cx, stage, source)?;
    let families = Rc::new(families::families(cx, stage, &sets)?);
    let found = 1..=families.all.len() as u32;
    for (set, family) in families.of_set.iter().enumerate().filter(|(_, family)| found.contains(family)) {
        joined.distinct[set].family = Some(family - 1);
        joined.distinct[set].of_family = families.weights[set];
        joined.stats.family_sets += 1;
    }
    joined.families = families.all.clone();
    if stage.with_collections {
        joined.collections = joined.own_collections(stage, &elements);
    }
    drop(elements);
    let proposed = proposed(cx, stage, &sets, &families)?;
    joined.stats.distinct = sets.living().count() as u64;
    joined.stats.merged = sets.element_count() as u64;
    joined.stats.postings = proposed.own as u64;
    let candidates = candidates(cx, stage, &sets, &families, proposed.allowed(stage)?, Meeting::All)?;
    (joined.stats.candidates, joined.stats.pairs) = compare(cx, stage, &sets, candidates, each)?;
    Ok(joined)
}
