//! What a crawler need not fetch: one list of prefixes, made from what all studies of a store
//! found, and judged by the pages of a week.
//!
//! ```text
//! findings      pairs of hosts, listed prefixes, exact copies: what the studies found
//! redirects     where each redirect of the week leads in the end
//! week_hosts    what is known of each host, and their one order: which copy stays
//! copies        which pages are copies, and which of them come later
//! directories   below which directories nearly all that is known are copies
//! choice        which of these are on the list, so that no prefix loses much
//! prefix_rows   what stays in the place of each, and a sample to fetch again
//! ```
//!
//! In reading order: this file, `why`, `last_week` (how the week is read), then as above; `sheet`
//! shows the list. `nigh avoid` prints it.
//!
//! A study proposes; the pages decide. Whatever a study found, in whatever week: a prefix is on the
//! list only if the week has a page like nearly each of its pages elsewhere, below no listed
//! prefix. So no two rows contradict each other, and what stays is never avoided itself.
//!
//! The week is read by one thread, seven times, and nothing is written. Memory: 4 bytes for each
//! URL that the store knows, about 150 for each host and directory on hosts with copies, about 100
//! for each unit with pages below a prefix; see `copies` and `redirects` for the rest.

mod choice;
mod copies;
mod directories;
mod findings;
mod last_week;
mod prefix_rows;
mod redirects;
mod sheet;
mod week_hosts;
mod why;

pub use self::findings::{StudyRead, StudyState, TABLES};
pub use self::sheet::{prefix_file, sheet};
pub use self::why::WhyCopy;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Serialize;

use self::choice::ChosenPrefixes;
use self::copies::CopiesOfHosts;
use self::directories::candidates;
use self::findings::StudyFindings;
use self::last_week::LastWeek;
use self::redirects::WeekRedirects;
use self::week_hosts::WeekHosts;
use crate::records::{DocumentKey, Week};
use crate::state::{History, Store};

/// The parameters of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The share of what is known below a prefix that are copies, at least; above 0, up to 1. At
    /// most the rest of its pages may be lost.
    pub purity: f64,
    /// The copies below a prefix, at least, unless the collections job lists it.
    pub least: u64,
    /// The pages of each prefix to fetch again.
    pub sample: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { purity: 0.92, least: 10, sample: 10 }
    }
}

/// The list of a week.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AvoidList {
    /// The store, as the user names it.
    pub store: PathBuf,
    /// The week.
    pub week: Week,
    /// As in [`Settings`].
    pub purity: f64,
    /// As in [`Settings`].
    pub least: u64,
    /// The studies, and what was read of them.
    pub studies: Vec<StudyRead>,
    /// The pages of the week.
    pub documents: u64,
    /// Those below prefixes.
    pub skipped: u64,
    /// Those of them that the crawl would lose.
    pub lost: u64,
    /// The prefixes, in order. None of them begins with another one.
    pub prefixes: Vec<AvoidedPrefix>,
}

/// A prefix of URLs that a crawler need not fetch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AvoidedPrefix {
    /// A URL up to a slash.
    pub prefix: String,
    /// The copy that stays: on the host that has most of the pages that are like those below the
    /// prefix and below no prefix of the list, the directory that these pages have in common.
    pub keep: String,
    /// Why, by [`WhyCopy::name`]: the findings by which at least half of the copies are copies.
    pub why: Vec<String>,
    /// Crawled pages below it.
    pub pages: u64,
    /// URLs below it that redirect.
    pub redirects: u64,
    /// URLs below it that links of the week name and that no crawl of the store has fetched.
    pub named: u64,
    /// The pages that the crawl would lose: all pages of their clusters are below prefixes of the
    /// list.
    pub lost: u64,
    /// Pages to fetch again each week, to see whether they are copies still.
    pub sample: Vec<String>,
}

/// Makes the list of a week: the given one, or the store's last. `named` is the store as the user
/// names it.
///
/// # Errors
/// If the store knows documents by something else than URLs, or lacks the week, or a file cannot be
/// read: says which.
pub fn avoid_list(store: &Store, named: &Path, week: Option<Week>, settings: &Settings) -> Result<AvoidList> {
    let history = History::open(store, None, week)?;
    let manifest = store.manifest()?;
    let (mut is_last, mut documents) = (true, DocumentKey::Url);
    if let Some(manifest) = manifest {
        is_last = manifest.weeks.last().is_none_or(|last| last.week == history.last().week);
        documents = manifest.method.documents;
    }
    let named_text = named.display().to_string();
    ensure!(
        documents == DocumentKey::Url,
        "{named_text} knows documents by their {documents}, not by URLs: only URLs have prefixes to avoid"
    );
    let pages = LastWeek::open(&history)?;
    let mut found = StudyFindings::read(store, &pages, &named_text, is_last)?;
    let mut redirects = WeekRedirects::read(&pages)?;
    let mut hosts = WeekHosts::read(&pages, &mut redirects)?;
    let copies = CopiesOfHosts::find(&pages, &mut hosts, &mut found, settings)?;
    let candidates = candidates(&pages, &hosts, &redirects, &copies, &found, settings)?;
    drop(copies);
    let choice = ChosenPrefixes::of(&pages, &redirects, candidates, settings)?;
    let prefixes = prefix_rows::rows(&pages, &hosts, &choice, settings)?;
    let sum = |of: fn(&AvoidedPrefix) -> u64| prefixes.iter().map(of).sum();
    Ok(AvoidList {
        store: named.to_owned(),
        week: history.last().week,
        purity: settings.purity,
        least: settings.least,
        studies: found.studies,
        documents: history.last().documents(),
        skipped: sum(|row| row.pages),
        lost: sum(|row| row.lost),
        prefixes,
    })
}
