//! Arithmetic of polynomials over GF(2) modulo a polynomial of degree 64, and the constants of the
//! kernels.
//!
//! A polynomial `P = t^64 + p` is held as its 64 low coefficients `p`; bit `i` of a number is the
//! coefficient of `t^i`. The image of a pre-image `x` is `x * t^64` modulo `P`: one-to-one on
//! 64-bit numbers, since `t` is a unit.
//!
//! Machines with a carry-less product reduce by Barrett's rule. It is exact over GF(2), where there
//! are no carries: with `mu` the low part of `floor(t^128 / P)`, the quotient of `x * t^64` is
//! `q = x + high(x mu)`, and the image is `low(q p)`.

/// The product of two polynomials of degree below 64, unreduced.
///
/// ```
/// use nigh_kernels::kernels::multiply;
/// assert_eq!(multiply(0b11, 0b11), 0b101); // (t + 1)^2 = t^2 + 1 over GF(2)
/// ```
pub fn multiply(a: u64, b: u64) -> u128 {
    (0..64).filter(|i| a >> i & 1 == 1).fold(0, |sum, i| sum ^ (b as u128) << i)
}

/// `high * t^64 + low` modulo `t^64 + p`.
pub fn reduce(p: u64, high: u64, low: u64) -> u64 {
    (0..64).rev().fold(high, |rest, i| {
        let shifted = rest << 1 | (low >> i & 1);
        if rest >> 63 == 1 { shifted ^ p } else { shifted }
    })
}

/// The product of two polynomials modulo `t^64 + p`.
///
/// ```
/// use nigh_kernels::kernels::product;
/// // t^63 * t = t^64, which is t^4 + t^3 + t + 1 modulo t^64 + t^4 + t^3 + t + 1.
/// assert_eq!(product(0b11011, 1 << 63, 0b10), 0b11011);
/// ```
pub fn product(p: u64, a: u64, b: u64) -> u64 {
    let wide = multiply(a, b);
    reduce(p, (wide >> 64) as u64, wide as u64)
}

/// Arithmetic modulo one polynomial: by byte tables (16 KiB), or by carry-less products.
#[derive(Clone)]
pub struct Polynomial {
    /// The low coefficients of P.
    pub(in crate::kernels) p: u64,
    /// The low coefficients of `floor(t^128 / P)`.
    pub(in crate::kernels) mu: u64,
    /// `table[j][b]` = `b * t^(8j) * t^64` modulo P.
    table: Box<[[u64; 256]; 8]>,
}

impl Polynomial {
    /// Computes the constants of `t^64 + p`.
    pub fn new(p: u64) -> Polynomial {
        let mut table = Box::new([[0; 256]; 8]);
        // t^64 = p; each further power is a shift.
        let mut power = p;
        for row in table.iter_mut() {
            for bit in 0..8 {
                for byte in 1 << bit..2 << bit {
                    row[byte] = row[byte ^ 1 << bit] ^ power;
                }
                power = reduce(p, power >> 63, power << 1);
            }
        }
        // Long division of t^128 by P: the first term of the quotient is t^64, with the remainder
        // p * t^64.
        let (mut mu, mut rest) = (0, p);
        for _ in 0..64 {
            let carry = rest >> 63;
            mu = mu << 1 | carry;
            rest = rest << 1 ^ carry.wrapping_neg() & p;
        }
        Polynomial { p, mu, table }
    }

    /// The image of a pre-image: `x * t^64` modulo P, one-to-one on 64-bit numbers.
    #[inline]
    pub fn image(&self, x: u64) -> u64 {
        let [b0, b1, b2, b3, b4, b5, b6, b7] = x.to_le_bytes();
        let t = &self.table;
        t[0][b0 as usize]
            ^ t[1][b1 as usize]
            ^ t[2][b2 as usize]
            ^ t[3][b3 as usize]
            ^ t[4][b4 as usize]
            ^ t[5][b5 as usize]
            ^ t[6][b6 as usize]
            ^ t[7][b7 as usize]
    }

    /// Appends eight bytes: given the fingerprint of a byte string, the fingerprint of the longer
    /// string.
    #[inline]
    pub fn append_word(&self, fingerprint: u64, word: u64) -> u64 {
        self.image(fingerprint) ^ word
    }

