//! The cost model: whether a later week is computed from the documents that changed (delta) or from
//! all documents (full).
//!
//! The share of vectors that changed is estimated on one shard in sixteen, the same shards for any
//! number of workers. The prediction is a straight line, fitted to `nigh bench weeks`. Limit: it
//! does not count the evidence that the job computes again in clusters that changed.

use anyhow::Result;
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use crate::config::Mode;
use crate::operators::delta::sharing::differences;
use crate::operators::scan::VectorFiles;
use crate::records::mix;
use crate::structures::Ownership;

/// The predicted time of a delta, as a multiple of the time of full clustering.
struct CostLine {
    /// Where nothing changed; once for each slice.
    base: f64,
    /// What is added for the share of vectors that changed, 0 to 1.
    slope: f64,
}

const WITH_POSTINGS: CostLine = CostLine { base: 0.22, slope: 31.0 };
/// The time to make postings, which a delta without any does, is not counted: later weeks profit
/// from them.
const WITHOUT_POSTINGS: CostLine = CostLine { base: 0.31, slope: 32.0 };
/// One shard in this many is sampled, besides the first.
const SAMPLED: u64 = 16;
/// Bytes that every worker needs for each changed document of all workers.
const BYTES_EACH: f64 = 200.0;
/// Bytes that all workers together need for each changed document.
const BYTES_TOGETHER: f64 = 4000.0;
/// Slices, at most: each reads the vectors of both weeks again.
const MOST_SLICES: f64 = 64.0;

/// How the clusters of a week are computed, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModeChoice {
    /// The mode that the job asks for.
    pub asked: Mode,
    /// The mode that is used: delta or full.
    pub way: Mode,
    /// The estimated share of vectors that changed, appeared or disappeared, 0 to 1; 0 if it was
    /// not estimated.
    pub changed: f64,
    /// The predicted time of delta, as a multiple of that of full; 0 if it was not predicted.
    pub ratio: f64,
    /// Slices into which the change is cut, so that each fits in memory.
    pub slices: u64,
    /// Whether there are clusters to start from, of a week with the same method.
    pub has_base: bool,
}

impl ModeChoice {
    /// Full, without an estimate of what changed.
    fn full(asked: Mode) -> ModeChoice {
        ModeChoice { asked, way: Mode::Full, changed: 0.0, ratio: 0.0, slices: 1, has_base: true }
    }

    /// Full, whatever the job asks for: no clusters to start from.
    pub fn without_base(asked: Mode) -> ModeChoice {
        ModeChoice { has_base: false, ..ModeChoice::full(asked) }
    }

    /// Chooses, if the share `changed` of `vectors` changed, and each of `peers` workers has
    /// `memory` bytes.
    fn new(asked: Mode, changed: f64, vectors: u64, has_postings: bool, memory: u64, peers: usize) -> ModeChoice {
        let bytes = changed * vectors as f64 * (BYTES_EACH + BYTES_TOGETHER / peers as f64);
        let slices = (bytes / memory.max(1) as f64).ceil().clamp(1.0, MOST_SLICES);
        // Between slices some vectors are this week's, which the postings do not have.
        let line = if has_postings && slices == 1.0 { WITH_POSTINGS } else { WITHOUT_POSTINGS };
        let ratio = line.base * slices + line.slope * changed;
        let way = if asked == Mode::Delta || ratio < 1.0 { Mode::Delta } else { Mode::Full };
        ModeChoice { asked, way, changed, ratio, slices: slices as u64, has_base: true }
    }
}

impl std::fmt::Display for ModeChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.has_base {
            return f.write_str("from all pages: the clusters before were not verified, or in another way");
        }
        let way = if self.way == Mode::Delta { "from what changed" } else { "from all pages" };
        match self.asked {
            Mode::Auto => {
                // In a sample: where it has no change, some others may have one.
                let found = if self.changed > 0.0 {
                    format!("about {:.2}% of the vectors changed", 100.0 * self.changed)
                } else {
                    "of a sample none of the vectors changed".to_owned()
                };
                write!(f, "{way}: {found}; ")?;
                if self.way == Mode::Delta {
                    write!(f, "predicted to be {:.1} times as fast as from all pages", 1.0 / self.ratio)
                } else {
                    write!(f, "from what changed would take {:.1} times as long", self.ratio)
                }
            }
            _ => write!(f, "{way}, as the job says"),
        }
    }
}

