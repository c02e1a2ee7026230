//! What is known of the directories below which copies lie, and which of them may be a prefix of
//! the list.
//!
//! ```text
//! hosts with enough copies, or with a prefix of the collections job
//!     for each page or redirect    every directory of its URL: one more of these; a copy, or not
//!     for each named URL           the same: it lies beside a copy, or not
//! a directory may be a prefix if
//!     copies are a share of `purity` of its pages, its redirects,
//!         and its named URLs in directories without a copy
//!     and what is known of it does not all lie in one directory within it
//! ```
//!
//! A *named* URL is one that a link of the week names, and that no crawl of the store has fetched.
//! This is the rule of the collections job, for all findings.

use anyhow::Result;

use super::Settings;
use super::copies::{CopiesOfHosts, ROUNDING};
use super::findings::StudyFindings;
use super::last_week::LastWeek;
use super::redirects::WeekRedirects;
use super::week_hosts::WeekHosts;
use super::why::{WhyCopy, Whys};
use crate::structures::{ByKey, Hashes};
use crate::studies::collections::steps::{directories, directory_hash, directory_texts};

/// What lies below a directory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BelowDirectory {
    /// Crawled pages.
    pub pages: u64,
    /// URLs that redirect.
    pub redirects: u64,
    /// Pages and redirects that come later than what they are copies of.
    later: u64,
    /// Pages that are copies of each other, whichever comes first; and redirects.
    either: u64,
    /// The same by finding.
    whys: [u64; WhyCopy::ALL.len()],
    /// Named URLs.
    pub named: u64,
    /// Those in directories without a copy.
    unseen: u64,
    /// The directory within that has all pages and redirects; 0 if one of them is in none, or there
    /// are several.
    within: u64,
}

impl BelowDirectory {
    fn add(&mut self, within: u64, whys: Whys, is_later: bool) {
        self.within = if self.pages + self.redirects == 0 || self.within == within { within } else { 0 };
        self.later += u64::from(is_later);
        self.either += u64::from(!whys.is_empty());
        for (count, why) in self.whys.iter_mut().zip(WhyCopy::ALL) {
            *count += u64::from(whys.has(why));
        }
    }

    /// Whether so many copies are enough of what is known.
    fn is_pure(&self, copies: u64, purity: f64) -> bool {
        copies as f64 + ROUNDING >= purity * (self.pages + self.redirects + self.unseen) as f64
    }

    /// The findings by which most of it are copies: those of at least half of the copies, and that
    /// of the most.
    fn findings(&self) -> Vec<WhyCopy> {
        let most = self.whys.iter().copied().max().unwrap_or_default();
        let is_finding = |count: u64| count > 0 && (2 * count >= self.either || count == most);
        WhyCopy::ALL.into_iter().zip(self.whys).filter(|(_, count)| is_finding(*count)).map(|(why, _)| why).collect()
    }
}

/// A directory that may be a prefix of the list.
#[derive(Clone, Debug)]
pub(super) struct CandidatePrefix {
    /// Its text, which may be found later; then empty.
    pub prefix: String,
    pub hash: u64,
    pub below: BelowDirectory,
    pub whys: Vec<WhyCopy>,
    /// What the candidates are taken by: first those whose copies come later than what they are
    /// copies of, then others; of each, those with more copies first; of equally many, those that
    /// the collections job lists.
    pub rank: (bool, std::cmp::Reverse<u64>, bool),
    /// The principal copy, if the collections job lists the prefix.
    pub keep: Option<String>,
}

/// The site of a URL: its outermost directory.
fn site(url: &str) -> Option<u64> {
    directories(url).next().map(|directory| directory.hash)
}

