//! Text extraction: from the bytes of a page to its text, title, words and canonical links.
//!
//! The input is a body and the label of its charset; archives, weeks and the dataflow are not known
//! here. No input makes these functions panic, and all of them take time linear in their input;
//! [`scan_content`] with a large factor for pages that are made for it.
//!
//! In reading order:
//!
//! - [`charset`]: bytes to UTF-8, by byte order mark, label, `<meta>` or detection; `prescan` finds
//!   the `<meta>`. A body declared as UTF-8 is used as it is: bytes that are not UTF-8 are neither
//!   markup nor part of a word
//! - [`html`]: markup to white space and line ends; finds the title and the raw links in the same
//!   pass. A bitmap of the page from [`kernels`](nigh_kernels::kernels) shows where markup may be.
//!   It uses `elements` (the tags that matter), `foreign` (where `svg` and `math` are),
//!   `attributes` (the inside of a tag), `sections` (the end of a comment, a script or raw text),
//!   `hrefs` and [`references`] (`&eacute;` to `é`)
//! - [`scan_content`]: the same, with the text of the main content, if the job asks for it;
//!   `tree_cost` says of which pages it is not looked for
//! - [`words`](words()): the words of a text
//! - [`urls`]: the canonical form of a URL, the links of a page, the registered domain of a host;
//!   `plain` resolves the usual forms of links faster
//! - `patterns`: sets of URLs, by URL, host or prefix
//! - `printable`: text of others as a terminal may show it
//!
//! `twin` tests the scanner against html5gum, an independent tokenizer.

mod attributes;
pub mod charset;
mod elements;
mod foreign;
mod hrefs;
pub mod html;
mod main_content;
mod patterns;
mod plain;
mod prescan;
mod printable;
pub mod references;
mod sections;
#[cfg(any(test, feature = "main-content"))]
mod tree_cost;
#[cfg(test)]
pub(crate) mod twin;
pub mod urls;
pub mod words;

pub use charset::decode;
pub use html::{Extract, scan};
pub use main_content::scan_content;
pub use patterns::{InvalidPattern, UrlPatterns};
pub use printable::{printable, printable_json, printable_lines};
pub use urls::{CanonicalUrl, canonical, canonical_host, domain, out_links};
pub use words::words;
