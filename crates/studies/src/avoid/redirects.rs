//! Redirects of the week: where each leads in the end.
//!
//! A redirect may lead to another one. Such a chain is followed for 20 steps, as browsers do; a
//! chain that is longer, a loop, and one that leaves the crawl lead to no page. Memory: 64 bytes
//! for each redirect, about.

use anyhow::Result;
use arrow_array::StringArray;

use super::last_week::{LastWeek, WeekPage};
use crate::operators::scan::MOST_REDIRECTS;
use crate::structures::ByKey;
use crate::studies::collections::steps::directory_hash;
use crate::tables::{RedirectRow, Scan, Table as _, field};

/// A page that a redirect leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RedirectedPage {
    pub page: usize,
    pub unit: u64,
}

/// The redirects of a week.
pub(super) struct WeekRedirects {
    /// By the hash of the URL: that of its target.
    targets: ByKey<u64, u64>,
    /// By the hash of a URL that redirects or is a target: its page, if the week has it.
    pages: ByKey<u64, Option<RedirectedPage>>,
}

impl WeekRedirects {
    /// Reads them. Their pages are not known yet: see [`WeekRedirects::note`].
    pub fn read(pages: &LastWeek<'_>) -> Result<WeekRedirects> {
        let mut redirects = WeekRedirects { targets: ByKey::default(), pages: ByKey::default() };
        each_row(pages, |url, target| {
            let [url, target] = [url, target].map(directory_hash);
            redirects.targets.insert(url, target);
            redirects.pages.extend([(url, None), (target, None)]);
        })?;
        Ok(redirects)
    }

    /// Notes a page of the week.
    pub fn note(&mut self, page: &WeekPage<'_>) {
        if self.pages.is_empty() {
            return;
        }
        if let Some(target) = self.pages.get_mut(&directory_hash(page.url)) {
            *target = Some(RedirectedPage { page: page.number, unit: page.unit });
        }
    }

    /// Whether the week has an answer of this URL that redirects.
    pub fn has(&self, url: &str) -> bool {
        !self.targets.is_empty() && self.targets.contains_key(&directory_hash(url))
    }

    /// The page that a URL leads to in the end, if it redirects, has no page itself, and the week
    /// has that page.
    pub fn target(&self, url: &str) -> Option<RedirectedPage> {
        if self.targets.is_empty() { None } else { self.target_of(directory_hash(url)) }
    }

    fn target_of(&self, url: u64) -> Option<RedirectedPage> {
        if self.pages.get(&url).is_some_and(Option::is_some) {
            return None;
        }
        let mut at = url;
        for _ in 0..MOST_REDIRECTS {
            at = *self.targets.get(&at)?;
            if let Some(Some(target)) = self.pages.get(&at) {
                return Some(*target);
            }
        }
        None
    }

    /// Calls `each` with the URL of every redirect, and the unit that it leads to. A URL that has a
    /// page, too, is left out.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn each(&self, pages: &LastWeek<'_>, mut each: impl FnMut(&str, Option<u64>)) -> Result<()> {
        each_row(pages, |url, _| {
            let hash = directory_hash(url);
            if self.pages.get(&hash).is_none_or(Option::is_none) {
                each(url, self.target_of(hash).map(|target| target.unit));
            }
        })
    }
}

/// Calls `each` with the URL and the target of every row.
fn each_row(pages: &LastWeek<'_>, mut each: impl FnMut(&str, &str)) -> Result<()> {
    for rows in pages.tables.all(RedirectRow::NAME) {
        Scan::open(rows, &["url", "target_url"])?.for_each(|batch| {
            let [urls, targets]: [&StringArray; 2] = [field(batch, "url")?, field(batch, "target_url")?];
            (0..batch.num_rows()).for_each(|row| each(urls.value(row), targets.value(row)));
            Ok(())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_end_at_a_page_and_loops_nowhere() {
        let to = |pairs: &[(u64, u64)]| pairs.iter().copied().collect::<ByKey<u64, u64>>();
        let long = (100..200).map(|at| (at, at + 1));
        let targets = to(&[(1, 2), (2, 3), (4, 5), (5, 4), (6, 7), (8, 8)]);
        let mut redirects = WeekRedirects { targets, pages: ByKey::default() };
        redirects.targets.extend(long);
        let page = |unit: u64| Some(RedirectedPage { page: 0, unit });
        redirects.pages.extend([(3, page(30)), (7, None), (119, page(11)), (200, page(20))]);
        let found = [1, 2, 4, 6, 8, 9, 99, 100, 119, 180].map(|url| redirects.target_of(url).map(|of| of.unit));
        assert_eq!(found, [Some(30), Some(30), None, None, None, None, None, Some(11), None, Some(20)]);
    }
}
