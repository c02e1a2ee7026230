//! Fast similarity sketches: as many features as min-wise functions give, for large sets in less
//! time (Dahlgaard, Knudsen and Thorup 2017: Fast similarity sketching, section 2).
//!
//! ```text
//! for each round r = 0, 1, ..., 2 k - 1, until each of the k slots has a feature:
//!     for each shingle x:
//!         slot, image = hash of x in round r         the slot is random in the first k rounds, and r - k in the others
//!         if the slot has no feature from a round before: its feature is the smallest image
//! ```
//!
//! A shingle falls into one slot in each round, where it is compared with one feature and not with
//! k. About k ln k hashes fill the slots: of a set with more shingles one round does, or two; a
//! small set takes more rounds, as many hashes in all.
//!
//! The share of equal features estimates the resemblance of two sets without bias. It varies no
//! more than that of k min-wise functions, and less for sets that are not much larger than k: the
//! features of a round are drawn without replacement. So of two sets that differ in little it is
//! also less likely that all features are equal.

use nigh_kernels::records::mix;

/// A slot without a feature. A shingle with this image counts as none, by whatever order it comes.
const EMPTY: u64 = u64::MAX;

/// Computes the features of sets of shingles; its buffer is reused from set to set.
pub struct FastFeatures {
    /// The salts of the rounds, two for each slot.
    salts: Vec<u64>,
    /// Whether a slot has no feature from the rounds before.
    is_open: Vec<bool>,
    /// The slots that get their feature in this round.
    filled: Vec<usize>,
}

impl FastFeatures {
    /// So many features, by the hashes of a seed.
    pub fn new(features: usize, seed: u64) -> FastFeatures {
        let salts = (0..2 * features as u64).map(|round| mix(mix(seed).wrapping_add(round))).collect();
        FastFeatures { salts, is_open: Vec::new(), filled: Vec::new() }
    }

    /// Writes the features of a set of shingles over `features`. Shingles may come in any order,
    /// and more than once; there must be one.
    pub fn write(&mut self, shingles: &[u64], features: &mut Vec<u64>) {
        let FastFeatures { salts, is_open, filled } = self;
        let count = salts.len() / 2;
        let (random, fixed) = salts.split_at(count);
        features.clear();
        features.resize(count, EMPTY);
        // The first round has most of the work: all slots are open.
        for (slot, image) in shingles.iter().map(|shingle| placed(*shingle, random[0], count)) {
            features[slot] = features[slot].min(image);
        }
        is_open.clear();
        is_open.extend(features.iter().map(|feature| *feature == EMPTY));
        let mut open = is_open.iter().filter(|is_open| **is_open).count();
        for salt in &random[1..] {
            if open == 0 {
                break;
            }
            for (slot, image) in shingles.iter().map(|shingle| placed(*shingle, *salt, count)) {
                if is_open[slot] {
                    if features[slot] == EMPTY {
                        filled.push(slot);
                    }
                    features[slot] = features[slot].min(image);
                }
            }
            for slot in filled.drain(..) {
                open -= usize::from(std::mem::take(&mut is_open[slot]));
            }
        }
        for (feature, salt) in features.iter_mut().zip(fixed).filter(|(feature, _)| **feature == EMPTY) {
            let images = shingles.iter().map(|shingle| placed(*shingle, *salt, count).1);
            *feature = images.min().unwrap_or(EMPTY);
        }
    }
}

/// The slot of a shingle in the round with this salt, and its image. Different shingles have
/// different images.
#[inline]
fn placed(shingle: u64, salt: u64, slots: usize) -> (usize, u64) {
    let hash = mix(shingle ^ salt);
    // The high half of the hash chooses the slot, the low half is compared first.
    ((((hash >> 32) * slots as u64) >> 32) as usize, hash.rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The features by the definition: each slot by itself, over all rounds.
    fn twin(shingles: &[u64], count: usize, seed: u64) -> Vec<u64> {
        let salt = |round: usize| mix(mix(seed).wrapping_add(round as u64));
        let of_slot = |slot: usize| {
            (0..2 * count).find_map(|round| {
                let placed = shingles.iter().map(|shingle| placed(*shingle, salt(round), count));
                let of_round =
                    placed.filter(|(random, _)| if round < count { *random == slot } else { round - count == slot });
                of_round.map(|(_, image)| image).min()
            })
        };
        (0..count).map(|slot| of_slot(slot).unwrap()).collect()
    }

    fn features(shingles: &[u64], count: usize, seed: u64) -> Vec<u64> {
        let mut features = vec![7; 3];
        FastFeatures::new(count, seed).write(shingles, &mut features);
        features
    }

    #[test]
    fn they_are_those_of_the_definition() {
        for count in [1, 2, 7, 84, 112, 300] {
            for shingles in [1, 2, 3, 10, 50, 84, 200, 500, 5000] {
                // Neighbours in value, as pre-images of similar shingles can be.
                let set: Vec<u64> = (0..shingles).map(|number| 1 << 40 | number).collect();
                let wanted = twin(&set, count, shingles);
                assert_eq!(features(&set, count, shingles), wanted, "{count} of {shingles}");
                let again: Vec<u64> = set.iter().rev().chain(&set).copied().collect();
                assert_eq!(features(&again, count, shingles), wanted, "order and number do not matter");
            }
        }
    }

    #[test]
    fn they_are_the_same_in_every_version() {
        // Stores hold them: other values need another store format.
        let set: Vec<u64> = (0..300).map(mix).collect();
        let of_set = features(&set, 84, 20_031_107);
        let sum = of_set.iter().fold(0, |sum, feature| mix(sum ^ feature));
        assert_eq!((of_set[0], of_set[83]), (2_670_622_789_379_169_828, 1_667_841_096_418_709_475));
        assert_eq!(sum, 9_377_561_187_093_576_093);
        let short = features(&set[..3], 84, 20_031_107);
        assert_eq!(short.iter().fold(0, |sum, feature| mix(sum ^ feature)), 15_566_026_446_104_029_501);
    }

    #[test]
    fn sets_without_a_shingle_in_common_share_no_feature() {
        let [a, b] = [0, 1 << 50].map(|from: u64| (from..from + 300).map(mix).collect::<Vec<u64>>());
        let equal = features(&a, 84, 1).into_iter().zip(features(&b, 84, 1)).filter(|(a, b)| a == b).count();
        assert_eq!(equal, 0);
    }
}