    /// Appends bytes: given the fingerprint of a byte string, the fingerprint of the longer string.
    ///
    /// ```
    /// use nigh_kernels::kernels::Polynomial;
    /// let modulus = Polynomial::new(0x1B);
    /// assert_eq!(modulus.append(modulus.append(0, b"near "), b"duplicates"), modulus.append(0, b"near duplicates"));
    /// ```
    #[inline]
    pub fn append(&self, fingerprint: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(fingerprint, |f, &byte| f << 8 ^ self.table[0][(f >> 56) as usize] ^ byte as u64)
    }
}

/// The constants for pre-images of shingles of one width.
pub struct ShingleConstants {
    pub(in crate::kernels) polynomial: Polynomial,
    /// Words of a shingle.
    pub(in crate::kernels) width: usize,
    /// `powers[l]` = `t^(8l)` modulo P: the factor of a fingerprint when `l` bytes are appended.
    pub(in crate::kernels) powers: Box<[u64; POWERS]>,
}

/// The maximum number of words of a shingle.
pub const MAX_WIDTH: usize = 64;

/// The number of powers in the table; for more bytes they are multiplied.
pub(in crate::kernels) const POWERS: usize = 1024;

impl ShingleConstants {
    /// Computes the constants for shingles of `width` words (1 to 64) and the polynomial
    /// `t^64 + p`.
    pub fn new(p: u64, width: usize) -> ShingleConstants {
        let polynomial = Polynomial::new(p);
        let mut powers = Box::new([1; POWERS]);
        for l in 1..POWERS {
            powers[l] = polynomial.append(powers[l - 1], &[0]);
        }
        ShingleConstants { polynomial, width: width.clamp(1, MAX_WIDTH), powers }
    }
}

/// The constants of the min-wise functions, in the forms that the kernels read.
pub struct Functions {
    pub(in crate::kernels) polynomials: Vec<Polynomial>,
    /// `p` of each polynomial. `p`, `mu` and `leading` are padded with zeros to a multiple of
    /// [`LANES`].
    pub(in crate::kernels) p: Vec<u64>,
    /// `mu` of each polynomial.
    pub(in crate::kernels) mu: Vec<u64>,
    /// `leading[i][j]`: the 8 by 8 bit matrix that maps byte `j` of a pre-image to its part of the
    /// leading byte of image `i`. Row `7 - b` is for output bit `b`; its bit `k` is the factor of
    /// input bit `k`.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 multiplies by matrices"))]
    pub(in crate::kernels) leading: Vec<[u64; 8]>,
    /// `nibbles[i][j][v]`: the leading byte of the image `i` of `v << 4j`.
    pub(in crate::kernels) nibbles: Vec<[[u8; 16]; 16]>,
}

/// The maximum number of functions that a kernel works on at once.
pub(in crate::kernels) const LANES: usize = 8;

impl Functions {
    /// Computes the constants of the functions with the polynomials `t^64 + p`.
    pub fn new(polynomials: &[u64]) -> Functions {
        let polynomials: Vec<Polynomial> = polynomials.iter().map(|p| Polynomial::new(*p)).collect();
        let padded = |of: fn(&Polynomial) -> u64| {
            let mut all: Vec<u64> = polynomials.iter().map(of).collect();
            all.resize(all.len().next_multiple_of(LANES), 0);
            all
        };
        let leading = |function: &Polynomial| {
            std::array::from_fn(|j| {
                let share = |output: usize, input: usize| function.image(1 << (8 * j + input)) >> (56 + output) & 1;
                let row = |output| (0..8).fold(0, |row, input| row | share(output, input) << input);
                (0..8).fold(0, |matrix, output| matrix | row(output) << (8 * (7 - output)))
            })
        };
        let nibbles = |function: &Polynomial| {
            std::array::from_fn(|j| std::array::from_fn(|v| (function.image((v as u64) << (4 * j)) >> 56) as u8))
        };
        let mut matrices: Vec<[u64; 8]> = polynomials.iter().map(leading).collect();
        matrices.resize(matrices.len().next_multiple_of(LANES), [0; 8]);
        Functions {
            p: padded(|function| function.p),
            mu: padded(|function| function.mu),
            leading: matrices,
            nibbles: polynomials.iter().map(nibbles).collect(),
            polynomials,
        }
    }

