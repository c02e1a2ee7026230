//! The collections job: finds pages that are copied together, and prefixes of URLs that a crawler
//! need not fetch (Cho, Shivakumar and Garcia-Molina 2000).
//!
//! ```text
//! pages of the week ─▶ trivial clusters ─▶ replicas                                              Fig. 11
//! links ─▶ link statistics ─▶ merged clusters ─▶ similar clusters ─▶ clusters, sizes             Fig. 12, Table 2
//!                                             ─▶ collections, pages
//! pages by directory ─▶ avoid, avoid.txt
//! the list of the run before, and this week's ─▶ judged, savings                                 section 5
//! ```
//!
//! Counts are whole numbers, and all orders are those of ids and texts, so no table depends on the
//! number of workers or processes. Memory: see `studies::collections::steps`; the avoid list at
//! every worker, and the URL, the host and the title of the first page of every collection at its
//! owner.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use nigh_exchange::Context;

use super::judge::Judge;
use super::steps::{
    ClusteredPages, CollectionPage, CollectionStage, MergeCondition, PageTexts, Prefixes, TrivialClusters, avoid_list,
    clustered_pages, collection_links, members, merged_clusters, prefixes,
};
use super::write::{CollectionWriter, CollectionsCounts};
use super::{CollectionLinks, Collections, CollectionsSummary, ReplicaLevel};
use crate::operators::scan::{LinkReader, UrlTargets};
use crate::records::{DocId, Week};
use crate::state::{History, Results, Store};
use crate::structures::Ownership;
use crate::studies::overlap::{Overlap, Unit};
use crate::studies::{CommittedTables, StudyPlan, committed_leads};
use crate::watch::Stage;

/// The week of a job. Checks that it is in the history, and that the overlap job ran for it, if the
/// job takes its components.
///
/// # Errors
/// If not: says what to run.
pub fn check_level(store: &Store, history: &History, job: &Collections) -> Result<Week> {
    let number = week_number(history, job)?;
    if job.level == ReplicaLevel::Overlap {
        overlap_results(store, history, number, job)?;
    }
    Ok(history.weeks[number].week)
}

/// The number of the job's week in the history.
fn week_number(history: &History, job: &Collections) -> Result<usize> {
    let Some(week) = job.week else { return Ok(history.weeks.len() - 1) };
    history.weeks.iter().position(|past| past.week == week).with_context(|| {
        let weeks: Vec<String> = history.weeks.iter().map(|past| past.week.to_string()).collect();
        format!("the store {} has no week {week}; it has {}", history.store.display(), weeks.join(", "))
    })
}

/// The committed results of the overlap job for this week.
fn overlap_results(store: &Store, history: &History, number: usize, job: &Collections) -> Result<Results> {
    let (week, root, chunking) = (&history.weeks[number], history.store.display(), job.chunking.name());
    let wanted = format!(
        "level = \"overlap\" needs the tables of the overlap job for week {}: `nigh run jobs/overlap.toml --store {root} --week {}`",
        week.week, week.week
    );
    let Some(CommittedTables { results, summary }) = CommittedTables::<Overlap>::find(store)? else {
        bail!("{root} has no tables of the overlap job. {wanted}")
    };
    ensure!(
        (summary.last, summary.week_commit) == (week.week, week.commit),
        "the overlap tables of {root} were made for week {}, as it was then. {wanted}",
        summary.last
    );
    ensure!(
        summary.unit == Unit::Document,
        "the overlap tables of {root} are of hosts. {wanted}, with `unit = \"document\"`"
    );
    let has_chunking = summary.chunkings.iter().any(|of| of.chunking == job.chunking);
    ensure!(
        has_chunking,
        "the overlap tables of {root} have no chunking \"{chunking}\". {wanted}, with that among its chunkings"
    );
    Ok(results)
}

/// The parts of the job that its steps share, on one worker.
struct CollectionsJob<'a> {
    plan: &'a StudyPlan,
    job: &'a Collections,
    /// The number of the job's week.
    number: usize,
    /// The URLs of the last week of the store, and so of all.
    owned: Ownership,
    stage: CollectionStage,
}

