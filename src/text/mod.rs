//! From the bytes of a page to its words and its links.
//!
//! Nothing here knows of archives, weeks or the dataflow: a body and the label of its charset go in; text, title,
//! words and canonical URLs come out. No input makes it panic, and all of it takes time linear in its input.
//!
//! In reading order:
//!
//! - [`charset`]: bytes to UTF-8, by mark, label, `<meta>` or detection; `prescan` looks for the `<meta>`. What is
//!   said to be UTF-8 goes on as it is: bytes that are not are no markup and no part of a word
//! - [`html`]: markup to white space, with the title and the raw links on the way, led by the marks of a page that
//!   [`kernels`](crate::kernels) make. It stands on `elements` (which tags mean something), `attributes` (what is
//!   inside a tag), `sections` (where a comment, a script or raw text ends), `hrefs` and [`references`] (`&eacute;` to `é`)
//! - [`words`](words()): the words of a text
//! - [`urls`]: the canonical form of a URL, the links of a page, the registered domain of a host; `plain`
//!   resolves the usual links faster
//! - `patterns`: which URLs are meant
//!
//! `twin` holds the tests of the scanner against a tokenizer that somebody else wrote.

mod attributes;
pub mod charset;
mod elements;
mod hrefs;
pub mod html;
mod patterns;
mod plain;
mod prescan;
pub mod references;
mod sections;
#[cfg(test)]
mod twin;
pub mod urls;
pub mod words;

pub use charset::decode;
pub use html::{Extract, scan};
pub use patterns::{NoPattern, UrlPatterns};
pub use urls::{Canonical, canonical, domain, out_links};
pub use words::words;
