//! What documents are compared by, in its plain definition (Fetterly 2004, section 2).
//!
//! In reading order: `rabin` (polynomials over GF(2) and fingerprints), `shingles` (words to
//! pre-images), `sketch` (pre-images to features, supershingles and megashingles), `page` (a page
//! taken apart, from bytes to sketch).

mod page;
mod rabin;
mod shingles;
mod sketch;

pub use page::{Fingerprinter, PageFacts};
pub use rabin::{Polynomial, Polynomials, irreducible, polynomials, primitive};
pub use shingles::Shingler;
pub use sketch::{Sketch, Sketcher, VectorKeys, equal_features};
