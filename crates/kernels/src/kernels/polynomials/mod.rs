//! Polynomials over GF(2): `gf2` (their arithmetic, and the constants of kernels), `rabin` (those
//! of a method), `default_polynomials` (those of the default seed).

mod default_polynomials;
pub(super) mod gf2;
mod rabin;

pub use self::gf2::{FeatureRuns, Functions, Polynomial, ShingleConstants, multiply, product, reduce};
pub use self::rabin::{Polynomials, irreducible, polynomials, primitive};
