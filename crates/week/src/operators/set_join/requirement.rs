//! The requirement of a join: how much two sets must have in common.

use serde::{Deserialize, Serialize};

/// A share between 0 and 1, exactly: a number of millionths.
///
/// ```
/// use nigh_week::operators::set_join::ExactShare;
/// assert_eq!(ExactShare::new(0.9).unwrap(), ExactShare::of_millionths(900_000).unwrap());
/// assert!(ExactShare::new(0.0).is_none() && ExactShare::new(1.5).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct ExactShare(u32);

/// Millionths of the whole.
const WHOLE: u64 = 1_000_000;

impl ExactShare {
    /// The share with the nearest number of millionths; `None` unless it is above 0 and at most 1.
    pub fn new(share: f64) -> Option<ExactShare> {
        let millionths = (share * WHOLE as f64).round();
        (millionths >= 1.0 && millionths <= WHOLE as f64).then_some(ExactShare(millionths as u32))
    }

    /// The share of so many millionths; `None` unless it is above 0 and at most 1.
    pub const fn of_millionths(millionths: u32) -> Option<ExactShare> {
        if millionths == 0 || millionths as u64 > WHOLE { None } else { Some(ExactShare(millionths)) }
    }

    /// The share as a number.
    pub fn value(self) -> f64 {
        f64::from(self.0) / WHOLE as f64
    }

    fn millionths(self) -> u64 {
        self.0.into()
    }
}

impl TryFrom<f64> for ExactShare {
    type Error = String;

    fn try_from(share: f64) -> Result<ExactShare, String> {
        ExactShare::new(share).ok_or_else(|| format!("{share} is no share above 0 and at most 1"))
    }
}

impl From<ExactShare> for f64 {
    fn from(share: ExactShare) -> f64 {
        share.value()
    }
}

/// What two sets must have in common to be a pair. Weights are those of elements; the *size* of a
/// set is the weight of all of its elements, also of those that no other set has.
///
/// In all but [`Requirement::Both`], the weight of an element must be the same in all sets.
///
/// ```
/// use nigh_week::operators::set_join::{ExactShare, Requirement};
/// // Sets of size 10 and 20 that share 8.
/// assert!(Requirement::Shared(8).holds([8, 8], [10, 20]));
/// let half = ExactShare::new(0.5).unwrap();
/// assert!(Requirement::Dice(half).holds([8, 8], [10, 20]), "16 of 30");
/// assert!(!Requirement::Resemblance(half).holds([8, 8], [10, 20]), "8 of 22");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Requirement {
    /// The shared elements weigh at least this (Shivakumar 1998: shared chunks).
    Shared(u32),
    /// The shared elements weigh at least this in either set, by its own weights (Fetterly 2004,
    /// section 4: pages of two hosts in common clusters).
    Both(u32),
    /// Twice the shared weight, over the sum of the sizes, is at least this (Pereira 2006:
    /// identical paragraphs).
    Dice(ExactShare),
    /// The shared weight, over the weight of the union, is at least this (Broder 1997).
    Resemblance(ExactShare),
}

impl Requirement {
    /// The least weight that a set of this size shares with any set that it is a pair with. Sets
    /// that share nothing are no pair.
    pub fn least(self, size: u64) -> u64 {
        let least = match self {
            Requirement::Shared(least) | Requirement::Both(least) => least.into(),
            // The other set has at least the shared weight: 2 shared >= share (size + shared).
            Requirement::Dice(share) => ceiling(share.millionths(), size, 2 * WHOLE - share.millionths()),
            // The union has at least the weight of the set.
            Requirement::Resemblance(share) => ceiling(share.millionths(), size, WHOLE),
        };
        least.max(1)
    }

    /// The least weight that two sets of these sizes share if they are a pair.
    pub fn least_of_pair(self, sizes: [u64; 2]) -> u64 {
        let sum = sizes[0] + sizes[1];
        let least = match self {
            Requirement::Shared(least) | Requirement::Both(least) => least.into(),
            Requirement::Dice(share) => ceiling(share.millionths(), sum, 2 * WHOLE),
            Requirement::Resemblance(share) => ceiling(share.millionths(), sum, WHOLE + share.millionths()),
        };
        least.max(1)
    }

