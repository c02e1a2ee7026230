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
//!   pass. A bitmap of the page from [`kernels`](nigh_kernels::kernels) shows where markup may be
//! - [`scan_content`]: the same, with the text of the main content, if the job asks for it;
//!   `tree_cost` says of which pages it is not looked for
//! - [`words`](words()): the words of a text
//! - [`urls`]: the canonical form of a URL, the links of a page, the registered domain of a host;
//!   and sets of URLs
//! - `printable`: text of others as a terminal may show it

pub mod charset;
pub mod html;
mod main_content;
mod prescan;
mod printable;
#[cfg(any(test, feature = "main-content"))]
mod tree_cost;
pub mod urls;
pub mod words;

pub use self::charset::decode;
pub use self::html::{Extract, scan};
pub use self::main_content::scan_content;
pub use self::printable::{printable, printable_json, printable_lines};
pub use self::urls::{CanonicalUrl, InvalidPattern, UrlPatterns, canonical, canonical_host, domain, out_links};
pub use self::words::words;
