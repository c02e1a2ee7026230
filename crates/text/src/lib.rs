#![doc = include_str!("../README.md")]
//!
//! # Modules
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
