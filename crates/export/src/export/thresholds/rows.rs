//! How many records stay at each threshold, and the threshold that leaves as many as are wanted.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::joins::{Join, Parts};
use crate::structures::{Sortable, Sorted};

/// Records that go where two parts of a cluster are joined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Going {
    pub similarity: f64,
    pub rows: u64,
}

impl Sortable for Going {
    /// The most similar pair first: the bits of similarities, which are not negative, have their
    /// order.
    type Key = (u64, u64);

    fn key(&self) -> (u64, u64) {
        (!self.similarity.to_bits(), self.rows)
    }

    fn weight(&self) -> usize {
        size_of::<Going>()
    }
}

/// A threshold, and the records that stay with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RowsAt {
    /// The similarity of pairs at least; none if not even equal documents are in one cluster.
    pub similarity: Option<f64>,
    /// The records that stay.
    pub rows: u64,
}

/// The threshold that was found for a number of records, and the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChosenRows {
    /// The number that was asked for.
    pub wanted: u64,
    /// The largest threshold at which no more records stay.
    #[serde(flatten)]
    pub at: RowsAt,
    /// The next larger one, at which more stay.
    pub above: Option<RowsAt>,
    /// The next smaller one, at which fewer stay.
    pub below: Option<RowsAt>,
}

/// Finds the largest threshold at which at most `wanted` of `all` records stay, given those that go
/// at each one. No pair that is less similar than `least` was compared.
///
/// # Errors
/// If more stay at every threshold.
pub(super) fn choose(all: u64, wanted: u64, mut going: Sorted<Going>, least: f64) -> Result<ChosenRows> {
    let mut next = going.record()?;
    let mut lower = |at: RowsAt| -> Result<Option<RowsAt>> {
        let Some(Going { similarity, .. }) = next else { return Ok(None) };
        let mut rows = at.rows;
        while let Some(gone) = next.take_if(|next| next.similarity == similarity) {
            rows -= gone.rows;
            next = going.record()?;
        }
        Ok(Some(RowsAt { similarity: Some(similarity), rows }))
    };
    let (mut above, mut at) = (None, RowsAt { similarity: None, rows: all });
    while at.rows > wanted {
        let Some(below) = lower(at)? else {
            bail!(
                "at least {} records stay, and {wanted} are wanted: the clusters of the week have no pairs that are less similar than {least}. \
                 A run with a smaller --similarity finds such pairs, and fewer records stay of its clusters; or ask for {0} or more",
                at.rows
            )
        };
        above = Some(std::mem::replace(&mut at, below));
    }
    Ok(ChosenRows { wanted, at, above, below: lower(at)? })
}

/// What is counted of a document.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    /// The group of its cluster, of which some stay.
    pub group: u64,
    /// Whether it is written if it stays, and not one of an older batch.
    pub is_written: bool,
}

/// Hands on how many records go at each join of a cluster. `most` stay of each group of a part, and
/// older documents come first; if it is 0, a part stays only if it is one document.
pub(super) fn going(
    documents: &[Counted],
    joins: &[Join],
    most: u64,
    each: &mut dyn FnMut(Going) -> Result<()>,
) -> Result<()> {
    let mut parts = Parts::new(documents.len());
    // Of each part, by its root: older and written documents by group.
    let mut groups: Vec<BTreeMap<u64, [u64; 2]>> = documents
        .iter()
        .map(|of| BTreeMap::from([(of.group, [u64::from(!of.is_written), u64::from(of.is_written)])]))
        .collect();
    for Join { places, similarity } in joins {
        let Some(roots) = parts.join(*places) else { continue };
        let [mut large, mut small] = roots.map(|root| std::mem::take(&mut groups[root as usize]));
        if large.len() < small.len() {
            std::mem::swap(&mut large, &mut small);
        }
        let mut rows = if most == 0 { [&large, &small].map(written_alone).iter().sum() } else { 0 };
        for (group, of_small) in small {
            let of_large = large.entry(group).or_default();
            let both = [of_large[0] + of_small[0], of_large[1] + of_small[1]];
            rows += staying(*of_large, most) + staying(of_small, most) - staying(both, most);
            *of_large = both;
        }
        groups[roots[0] as usize] = large;
        if rows > 0 {
            each(Going { similarity: *similarity, rows })?;
        }
    }
    Ok(())
}

