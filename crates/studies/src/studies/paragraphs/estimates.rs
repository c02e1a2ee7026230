//! Estimates of all duplicates, from the first steps of the study's algorithm (Pereira 2006).

use std::collections::BTreeMap;

use super::Estimate;
use super::steps::Growth;
use crate::records::Week;
use crate::stats::ratio;

/// Of the parts of the crawl, those that estimates are made from: one of so many; and the study's
/// estimate for 2005.
const ESTIMATED_FROM: [(u32, f64); 2] = [(5, 0.344), (2, 0.356)];

/// Estimates by the growth of the week before, if it is known, and by sizes. `documents` are the
/// pages of the week.
pub(super) fn estimates(
    growth: &Growth,
    earlier: Option<&Growth>,
    week_before: Option<Week>,
    documents: u64,
) -> Vec<Estimate> {
    let parts = growth.steps.len() as u32;
    let all = found(growth, parts);
    let mut estimates = Vec::new();
    for (one_of, published) in ESTIMATED_FROM {
        let steps = parts.div_ceil(one_of);
        // Of one part or two, half is a fifth.
        if estimates.last().is_some_and(|before: &Estimate| before.steps == steps) {
            continue;
        }
        let found = self::found(growth, steps);
        let mut add = |of_week: Option<Week>, estimated: f64, published| {
            let share = if documents > 0 { estimated / documents as f64 } else { 0.0 };
            let error = (all > 0).then(|| estimated / all as f64 - 1.0);
            estimates.push(Estimate { steps, of_week, found, estimated, share, error, published });
        };
        if let Some(earlier) = earlier
            && let Some(share) = ratio(self::found(earlier, steps), self::found(earlier, parts))
            && share > 0.0
        {
            add(week_before, found as f64 / share, Some(published));
        }
        add(None, by_sizes(growth, steps, parts), None);
    }
    estimates
}

/// The duplicates that the first steps find.
fn found(growth: &Growth, steps: u32) -> u64 {
    growth.steps[..steps as usize].iter().map(|step| step.duplicates).sum()
}

/// Estimates all duplicates from the clusters that the first `steps` of `parts` find: a cluster of
/// s pages is found if one of them is in these parts, so with the probability 1 - (1 - x)^s, where
/// x is their share. Each that is found stands for as many as the inverse of that (Horvitz and
/// Thompson 1952).
///
/// ```text
/// sum over found clusters of (s - 1) / (1 - (1 - x)^s)
/// ```
fn by_sizes(growth: &Growth, steps: u32, parts: u32) -> f64 {
    let missed = 1.0 - f64::from(steps) / f64::from(parts);
    let mut by_size: BTreeMap<u64, u64> = BTreeMap::new();
    for ((step, size), clusters) in &growth.found {
        if *step < steps {
            *by_size.entry(*size).or_default() += clusters;
        }
    }
    let stand_for = |(size, clusters): (u64, u64)| {
        let probability = 1.0 - missed.powi(i32::try_from(size).unwrap_or(i32::MAX));
        (clusters * (size - 1)) as f64 / probability
    };
    by_size.into_iter().map(stand_for).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;
    use crate::studies::paragraphs::steps::GrowthStep;

    #[test]
    fn the_estimate_by_sizes_is_right_on_average() {
        // 2000 clusters of 2 to 21 pages; a part for each page, drawn 40 times.
        let (parts, rounds) = (10u64, 40);
        let sizes: Vec<u64> = (0..2000).map(|cluster| 2 + mix(cluster) % 20).collect();
        let all: u64 = sizes.iter().map(|size| size - 1).sum();
        let mut sums = [0.0; 2];
        for round in 0..rounds {
            let mut growth = Growth { steps: vec![GrowthStep::default(); parts as usize], found: BTreeMap::new() };
            for (cluster, size) in sizes.iter().enumerate() {
                let part = |page| mix(mix(round) ^ (cluster as u64 * 100 + page)) % parts;
                let first = (0..*size).map(part).min().unwrap() as u32;
                *growth.found.entry((first, *size)).or_default() += 1;
            }
            for (sum, steps) in sums.iter_mut().zip([2, 5]) {
                *sum += by_sizes(&growth, steps, parts as u32) / all as f64 / rounds as f64;
            }
        }
        assert!(sums.iter().all(|mean| (mean - 1.0).abs() < 0.01), "{sums:?}");
        // With all parts it is the number itself.
        let growth = Growth { steps: Vec::new(), found: [((0, 3), 5), ((9, 2), 4)].into() };
        assert_eq!(by_sizes(&growth, 10, 10), 14.0);
    }
}
