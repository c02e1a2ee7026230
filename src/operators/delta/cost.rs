//! Whether the clusters of a later week are found from what changed or from all pages: as is predicted to be quicker.
//!
//! The share of vectors that changed is estimated on one shard in sixteen, the same ones for any number of workers. The
//! prediction is a straight line that was fitted to `nigh bench weeks`: it does not know of the evidence that the job
//! finds anew in clusters that changed.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use crate::config::Mode;
use crate::operators::delta::sharing::differences;
use crate::operators::exchange::all_gather;
use crate::operators::scan::VectorFiles;
use crate::records::mix;
use crate::structures::Ownership;
use crate::watch::Watch;

/// The time of the delta way over that of the full one where nothing changed, and what is added for each share of the
/// vectors that changed: with postings, and without. That postings are made then is not counted: later weeks have them.
const WITH_POSTINGS: (f64, f64) = (0.22, 31.0);
const WITHOUT: (f64, f64) = (0.31, 32.0);
/// Of so many shards one is looked at, and the first.
const SAMPLED: u64 = 16;
/// Bytes that a worker has for each document of all workers that changed, and those that all workers share out.
const BYTES: (f64, f64) = (200.0, 4000.0);
/// Slices, at most: each reads both weeks' vectors again.
const MOST_SLICES: f64 = 64.0;

/// How the clusters of a week are found, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Choice {
    /// What the job asked for.
    pub asked: Mode,
    /// The way that is taken: delta or full.
    pub way: Mode,
    /// The share of vectors that changed, came or went, as estimated; 0 where nobody asked.
    pub changed: f64,
    /// The predicted time of the delta way over that of the full one.
    pub ratio: f64,
    /// Slices in which the change is taken, so that it fits in memory.
    pub slices: u64,
}

impl Choice {
    /// From all pages, without a look at what changed.
    pub fn full(asked: Mode) -> Choice {
        Choice { asked, way: Mode::Full, changed: 0.0, ratio: 0.0, slices: 1 }
    }

    /// Where this share of so many vectors changed, and each of `peers` workers has so much memory.
    fn new(asked: Mode, changed: f64, vectors: u64, has_postings: bool, memory: u64, peers: usize) -> Choice {
        let bytes = changed * vectors as f64 * (BYTES.0 + BYTES.1 / peers as f64);
        let slices = (bytes / memory.max(1) as f64).ceil().clamp(1.0, MOST_SLICES);
        // Of slices some vectors are this week's, which postings do not have.
        let cost = if has_postings && slices == 1.0 { WITH_POSTINGS } else { WITHOUT };
        let ratio = cost.0 * slices + cost.1 * changed;
        let way = if asked == Mode::Delta || ratio < 1.0 { Mode::Delta } else { Mode::Full };
        Choice { asked, way, changed, ratio, slices: slices as u64 }
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = if self.way == Mode::Delta { "from what changed" } else { "from all pages" };
        match self.asked {
            Mode::Auto => write!(
                f,
                "{way}: about {:.2}% of the vectors changed, for which the delta way is predicted to take {:.2} of the time of the full one",
                100.0 * self.changed,
                self.ratio
            ),
            _ => write!(f, "{way}, as the job says"),
        }
    }
}

/// Chooses. `has_postings` tells whether there are any of last week's vectors; `memory` is that of one worker, in bytes.
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub fn choose(
    worker: &mut Worker,
    asked: Mode,
    (before, after): (&VectorFiles, &VectorFiles),
    has_postings: bool,
    owned: &Ownership,
    memory: u64,
    watch: &Watch,
) -> Result<Choice> {
    if asked == Mode::Full {
        return Ok(Choice::full(asked));
    }
    let sampled = |shard: &u32| *shard == 0 || mix(u64::from(*shard)).is_multiple_of(SAMPLED);
    let shards: Vec<u32> = owned.shards().filter(sampled).collect();
    let [sampled_before, sampled_after] = [before, after].map(|files| files.of_shards(&shards));
    let found = differences(&sampled_before, &sampled_after, |_| true)?.len() as u64;
    let of = sampled_before.len().max(sampled_after.len());
    let own = vec![(worker.index(), found, of, before.len().max(after.len()))];
    let sums = all_gather(worker, own, watch)?
        .into_iter()
        .fold((0, 0, 0), |sum, (_, found, of, all)| (sum.0 + found, sum.1 + of, sum.2 + all));
    let changed = sums.0 as f64 / sums.1.max(1) as f64;
    Ok(Choice::new(asked, changed, sums.2, has_postings, memory, worker.peers()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_change_is_followed_and_much_is_not() {
        let by = |asked, changed, has_postings| Choice::new(asked, changed, 1 << 20, has_postings, 1 << 30, 2);
        let choice = |asked, changed| by(asked, changed, true);
        // Postings make more worth following.
        assert_eq!([true, false].map(|has| by(Mode::Auto, 0.024, has).way), [Mode::Delta, Mode::Full]);
        assert_eq!(choice(Mode::Auto, 0.001).way, Mode::Delta);
        assert_eq!(choice(Mode::Auto, 0.5).way, Mode::Full);
        assert_eq!(choice(Mode::Delta, 0.5).way, Mode::Delta);
        assert!(choice(Mode::Auto, 0.001).to_string().contains("0.10% of the vectors changed"));
        assert!(choice(Mode::Delta, 0.5).to_string().contains("as the job says"));
    }

    #[test]
    fn what_does_not_fit_in_memory_is_taken_in_slices() {
        let slices = |memory, peers| Choice::new(Mode::Delta, 0.01, 100_000_000, true, memory, peers).slices;
        assert_eq!(slices(1 << 40, 1), 1);
        assert!((3..10).contains(&slices(1 << 30, 1)), "{}", slices(1 << 30, 1));
        assert!(slices(1 << 28, 16) < slices(1 << 28, 1));
        assert_eq!(slices(1 << 20, 1), 64, "not more passes than that");
        // Nobody would choose them.
        assert_eq!(Choice::new(Mode::Auto, 0.001, 1_000_000_000, true, 1 << 26, 4).way, Mode::Full);
    }
}
