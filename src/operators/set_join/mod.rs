//! The set join: all pairs of sets that have enough in common, exactly.
//!
//! Three studies ask for it: hosts over clusters (mirrors by content: Fetterly 2004, section 4), documents over chunks (overlap of all pairs:
//! Shivakumar 1998), and documents over shingle paragraphs (Pereira 2006). No element is left out because it is frequent.
//!
//! ```text
//! sets ─▶ held        elements that two sets have, nearly exactly; sets that are too light fall
//!      ─▶ alone       elements that one set has alone fall, exactly; sets that are too light fall
//!      ─▶ rows        equal sets are one row
//!      ─▶ columns     elements of the same rows are one column; rows have their rarest columns first
//!      ─▶ families    rows that have most of one collection: any two of them are a pair, none is looked at
//!      ─▶ prefixes    the rarest columns of a row; how many pairs they propose: too many are refused here
//!      ─▶ meet        rows that have a column in their prefixes are candidates
//!      ─▶ compare     what the two rows of a candidate share, exactly
//! ```
//!
//! The pairs of the join are three kinds, and no pair is of two: two sets of one row ([`RowPair`] has none of them), two rows of one family,
//! and the pairs of rows that are listed. So their numbers, the replicas of a set and the components follow without a list of all.
//!
//! What is of which kind depends on the sets alone: not on the number of workers, nor on the memory. Exact means up to collisions of 64-bit
//! hashes, those of elements and of columns.
//!
//! Memory: a worker holds its sets that are left, 12 bytes for each of their elements; records in flight go to disk beyond `memory`, and
//! candidates, too. Known limit: all records of one element, or of one set with many copies, are grouped in the memory of one worker: some 30
//! bytes for each set that has it.
//!
//! If components alone are wanted, fewer pairs need be looked at: see [`PreparedSets`].
//!
//! If some pairs are known before, the join finds the others only: see `known`, which then takes the place of `held`.
//!
//! In reading order: `requirement`, `sets` (what a job gives), `stage` (the parameters), then the steps as above.
//!
//! The prefixes and the bounds on sizes and on what is left are those of the literature on joins of sets (Chaudhuri, Ganti, Kaushik: *A
//! primitive operator for similarity joins in data cleaning*, 2006; Xiao, Wang, Lin, Yu: *Efficient similarity joins for near duplicate
//! detection*, 2008). Families by the pigeonhole principle, and columns by sums of codes, are nigh's.

mod alone;
mod columns;
mod compare;
mod families;
mod held;
mod known;
mod marks;
mod meet;
mod prefixes;
mod requirement;
mod rows;
mod sets;
mod stage;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use timely::worker::Worker;

pub use self::compare::{RowPair, RowsInProcess};
pub use self::families::Family;
pub use self::prefixes::FrequentColumn;
pub use self::requirement::{Requirement, Share};
pub use self::rows::Place;
pub use self::sets::{Element, Known, SetPass, SetSource, Sets, SetsPass};
pub use self::stage::{SetJoinStage, SetJoinStats};

use self::columns::{RowElements, Rows};
use self::compare::compare;
use self::families::Families;
use self::held::held;
use self::known::probed;
use self::meet::{Meeting, candidates};
use self::prefixes::{Proposed, proposed};

/// What a worker knows of its own sets after a join. Sets that are not in `sets` are in no pair.
#[derive(Clone, Debug, Default)]
pub struct SetJoin {
    /// The own sets that may be in pairs: the place of each in the source.
    pub sets: Vec<u32>,
    /// The size of each: the weight of all of its elements.
    pub sizes: Vec<u32>,
    /// The row of each.
    pub row_of: Vec<Place>,
    /// The own rows, by the number of the set that stands for the row.
    pub rows: Vec<JoinedRow>,
    /// All families, the same at every worker.
    pub families: Vec<Family>,
    /// If they are wanted: the elements, ascending, of the collections of families, each at the worker of the row whose elements they are, by
    /// that row; and the elements of own rows that have enough sets for a family and are in none.
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

/// Error: a join would look at too many pairs of rows.
#[derive(Clone, Debug)]
pub struct TooManyPairs {
    /// The pairs that it would look at, at most: one with several rare elements in common counts for each.
    pub pairs: u64,
    /// The most that it may look at.
    pub most: u64,
    /// The elements that propose most of them.
    pub columns: Vec<FrequentColumn>,
}

impl fmt::Display for TooManyPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooManyPairs { pairs, most, .. } = self;
        write!(f, "up to {pairs} pairs would be looked at, and at most {most} may be")
    }
}

impl std::error::Error for TooManyPairs {}

