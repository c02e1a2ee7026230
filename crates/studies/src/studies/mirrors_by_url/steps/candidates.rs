//! Candidates: pairs of hosts that have features in common, with their scores (Bharat and Broder
//! 1999, section 3).
//!
//! ```text
//! features of hosts ─▶ the owner of the feature: each pair of its 2 to `most-hosts` hosts, with the weight S / N
//! weights ─▶ the owner of the pair: their sum; at least two features, and at least one of a path
//! ```
//!
//! Weights are whole numbers of 1 / 232,792,560, the least common multiple of 1 to 20: so a sum
//! does not depend on its order, and is exact for features of up to 20 hosts.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeptRecords, Keyed, by_group};
use serde::{Deserialize, Serialize};

use super::features::HostFeature;
use super::stage::UrlStage;
use super::terms::FeatureKind;
use crate::records::fold;

/// What a weight of 1 is as a whole number.
pub const WEIGHT: u64 = 232_792_560;

/// A feature that two hosts have in common, on its way to the worker that adds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct CommonFeature {
    key: u64,
    hosts: [u64; 2],
    urls: [u64; 2],
    weight: u64,
    /// 1 if it is a feature of paths.
    of_path: u64,
}

impl Keyed for CommonFeature {
    fn key(&self) -> u64 {
        self.key
    }
}

/// A pair of hosts that may be mirrors. The order is that of the list: the best first, of equal
/// scores by the hashes of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Candidate {
    /// The bits of the score, which is positive.
    score: Reverse<u64>,
    /// The hashes of the two hosts, the smaller one first.
    pub hosts: [u64; 2],
    /// The numbers of their URLs.
    pub urls: [u64; 2],
    /// The features that both have.
    pub features: u64,
    /// Those of paths among them.
    pub path_features: u64,
}

impl Candidate {
    /// The score: the sum of the weights, divided by 1 + 0.1 (ln N1 + ln N2), where N are the URLs
    /// of the hosts.
    pub fn score(&self) -> f64 {
        f64::from_bits(self.score.0)
    }
}

/// The score of two hosts with these weights in common, and these numbers of URLs.
fn score(weight: u64, urls: [u64; 2]) -> f64 {
    let [a, b] = urls.map(|urls| (urls as f64).ln());
    weight as f64 / WEIGHT as f64 / (1.0 + 0.1 * (a + b))
}

/// The best candidates, the same at every worker, and the number of all.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn candidates(
    cx: &mut Context,
    stage: &UrlStage,
    features: KeptRecords<HostFeature>,
) -> Result<(Vec<Candidate>, u64)> {
    let common = Rc::new(RefCell::new(cx.kept::<CommonFeature>()));
    let each = {
        let (common, watch, most) = (common.clone(), cx.watch().clone(), stage.most_hosts);
        move |hosts: &[HostFeature], _: &mut Dealer<u8>| {
            if !(2..=most).contains(&hosts.len()) {
                return;
            }
            let of_host = hosts[0].kind == FeatureKind::Host as u64;
            let kind = if of_host { FeatureKind::Host } else { FeatureKind::Path };
            let (weight, of_path) = (kind.weight() * WEIGHT / hosts.len() as u64, u64::from(!of_host));
            let mut common = common.borrow_mut();
            for (number, a) in hosts.iter().enumerate() {
                for b in &hosts[number + 1..] {
                    let (hosts, urls) = ([a.host, b.host], [a.urls, b.urls]);
                    watch.check(common.push(CommonFeature { key: fold(&hosts), hosts, urls, weight, of_path }));
                }
            }
        }
    };
    by_group(cx, "Pairs", features, each, |_: BlockOf<u8>| {})?;
    let common = common.replace(cx.kept());
    let best = Rc::new(RefCell::new((Vec::new(), 0u64)));
    let each = {
        let (best, most) = (best.clone(), stage.most_candidates);
        move |of_key: &[CommonFeature], _: &mut Dealer<u8>| {
            let (best, all) = &mut *best.borrow_mut();
            for of_pair in of_key.chunk_by(|a, b| a.hosts == b.hosts) {
                let path_features = of_pair.iter().map(|feature| feature.of_path).sum();
                if of_pair.len() < 2 || path_features == 0 {
                    continue;
                }
                let CommonFeature { hosts, urls, .. } = of_pair[0];
                let score = score(of_pair.iter().map(|feature| feature.weight).sum(), urls);
                let (score, features) = (Reverse(score.to_bits()), of_pair.len() as u64);
                best.push(Candidate { score, hosts, urls, features, path_features });
                *all += 1;
                if best.len() >= 2 * most.max(1 << 10) {
                    keep_best(best, most);
                }
            }
        }
    };
    by_group(cx, "Candidates", common, each, |_: BlockOf<u8>| {})?;
    let (mut own, all) = best.take();
    keep_best(&mut own, stage.most_candidates);
    let mut candidates = cx.sorted(own)?;
    candidates.truncate(stage.most_candidates);
    Ok((candidates, cx.sum(all)?))
}

/// Drops all candidates except the best ones; their order changes.
fn keep_best(candidates: &mut Vec<Candidate>, most: usize) {
    if candidates.len() > most {
        candidates.select_nth_unstable(most);
        candidates.truncate(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(score: f64, host: u64) -> Candidate {
        let score = Reverse(score.to_bits());
        Candidate { score, hosts: [host, host + 1], urls: [1, 1], features: 2, path_features: 1 }
    }

    #[test]
    fn the_best_candidates_come_first() {
        let mut all = vec![candidate(0.5, 1), candidate(2.0, 9), candidate(0.5, 0), candidate(1e-9, 3)];
        all.sort_unstable();
        let order: Vec<(f64, u64)> = all.iter().map(|of| (of.score(), of.hosts[0])).collect();
        assert_eq!(order, [(2.0, 9), (0.5, 0), (0.5, 1), (1e-9, 3)]);
        keep_best(&mut all, 2);
        all.sort_unstable();
        assert_eq!(all.iter().map(|of| of.hosts[0]).collect::<Vec<_>>(), [9, 0]);
    }

    #[test]
    fn scores_are_those_of_the_study() {
        // One feature of the names of two hosts, and one path on three hosts; e and e^2 URLs.
        let weight = 4 * WEIGHT / 2 + WEIGHT / 3;
        assert!((score(weight, [1, 1]) - (2.0 + 1.0 / 3.0)).abs() < 1e-12);
        assert!((score(WEIGHT, [100, 1000]) - 1.0 / (1.0 + 0.1 * 100_000f64.ln())).abs() < 1e-12);
        assert!((1..=20).all(|hosts| WEIGHT.is_multiple_of(hosts)));
    }
}
