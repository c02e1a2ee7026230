//! What the studies of a store found: pairs of hosts, prefixes that are copies, and exact copies.
//! The pages of the week decide what comes of it.

use anyhow::{Context as _, Result};
use arrow_array::{Date32Array, Int64Array, StringArray};
use serde::Serialize;

use super::last_week::LastWeek;
use super::why::WhyCopy;
use crate::config::Chunking;
use crate::host_order::HostLeads;
use crate::records::{DocId, Week};
use crate::state::{PastWeek, Store};
use crate::structures::ByKey;
use crate::studies::collections::Collections;
use crate::studies::mirrors::Mirrors;
use crate::studies::mirrors_by_url::MirrorsByUrl;
use crate::studies::overlap::{Overlap, Unit};
use crate::studies::{CommittedTables, leads_of};
use crate::tables::studies::collections::AvoidRow;
use crate::tables::studies::mirrors::{MirrorLagRow, MirrorPairRow};
use crate::tables::studies::mirrors_by_url::CandidateRow;
use crate::tables::studies::overlap::ComponentRow;
use crate::tables::{Scan, Table as _, field};

/// The tables of studies that the list is made from: the folder, and the table.
pub const TABLES: [(&str, &str); 5] = [
    ("collections", AvoidRow::NAME),
    ("mirrors", MirrorPairRow::NAME),
    ("mirrors", MirrorLagRow::NAME),
    ("mirrors-by-url", CandidateRow::NAME),
    ("overlap", ComponentRow::NAME),
];

/// The levels of mirrors by URL that count: pairs of levels 1 to 4.
const MIRROR_LEVELS: [&str; 4] = ["1", "2", "3", "4"];

/// What was read of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyState {
    /// Its tables are of the week as it is.
    Read,
    /// Its tables are of an earlier week, or of the week before that was made again. They are read:
    /// the pages of the week decide.
    Older,
    /// The same, but they are not read: they name pages, whose texts may be others now.
    TooOld,
    /// Its tables are of a later week, and are not read.
    Later,
    /// Its tables are not of pages, and are not read.
    OfHosts,
    /// Its tables do not have whole texts, and are not read.
    WithoutTexts,
    /// The store has no tables of it.
    Missing,
}

/// A study, and what was read of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StudyRead {
    /// Its name.
    pub study: &'static str,
    /// What was read.
    pub state: StudyState,
    /// The week of its tables.
    pub of: Option<Week>,
    /// The command that makes tables of the week, if these are not.
    pub command: Option<String>,
}

/// A prefix that the collections job lists.
#[derive(Clone, Debug)]
pub(super) struct ListedPrefix {
    pub prefix: String,
    /// The prefix of the copy that stays.
    pub keep: String,
}

/// What the studies found.
#[derive(Default)]
pub(super) struct StudyFindings {
    pub studies: Vec<StudyRead>,
    /// Pairs of hosts, and why.
    pub pairs: Vec<([String; 2], WhyCopy)>,
    /// Hosts that redirect to another one, which is the second.
    pub redirected: Vec<[String; 2]>,
    /// Which mirrors change first.
    pub leads: HostLeads,
    pub listed: Vec<ListedPrefix>,
    /// By number of a page with copies: the number of the first of them. `None` if the overlap job
    /// was not read.
    pub components: Option<ByKey<u64, u64>>,
}

/// What tables are about, compared with a week; `is_same`: they are of a version of their week as
/// this one has it.
fn state(of: Week, is_same: bool, week: &PastWeek) -> StudyState {
    if of > week.week {
        StudyState::Later
    } else if of == week.week && is_same {
        StudyState::Read
    } else {
        StudyState::Older
    }
}

