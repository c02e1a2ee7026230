//! The steps of the passages study, in their order.
//!
//! ```text
//! text_source   the texts of the corpus, as each step reads them
//! fingerprints  of words that follow each other; which are selected
//! grams         selected grams that stand more than once
//! windows       windows that stand more than once, with their first occurrence
//! found         texts with such windows: passages (`stretches`)
//! send          records of any size to other workers
//! check         passages are compared with their first occurrences
//! repeated      all of it, until no two fingerprints are equal by chance
//! ```

mod check;
mod fingerprints;
mod found;
mod grams;
mod repeated;
mod send;
mod stretches;
#[cfg(test)]
mod tests;
mod text_source;
mod windows;

pub use self::fingerprints::{Hashing, polynomials};
pub use self::found::{DocumentPassage, FoundCounts, MostRepeated};
pub use self::grams::ReadCounts;
pub use self::repeated::{RepeatedPassages, repeated};
pub use self::send::{send, sort_of};
pub use self::stretches::united;
pub use self::text_source::{CorpusPlace, OpenText, ReadTexts, TextSource};