/// Finds all pairs of sets that meet the requirement, and calls `each` with the pairs of rows that are listed: each at the worker of one of
/// its rows. Every worker of every process calls it with its own sets.
///
/// # Errors
/// [`TooManyPairs`], at every worker; or if sets or files cannot be read, `each` fails, or a worker of this process failed.
pub fn set_join<S: SetSource + Clone + 'static>(
    worker: &mut Worker,
    stage: &SetJoinStage,
    source: &S,
    each: impl FnMut(RowPair) -> Result<()> + 'static,
) -> Result<SetJoin> {
    let (PreparedSets { mut joined, rows }, elements) = prepare(worker, stage, source)?;
    let families = Rc::new(families::families(worker, stage, &rows)?);
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
    let proposed = proposed(worker, stage, &rows, &families)?;
    joined.stats.add_prefixes(&rows, &proposed);
    let candidates = candidates(worker, stage, &rows, &families, proposed.allowed(stage)?, Meeting::All)?;
    (joined.stats.candidates, joined.stats.pairs) = compare(worker, stage, &rows, candidates, each)?;
    Ok(joined)
}

/// Sets that are ready to be joined: rows with their columns. If components alone are wanted, they can be joined several times, with
/// requirements that are at least as strong as that which they were prepared for.
pub struct PreparedSets {
    /// What is known of the own sets and rows, without families.
    pub joined: SetJoin,
    rows: Arc<Rows>,
}

/// Which pairs a join of prepared sets looks at.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// For each column, the pairs of the heaviest row that has it in its prefix with all others: few, from which components begin.
    Stars,
    /// All pairs of rows of different components. Given is by own row the number of its component, from 1, the same at every worker; 0 for a row
    /// that is alone.
    OtherComponents(&'a [u32]),
}

impl PreparedSets {
    /// Prepares sets for joins with the requirement of `stage`, or with stronger ones.
    ///
    /// # Errors
    /// If sets or files cannot be read, or a worker of this process failed.
    pub fn prepare<S: SetSource + Clone + 'static>(
        worker: &mut Worker,
        stage: &SetJoinStage,
        source: &S,
    ) -> Result<PreparedSets> {
        Ok(prepare(worker, stage, source)?.0)
    }

    /// Calls `each` with the wanted pairs of rows that meet the requirement of `stage`, as [`set_join`] does.
    ///
    /// # Errors
    /// As [`set_join`]; or if there are 2^31 components or more.
    pub fn join(
        &self,
        worker: &mut Worker,
        stage: &SetJoinStage,
        wanted: Wanted<'_>,
        each: impl FnMut(RowPair) -> Result<()> + 'static,
    ) -> Result<SetJoinStats> {
        let mut stats = self.joined.stats;
        let of_row = match wanted {
            Wanted::Stars => vec![0; self.rows.len()],
            Wanted::OtherComponents(components) => components.to_vec(),
        };
        ensure!(of_row.iter().all(|component| *component < 1 << 31), "more than 2^31 components of sets");
        // No pair of one family is looked at: so components are families here.
        let families = Rc::new(Families { of_row, ..Families::default() });
        let (proposed, meeting) = match wanted {
            Wanted::Stars => (Proposed::stars(worker, stage, &self.rows)?, Meeting::Stars),
            Wanted::OtherComponents(_) => {
                (proposed(worker, stage, &self.rows, &families)?.allowed(stage)?, Meeting::All)
            }
        };
        stats.add_prefixes(&self.rows, &proposed);
        let candidates = candidates(worker, stage, &self.rows, &families, proposed, meeting)?;
        (stats.candidates, stats.pairs) = compare(worker, stage, &self.rows, candidates, each)?;
        Ok(stats)
    }
}

/// Makes rows and columns of the sets: those that can be in pairs.
fn prepare<S: SetSource + Clone + 'static>(
    worker: &mut Worker,
    stage: &SetJoinStage,
    source: &S,
) -> Result<(PreparedSets, RowElements)> {
    let mut kept = if stage.has_known { probed(worker, stage, source)? } else { held(worker, stage, source)? };
    kept = alone::drop_alone(worker, stage, kept)?;
    let stats = SetJoinStats {
        sets: source.len() as u64,
        kept: kept.sets.count() as u64,
        kept_elements: kept.sets.elements() as u64,
        ..SetJoinStats::default()
    };
    let sizes = (0..kept.sets.count()).map(|set| kept.sets.size(set)).collect();
    let mut row_sets = rows::rows(worker, stage, source, &mut kept)?;
    let joined = SetJoin {
        sizes,
        sets: kept.numbers,
        row_of: std::mem::take(&mut row_sets.row_of),
        rows: joined_rows(&row_sets, stage.requirement),
        stats,
        ..SetJoin::default()
    };
    let (rows, elements) = columns::columns(worker, stage, &mut row_sets)?;
    Ok((PreparedSets { joined, rows: Arc::new(rows) }, elements))
}

impl SetJoinStats {
    /// Adds what prefixes have.
    fn add_prefixes(&mut self, rows: &Rows, proposed: &Proposed) {
        self.rows = rows.living().count() as u64;
        self.columns = rows.column_count() as u64;
        self.prefix_columns = proposed.own as u64;
    }
}

impl SetJoin {
    /// The collections of which own rows have the elements.
    fn own_collections(&self, stage: &SetJoinStage, elements: &RowElements) -> BTreeMap<usize, Vec<u64>> {
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
fn joined_rows(rows: &rows::RowSets, requirement: Requirement) -> Vec<JoinedRow> {
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
