//! Polynomials over GF(2) of degree 64, the moduli of Rabin fingerprints.
//!
//! A polynomial `P = t^64 + p` is held as its 64 low coefficients `p`. The fingerprint of a byte
//! string is the string, read as a polynomial with the most significant byte first, modulo `P`
//! (Rabin, Fingerprinting by random polynomials, 1981).
//!
//! The seed of a method determines all of its polynomials. Candidates are the outputs of SplitMix64
//! with the lowest bit set. The primitive ones are used, in order: one for each feature, then one
//! for pre-images, one for supershingles and one for megashingles. Seed and rule are part of the
//! format of a store. A test proves with independent code that each polynomial is irreducible and
//! primitive.

use super::default_polynomials;
use crate::kernels::hash::mix;

/// The prime factors of 2^64 - 1, the order of the multiplicative group of GF(2^64).
const ORDER_FACTORS: [u64; 7] = [3, 5, 17, 257, 641, 65_537, 6_700_417];

/// Squares modulo one polynomial: every process of a run finds its polynomials before it does
/// anything else.
struct Squares {
    p: u64,
    /// A byte, as a polynomial, times `t^64`.
    table: [u64; 256],
}

impl Squares {
    fn new(p: u64) -> Squares {
        let mut squares = Squares { p, table: [0; 256] };
        let mut power = p;
        for bit in 0..8 {
            for byte in 1 << bit..2 << bit {
                squares.table[byte] = squares.table[byte ^ 1 << bit] ^ power;
            }
            power = squares.times_t(power);
        }
        squares
    }

    fn times_t(&self, a: u64) -> u64 {
        a << 1 ^ if a >> 63 == 1 { self.p } else { 0 }
    }

    fn square(&self, a: u64) -> u64 {
        // The square of a sum is the sum of the squares: each coefficient goes to twice its place.
        let spread = |half: u64| {
            let half = (half | half << 16) & 0x0000_FFFF_0000_FFFF;
            let half = (half | half << 8) & 0x00FF_00FF_00FF_00FF;
            let half = (half | half << 4) & 0x0F0F_0F0F_0F0F_0F0F;
            let half = (half | half << 2) & 0x3333_3333_3333_3333;
            (half | half << 1) & 0x5555_5555_5555_5555
        };
        let low = spread(a & 0xFFFF_FFFF).to_be_bytes();
        low.iter()
            .fold(spread(a >> 32), |rest, byte| (rest << 8 | u64::from(*byte)) ^ self.table[(rest >> 56) as usize])
    }

    /// `t^exponent`.
    fn power_of_t(&self, exponent: u64) -> u64 {
        (0..64).rev().fold(1, |power, bit| {
            let square = self.square(power);
            if exponent >> bit & 1 == 1 { self.times_t(square) } else { square }
        })
    }
}

/// The greatest common divisor of two polynomials of degree below 128.
fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        while a != 0 && a.leading_zeros() <= b.leading_zeros() {
            a ^= b << (b.leading_zeros() - a.leading_zeros());
        }
        (a, b) = (b, a);
    }
    a
}

/// Whether `t^64 + p` is irreducible: Rabin's test for degree 64, whose only prime divisor is 2.
///
/// ```
/// use nigh_kernels::kernels::irreducible;
/// assert!(irreducible(0b11011)); // t^64 + t^4 + t^3 + t + 1
/// assert!(!irreducible(0b11010)); // without the 1 it is divisible by t
/// ```
pub fn irreducible(p: u64) -> bool {
    // Divisible by t, or by t + 1 (an even number of terms): this rejects three of four candidates.
    if p & 1 == 0 || p.count_ones() % 2 == 1 {
        return false;
    }
    let squares = Squares::new(p);
    let frobenius = |x: u64, times: u32| (0..times).fold(x, |x, _| squares.square(x));
    let half = frobenius(2, 32); // 2 is the polynomial t
    frobenius(half, 32) == 2 && greatest_common_divisor(1 << 64 | p as u128, (half ^ 2) as u128) == 1
}

/// Whether `t^64 + p` is primitive: it is irreducible, and the powers of `t` are all elements of
/// GF(2^64) except zero.
pub fn primitive(p: u64) -> bool {
    irreducible(p) && {
        let squares = Squares::new(p);
        ORDER_FACTORS.iter().all(|factor| squares.power_of_t(u64::MAX / factor) != 1)
    }
}

/// The polynomials of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polynomials {
    /// The low coefficients of one polynomial for each feature.
    pub features: Vec<u64>,
    /// That of the pre-images of shingles.
    pub shingles: u64,
    /// That of supershingles.
    pub supershingles: u64,
    /// That of megashingles.
    pub megashingles: u64,
}

