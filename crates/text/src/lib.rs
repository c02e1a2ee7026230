//! From the bytes of a page to its text, its words and its sketch, as `nigh` computes them.
//!
//! ```
//! use nigh_text::{features::Fingerprinter, method::Method};
//!
//! let mut fingerprinter = Fingerprinter::of_method(&Method::default())?;
//! let first = fingerprinter.sketch("the quick brown fox jumps over the lazy dog while the cat sleeps");
//! assert_eq!(first.similarity(&first), 1.0);
//! # anyhow::Ok(())
//! ```
//!
//! ```text
//! features                   sketches and chunks of pages
//! method                     the numbers of a study: what is computed
//! text                       HTML and bytes to text, words and URLs
//! contained                  panics of other crates as reasons
//! ```

pub mod contained;
pub mod features;
pub mod method;
pub mod text;
