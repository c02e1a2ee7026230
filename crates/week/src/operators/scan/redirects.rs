//! Links through redirects: a link to a URL that redirects is a link to the page that it leads to
//! in the end.
//!
//! ```text
//! own files of redirects     ─▶ all: a URL and its target, as hashes
//! own pages of the week      ─▶ all: those that are a URL or a target of a redirect
//! from each URL without a page, target by target, until one has a page
//! ```
//!
//! A chain is followed for 20 steps, as browsers do: one that is longer, a loop, and one that
//! leaves the crawl lead to no page.
//!
//! Memory: 32 bytes for each redirect at every worker, and 24 while they are looked up. Equal up to
//! collisions of 64-bit hashes.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use nigh_exchange::Context;

use crate::records::{DocId, KeyHash};
use crate::state::History;
use crate::structures::{ByKey, Ownership};
use crate::tables::{DocumentRow, RedirectRow, Scan, Table, field};

/// Redirects that are followed, one after the other.
pub const MOST_REDIRECTS: usize = 20;

/// Where the redirects of a week lead in the end.
#[derive(Debug, Default)]
pub struct RedirectTargets(ByKey<u64, DocId>);

/// The hash by which a URL is known.
pub(super) fn hash(url: &str) -> u64 {
    KeyHash::of(url).halves()[1]
}

impl RedirectTargets {
    /// Reads the redirects of week number `number`, and finds the pages that they lead to.
    ///
    /// # Errors
    /// If a file cannot be read (names it), or a worker of this process failed.
    pub fn of_week(
        cx: &mut Context,
        history: &History,
        number: usize,
        owned: &Ownership,
    ) -> Result<Arc<RedirectTargets>> {
        let tables = history.tables(number);
        let mut own: Vec<(u64, u64)> = Vec::new();
        for rows in tables.all(RedirectRow::NAME).iter().skip(cx.index()).step_by(cx.peers()) {
            Scan::open(rows, &["url", "target_url"])?.for_each(|batch| {
                let [urls, targets]: [&StringArray; 2] = [field(batch, "url")?, field(batch, "target_url")?];
                own.extend((0..batch.num_rows()).map(|row| (hash(urls.value(row)), hash(targets.value(row)))));
                Ok(())
            })?;
        }
        let redirects = cx.sorted(own)?;
        if redirects.is_empty() {
            return Ok(Arc::default());
        }
        let mut wanted: Vec<u64> = redirects.iter().flat_map(|(url, target)| [*url, *target]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut own: Vec<(u64, DocId)> = Vec::new();
        for shard in owned.shards() {
            for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
                Scan::open(&rows, &["doc", "url"])?.for_each(|batch| {
                    let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                    for (row, doc) in docs.values().iter().enumerate() {
                        let url = hash(urls.value(row));
                        if wanted.binary_search(&url).is_ok() {
                            own.push((url, DocId::from_table(*doc)));
                        }
                    }
                    Ok(())
                })?;
            }
        }
        drop(wanted);
        let pages: ByKey<u64, DocId> = cx.sorted(own)?.into_iter().collect();
        Ok(cx.shared().of(|| RedirectTargets::new(redirects.into_iter().collect(), &pages)))
    }

    /// Follows redirects, by the hashes of URLs, to pages.
    fn new(redirects: ByKey<u64, u64>, pages: &ByKey<u64, DocId>) -> RedirectTargets {
        let last = |url: u64| {
            let mut at = url;
            for _ in 0..MOST_REDIRECTS {
                at = *redirects.get(&at)?;
                if let Some(page) = pages.get(&at) {
                    return Some(*page);
                }
            }
            None
        };
        let without_pages = redirects.keys().filter(|url| !pages.contains_key(url));
        RedirectTargets(without_pages.filter_map(|url| Some((*url, last(*url)?))).collect())
    }

    /// Whether no redirect leads to a page.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The page that a URL leads to, if it redirects, has no page itself, and leads to one.
    pub fn of(&self, url: &str) -> Option<DocId> {
        if self.0.is_empty() { None } else { self.0.get(&hash(url)).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_end_at_a_page_and_loops_nowhere() {
        let doc = |number: u64| DocId::new(0, number);
        let mut redirects: ByKey<u64, u64> =
            [(1, 2), (2, 3), (4, 5), (5, 4), (6, 7), (8, 8), (9, 3)].into_iter().collect();
        redirects.extend((100..200).map(|at| (at, at + 1)));
        let pages: ByKey<u64, DocId> =
            [(3, doc(30)), (9, doc(90)), (119, doc(11)), (200, doc(20))].into_iter().collect();
        let found = RedirectTargets::new(redirects, &pages).0;
        let of = [1, 2, 3, 4, 6, 8, 9, 100, 119, 180].map(|url| found.get(&url).copied());
        let expected = [Some(30), Some(30), None, None, None, None, None, Some(11), None, Some(20)];
        assert_eq!(of, expected.map(|page| page.map(doc)));
    }
}
