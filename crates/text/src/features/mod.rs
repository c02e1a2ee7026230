//! Sketches: the features and supershingles by which documents are compared (Broder 1997; Fetterly
//! 2004, section 2).
//!
//! A text becomes a set of shingles (5 consecutive words). A sketch holds 84 features of that set,
//! and the share of equal features estimates the *resemblance* of two texts: shingles in both over
//! shingles in either, 0 to 1. At a resemblance of `r` the standard error is
//! `sqrt(r (1 - r) / 84)`, at most 0.055. The inner loops are those of `kernels`.
//!
//! ```
//! use nigh_text::{method::Method, features::Fingerprinter};
//!
//! let mut fingerprinter = Fingerprinter::of_method(&Method::default())?;
//! let first = fingerprinter.sketch("the quick brown fox jumps over the lazy dog while the cat sleeps");
//! let other = fingerprinter.sketch("The end: the quick brown fox jumps over the lazy dog while the cat sleeps");
//! assert!(first.similarity(&other) > 0.3 && first.similarity(&other) < 1.0);
//! assert_eq!(first.similarity(&fingerprinter.sketch("nothing of this kind is written in either text")), 0.0);
//! # anyhow::Ok(())
//! ```
//!
//! In reading order: `form` (what is done to a text before it is cut into words), `cutter` (what a
//! word is), `icu_words` (words by dictionaries), `shingles` (words to pre-images), `sketch`
//! (pre-images to features, supershingles and megashingles), `fast` (features in another way, in
//! less time), `chunks` (words to the hashes of lines and paragraphs), `chunk_sets` (these to sets
//! of chunks), `page` (the bytes of a page to words, sketch, chunks, title and links);
//! `word_reader` (words, and where they are in a text); and apart from these `samplers` (other ways
//! to estimate resemblance, to compare with).

mod chunk_sets;
mod chunks;
mod cutter;
mod fast;
mod form;
mod icu_words;
mod page;
mod samplers;
mod shingles;
mod sketch;
mod word_reader;

pub use chunk_sets::chunk_set;
pub use chunks::PageChunks;
pub use fast::FastFeatures;
pub use page::distinct;
pub use page::{Fingerprinter, PageFacts, WordsAndShingles};
pub use samplers::{ExactPair, SampleMaker, Sampler, Samples};
pub use shingles::Shingler;
pub use sketch::{Sketch, Sketcher, VectorKeys, equal_features};
pub use word_reader::{WordReader, Words};
