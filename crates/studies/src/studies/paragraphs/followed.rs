//! Genealogy: the births of the week, and the lifetimes of paragraphs since the first week.

use anyhow::{Context as _, Result, ensure};
use nigh_exchange::Context;

use super::genealogy::{
    Birth, LifetimeReader, Lifetimes, Parent, TwoWeeks, WeekTurnover, births, held_paragraphs, sets_of_pages,
};
use super::job::Paragraphs;
use super::steps::ParagraphFiles;
use super::write::ParagraphsWriter;
use super::{BirthsSummary, FollowedWeek};
use crate::config::Mode;
use crate::records::Week;
use crate::state::{PastWeek, Store};
use crate::structures::Ownership;
use crate::studies::{CommittedTables, StudyPlan};
use crate::tables::Table;
use crate::tables::studies::genealogy::{LifetimeRow, ParagraphTurnoverRow};

/// What the genealogy of a week has, of all workers.
pub(super) struct Genealogy {
    /// The weeks that lifetimes know; the last week alone without genealogy.
    pub followed: Vec<FollowedWeek>,
    /// The rows of `lifetimes`.
    pub lifetimes: u64,
    /// Whether a former run was followed.
    pub mode: Mode,
    /// The births of the week; `None` if no week before it is read.
    pub births: Option<BirthsSummary>,
    /// Paragraphs that come and go, by week.
    pub turnover: Vec<ParagraphTurnoverRow>,
}

/// A week as genealogy needs it, on one worker.
pub(super) struct PagesOfWeek<'a> {
    pub source: &'a ParagraphFiles,
    /// A hash of the set of paragraphs of each own page.
    pub sets: &'a [u64],
    /// A hash of the host of each own page.
    pub hosts: &'a [u64],
}

/// The parts of the job that genealogy needs.
pub(super) struct GenealogyJob<'a> {
    pub plan: &'a StudyPlan,
    pub owned: &'a Ownership,
    pub least_characters: u64,
    pub writer: &'a ParagraphsWriter<'a>,
}

