//! A random permutation of the numbers below a bound, computed one number at a time.
//!
//! A Feistel network permutes the numbers below the next power of two. If the result is not below
//! the bound, it is permuted again until it is (cycle walking: Black and Rogaway, Ciphers with
//! arbitrary finite domains, 2002), on average less than once. Nothing is stored, so every worker
//! can compute any part of the order. Four rounds are enough for a random-looking order, but do not
//! encrypt.

use crate::records::mix;

/// Rounds of the network.
const ROUNDS: u64 = 4;

/// A random order of the numbers below a bound.
pub struct Permutation {
    bound: u64,
    /// Bits of the right half of a number. The left half has the same number of bits, or one more.
    right_bits: u32,
    left_mask: u64,
    right_mask: u64,
    keys: [u64; ROUNDS as usize],
}

impl Permutation {
    /// The permutation of the numbers below `bound` for a seed.
    pub fn new(bound: u64, seed: u64) -> Permutation {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        let right_bits = bits / 2;
        Permutation {
            bound,
            right_bits,
            left_mask: (1 << (bits - right_bits)) - 1,
            right_mask: (1 << right_bits) - 1,
            keys: std::array::from_fn(|round| mix(mix(seed).wrapping_add(round as u64))),
        }
    }

    /// The image of a number below the bound. The walk ends, because the cycle of the number leads
    /// back to it.
    pub fn at(&self, number: u64) -> u64 {
        debug_assert!(number < self.bound, "{number} is not below {}", self.bound);
        let mut number = number;
        loop {
            number = self.scramble(number);
            if number < self.bound {
                return number;
            }
        }
    }

    /// One pass of the network: in each round one half is changed by a hash of the other.
    fn scramble(&self, number: u64) -> u64 {
        let (mut left, mut right) = (number >> self.right_bits, number & self.right_mask);
        for keys in self.keys.as_chunks::<2>().0 {
            left ^= mix(right ^ keys[0]) & self.left_mask;
            right ^= mix(left ^ keys[1]) & self.right_mask;
        }
        left << self.right_bits | right
    }
}

/// Maps 64 random bits to a number below `bound`; 0 if the bound is 0.
pub fn below(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_met_once() {
        for bound in (1..=70).chain([127, 128, 129, 1000, 4096, 65_537]) {
            let permutation = Permutation::new(bound, 1);
            let mut met = vec![false; bound as usize];
            for number in 0..bound {
                assert!(!std::mem::replace(&mut met[permutation.at(number) as usize], true), "{number} of {bound}");
            }
        }
    }

    #[test]
    fn orders_of_two_seeds_differ_and_neither_is_the_natural_one() {
        let orders = [1, 2].map(|seed| {
            let permutation = Permutation::new(10_000, seed);
            (0..10_000).map(|number| permutation.at(number)).collect::<Vec<u64>>()
        });
        assert_ne!(orders[0], orders[1]);
        // Numbers that follow each other land a third of the bound apart in the mean.
        for order in orders {
            let apart: u64 = order.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
            assert!((30_000_000..37_000_000).contains(&apart), "{apart}");
        }
    }

    #[test]
    fn the_largest_bounds_are_permuted_too() {
        for bound in [0, u64::MAX / 2 + 2, u64::MAX] {
            let permutation = Permutation::new(bound, 3);
            for number in [0, 1, bound / 2, bound.saturating_sub(1)].into_iter().filter(|number| *number < bound) {
                assert!(permutation.at(number) < bound);
            }
        }
    }

    #[test]
    fn a_number_below_a_bound_takes_all_values() {
        assert_eq!([0, u64::MAX / 2, u64::MAX].map(|random| below(random, 3)), [0, 1, 2]);
        assert_eq!(below(u64::MAX, 0), 0);
    }
}
