//! Browse: a store as pages that a browser shows, from this machine to this machine, read only.
//!
//! In reading order: `request` (what can be asked for, and its addresses), `sorted_rows` (rows that
//! are looked up in a file), `index` (what the tables have no order for), `html` (what all pages
//! are made of), `pages` (the pages), `timeline` (a cluster, week by week), `graph` (the links of a
//! cluster as a picture), `difference` (insertions and deletions), `server` (HTTP).
//!
//! Texts, titles and URLs are those of crawled pages: they become markup through
//! `markup::Html` only, which escapes them. There is no script, and the content
//! security policy allows none. An address names a document, a cluster or a host, never a file.

mod difference;
mod graph;
mod html;
mod index;
mod pages;
mod request;
mod server;
mod sorted_rows;
mod timeline;

use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};

use self::index::{Index, Sources};
use crate::config::Reading;
use crate::look::LookedWeek;
use crate::mirror::ReadStore;
use crate::readers::Input;
use crate::records::Week;
use crate::state::Manifest;
use crate::summary::Summary;

pub use self::server::{Stop, serve};

/// A week of a store that is browsed.
pub struct Browse<'a> {
    week: &'a LookedWeek<'a>,
    index: Index,
    /// The weeks until this one, oldest first, and the pages of each.
    weeks: Vec<(Week, u64)>,
    summary: Summary,
    /// The crawl files at hand, and how they are read.
    inputs: Vec<Input>,
    reading: Reading,
    /// The name of the store.
    store: String,
}

/// What is browsed.
pub struct Browsed<'a> {
    /// The store.
    pub store: &'a ReadStore,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Its name, as the user gave it.
    pub name: String,
    /// The week.
    pub week: &'a LookedWeek<'a>,
    /// The crawl files at hand.
    pub inputs: Vec<Input>,
    /// How they are read.
    pub reading: Reading,
}

impl<'a> Browse<'a> {
    /// Makes the index of the week. `notify` says how far that is; it ends early once `is_stopped`
    /// is set.
    ///
    /// # Errors
    /// If a table cannot be read, or a temporary file cannot be written; or if it was stopped.
    pub fn open(of: Browsed<'a>, notify: &dyn Fn(&str), is_stopped: &AtomicBool) -> Result<Browse<'a>> {
        let Browsed { store, manifest, name, week, inputs, reading } = of;
        let until = week.week.week;
        let weeks: Vec<_> = manifest.weeks.iter().filter(|week| week.week <= until).cloned().collect();
        let committed = weeks.last().context("the week is in the manifest")?;
        let summary = Summary::read(&store.store().records(committed))?;
        let index = Sources { store, manifest, week, weeks: &weeks, notify, is_stopped }.index()?;
        // The footers of all files are read before the first question.
        week.document_rows()?.iter().try_for_each(|rows| rows.rows().map(drop))?;
        let weeks = weeks.iter().map(|week| (week.week, week.documents)).collect();
        Ok(Browse { week, index, weeks, summary, inputs, reading, store: name })
    }

    /// The number of the week that is browsed, as the index counts.
    fn number(&self) -> u64 {
        self.weeks.len() as u64 - 1
    }

    /// How many clusters the week has, in words.
    pub fn about(&self) -> String {
        let [clusters, pages] = [self.index.clusters(), self.week.week.documents];
        format!(
            "week {}: {}, {}",
            self.week.week.week,
            crate::sheet::plural(pages, "page"),
            crate::sheet::plural(clusters, "cluster")
        )
    }
}
