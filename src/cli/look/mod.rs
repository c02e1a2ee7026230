//! The subcommands that look into a committed week.
//!
//! - `nigh show`: `show.rs` prints the summary of a week or of a job; `pages.rs` lists clusters and
//!   pages.
//! - `nigh why`: `why.rs` compares two pages.
//! - `nigh find`: `find.rs` finds the documents that are most like a text.
//! - `nigh report`: `report.rs` writes a page of HTML.
//! - `nigh browse`: `browse.rs` serves pages to a browser; only with the feature `live`.
//! - `nigh avoid`: `avoid.rs` lists what a crawler need not fetch.
//! - `nigh figures`: `figures.rs` draws the figures of the papers.
//! - `nigh table`: `table.rs` writes the rows of a table.
//!
//! `destination.rs` is a file that is written whole or not at all.
//!
//! A store in a bucket is read in place: only the files that are needed are fetched.

mod avoid;
#[cfg(feature = "live")]
mod browse;
mod destination;
mod figures;
mod find;
mod pages;
mod report;
mod show;
mod table;
mod why;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::errors::WrongUse;
use super::print::result_text;
use super::session::{check_not_inside, read_manifest};
use crate::config::Reading;
use crate::log::Log;
use crate::look::LookedWeek;
use crate::mirror::ReadStore;
use crate::objects::refuse_secrets;
use crate::plan::job_of_week;
use crate::records::Week;
use crate::report::print;
use crate::sheet::Sheet;
use crate::state::{CommittedWeek, Manifest, removed_folder};
use crate::studies::StudySummary;
use crate::tables::{ClusterRow, DocumentRow, Table as _, UrlRow};

pub(super) use self::avoid::{AvoidArgs, avoid};
#[cfg(feature = "live")]
pub(super) use self::browse::{BrowseArgs, browse};
pub(super) use self::figures::{FiguresArgs, figures};
pub(super) use self::find::{FindArgs, find};
pub(super) use self::report::{ReportArgs, report};
pub(super) use self::show::{ShowArgs, show};
pub(super) use self::table::{TableArgs, table};
pub(super) use self::why::{WhyArgs, why};

/// The columns before facts about pages: room for the titles of levels.
const INDENT: usize = 21;

/// The store and the week that a command looks into.
#[derive(Args)]
pub(super) struct LookArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Week to look into [default: the last one].
    #[arg(long, value_name = "YYYY-MM-DD")]
    week: Option<Week>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl LookArgs {
    /// What `look` makes of the store.
    fn of_store<T>(&self, look: impl FnMut(&ReadStore) -> Result<T>) -> Result<T> {
        if let Some(url) = self.store.to_str() {
            refuse_secrets(url).map_err(WrongUse::from_error)?;
        }
        check_not_inside(&self.store)?;
        ReadStore::at(&self.store, look)
    }

    /// What `look` makes of the week and of how its crawl was read. It may find pages by their
    /// URLs, read the pages and clusters of the week, and its tables `others`.
    fn of_week<T>(&self, others: &[&str], mut look: impl FnMut(&LookedWeek<'_>, &Reading) -> Result<T>) -> Result<T> {
        self.of_store(|read_store| {
            let manifest = read_manifest(read_store.store(), &self.store)?;
            self.need_names(read_store, &manifest)?;
            self.of_pages(read_store, &manifest, others, |week, reading| look(week, reading))
        })
    }

    /// Fetches what pages are found by: their URLs until the week.
    fn need_names(&self, read_store: &ReadStore, manifest: &Manifest) -> Result<()> {
        let committed = committed_week(manifest, &self.store, self.week)?;
        for week in manifest.weeks.iter().filter(|week| week.week <= committed.week) {
            read_store.need(UrlRow::NAME, &[&format!("{}/", week.week.folder())])?;
        }
        // The ids of URLs of removed weeks.
        match &manifest.removed {
            Some(removed) => read_store.need_own(&removed_folder(removed)),
            None => Ok(()),
        }
    }

    /// As [`LookArgs::of_week`], of a store that is open; no pages are found by their URLs.
    fn of_pages<T>(
        &self,
        read_store: &ReadStore,
        manifest: &Manifest,
        others: &[&str],
        look: impl FnOnce(&LookedWeek<'_>, &Reading) -> Result<T>,
    ) -> Result<T> {
        let committed = committed_week(manifest, &self.store, self.week)?;
        for week in manifest.weeks.iter().filter(|week| week.week <= committed.week) {
            read_store.need_records(week)?;
        }
        for table in [DocumentRow::NAME, ClusterRow::NAME].iter().chain(others) {
            read_store.need_table(committed, table)?;
        }
        let week = LookedWeek::open(read_store.store(), manifest, committed)?;
        look(&week, &job_of_week(read_store.store(), committed)?.read)
    }

    /// Prints what was found: as a report, or as JSON.
    fn print<T: serde::Serialize>(&self, found: &T, report: impl FnOnce(&T) -> Sheet) -> Result<ExitCode> {
        print(result_text(found, self.json, report)?).map(|()| ExitCode::SUCCESS)
    }
}

/// Says so if the tables of a study are of a week that was changed since. Its own files are at
/// hand; if this version does not know its summary, nothing is said.
fn warn_if_outdated(read_store: &ReadStore, manifest: &Manifest, study: &str, store: &Path, log: &Log) {
    let summary = manifest.results.get(study).map(|commit| StudySummary::read(read_store.store(), study, *commit));
    let until = summary.and_then(|summary| summary.ok()?.week());
    if let Some(week) = until.filter(|week| manifest.outdates(*week, study)) {
        log.warn(&format!(
            "the tables of {study} were made before week {week} was changed: `nigh run jobs/{study}.toml --store {}` makes them again",
            store.display()
        ));
    }
}

/// A committed week: the one asked for, or the last one.
fn committed_week<'a>(manifest: &'a Manifest, store: &Path, week: Option<Week>) -> Result<&'a CommittedWeek> {
    let root = store.display();
    let Some(week) = week else {
        return manifest.weeks.last().with_context(|| format!("{root} has no week yet"));
    };
    manifest.weeks.iter().find(|committed| committed.week == week).with_context(|| {
        let weeks: Vec<String> = manifest.weeks.iter().map(|week| week.week.to_string()).collect();
        format!("{root} has no week {week}; it has {}", weeks.join(", "))
    })
}