    /// Whether two sets of these sizes are a pair, if the elements that they share have these
    /// weights in the one and in the other.
    pub fn holds(self, shared: [u64; 2], sizes: [u64; 2]) -> bool {
        shared[0].min(shared[1]) >= self.least_of_pair(sizes)
    }

    /// The least weight of a set of this size in a collection of elements that weigh `of`, so that
    /// any two such sets are a pair: what both lack of the collection is too little to keep their
    /// shared part below the requirement. `None` if there is no such weight.
    pub fn least_in_family(self, of: u64, size: u64) -> Option<u64> {
        match self {
            Requirement::Shared(least) => Some((of + u64::from(least.max(1))).div_ceil(2)),
            Requirement::Both(_) => None,
            Requirement::Dice(share) => Some((of * WHOLE + (share.millionths() * size).max(1)).div_ceil(2 * WHOLE)),
            Requirement::Resemblance(share) => {
                // of / 2 + share / (1 + share) * size, over one denominator.
                let whole = WHOLE + share.millionths();
                Some((of * whole + 2 * share.millionths() * size).div_ceil(2 * whole))
            }
        }
    }

    /// Whether sets with the same shared elements can differ in what they are pairs with, because
    /// their sizes differ.
    pub fn depends_on_sizes(self) -> bool {
        matches!(self, Requirement::Dice(_) | Requirement::Resemblance(_))
    }
}

/// `factor * size / divisor`, rounded up.
fn ceiling(factor: u64, size: u64, divisor: u64) -> u64 {
    match factor.checked_mul(size) {
        Some(product) => product.div_ceil(divisor),
        None => (u128::from(factor) * u128::from(size)).div_ceil(u128::from(divisor)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The bounds, against the definitions in fractions.
        #[test]
        fn no_pair_is_below_a_bound(millionths in 1u32..=1_000_000, shared in 0u64..60, rest in [0u64..60, 0u64..60]) {
            let share = ExactShare::of_millionths(millionths).unwrap();
            let t = u128::from(millionths);
            let sizes = rest.map(|rest| shared + rest);
            let (wide, sum) = (u128::from(shared), u128::from(sizes[0] + sizes[1]));
            for (requirement, is_pair) in [
                (Requirement::Dice(share), shared > 0 && 2 * wide * 1_000_000 >= t * sum),
                (Requirement::Resemblance(share), shared > 0 && wide * 1_000_000 >= t * (sum - wide)),
                (Requirement::Shared(7), shared >= 7),
                (Requirement::Both(7), shared >= 7),
            ] {
                prop_assert_eq!(requirement.holds([shared, shared], sizes), is_pair);
                if is_pair {
                    prop_assert!(sizes.into_iter().all(|size| requirement.least(size) <= shared));
                }
            }
        }

        /// Two sets that hold enough of a family are a pair, whatever they lack.
        #[test]
        fn any_two_sets_of_a_family_are_a_pair(
            millionths in 1u32..=1_000_000, of in 1u64..40, held in [0u64..40, 0u64..40], outside in [0u64..20, 0u64..20],
        ) {
            let share = ExactShare::of_millionths(millionths).unwrap();
            let held = held.map(|held| held.min(of));
            let sizes = [held[0] + outside[0], held[1] + outside[1]];
            // What they share of the family at the least.
            let shared = (held[0] + held[1]).saturating_sub(of);
            for requirement in [
                Requirement::Shared(0),
                Requirement::Shared(1),
                Requirement::Shared(5),
                Requirement::Dice(share),
                Requirement::Resemblance(share),
            ] {
                let is_member = |side: usize| held[side] >= requirement.least_in_family(of, sizes[side]).unwrap();
                if is_member(0) && is_member(1) {
                    prop_assert!(requirement.holds([shared, shared], sizes), "{:?}", requirement);
                }
            }
        }
    }

    #[test]
    fn weights_count_on_either_side() {
        assert!(Requirement::Both(10).holds([10, 12], [10, 100]));
        assert!(!Requirement::Both(10).holds([9, 12], [10, 100]));
        assert_eq!(Requirement::Both(10).least_in_family(40, 40), None);
    }
}