/// The directories that may be prefixes.
///
/// # Errors
/// If a file cannot be read: names it.
pub(super) fn candidates(
    pages: &LastWeek<'_>,
    hosts: &WeekHosts,
    redirects: &WeekRedirects,
    copies: &CopiesOfHosts,
    found: &StudyFindings,
    settings: &Settings,
) -> Result<Vec<CandidatePrefix>> {
    let sites = sites(pages, hosts, redirects, copies, found, settings)?;
    let mut below: ByKey<u64, BelowDirectory> = ByKey::default();
    // The directories that some copy lies in.
    let mut with_copies = Hashes::default();
    let mut add = |url: &str, is_page: bool, whys: Whys, is_later: bool| {
        let mut last = 0;
        for directory in directories(url) {
            let of_directory = below.entry(directory.hash).or_default();
            of_directory.add(directory.within, whys, is_later);
            *if is_page { &mut of_directory.pages } else { &mut of_directory.redirects } += 1;
            last = directory.hash;
        }
        if !whys.is_empty() {
            with_copies.insert(last);
        }
    };
    let is_wanted = |url: &str| site(url).is_some_and(|site| sites.contains(&site));
    pages.each(|page| {
        if is_wanted(page.url) {
            let of_page = copies.of(page, hosts);
            add(page.url, true, of_page.whys, of_page.is_later);
        }
        Ok(())
    })?;
    redirects.each(pages, |url, unit| {
        if is_wanted(url) {
            let whys = unit.map_or_else(Whys::default, |_| Whys::of(WhyCopy::Redirect));
            add(url, false, whys, unit.is_some());
        }
    })?;
    let mut named = Hashes::default();
    pages.each_link(|link| {
        let is_named = link.target.is_none() && is_wanted(link.url) && !redirects.has(link.url);
        if !is_named || !named.insert(directory_hash(link.url)) {
            return;
        }
        let is_beside = directories(link.url).last().is_some_and(|of| with_copies.contains(&of.hash));
        for directory in directories(link.url) {
            let of_directory = below.entry(directory.hash).or_default();
            of_directory.named += 1;
            of_directory.unseen += u64::from(!is_beside);
        }
    })?;
    Ok(of_directories(&below, found, settings))
}

/// The sites with enough copies, and those of the prefixes of the collections job.
fn sites(
    pages: &LastWeek<'_>,
    hosts: &WeekHosts,
    redirects: &WeekRedirects,
    copies: &CopiesOfHosts,
    found: &StudyFindings,
    settings: &Settings,
) -> Result<Hashes> {
    let mut counts: ByKey<u64, u64> = ByKey::default();
    pages.each(|page| {
        if !copies.of(page, hosts).whys.is_empty() {
            site(page.url).into_iter().for_each(|site| *counts.entry(site).or_default() += 1);
        }
        Ok(())
    })?;
    redirects.each(pages, |url, unit| {
        let site = site(url).filter(|_| unit.is_some());
        site.into_iter().for_each(|site| *counts.entry(site).or_default() += 1);
    })?;
    let enough = counts.into_iter().filter(|(_, copies)| *copies >= settings.least).map(|(site, _)| site);
    Ok(enough.chain(found.listed.iter().filter_map(|listed| site(&listed.prefix))).collect())
}

/// The candidates, in the order in which they are taken.
fn of_directories(
    below: &ByKey<u64, BelowDirectory>,
    found: &StudyFindings,
    settings: &Settings,
) -> Vec<CandidatePrefix> {
    let mut candidates: ByKey<u64, CandidatePrefix> = ByKey::default();
    for (hash, of) in below {
        let is_enough = |copies: u64| copies >= settings.least && of.within == 0 && of.is_pure(copies, settings.purity);
        let (is_later, copies) = if is_enough(of.later) { (true, of.later) } else { (false, of.either) };
        if is_enough(copies) {
            let rank = (!is_later, std::cmp::Reverse(copies), true);
            let candidate = CandidatePrefix {
                prefix: String::new(),
                hash: *hash,
                below: *of,
                whys: of.findings(),
                rank,
                keep: None,
            };
            candidates.insert(*hash, candidate);
        }
    }
    for listed in &found.listed {
        let hash = directory_hash(&listed.prefix);
        let of = below.get(&hash).copied().unwrap_or_default();
        let is_crawled = of.pages + of.redirects > 0;
        if is_crawled && !of.is_pure(of.either, settings.purity) {
            continue;
        }
        // What the week does not show is known by the collections job alone.
        let whys = if is_crawled { of.findings() } else { vec![WhyCopy::Collection] };
        let rank = (true, std::cmp::Reverse(of.either), true);
        let candidate = candidates.entry(hash).or_insert(CandidatePrefix {
            prefix: String::new(),
            hash,
            below: of,
            whys,
            rank,
            keep: None,
        });
        (candidate.prefix, candidate.keep) = (listed.prefix.clone(), Some(listed.keep.clone()));
        candidate.rank.2 = false;
    }
    candidates.into_values().collect()
}

/// The texts of the directories of a URL, with their hashes.
pub(super) fn hashed(url: &str) -> impl Iterator<Item = (u64, &str)> {
    directories(url).map(|directory| directory.hash).zip(directory_texts(url))
}
