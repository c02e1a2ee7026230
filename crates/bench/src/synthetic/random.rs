//! Random numbers for made-up input.

use crate::records::mix;

/// Random numbers, from a seed: SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number from 0 to 1, without 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from 0 to `end`, without `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number with the normal distribution.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.share()).ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }

    /// A number by a power law: `least` at the least, and at most `most`.
    pub fn power(&mut self, least: f64, exponent: f64, most: u64) -> u64 {
        ((least * (1.0 - self.share()).powf(-1.0 / exponent)) as u64).min(most)
    }
}
