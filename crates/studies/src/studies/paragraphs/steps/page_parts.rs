//! The parts that a crawl is cut into, for the growth of duplicates (Pereira 2006): by the hashes
//! of pages, or in the order of the crawl.

use anyhow::Result;
use nigh_exchange::Context;

use super::week_pages::WeekPages;
use crate::records::{DocId, mix};

/// The part of each page.
#[derive(Clone, Debug)]
pub enum PageParts {
    /// By a hash of the page: so many parts of about the same size.
    Hash(u32),
    /// In the order of the crawl: the number of parts, and the part of each own page by number.
    Crawl(u32, Vec<u32>),
}

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

impl PageParts {
    /// Parts in the order of the crawl, from the pages of the week and the times at which they were
    /// fetched. Pages of one second are in one part; otherwise all parts have the same number of
    /// pages.
    ///
    /// Or, if some pages have no time, how many those are, and how many pages there are.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn in_order(cx: &mut Context, count: u32, pages: &WeekPages) -> Result<Result<PageParts, [u64; 2]>> {
        let times = || pages.hosts.iter().zip(&pages.fetched).filter(|(host, _)| **host > 0).map(|(_, time)| *time);
        let mut own: Vec<i64> = times().flatten().map(|time| time.div_euclid(SECOND)).collect();
        own.sort_unstable();
        let seconds = own.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
        let all = cx.sorted(seconds)?;
        let [known, pages_of_all] = cx.sums([own.len() as u64, times().count() as u64])?;
        if known < pages_of_all {
            return Ok(Err([pages_of_all - known, pages_of_all]));
        }
        // The part of each second: the share of pages of earlier seconds.
        let (mut parts, mut before) = (Vec::new(), 0u64);
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            parts.push((same[0].0, (u128::from(before) * u128::from(count) / u128::from(known)) as u32));
            before += same.iter().map(|(_, pages)| pages).sum::<u64>();
        }
        let part = |time: i64| parts.binary_search_by_key(&time.div_euclid(SECOND), |(second, _)| *second);
        let of_page = |time: &Option<i64>| time.and_then(|time| part(time).ok()).map_or(0, |at| parts[at].1);
        Ok(Ok(PageParts::Crawl(count, pages.fetched.iter().map(of_page).collect())))
    }

    /// The number of parts.
    pub fn count(&self) -> u32 {
        match self {
            PageParts::Hash(count) | PageParts::Crawl(count, _) => *count,
        }
    }

    /// The part of an own page, given its number, from 0.
    #[inline]
    pub(super) fn of(&self, doc: DocId, page: usize) -> u32 {
        match self {
            PageParts::Hash(count) => ((u128::from(mix(doc.to_table() as u64)) * u128::from(*count)) >> 64) as u32,
            PageParts::Crawl(_, parts) => parts[page],
        }
    }
}
