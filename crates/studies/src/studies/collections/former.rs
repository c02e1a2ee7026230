//! Carries the avoid list of the last run forward, without the prefixes under which this week has
//! pages that exist nowhere else.
//!
//! A crawler that keeps to the list shows no pages below its prefixes, so this week alone would not
//! find them again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use anyhow::{Context, Result};
use arrow_array::{Date32Array, Int64Array, StringArray};
use serde::{Deserialize, Serialize};

use super::Collections;
use super::steps::{AvoidPrefix, Judgement, directory_texts};
use crate::records::Week;
use crate::state::Store;
use crate::structures::CompactSort;
use crate::studies::CommittedTables;
use crate::tables::studies::collections::{AvoidRow, JudgedRow};
use crate::tables::{Scan, Table, field};

/// A listed prefix, and the weeks that it was first listed in and last seen in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListedSince {
    pub of: AvoidPrefix,
    pub since: Week,
    pub week: Week,
}

/// The avoid list before this week, and the week of the run that made it.
#[derive(Clone, Debug, Default)]
pub(super) struct FormerList {
    pub week: Option<Week>,
    pub prefixes: Vec<ListedSince>,
}

/// Room for the error of a product of a share and a whole number.
const ROUNDING: f64 = 1e-9;

/// Why a prefix stays or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListVerdict {
    Kept,
    /// The job does not judge.
    NotJudged,
    NotCrawled,
    Losing,
    /// This week lists a prefix within it, and not itself.
    TooWide,
    PrincipalGone,
}

impl ListVerdict {
    pub fn name(self) -> &'static str {
        match self {
            ListVerdict::Kept => "kept",
            ListVerdict::NotJudged => "not judged",
            ListVerdict::NotCrawled => "not crawled",
            ListVerdict::Losing => "losing",
            ListVerdict::TooWide => "too wide",
            ListVerdict::PrincipalGone => "principal gone",
        }
    }

    pub fn stays(self) -> bool {
        !matches!(self, ListVerdict::Losing | ListVerdict::TooWide | ListVerdict::PrincipalGone)
    }
}

/// The list of the run before.
pub(super) enum ListBefore {
    /// The store has no tables of the study.
    Missing,
    /// The number of the commit whose list this run continues.
    Continued(u64),
    /// Why it is dropped.
    Dropped(String),
}

/// What a run for a week does with the list of the run before.
///
/// # Errors
/// If the store or the summary cannot be read.
pub(super) fn former_list(store: &Store, job: &Collections, week: Week) -> Result<ListBefore> {
    let Some(committed) = CommittedTables::<Collections>::find(store)? else { return Ok(ListBefore::Missing) };
    let last = committed.summary.last;
    Ok(if last > week {
        ListBefore::Dropped(format!(
            "the avoid list of week {last} goes: these tables are of week {week}, which is before it"
        ))
    } else if !committed.job()?.is_some_and(|former| former.lists_as(job)) {
        ListBefore::Dropped(format!("a new avoid list begins: that of week {last} was made with other parameters"))
    } else if is_of_older_version(&committed)? {
        ListBefore::Dropped(format!(
            "a new avoid list begins: that of week {last} was made by an older version of nigh"
        ))
    } else {
        ListBefore::Continued(committed.results.commit_number())
    })
}

/// Whether the list lacks a column that those of this version have.
fn is_of_older_version(committed: &CommittedTables<Collections>) -> Result<bool> {
    let path = committed.results.committed_table(AvoidRow::NAME, 0);
    Scan::open(&path, &["prefix"])?;
    Ok(Scan::open(&path, &["named"]).is_err())
}

impl FormerList {
    /// Reads the list that the committed tables of the job had before week `week`. If these are of
    /// the same week, that is what they were judged from, so a second run over the first makes the
    /// same tables.
    pub fn read(committed: &CommittedTables<Collections>, week: Week) -> Result<FormerList> {
        let CommittedTables { results, summary } = committed;
        let (table, columns, list_week) = if summary.last < week {
            (AvoidRow::NAME, ["pages", "copies", "bytes", "named"], Some(summary.last))
        } else {
            (JudgedRow::NAME, ["former_pages", "former_copies", "former_bytes", "former_named"], summary.former)
        };
        let path = results.committed_table(table, 0);
        let mut prefixes = Vec::new();
        let names = ["prefix", "host", "principal_url", "since", "week"];
        let all: Vec<&str> = names.iter().chain(&columns).copied().collect();
        Scan::open(&path, &all)?.for_each(|batch| {
            let [texts, hosts, principals]: [&StringArray; 3] =
                [field(batch, "prefix")?, field(batch, "host")?, field(batch, "principal_url")?];
            let [since, weeks]: [&Date32Array; 2] = [field(batch, "since")?, field(batch, "week")?];
            let mut numbers: Vec<&Int64Array> = Vec::new();
            for column in columns {
                numbers.push(field(batch, column)?);
            }
            for row in 0..batch.num_rows() {
                let number = |column: usize| numbers[column].value(row) as u64;
                let date = |days: &Date32Array| {
                    Week::of_days(days.value(row)).with_context(|| format!("{} has an impossible date", path.display()))
                };
                let [prefix, host, principal] = [texts, hosts, principals].map(|texts| texts.value(row).to_owned());
                prefixes.push(ListedSince {
                    of: AvoidPrefix {
                        prefix,
                        host,
                        principal,
                        pages: number(0),
                        copies: number(1),
                        bytes: number(2),
                        named: number(3),
                    },
                    since: date(since)?,
                    week: date(weeks)?,
                });
            }
            Ok(())
        })?;
        Ok(FormerList { week: list_week, prefixes })
    }

