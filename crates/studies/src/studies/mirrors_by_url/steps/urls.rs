//! The URLs of a run: those of a week's pages, those that they link to, those that are gone, and
//! those of lists.

use anyhow::{Result, bail};
use arrow_array::{Int64Array, StringArray};

use crate::operators::ingest::is_gone;
use crate::readers::{ListLines, Listed, UrlFile, each_listed_url};
use crate::records::{DocId, checksum};
use crate::state::History;
use crate::structures::Ownership;
use crate::studies::mirrors_by_url::UrlChoice;
use crate::tables::{DocumentRow, LinkRow, MissingRow, Scan, Table, field};

/// What is known of a URL from the place where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlState {
    /// That some page or list names it.
    Named,
    /// That the week has its page.
    Fetched,
    /// That the host does not have it: in this week its download failed with status 404 or 410.
    Gone,
    /// That an index has it with status 200.
    ListedFetched,
    /// That an index has it with status 404 or 410.
    ListedGone,
}

impl UrlState {
    /// The reasons of failed downloads of which it is known that the host does not have the page.
    pub fn of_failure(reason: &str) -> Option<UrlState> {
        is_gone(reason).then_some(UrlState::Gone)
    }
}

/// A URL as it is sent and compared: hashes of its host and of its path. The scheme does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlName {
    /// The high half of the 128-bit hash of the host, with its port.
    pub host: u64,
    /// The same of the path, with its first slash and its query.
    pub path: u64,
}

/// The high half of the 128-bit hash of a text.
pub fn text_hash(text: &str) -> u64 {
    (checksum(text.as_bytes()) >> 64) as u64
}

/// The host and the path of a canonical URL; the path with its first slash and its query.
pub fn host_and_path(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    // A canonical URL has a slash behind its host.
    rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash))
}

/// The path that differs from a path in a slash at its end alone, before the query; none of the
/// root.
pub fn slash_twin(path: &str) -> Option<String> {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    match path.strip_suffix('/') {
        Some("") => None,
        Some(without) => Some(format!("{without}{query}")),
        None => Some(format!("{path}/{query}")),
    }
}

/// Whether a redirect leads to the same path of the same host, with a slash more or less at its
/// end.
pub fn is_slash_redirect(url: &str, target: &str) -> bool {
    let [(host, path), (target_host, target_path)] = [url, target].map(host_and_path);
    host == target_host && slash_twin(path).is_some_and(|twin| twin == target_path)
}

/// Whether a canonical URL has the scheme `http`, not `https`.
pub fn is_plain(url: &str) -> bool {
    url.starts_with("http://")
}

/// Names URLs that come one after another: successive ones often have one host.
#[derive(Clone, Debug, Default)]
pub struct Namer {
    host: String,
    hash: u64,
}

impl Namer {
    /// The name of a canonical URL.
    pub fn name(&mut self, url: &str) -> UrlName {
        let (host, path) = host_and_path(url);
        if self.host != host {
            self.host.clear();
            self.host.push_str(host);
            self.hash = text_hash(host);
        }
        UrlName { host: self.hash, path: text_hash(path) }
    }
}

/// Where a worker finds its URLs, which it can read several times.
pub trait UrlSource {
    /// Calls `take` with every URL, always in the same order, and what is known of it; returns the
    /// lines of lists.
    ///
    /// # Errors
    /// Names the file that cannot be read; or returns the first error of `take`.
    fn each(&self, take: &mut dyn FnMut(&str, UrlState) -> Result<()>) -> Result<ListLines>;
}

/// The URLs of own shards of a week, and of own lists.
pub struct WeekUrls<'a> {
    /// The weeks, of which the last one is read; none if there are lists only.
    pub history: &'a History,
    /// The own shards.
    pub owned: &'a Ownership,
    /// Which URLs of the week count.
    pub choice: UrlChoice,
    /// The own lists.
    pub lists: Vec<&'a UrlFile>,
}

impl UrlSource for WeekUrls<'_> {
    fn each(&self, take: &mut dyn FnMut(&str, UrlState) -> Result<()>) -> Result<ListLines> {
        let (history, mut lines) = (self.history, ListLines::default());
        if let Some(number) = history.weeks.len().checked_sub(1) {
            let tables = history.tables(number);
            for shard in self.owned.shards() {
                for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
                    Scan::open(&rows, &["doc", "url"])?.for_each(|batch| {
                        let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                        if let Some(first) = docs.values().first() {
                            history.check(number, DocId::from_table(*first), shard, rows.path())?;
                        }
                        urls.iter().flatten().try_for_each(|url| take(url, UrlState::Fetched))
                    })?;
                }
                if self.choice == UrlChoice::Pages {
                    continue;
                }
                if let Some(rows) = tables.of_shard(MissingRow::NAME, shard) {
                    Scan::open(rows, &["url", "reason"])?.for_each(|batch| {
                        let [urls, reasons]: [&StringArray; 2] = [field(batch, "url")?, field(batch, "reason")?];
                        for (url, reason) in urls.iter().flatten().zip(reasons.iter().flatten()) {
                            if let Some(state) = UrlState::of_failure(reason) {
                                take(url, state)?;
                            }
                        }
                        Ok(())
                    })?;
                }
                for rows in history.rows(number, &tables, LinkRow::NAME, shard)? {
                    Scan::open(&rows, &["target_url"])?.for_each(|batch| {
                        let urls: &StringArray = field(batch, "target_url")?;
                        urls.iter().flatten().try_for_each(|url| take(url, UrlState::Named))
                    })?;
                }
            }
        }
        for list in &self.lists {
            let of_list = each_listed_url(list, |url, listed| {
                let state = match listed {
                    Listed::Named => UrlState::Named,
                    Listed::Fetched => UrlState::ListedFetched,
                    Listed::Gone => UrlState::ListedGone,
                };
                take(url, state)
            })?;
            lines.urls += of_list.urls;
            lines.refused += of_list.refused;
        }
        Ok(lines)
    }
}

/// The host of a text that must be that of an earlier one.
///
/// # Errors
/// If two hosts have the same hash: names both.
pub fn check_same_host(one: &str, other: &str) -> Result<()> {
    if one == other {
        return Ok(());
    }
    bail!("the hosts {one} and {other} have hashes that begin with the same 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_a_path() {
        assert_eq!(host_and_path("http://a.example/"), ("a.example", "/"));
        assert_eq!(host_and_path("https://[::1]:8080/a/b?c=http://d/"), ("[::1]:8080", "/a/b?c=http://d/"));
        assert_eq!(host_and_path("http://xn--bcher-kva.example:81/x"), ("xn--bcher-kva.example:81", "/x"));
    }

    #[test]
    fn the_scheme_is_no_part_of_the_name() {
        let mut namer = Namer::default();
        let name = namer.name("http://a.example/b");
        assert_eq!(namer.name("https://a.example/b"), name);
        assert_ne!(namer.name("http://a.example:81/b").host, name.host);
        assert_eq!(namer.name("http://c.example/b").path, name.path);
    }
}
