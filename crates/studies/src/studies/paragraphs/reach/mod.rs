//! Reach: the pages that links lead to, from given seeds or from the core of the web.
//!
//! In reading order: `connected` (the core, and the connected part), `closure` (what some pages
//! lead to), `out_links` (links in memory, or read again and again), `page_marks` (some bits for
//! each page).
//!
//! Nothing depends on the number of workers. Memory: see `closure` and `out_links`.

mod closure;
mod connected;
mod out_links;
mod page_marks;
#[cfg(test)]
mod tests;

pub use self::connected::{Connected, LinkSeed, connected};
pub use self::out_links::OpenLinks;