/// How many of the written documents of a group stay.
fn staying([older, written]: [u64; 2], most: u64) -> u64 {
    most.min(older + written) - most.min(older)
}

/// The written documents of a part, if it is one document.
fn written_alone(groups: &BTreeMap<u64, [u64; 2]>) -> u64 {
    let [older, written] = groups.values().fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
    if older + written == 1 { written } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;
    use crate::structures::ExternalSort;

    /// The records that stay of a cluster at a threshold: each part, each of its groups.
    fn slow_rows(documents: &[Counted], joins: &[Join], most: u64, threshold: f64) -> u64 {
        let mut parts = Parts::new(documents.len());
        joins.iter().filter(|join| join.similarity >= threshold).for_each(|join| _ = parts.join(join.places));
        let mut by_part: BTreeMap<u32, Vec<Counted>> = BTreeMap::new();
        for (place, of) in (0..).zip(documents) {
            by_part.entry(parts.root(place)).or_default().push(*of);
        }
        let mut rows = 0;
        for of_part in by_part.values_mut() {
            of_part.sort_by_key(|of| of.is_written);
            let mut before: BTreeMap<u64, u64> = BTreeMap::new();
            for of in &*of_part {
                let number = before.entry(of.group).or_default();
                rows += u64::from(of.is_written && (*number < most || of_part.len() == 1));
                *number += 1;
            }
        }
        rows
    }

    #[test]
    fn the_threshold_leaves_as_many_as_are_wanted_or_the_next_fewer() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = 7;
        let mut below = |end: u64| {
            random = mix(random);
            random % end
        };
        for (most, groups, has_older) in [(1, 1, false), (1, 1, true), (2, 1, true), (1, 3, true), (0, 1, true)] {
            let documents: Vec<Counted> =
                (0..40).map(|_| Counted { group: below(groups), is_written: !has_older || below(3) > 0 }).collect();
            // A forest with ties.
            let mut joins: Vec<Join> = Vec::new();
            for place in 1..40 {
                if below(8) > 0 {
                    let similarity = 1.0 - below(12) as f64 / 40.0;
                    joins.push(Join { places: [below(place) as u32, place as u32], similarity });
                }
            }
            joins.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
            let all = documents.iter().filter(|of| of.is_written).count() as u64;
            let rows = |threshold: Option<f64>| slow_rows(&documents, &joins, most, threshold.unwrap_or(2.0));
            assert_eq!(rows(None), all);
            let least = rows(Some(0.0));
            for wanted in 0..=all + 1 {
                let mut sort = ExternalSort::new(&folder.path().join("going"), 1 << 20);
                going(&documents, &joins, most, &mut |gone| sort.push(gone)).unwrap();
                let chosen = choose(all, wanted, sort.sorted().unwrap(), 0.7);
                if wanted < least {
                    let error = chosen.unwrap_err().to_string();
                    assert!(error.contains(&format!("at least {least} records stay")), "{error}");
                    continue;
                }
                let ChosenRows { at, above, below, .. } = chosen.unwrap();
                assert!(at.rows <= wanted && at.rows == rows(at.similarity));
                // The next larger threshold of all leaves too many.
                let mut thresholds: Vec<f64> = joins.iter().map(|join| join.similarity).collect();
                thresholds.dedup();
                let larger = thresholds.iter().filter(|of| at.similarity.is_some_and(|at| **of > at)).copied().last();
                assert!(at.similarity.is_none() || rows(larger) > wanted, "{most} of {groups}, {wanted}");
                for next in above.into_iter().chain(below) {
                    assert_eq!(next.rows, rows(next.similarity));
                }
                assert_eq!(above.is_some(), at.rows < all);
                assert_eq!(below.is_some(), at.rows > least);
            }
        }
    }
}