/// Chooses between delta and full. `has_postings` says whether there are postings of last week's
/// vectors; `memory` is that of one worker, in bytes.
///
/// # Errors
/// If vectors cannot be read, or a worker of this process failed.
pub fn choose(
    cx: &mut Context,
    asked: Mode,
    (before, after): (&VectorFiles, &VectorFiles),
    has_postings: bool,
    owned: &Ownership,
    memory: u64,
) -> Result<ModeChoice> {
    if asked == Mode::Full {
        return Ok(ModeChoice::full(asked));
    }
    let is_sampled = |shard: &u32| *shard == 0 || mix(u64::from(*shard)).is_multiple_of(SAMPLED);
    let shards: Vec<u32> = owned.shards().filter(is_sampled).collect();
    let [sampled_before, sampled_after] = [before, after].map(|files| files.of_shards(&shards));
    let changed = differences(&sampled_before, &sampled_after, |_| true)?.len() as u64;
    let sampled = sampled_before.len().max(sampled_after.len());
    let vectors = before.len().max(after.len());
    let [changed, sampled, vectors] = cx.sums([changed, sampled, vectors])?;
    let share = changed as f64 / sampled.max(1) as f64;
    Ok(ModeChoice::new(asked, share, vectors, has_postings, memory, cx.peers()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_changes_choose_delta_and_many_choose_full() {
        let choose = |asked, changed, has_postings| ModeChoice::new(asked, changed, 1 << 20, has_postings, 1 << 30, 2);
        let choice = |asked, changed| choose(asked, changed, true);
        // With postings, delta is worth it for a larger share.
        let way = |has_postings| choose(Mode::Auto, 0.024, has_postings).way;
        assert_eq!([true, false].map(way), [Mode::Delta, Mode::Full]);
        assert_eq!(choice(Mode::Auto, 0.001).way, Mode::Delta);
        assert_eq!(choice(Mode::Auto, 0.5).way, Mode::Full);
        assert_eq!(choice(Mode::Delta, 0.5).way, Mode::Delta);
        let said = [0.001, 0.1].map(|changed| choice(Mode::Auto, changed).to_string());
        assert_eq!(
            said,
            [
                "from what changed: about 0.10% of the vectors changed; predicted to be 4.0 times as fast as from all pages",
                "from all pages: about 10.00% of the vectors changed; from what changed would take 3.3 times as long"
            ]
        );
        assert!(choice(Mode::Auto, 0.0).to_string().contains("of a sample none of the vectors changed"));
        assert!(choice(Mode::Delta, 0.5).to_string().contains("as the job says"));
        let without = ModeChoice::without_base(Mode::Delta);
        assert_eq!((without.asked, without.way), (Mode::Delta, Mode::Full));
        assert_eq!(
            without.to_string(),
            "from all pages: the clusters before were not verified, or in another way",
            "the job did not say so"
        );
    }

    #[test]
    fn a_change_that_does_not_fit_in_memory_is_cut_into_slices() {
        let slices = |memory, peers| ModeChoice::new(Mode::Delta, 0.01, 100_000_000, true, memory, peers).slices;
        assert_eq!(slices(1 << 40, 1), 1);
        assert!((3..10).contains(&slices(1 << 30, 1)), "{}", slices(1 << 30, 1));
        assert!(slices(1 << 28, 16) < slices(1 << 28, 1));
        assert_eq!(slices(1 << 20, 1), 64, "a limit on the passes over the vectors");
        // The slices cost more than full clustering.
        assert_eq!(ModeChoice::new(Mode::Auto, 0.001, 1_000_000_000, true, 1 << 26, 4).way, Mode::Full);
    }
}