    /// The verdicts of a judgement on these prefixes and on those of their principal copies, in the
    /// order of `prefixes`; `now` are the prefixes that this week alone lists.
    pub fn verdicts(&self, judgement: &Judgement, purity: f64, now: &[AvoidPrefix]) -> Vec<ListVerdict> {
        let is_wide = |prefix: &str| {
            let of_now = || now.iter().map(|of| of.prefix.as_str());
            of_now().any(|of| of.starts_with(prefix)) && !of_now().any(|of| prefix.starts_with(of))
        };
        let of = |(number, (counts, principal)): (usize, (&[u64; 2], &u64))| {
            let [pages, lost] = *counts;
            if *principal == 0 {
                ListVerdict::PrincipalGone
            } else if pages == 0 {
                ListVerdict::NotCrawled
            } else if (pages - lost) as f64 + ROUNDING < purity * pages as f64 {
                ListVerdict::Losing
            } else if self.prefixes.get(number).is_some_and(|listed| is_wide(&listed.of.prefix)) {
                ListVerdict::TooWide
            } else {
                ListVerdict::Kept
            }
        };
        judgement.of_prefixes.iter().zip(&judgement.of_principals).enumerate().map(of).collect()
    }
}

/// The list of this week and what stays of the former one, in the order of prefixes; of nested ones
/// the outermost.
///
/// A prefix is left out if its principal copy is below a listed one, or the principal copy of a
/// listed one is below it: then both copies would be avoided. So of two copies that take turns as
/// the principal one, that which was listed first stays on the list.
pub(super) fn joined(
    mut now: Vec<AvoidPrefix>,
    week: Week,
    former: &FormerList,
    verdicts: &[ListVerdict],
) -> Vec<ListedSince> {
    let judged = || former.prefixes.iter().zip(verdicts);
    let mut all: BTreeMap<String, ListedSince> = BTreeMap::new();
    // The directories around the principal copies of listed prefixes.
    let mut principals: HashSet<String> = HashSet::new();
    let around = |principal: &str| directory_texts(principal).map(str::to_owned).collect::<Vec<_>>();
    for (listed, _) in judged().filter(|(_, verdict)| verdict.stays()) {
        principals.extend(around(&listed.of.principal));
        all.insert(listed.of.prefix.clone(), listed.clone());
    }
    // What came off the list may come back next week, if it is what it was then.
    let dropped = judged().filter(|(_, verdict)| !verdict.stays());
    // With the directories around them.
    let dropped: HashSet<&str> = dropped.flat_map(|(listed, _)| directory_texts(&listed.of.prefix)).collect();
    now.retain(|of| !dropped.contains(of.prefix.as_str()));
    now.sort_items_by(|a, b| (Reverse(a.copies), &a.prefix).cmp(&(Reverse(b.copies), &b.prefix)));
    for of in now {
        let is_avoided = directory_texts(&of.principal).any(|directory| all.contains_key(directory));
        if is_avoided || principals.contains(&of.prefix) {
            continue;
        }
        let since = all.get(&of.prefix).map_or(week, |listed| listed.since);
        principals.extend(around(&of.principal));
        all.insert(of.prefix.clone(), ListedSince { of, since, week });
    }
    let mut joined: Vec<ListedSince> = Vec::new();
    for (prefix, listed) in all {
        if joined.last().is_none_or(|outer| !prefix.starts_with(&outer.of.prefix)) {
            joined.push(listed);
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_loses_pages_if_more_than_the_rest_of_purity_is_lost() {
        for purity in [0.6, 0.7, 0.8, 0.9] {
            for pages in 1..200u64 {
                for lost in 0..=pages {
                    let judgement =
                        Judgement { of_prefixes: vec![[pages, lost]], of_principals: vec![1], ..Judgement::default() };
                    let verdict = FormerList::default().verdicts(&judgement, purity, &[])[0];
                    // In whole tenths.
                    let is_losing = 10 * (pages - lost) < (10.0 * purity).round() as u64 * pages;
                    assert_eq!(verdict == ListVerdict::Losing, is_losing, "{lost} of {pages}, purity {purity}");
                }
            }
        }
    }
}
