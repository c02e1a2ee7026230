//! Judging: the list of the run before by this week, and this week's list by itself and later
//! weeks.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use nigh_exchange::Context;

use super::former::{FormerList, ListVerdict, ListedSince, joined};
use super::steps::{AvoidPrefix, Judgement, Savings, TrivialClusters, judge};
use super::{Collections, ReplicaLevel};
use crate::records::Week;
use crate::state::Store;
use crate::structures::Ownership;
use crate::studies::{CommittedTables, StudyPlan};

/// The avoid list, and what is said of it and of the one before.
pub(super) struct JudgedLists {
    pub former: FormerList,
    /// The former list, judged by this week.
    pub judgement: Judgement,
    pub verdicts: Vec<ListVerdict>,
    /// This week's list.
    pub list: Vec<ListedSince>,
    /// The week of a list, its prefixes, the week of a crawl, and what the crawl would have been.
    pub savings: Vec<(Week, u64, Week, Savings)>,
}

/// What lists are judged by.
pub(super) struct Judge<'a> {
    pub plan: &'a StudyPlan,
    pub job: &'a Collections,
    /// The number of the job's week.
    pub number: usize,
    /// The URLs of the last week of the store, and so of all.
    pub owned: &'a Ownership,
    /// The trivial clusters of the job's week.
    pub clusters: &'a TrivialClusters,
}

impl Judge<'_> {
    /// Judges the former list by this week, and this week's list by itself and later weeks. `now`
    /// is what this week alone lists.
    ///
    /// # Errors
    /// If a file cannot be read, or a worker failed.
    pub fn lists(&self, cx: &mut Context, now: Vec<AvoidPrefix>) -> Result<JudgedLists> {
        let week = self.plan.history.weeks[self.number].week;
        let former = match self.plan.former {
            Some(commit) => {
                let store = Store::at(&self.plan.history.store);
                FormerList::read(&CommittedTables::numbered(&store, commit)?, week)?
            }
            None => FormerList::default(),
        };
        let mut savings = Vec::new();
        let count = former.prefixes.len();
        let (mut judgement, mut verdicts) = (Judgement::unknown(count), vec![ListVerdict::NotJudged; count]);
        if let (Some(listed), true) = (former.week, self.job.judge) {
            judgement = self.by_week(cx, self.number, &former.prefixes)?;
            verdicts = former.verdicts(&judgement, self.job.purity.0, &now);
            savings.push((listed, count as u64, week, judgement.all));
        }
        let list = joined(now, week, &former, &verdicts);
        if self.job.judge {
            for number in self.number..self.plan.history.weeks.len() {
                let all = self.by_week(cx, number, &list)?.all;
                savings.push((week, list.len() as u64, self.plan.history.weeks[number].week, all));
            }
        }
        Ok(JudgedLists { former, judgement, verdicts, list, savings })
    }

    /// Judges a list by the week with this number.
    fn by_week(&self, cx: &mut Context, number: usize, list: &[ListedSince]) -> Result<Judgement> {
        // Components of overlap are those of one week: other weeks are judged by very similar
        // pages.
        let clusters = match self.job.level {
            ReplicaLevel::Overlap if number != self.number => {
                TrivialClusters::of(ReplicaLevel::Similar, None, self.job.chunking)
            }
            _ => self.clusters.clone(),
        };
        let prefixes: Vec<&str> = list.iter().map(|listed| listed.of.prefix.as_str()).collect();
        let principals: Vec<&str> = list.iter().map(|listed| listed.of.principal.as_str()).collect();
        let history = &self.plan.history;
        // Many prefixes have one principal copy.
        let distinct: BTreeSet<&str> = principals.iter().copied().collect();
        let distinct: BTreeMap<&str, usize> = distinct.into_iter().zip(0..).collect();
        let of_principals: Vec<&str> = distinct.keys().copied().collect();
        let mut judgement = judge(cx, history, number, self.owned, &clusters, [&prefixes, &of_principals])?;
        judgement.of_principals =
            principals.iter().map(|principal| judgement.of_principals[distinct[principal]]).collect();
        Ok(judgement)
    }
}
