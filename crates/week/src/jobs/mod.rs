//! The jobs: each is one function that runs on every worker, from top to bottom like the study.
//!
//! A job does not know how its processes were started. It gets a timely worker and a plan, and
//! worker 0 returns the summary. *Own* documents, vectors and shards are those that the worker
//! owns; documents are numbered among them (*by number*).
//!
//! - `cluster`: makes a week, the first of a store or a later one. Start here.
//! - Its parts: `week` (the week while it is made), `roots` (finds the clusters), `verification`
//!   (splits those whose pages are not similar enough), `missing` (URLs that could not be
//!   downloaded), `failed_urls` (redirects, and failed downloads by host), `tables` (writes the
//!   tables), `accuracy` (samples their truth), `page_places` (where pages can be read again),
//!   `packing` (packs their files for the commit).
//! - `kept_pages`: what a crawl leaves as it was, and `revisited`: pages of which it says what they
//!   are; `page_bundles` has their files.
//! - `deletion`: what `cluster` does instead of reading a crawl if pages are deleted.
//! - `resharding`: what `cluster` does instead if a store gets more shards.
//! - `chunks`: makes the table `chunks` of a week that was made without it.
//! - `index`: makes the inverted index of a week that was made without it.

pub mod accuracy;
pub mod chunks;
pub mod cluster;
pub mod deletion;
pub mod failed_urls;
pub mod index;
pub mod kept_pages;
pub mod missing;
pub mod packing;
pub(crate) mod page_bundles;
pub mod page_places;
pub mod resharding;
pub mod revisited;
pub mod roots;
pub mod tables;
pub mod verification;
pub mod week;
