//! Markup to white space and line ends: the text, title and links of a page.
//!
//! In reading order: `scanner` (a page in one pass), which uses `elements` (the tags that matter),
//! `foreign` (where `svg` and `math` are), `attributes` (the inside of a tag), `sections` (the end
//! of a comment, a script or raw text), `hrefs` and [`references`] (`&eacute;` to `é`); `twin`
//! tests it against html5gum, an independent tokenizer.

pub(super) mod attributes;
mod elements;
pub(super) mod foreign;
mod hrefs;
pub mod references;
mod scanner;
pub(super) mod sections;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod twin;

pub use self::scanner::{Extract, LINE_END, TITLE_BYTES, scan};