impl StudyFindings {
    /// Reads the tables. `named` is the store as the user names it; `is_last`: the week is the last
    /// of the store.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn read(store: &Store, pages: &LastWeek<'_>, named: &str, is_last: bool) -> Result<StudyFindings> {
        let mut found = StudyFindings::default();
        let week = pages.history.last();
        for (study, (state, of)) in [
            ("collections", found.collections(store, week)?),
            ("mirrors", found.mirrors(store, week)?),
            ("mirrors-by-url", found.by_url(store, week)?),
            ("overlap", found.overlap(store, pages)?),
        ] {
            // The mirrors job reads all weeks.
            let flag = if is_last || study == "mirrors" { String::new() } else { format!(" --week {}", week.week) };
            let command = format!("nigh run jobs/{study}.toml --store {named}{flag}");
            let command = (state != StudyState::Read).then_some(command);
            found.studies.push(StudyRead { study, state, of, command });
        }
        Ok(found)
    }

    fn collections(&mut self, store: &Store, week: &PastWeek) -> Result<(StudyState, Option<Week>)> {
        let Some(CommittedTables { results, summary }) = CommittedTables::<Collections>::find(store)? else {
            return Ok((StudyState::Missing, None));
        };
        let state = state(summary.last, summary.week_commit == week.made, week);
        if state != StudyState::Later {
            let table = results.committed_table(AvoidRow::NAME, 0);
            Scan::open(table, &["prefix", "principal_url"])?.for_each(|batch| {
                let [prefixes, keeps]: [&StringArray; 2] = [field(batch, "prefix")?, field(batch, "principal_url")?];
                let listed = (0..batch.num_rows()).map(|row| {
                    let [prefix, keep] = [prefixes, keeps].map(|texts| texts.value(row).to_owned());
                    ListedPrefix { prefix, keep }
                });
                self.listed.extend(listed);
                Ok(())
            })?;
        }
        Ok((state, Some(summary.last)))
    }

    fn mirrors(&mut self, store: &Store, week: &PastWeek) -> Result<(StudyState, Option<Week>)> {
        let Some(CommittedTables { results, summary }) = CommittedTables::<Mirrors>::find(store)? else {
            return Ok((StudyState::Missing, None));
        };
        let Some(of) = summary.mirrors.iter().rfind(|of| of.week <= week.week) else {
            return Ok((StudyState::Later, Some(summary.first)));
        };
        let columns = ["week", "host_a", "host_b", "class", "redirects"];
        Scan::open(results.committed_table(MirrorPairRow::NAME, 0), &columns)?.for_each(|batch| {
            let weeks: &Date32Array = field(batch, "week")?;
            let [a, b, classes]: [&StringArray; 3] =
                [field(batch, "host_a")?, field(batch, "host_b")?, field(batch, "class")?];
            for row in (0..batch.num_rows()).filter(|row| weeks.value(*row) == of.week.days()) {
                let pair = [a, b].map(|names| names.value(row).to_owned());
                match classes.value(row) {
                    "alias" => self.pairs.push((pair, WhyCopy::Alias)),
                    "kept" => self.pairs.push((pair, WhyCopy::Content)),
                    "redirect" => self.redirected.push(pair),
                    _ => {}
                }
            }
            Ok(())
        })?;
        self.leads = leads_of(&results)?;
        Ok((state(of.week, of.week_commit == week.made, week), Some(of.week)))
    }

    fn by_url(&mut self, store: &Store, week: &PastWeek) -> Result<(StudyState, Option<Week>)> {
        let Some(CommittedTables { results, summary }) = CommittedTables::<MirrorsByUrl>::find(store)? else {
            return Ok((StudyState::Missing, None));
        };
        // Tables of lists alone are of no week.
        let state =
            summary.last.map_or(StudyState::Older, |of| state(of, summary.week_commit == Some(week.made), week));
        if state != StudyState::Later {
            let table = results.committed_table(CandidateRow::NAME, 0);
            Scan::open(table, &["host_a", "host_b", "level"])?.for_each(|batch| {
                let [a, b, levels]: [&StringArray; 3] =
                    [field(batch, "host_a")?, field(batch, "host_b")?, field(batch, "level")?];
                let rows = (0..batch.num_rows()).filter(|row| MIRROR_LEVELS.contains(&levels.value(*row)));
                self.pairs.extend(rows.map(|row| ([a, b].map(|names| names.value(row).to_owned()), WhyCopy::Url)));
                Ok(())
            })?;
        }
        Ok((state, summary.last))
    }

    /// Reads exact copies: the components of whole documents.
    fn overlap(&mut self, store: &Store, pages: &LastWeek<'_>) -> Result<(StudyState, Option<Week>)> {
        let Some(CommittedTables { results, summary }) = CommittedTables::<Overlap>::find(store)? else {
            return Ok((StudyState::Missing, None));
        };
        let of = Some(summary.last);
        let week = pages.history.last();
        // Its tables are of chunks.
        let state = match state(summary.last, summary.week_commit == week.commit, week) {
            StudyState::Older => StudyState::TooOld,
            StudyState::Read if summary.unit != Unit::Document => StudyState::OfHosts,
            StudyState::Read if !summary.chunkings.iter().any(|of| of.chunking == Chunking::Document) => {
                StudyState::WithoutTexts
            }
            state => state,
        };
        if state != StudyState::Read {
            return Ok((state, of));
        }
        let mut components = ByKey::default();
        for file in results.committed_files(ComponentRow::NAME)? {
            let path = file.clone();
            Scan::open(file, &["chunking", "component", "doc"])?.for_each(|batch| {
                let chunkings: &StringArray = field(batch, "chunking")?;
                let [roots, docs]: [&Int64Array; 2] = [field(batch, "component")?, field(batch, "doc")?];
                for row in (0..docs.len()).filter(|row| chunkings.value(*row) == Chunking::Document.name()) {
                    let [root, doc] = [roots, docs].map(|ids| pages.number_of(DocId::from_table(ids.value(row))));
                    let known = doc.zip(root).with_context(|| format!("{} has an unknown page", path.display()))?;
                    components.insert(known.0 as u64, known.1 as u64);
                }
                Ok(())
            })?;
        }
        self.components = Some(components);
        Ok((state, of))
    }
}
