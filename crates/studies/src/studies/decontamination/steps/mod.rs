//! The steps of the decontamination study, in their order.
//!
//! ```text
//! numbers    words of the reference as numbers
//! grams      the n-grams of items, and the items that a document has enough of
//! slice      items that fit into memory, with their grams in each way in which they are compared
//! matching   documents against a slice
//! ```

mod grams;
mod matching;
mod numbers;
mod slice;
#[cfg(test)]
mod tests;

pub use self::grams::GramRule;
pub use self::matching::{Match, MatchCounts, Matching};
pub use self::slice::{Measures, Slice};