impl GenealogyJob<'_> {
    /// Finds the births of the last week, and the lifetimes of paragraphs; writes the tables of
    /// both, of own shards. `now` is the last week, and `before` the one before.
    pub fn run(&self, cx: &mut Context, before: Option<PagesOfWeek<'_>>, now: PagesOfWeek<'_>) -> Result<Genealogy> {
        let GenealogyJob { plan, owned, .. } = *self;
        let (weeks, store) = (&plan.history.weeks, Store::at(&plan.history.store));
        let last = weeks.len() - 1;
        let former = plan.former.map(|commit| CommittedTables::<Paragraphs>::numbered(&store, commit)).transpose()?;
        // The former run knows the weeks up to its own.
        let from = match &former {
            Some(CommittedTables { summary, .. }) => {
                let known = weeks.iter().position(|week| week.week == summary.last);
                known.with_context(|| format!("the plan lacks week {} of the run before", summary.last))?
            }
            None => 0,
        };
        let prefix = cx.scratch().join("lifetimes");
        let mut lifetimes = Lifetimes::new(&prefix, plan.history.rows_by_shard().len() as u64, cx.memory() / 4);
        let mut of_before = None;
        for (number, week) in weeks.iter().enumerate().take(last).skip(from + 1) {
            let context = || format!("comparing week {} with the week before", week.week);
            let [then, now] = [number - 1, number].map(|number| self.open(number));
            let (then, now) = (then?, now?);
            let sets_then = match of_before.take() {
                Some(sets) => sets,
                None => sets_of_pages(owned, &then).with_context(context)?,
            };
            let sets_now = sets_of_pages(owned, &now).with_context(context)?;
            let two = TwoWeeks { sets: [&sets_then, &sets_now], hosts: None };
            let found = held_paragraphs(cx, owned, [&then, &now], two).with_context(context)?;
            lifetimes.add(cx, self.days(number), &found.events)?;
            of_before = Some(sets_now);
        }
        drop(of_before);
        let mut births_of_week = None;
        if let Some(before) = before {
            let two = TwoWeeks { sets: [before.sets, now.sets], hosts: Some([before.hosts, now.hosts]) };
            let sources = [before.source, now.source];
            let context = || format!("comparing week {} with the week before", weeks[last].week);
            let found = held_paragraphs(cx, owned, sources, two).with_context(context)?;
            if from < last {
                lifetimes.add(cx, self.days(last), &found.events)?;
            }
            let (found, parents) =
                births(cx, owned, sources, two, found.held).context("choosing the parents of new pages")?;
            self.writer.write_births(&found, &parents)?;
            births_of_week = Some(self.count(cx, &found, &parents)?);
        } else {
            self.writer.write_births(&[], &[])?;
        }
        let reader = match &former {
            Some(committed) => LifetimeReader::of(committed.results.of_own_shards(LifetimeRow::NAME, owned)?),
            None => LifetimeReader::default(),
        };
        let own = self.writer.write_lifetimes(|each| lifetimes.finish(reader, each))?;
        let changes: Vec<Week> = weeks[from + 1..].iter().map(|week| week.week).collect();
        let [of_former, rows] = cx.sums([own.former, own.rows])?;
        let turnover = self.turnover(cx, &changes, own.turnover)?;
        let followed = |weeks: &[PastWeek]| -> Vec<FollowedWeek> {
            weeks.iter().map(|week| FollowedWeek { week: week.week, commit: week.commit }).collect()
        };
        let Some(CommittedTables { results, summary }) = former else {
            let (followed, mode) = (followed(weeks), Mode::Full);
            return Ok(Genealogy { followed, lifetimes: rows, mode, births: births_of_week, turnover });
        };
        ensure!(
            of_former == summary.lifetimes,
            "{} lacks rows: it has {of_former}, and had {}. `mode = \"full\"` makes it again",
            results.folder().join(LifetimeRow::NAME).display(),
            summary.lifetimes
        );
        Ok(Genealogy {
            followed: [summary.followed, followed(&weeks[from + 1..])].concat(),
            lifetimes: rows,
            mode: Mode::Delta,
            births: births_of_week,
            turnover: [summary.turnover, turnover].concat(),
        })
    }

    fn open(&self, number: usize) -> Result<ParagraphFiles> {
        ParagraphFiles::open(&self.plan.history, number, self.owned, self.least_characters)
    }

    /// The days of the week before, and of week number `number`.
    fn days(&self, number: usize) -> [i32; 2] {
        [number - 1, number].map(|number| self.plan.history.weeks[number].week.days())
    }

    /// What each week brought, of all workers.
    fn turnover(&self, cx: &mut Context, weeks: &[Week], own: Vec<WeekTurnover>) -> Result<Vec<ParagraphTurnoverRow>> {
        let own = own.into_iter().enumerate();
        let own = own.map(|(at, of)| (at, [of.first_seen, of.returned, of.left])).collect();
        let none = |week: &Week| ParagraphTurnoverRow { week: *week, first_seen: 0, returned: 0, gone: 0 };
        let mut turnover: Vec<ParagraphTurnoverRow> = weeks.iter().map(none).collect();
        for (at, [first_seen, returned, left]) in cx.concat(own)? {
            let sum = &mut turnover[at];
            sum.first_seen += first_seen;
            sum.returned += returned;
            sum.gone += left;
        }
        Ok(turnover)
    }

    /// Counts the births of all workers.
    fn count(&self, cx: &mut Context, births: &[Birth], parents: &[Parent]) -> Result<BirthsSummary> {
        let count = |is: fn(&Birth) -> bool| births.iter().filter(|birth| is(birth)).count() as u64;
        let sum = |of: fn(&Birth) -> u32| births.iter().map(|birth| u64::from(of(birth))).sum::<u64>();
        let own = [
            births.len() as u64,
            count(|birth| birth.inherited == 0),
            count(|birth| birth.inherited == birth.paragraphs && birth.parents == 1),
            count(|birth| birth.parents > 1),
            parents.iter().filter(|of| of.is_same_host == Some(false) && of.rank == 1).count() as u64,
            sum(|birth| birth.paragraphs),
            sum(|birth| birth.inherited),
        ];
        let mut all = [0u64; 7];
        for own in cx.concat(vec![own])? {
            all.iter_mut().zip(own).for_each(|(sum, count)| *sum += count);
        }
        let [born, original, copies, assembled, from_other_hosts, paragraphs, inherited] = all;
        let weeks = &self.plan.history.weeks;
        let since = weeks[weeks.len() - 2].week;
        Ok(BirthsSummary { since, born, original, copies, assembled, from_other_hosts, paragraphs, inherited })
    }
}