    /// The lanes of a group of [`LANES`] that are functions, as bits; the last group may be padded.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::kernels) fn lanes(&self, group: usize) -> u8 {
        u8::MAX >> ((group + 1) * LANES).saturating_sub(self.count())
    }

    /// The number of functions.
    pub fn count(&self) -> usize {
        self.polynomials.len()
    }
}

/// The constants for fingerprints of runs of features (supershingles), each feature as eight bytes,
/// most significant first.
pub struct FeatureRuns {
    pub(in crate::kernels) polynomial: Polynomial,
    /// The number of features of a run.
    pub(in crate::kernels) length: usize,
    /// `weights[j]` = `t^(64 (length - 1 - j))` modulo P, the factor of the `j`-th feature of a
    /// run; padded with zeros to a multiple of [`LANES`].
    pub(in crate::kernels) weights: Vec<u64>,
}

impl FeatureRuns {
    /// Computes the constants for runs of `length` features (at least 1) and the polynomial
    /// `t^64 + p`.
    pub fn new(p: u64, length: usize) -> FeatureRuns {
        let (polynomial, length) = (Polynomial::new(p), length.max(1));
        let mut weights = vec![1; length];
        for j in (1..length).rev() {
            weights[j - 1] = polynomial.image(weights[j]);
        }
        weights.resize(length.next_multiple_of(LANES), 0);
        FeatureRuns { polynomial, length, weights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Three polynomials of the default method.
    const P: [u64; 3] = [0x99AA_632B_257E_1C87, 0x57A5_216D_2661_3D43, 0x1B];

    #[test]
    fn images_by_barretts_constants_are_those_by_tables() {
        for p in P {
            let polynomial = Polynomial::new(p);
            for x in [0, 1, 2, 1 << 63, u64::MAX, 0x0123_4567_89AB_CDEF] {
                let quotient = x ^ (multiply(x, polynomial.mu) >> 64) as u64;
                assert_eq!(multiply(quotient, p) as u64, polynomial.image(x), "{p:#x} {x:#x}");
            }
        }
    }

    #[test]
    fn the_leading_byte_of_an_image_is_linear_in_bytes_and_nibbles() {
        let functions = Functions::new(&P);
        for (i, function) in functions.polynomials.iter().enumerate() {
            let x = 0xFEDC_BA98_7654_3210_u64;
            let by_nibbles = (0..16).fold(0, |sum, j| sum ^ functions.nibbles[i][j][(x >> (4 * j) & 15) as usize]);
            let by_bytes = (0..8).fold(0, |sum, j| {
                let byte = (x >> (8 * j)) as u8;
                let row = |output: usize| (functions.leading[i][j] >> (8 * (7 - output))) as u8;
                (0..8).fold(sum, |sum, output| sum ^ ((row(output) & byte).count_ones() as u8 & 1) << output)
            });
            let leading = (function.image(x) >> 56) as u8;
            assert_eq!((by_nibbles, by_bytes), (leading, leading));
        }
    }

    proptest! {
        #[test]
        fn images_by_tables_are_those_of_the_definition(x: u64, index in 0usize..3) {
            let p = P[index % P.len()];
            prop_assert_eq!(Polynomial::new(p).image(x), reduce(p, x, 0));
        }

        #[test]
        fn a_fingerprint_is_the_remainder_of_its_bytes(bytes: Vec<u8>) {
            let p = P[0];
            let naive = bytes.iter().flat_map(|b| (0..8).rev().map(move |i| b >> i & 1)).fold(0u64, |rest, bit| {
                let shifted = rest << 1 | bit as u64;
                if rest >> 63 == 1 { shifted ^ p } else { shifted }
            });
            prop_assert_eq!(Polynomial::new(p).append(0, &bytes), naive);
        }

        #[test]
        fn eight_bytes_at_once_are_eight_bytes(start: u64, word: u64) {
            let polynomial = Polynomial::new(P[1]);
            prop_assert_eq!(polynomial.append_word(start, word), polynomial.append(start, &word.to_be_bytes()));
        }
    }
}
