//! How many records stay at each threshold, and the threshold that leaves as many as are wanted.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::joins::Join;
use super::rule::LEAST;
use crate::config::Verify;
use crate::structures::{OwnUnionFind, Sortable, Sorted};

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

/// The smallest threshold, in millionths, and how the run compared documents.
#[derive(Clone, Copy)]
pub(super) struct Least {
    pub millionths: u32,
    pub verify: Verify,
}

impl Least {
    /// What can be done if more than are wanted stay of `rows` records at each threshold.
    fn advice(self, rows: u64) -> String {
        let least = f64::from(self.millionths) / 1e6;
        let further = match self.verify {
            Verify::Exact if self.millionths > LEAST => format!(
                "the clusters of the week have no pairs that are less similar than {least}. A run with a smaller --similarity finds such \
                 pairs, and fewer records stay of its clusters; or"
            ),
            Verify::Exact => {
                format!("the clusters of the week have no pairs that are less similar than {least}, as no run has:")
            }
            Verify::None | Verify::Estimate => format!(
                "pairs that are less similar than {least} are not counted. The clusters of the week may have such pairs, and fewer records \
                 stay of them as they are, without --keep-rows; or"
            ),
        };
        format!("{further} ask for {rows} or more")
    }
}

/// Finds the largest threshold at which at most `wanted` of `all` records stay, given those that go
/// at each one. No pair below the least threshold was compared.
///
/// # Errors
/// If more stay at every threshold.
pub(super) fn choose(all: u64, wanted: u64, mut going: Sorted<Going>, least: Least) -> Result<ChosenRows> {
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
            bail!("at least {} records stay, and {wanted} are wanted: {}", at.rows, least.advice(at.rows))
        };
        above = Some(std::mem::replace(&mut at, below));
    }
    Ok(ChosenRows { wanted, at, above, below: lower(at)? })
}

/// What is counted of a document.
#[derive(Clone, Copy)]
pub(super) struct CountedDocument {
    /// The group of its cluster, of which some stay.
    pub group: u64,
    /// Whether it is written if it stays, and not one of an older batch.
    pub is_written: bool,
}

/// Hands on how many records go at each join of a cluster. `most` stay of each group of a part, and
/// older documents come first; if it is 0, a part stays only if it is one document.
pub(super) fn going(
    documents: &[CountedDocument],
    joins: &[Join],
    most: u64,
    each: &mut dyn FnMut(Going) -> Result<()>,
) -> Result<()> {
    let mut parts = OwnUnionFind::new(documents.len());
    // Of each part, by its root.
    let mut groups: Vec<GroupCounts> = documents.iter().map(GroupCounts::of).collect();
    for Join { places, similarity } in joins {
        let Some(roots) = parts.join(*places) else { continue };
        let [a, b] = roots.map(|root| std::mem::take(&mut groups[root as usize]));
        let mut rows: u64 = if most == 0 { [&a, &b].map(GroupCounts::written_alone).iter().sum() } else { 0 };
        groups[roots[0] as usize] = a.with(b, &mut |of_a, of_b, both| {
            rows += staying(of_a, most) + staying(of_b, most) - staying(both, most);
        });
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

/// How many older and how many written documents a part has of each group. Where all are of one
/// group, as they mostly are, there is no map.
enum GroupCounts {
    One(u64, [u64; 2]),
    Several(BTreeMap<u64, [u64; 2]>),
}

impl Default for GroupCounts {
    fn default() -> GroupCounts {
        GroupCounts::One(0, [0, 0])
    }
}

impl GroupCounts {
    fn of(document: &CountedDocument) -> GroupCounts {
        GroupCounts::One(document.group, [u64::from(!document.is_written), u64::from(document.is_written)])
    }

    fn is_smaller(&self, other: &GroupCounts) -> bool {
        let count = |of: &GroupCounts| if let GroupCounts::Several(groups) = of { groups.len() } else { 1 };
        count(self) < count(other)
    }

    /// The groups of both. Hands on the numbers of each group that both have, and their sum.
    fn with(self, other: GroupCounts, shared: &mut dyn FnMut([u64; 2], [u64; 2], [u64; 2])) -> GroupCounts {
        let (large, small) = if self.is_smaller(&other) { (other, self) } else { (self, other) };
        let mut add = |of_large: &mut [u64; 2], of_small: [u64; 2]| {
            let both = [of_large[0] + of_small[0], of_large[1] + of_small[1]];
            shared(*of_large, of_small, both);
            *of_large = both;
        };
        let (mut large, small) = match (large, small) {
            (GroupCounts::One(group, mut numbers), GroupCounts::One(of, others)) if of == group => {
                add(&mut numbers, others);
                return GroupCounts::One(group, numbers);
            }
            (GroupCounts::One(group, numbers), small) => (BTreeMap::from([(group, numbers)]), small),
            (GroupCounts::Several(groups), small) => (groups, small),
        };
        let mut add = |group: u64, numbers: [u64; 2]| add(large.entry(group).or_default(), numbers);
        match small {
            GroupCounts::One(group, numbers) => add(group, numbers),
            GroupCounts::Several(groups) => groups.into_iter().for_each(|(group, numbers)| add(group, numbers)),
        }
        GroupCounts::Several(large)
    }

    /// The written documents of the part, if it is one document.
    fn written_alone(&self) -> u64 {
        match self {
            GroupCounts::One(_, [older, written]) if older + written == 1 => *written,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;
    use crate::structures::ExternalSort;

    /// The records that stay of a cluster at a threshold: each part, each of its groups.
    fn slow_rows(documents: &[CountedDocument], joins: &[Join], most: u64, threshold: f64) -> u64 {
        let mut parts = OwnUnionFind::new(documents.len());
        joins.iter().filter(|join| join.similarity >= threshold).for_each(|join| _ = parts.join(join.places));
        let mut by_part: BTreeMap<u32, Vec<CountedDocument>> = BTreeMap::new();
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
        let least_of_run = Least { millionths: 700_000, verify: Verify::Exact };
        let mut random = 7;
        let mut below = |end: u64| {
            random = mix(random);
            random % end
        };
        for (most, groups, has_older) in [(1, 1, false), (1, 1, true), (2, 1, true), (1, 3, true), (0, 1, true)] {
            let documents: Vec<CountedDocument> = (0..40)
                .map(|_| CountedDocument { group: below(groups), is_written: !has_older || below(3) > 0 })
                .collect();
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
                let chosen = choose(all, wanted, sort.sorted().unwrap(), least_of_run);
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

    #[test]
    fn the_advice_can_be_followed() {
        let advice = |millionths, verify| Least { millionths, verify }.advice(7);
        let smaller = "A run with a smaller --similarity";
        assert!(advice(600_000, Verify::Exact).contains(smaller));
        assert!(!advice(500_000, Verify::Exact).contains(smaller));
        for verify in [Verify::None, Verify::Estimate] {
            let advice = advice(500_000, verify);
            assert!(advice.contains("without --keep-rows") && advice.ends_with("ask for 7 or more"), "{advice}");
        }
    }
}