/// Finds the polynomials of a method with this seed and number of features.
///
/// ```
/// use nigh_kernels::kernels::{polynomials, primitive};
/// let few = polynomials(20_031_107, 2);
/// assert!(few.features.iter().chain([&few.shingles]).all(|p| primitive(*p)));
/// // Features come first, in order: more of them begin with the same ones.
/// assert_eq!(polynomials(20_031_107, 3).features[..2], few.features);
/// ```
pub fn polynomials(seed: u64, features: usize) -> Polynomials {
    let mut features = match default_polynomials::POLYNOMIALS.get(..features + 3) {
        Some(known) if seed == default_polynomials::SEED => known.to_vec(),
        _ => search(seed).take(features + 3).collect(),
    };
    let mut last = || features.pop().expect("three polynomials follow those of the features");
    let (megashingles, supershingles, shingles) = (last(), last(), last());
    Polynomials { features, shingles, supershingles, megashingles }
}

/// All primitive polynomials of a seed, in order.
fn search(seed: u64) -> impl Iterator<Item = u64> {
    let states = std::iter::successors(Some(seed), |state| Some(state.wrapping_add(0x9E37_79B9_7F4A_7C15)));
    states.map(|state| mix(state) | 1).filter(|candidate| primitive(*candidate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::multiply;

    const SEED: u64 = default_polynomials::SEED;

    #[test]
    fn the_polynomials_of_the_default_seed_are_those_that_the_search_finds() {
        assert!(search(SEED).take(87).eq(default_polynomials::POLYNOMIALS));
        // More features than there are constants begin with the same ones; other seeds have other
        // ones.
        let many = polynomials(SEED, 90);
        assert_eq!((&many.features[..87], many.features.len()), (&default_polynomials::POLYNOMIALS[..], 90));
        assert!(polynomials(SEED + 1, 84).features.iter().all(|p| !many.features.contains(p)));
    }

    fn all() -> Vec<u64> {
        let all = polynomials(SEED, 84);
        [all.features.clone(), vec![all.shingles, all.supershingles, all.megashingles]].concat()
    }

    #[test]
    fn squares_are_products() {
        let mut a = SEED;
        for p in [0b11011, 1, u64::MAX, 0x8000_0000_0000_0001].into_iter().chain(all()) {
            let squares = Squares::new(p);
            for _ in 0..50 {
                a = mix(a);
                assert_eq!(squares.square(a), crate::kernels::product(p, a, a), "{p:x} {a:x}");
            }
            assert_eq!(squares.power_of_t(64), p);
        }
    }

    /// Whether `t^exponent` is 1 modulo `t^64 + p`. It multiplies by shifts from the other end: a
    /// second implementation, so that the proof does not depend on the code that it proves.
    fn order_divides(p: u64, exponent: u64) -> bool {
        let times = |a: u64, b: u64| {
            let mut sum = 0;
            for i in (0..64).rev() {
                sum = if sum >> 63 == 1 { sum << 1 ^ p } else { sum << 1 };
                if b >> i & 1 == 1 {
                    sum ^= a;
                }
            }
            sum
        };
        let mut result = 1;
        for i in (0..64).rev() {
            result = times(result, result);
            if exponent >> i & 1 == 1 {
                result = times(result, 2);
            }
        }
        result == 1
    }

    #[test]
    fn every_polynomial_is_irreducible_and_primitive() {
        assert_eq!(ORDER_FACTORS.iter().product::<u64>(), u64::MAX);
        let all = all();
        assert_eq!(all.len(), 87);
        for p in all {
            // If t has order 2^64 - 1 modulo P, its powers are 2^64 - 1 distinct units among 2^64 -
            // 1 nonzero residues, so each nonzero residue is a unit: P is irreducible, and
            // primitive.
            assert!(order_divides(p, u64::MAX), "{p:#x}");
            for factor in ORDER_FACTORS {
                assert!(!order_divides(p, u64::MAX / factor), "{p:#x} {factor}");
            }
        }
    }

    #[test]
    fn reducible_polynomials_are_recognized() {
        // The square of t^32 + t^7 + t^3 + t^2 + 1, and products with t and t + 1.
        let square = multiply(1 << 32 | 0x8D, 1 << 32 | 0x8D) as u64;
        assert!(!irreducible(square));
        assert!(!irreducible(0b1010) && !irreducible(0b111));
        // x^64 + x^4 + x^3 + x + 1 is well known to be irreducible; whether x is a generator does
        // not matter here.
        assert!(irreducible(0b11011));
    }

    #[test]
    fn the_seed_gives_the_polynomials_of_the_format() {
        let all = polynomials(SEED, 84);
        let hash = crate::records::short_hash(bytemuck::cast_slice(&self::all()));
        assert_eq!((all.features[0], all.shingles, hash.as_str()), (GOLDEN.0, GOLDEN.1, GOLDEN.2));
    }

    /// The first polynomial, that of pre-images, and the hash of all 87: fixed by the format.
    const GOLDEN: (u64, u64, &str) = (0x99AA_632B_257E_1C87, 0x57A5_216D_2661_3D43, "5c53189641b2591f");
}