/// Computes on one worker, as [`run`](crate::studies::run) calls it. Worker 0 returns the summary.
///
/// # Errors
/// If a file cannot be read or written, or a worker failed.
pub fn collections(cx: &mut Context, plan: &StudyPlan, job: &Collections) -> Result<Option<CollectionsSummary>> {
    let cx = &mut cx.with(plan.worker_memory / 4, &plan.results().scratch().join(format!("worker{:05}", cx.index())));
    let parts = CollectionsJob {
        plan,
        job,
        number: week_number(&plan.history, job)?,
        owned: plan.owned(cx),
        stage: CollectionStage {
            condition: MergeCondition { merge: job.merge, share: job.share.0 },
            same_host: job.links == CollectionLinks::SameHost,
            least_size: job.least_size,
            purity: job.purity.0,
        },
    };
    let (history, owned) = (&plan.history, &parts.owned);
    let clusters = parts.clusters()?;
    let pages = Arc::new(clustered_pages(cx, history, parts.number, owned, &clusters)?);
    cx.enter(Stage::Join);
    let targets = UrlTargets::of_week(cx, history, parts.number, owned)?;
    let (members, mut counts) = parts.members(cx, &pages, &targets)?;
    let members = Rc::new(members);
    let found = prefixes(cx, &parts.stage, history, parts.number, owned, &pages, &members, &targets)?;
    drop(targets);
    let texts = parts.texts(&members, &found)?;
    let now = avoid_list(cx, &members, &found, &texts)?;
    cx.enter(Stage::Weeks);
    let judge = Judge { plan, job, number: parts.number, owned, clusters: &clusters };
    let judged = judge.lists(cx, now)?;
    cx.enter(Stage::Tables);
    counts.count_pages(&pages, owned);
    let overlap = match &clusters {
        TrivialClusters::Overlap(results, _) => Some(results.commit_number()),
        TrivialClusters::OfWeek(..) => None,
    };
    let writer = CollectionWriter { plan, job, number: parts.number, owned, overlap, texts: &texts, prefixes: &found };
    writer.write_members(&members, &pages)?;
    writer.write(cx, &members, counts, &judged)
}

impl CollectionsJob<'_> {
    fn clusters(&self) -> Result<TrivialClusters> {
        let (store, job) = (Store::at(&self.plan.history.store), self.job);
        let overlap = match job.level {
            ReplicaLevel::Overlap => Some(overlap_results(&store, &self.plan.history, self.number, job)?),
            ReplicaLevel::Similar | ReplicaLevel::Identical => None,
        };
        Ok(TrivialClusters::of(job.level, overlap, job.chunking))
    }

    /// The own pages of collections.
    fn members(
        &self,
        cx: &mut Context,
        pages: &Arc<ClusteredPages>,
        targets: &Arc<UrlTargets>,
    ) -> Result<(Vec<CollectionPage>, CollectionsCounts)> {
        let (history, owned, stage) = (&self.plan.history, &self.owned, &self.stage);
        let mut links = LinkReader::open(history, self.number, owned, targets)?;
        let found = collection_links(cx, stage, owned, pages, &mut links)?;
        let merged = merged_clusters(cx, stage, found.links)?;
        let mut counts = CollectionsCounts { links: found.read, pairs: merged.pairs, ..CollectionsCounts::default() };
        counts.merged = merged.edges.len() as u64;
        let weeks: Vec<Vec<u64>> = history.weeks.iter().map(|week| week.rows.clone()).collect();
        let first_seen = move |doc: DocId| weeks.partition_point(|rows| rows[doc.shard() as usize] <= doc.row()) as u32;
        let leads = committed_leads(&Store::at(&history.store), &history.weeks[self.number])?;
        let members = members(cx, owned, pages, found.in_links, merged, Rc::new(first_seen), &leads)?;
        counts.ambiguous = members.ambiguous;
        Ok((members.pages, counts))
    }

    /// The texts of own pages that tables need.
    fn texts(&self, members: &[CollectionPage], prefixes: &Prefixes) -> Result<PageTexts> {
        let first = members.iter().filter(|page| page.doc == page.collection || page.doc == page.entry);
        let examples = prefixes.pure.iter().map(|directory| directory.example);
        let wanted = first.map(|page| page.doc).chain(examples).collect();
        PageTexts::read(&self.plan.history, self.number, &self.owned, wanted)
    }
}
