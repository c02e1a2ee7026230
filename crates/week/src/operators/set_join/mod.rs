//! The set join: all pairs of sets that have enough in common, exactly.
//!
//! Three studies ask for it: hosts over clusters (mirrors by content: Fetterly 2004, section 4),
//! documents over chunks (overlap of all pairs: Shivakumar 1998), and documents over shingle
//! paragraphs (Pereira 2006). No element is left out because it is frequent.
//!
//! ```text
//! sets ─▶ held        elements that two sets have, nearly exactly; sets that are too light fall
//!      ─▶ alone       elements that one set has alone fall, exactly; sets that are too light fall
//!      ─▶ joined_rows equal sets are one row
//!      ─▶ row_columns elements of the same rows are one column; rows have their rarest columns first
//!      ─▶ families    rows that have most of one collection: any two of them are a pair, none is looked at
//!      ─▶ prefixes    the rarest columns of a row; how many pairs they propose: too many are refused here
//!      ─▶ meet        rows that have a column in their prefixes are candidates
//!      ─▶ compare     what the two rows of a candidate share, exactly
//! ```
//!
//! The pairs of the join are three kinds, and no pair is of two: two sets of one row ([`RowPair`]
//! has none of them), two rows of one family, and the pairs of rows that are listed. So their
//! numbers, the replicas of a set and the components follow without a list of all.
//!
//! What is of which kind depends on the sets alone: not on the number of workers, nor on the
//! memory. Exact means up to collisions of 64-bit hashes, those of elements and of columns.
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
//! steps as above.
//!
//! The prefixes and the bounds on sizes and on what is left are those of the literature on joins of
//! sets (Chaudhuri, Ganti, Kaushik: *A primitive operator for similarity joins in data cleaning*,
//! 2006; Xiao, Wang, Lin, Yu: *Efficient similarity joins for near duplicate detection*, 2008).
//! Families by the pigeonhole principle, and columns by sums of codes, are nigh's.

mod alone;
mod chains;
mod compare;
mod families;
mod held;
mod joined;
mod joined_rows;
mod known;
mod marked_columns;
mod meet;
mod prefixes;
mod prepared;
mod requirement;
mod row_columns;
mod sets;
mod stage;

use nigh_exchange::Context;
use std::rc::Rc;

use anyhow::Result;

pub use self::chains::{Chains, NearestSet, chains};
pub use self::compare::{RowPair, RowsInProcess};
pub use self::families::Family;
pub use self::joined::{JoinedRow, SetJoin};
pub use self::joined_rows::SetPlace;
pub use self::prefixes::{FrequentColumn, TooManyPairs};
pub use self::requirement::{ExactShare, Requirement};
pub use self::sets::{Element, KnownSet, SetPass, SetSource, SetsPass, WeightedSets};
pub use self::stage::{SetJoinStage, SetJoinStats};

use self::compare::compare;
use self::meet::{Meeting, candidates};
use self::prefixes::proposed;
use self::prepared::{PreparedSets, prepare};

/// Finds all pairs of sets that meet the requirement, and calls `each` with the pairs of rows that
/// are listed: each at the worker of one of its rows. Every worker of every process calls it with
/// its own sets.
///
/// # Errors
/// [`TooManyPairs`], at every worker; or if sets or files cannot be read, `each` fails, or a worker
/// of this process failed.
pub fn set_join<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
    each: impl FnMut(RowPair) -> Result<()> + 'static,
) -> Result<SetJoin> {
    let (PreparedSets { mut joined, rows }, elements) = prepare(cx, stage, source)?;
    let families = Rc::new(families::families(cx, stage, &rows)?);
    let found = 1..=families.all.len() as u32;
    for (row, family) in families.of_row.iter().enumerate().filter(|(_, family)| found.contains(family)) {
        joined.rows[row].family = Some(family - 1);
        joined.rows[row].of_family = families.weights[row];
        joined.stats.family_rows += 1;
    }
    joined.families = families.all.clone();
    if stage.with_collections {
        joined.collections = joined.own_collections(stage, &elements);
    }
    drop(elements);
    let proposed = proposed(cx, stage, &rows, &families)?;
    joined.stats.rows = rows.living().count() as u64;
    joined.stats.columns = rows.column_count() as u64;
    joined.stats.prefix_columns = proposed.own as u64;
    let candidates = candidates(cx, stage, &rows, &families, proposed.allowed(stage)?, Meeting::All)?;
    (joined.stats.candidates, joined.stats.pairs) = compare(cx, stage, &rows, candidates, each)?;
    Ok(joined)
}
