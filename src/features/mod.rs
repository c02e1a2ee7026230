//! What documents are compared by (Fetterly 2004, section 2); the inner loops are those of `kernels`.
//!
//! In reading order: `rabin` (the polynomials of a method), `shingles` (words to
//! pre-images), `sketch` (pre-images to features, supershingles and megashingles), `page` (a page
//! taken apart, from bytes to sketch).

mod page;
mod rabin;
mod shingles;
mod sketch;

pub use page::{Fingerprinter, PageFacts};
pub use rabin::{Polynomials, irreducible, polynomials, primitive};
pub use shingles::Shingler;
pub use sketch::{Sketch, Sketcher, VectorKeys, equal_features};
