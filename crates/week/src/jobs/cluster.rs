//! The main job: makes a week from a crawl (Fetterly 2004, section 2), the first of a store or a
//! later one.
//!
//! ```text
//! crawl files ─▶ captures ─▶ segments, wave by wave       a row for each document, with its feature vector
//! week before ─▶ segments of pages that stay              if the crawl is a part of them (`kept_pages`)
//! vectors     ─▶ similar and identical roots (`roots`)    from all documents, or from the week before and what changed
//! checksums   ─▶ exact roots (`roots`)                    exact copies among the identical
//! candidates  ─▶ clusters (`verification`)                if the job asks for it: pages that are not similar enough are split off
//! roots       ─▶ evidence, cluster map, ids (`tables`)    why, where, and under which name
//! failures    ─▶ missing (`missing`)                      URLs of earlier weeks that could not be downloaded
//!             ─▶ redirects, host-failures (`failed_urls`) answers that name another URL, and failures by host
//! sizes       ─▶ statistics (`tables`)                    sizes, largest clusters, the power law
//! ```
//!
//! Waves are committed one by one. A run that is interrupted after the last wave computes
//! everything after the waves again. The tables do not depend on workers, processes, or the order
//! in which inputs are named.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use nigh_exchange::{Context, run_dataflow};
use timely::dataflow::operators::{Concat, Probe};

use super::accuracy::accuracy;
use super::deletion::leave_out;
use super::failed_urls::failed_urls;
use super::kept_pages::keep_pages;
use super::missing::missing_urls;
use super::packing::pack_week;
use super::resharding::reshard;
use super::roots::{WeekRoots, roots};
use super::tables::{canonical, cluster_ids, cluster_map, evidence, since, split_off, statistics};
use super::verification::verify;
use super::week::{BaseWeek, IngestedWeek};
use crate::features::{Fingerprinter, VectorKeys};
use crate::kernels;
use crate::kernels::memory::return_freed;
use crate::kernels::{Polynomials, polynomials};
use crate::operators::ingest::{
    Crawled, UnreadPieces, check_pages, check_rejects, check_revisits, commit, crawl, deal, failures, segments,
};
use crate::operators::output::{LevelClusters, cluster_sizes, links};
use crate::plan::Plan;
use crate::records::{DocId, Level};
use crate::state::{CommittedWeek, Unfinished, WeekJournal, WholeWeek};
use crate::structures::{DocMap, Ownership};
use crate::summary::Summary;
use crate::watch::Stage;

/// Runs the job on one worker. Every worker of every process calls it with the same plan, after the
/// week was begun ([`Store::begin`](crate::state::Store::begin)). Worker 0 commits the week and
/// returns its summary; the others return `None`. If the watch asks for the end after a wave, all
/// workers return `None` there, and the watch says so.
///
/// # Errors
/// If a file cannot be read or written, a worker failed, or too many records are bad. What was
/// committed stays, and the next run resumes from it.
pub fn cluster(cx: &mut Context, plan: &Arc<Plan>) -> Result<Option<Summary>> {
    let shared = &cx.shared().clone();
    let polynomials = shared.of(|| polynomials(plan.method.seed, plan.method.features));
    let store = plan.open_store();
    let unfinished = store.unfinished(plan.week);

    // Segments: from the crawl, the week before the deletion, or the week with fewer shards.
    let journal = read_journal(&unfinished)?;
    if let Some(deletion) = &plan.deletion {
        leave_out(cx, plan, deletion, &unfinished, &journal)?;
    } else if let Some(resharding) = &plan.resharding {
        reshard(cx, plan, resharding, &unfinished, &journal)?;
    } else if journal.waves < plan.waves.len() {
        cx.enter(Stage::Read);
        if read_crawl(cx, plan, &polynomials, journal)? == CrawlEnd::EndedEarly {
            cx.watch().end_early();
            return Ok(None);
        }
        return_freed();
    }
    if plan.reads_crawl() {
        keep_pages(cx, plan, &unfinished, read_journal(&unfinished)?)?;
    }
    let journal = read_journal(&unfinished)?;
    check_rejects(plan, &journal, true)?;
    check_revisits(plan, &journal)?;
    check_pages(plan, &journal)?;

    // Clusters.
    let owned = Ownership::new(cx.index(), cx.peers(), &plan.urls(&journal));
    let base = BaseWeek::of(plan)?;
    let week = IngestedWeek {
        plan,
        journal: &journal,
        unfinished: &unfinished,
        owned: &owned,
        worker: cx.index(),
        base: base.as_ref(),
        vector_files: OnceCell::new(),
    };
    let keys = Rc::new(VectorKeys::new(&plan.method, &polynomials));
    let mut roots = roots(cx, &week, &keys, base.as_ref())?;
    verify(cx, &week, base.as_ref(), &polynomials, &mut roots)?;
    roots.join_wordless(cx, &owned)?;

    // Tables.
    cx.enter(Stage::Tables);
    let links_sampled = evidence(cx, &week, &roots, base.as_ref())?;
    split_off(&week, &roots)?;
    let WeekRoots { similar, identical, exact, neighbours, known, verified, wordless, choice, postings } = roots;
    drop((neighbours, known, verified));
    let level = |level, roots: Vec<DocId>, cx: &mut Context| -> Result<LevelClusters> {
        let roots = DocMap::new(&owned, roots);
        let sizes = cluster_sizes(cx, &owned, roots.iter().map(|(_, root)| root))?;
        Ok(LevelClusters { level, roots, sizes })
    };
    let levels =
        [level(Level::Similar, similar, cx)?, level(Level::Identical, identical, cx)?, level(Level::Exact, exact, cx)?];
    links(cx, plan, (&unfinished, &journal), &owned)?;
    let accuracy =
        if plan.accuracy { accuracy(cx, &week, (&levels[0], &wordless), links_sampled, &polynomials)? } else { None };
    cx.enter(Stage::Tables);
    let ids = cluster_ids(cx, &week, &levels[0], base.as_ref())?;
    let canonical = canonical(cx, &week, &levels[0])?;
    cluster_map(cx.watch(), &week, &levels, &ids.of_docs, &canonical)?;
    let missing = missing_urls(&week, &levels[0].roots)?;
    failed_urls(cx, &week, &levels[0].roots)?;
    let since = since(cx, &week, &ids, &choice, missing)?;
    let summary = statistics(cx, &week, &levels, &ids.of_docs, since, accuracy)?;

    // Commit.
    let new_ids = cx.sorted(ids.new_ids)?;
    // The files are gathered after every process has made its own durable.
    cx.enter(Stage::Packing);
    return_freed();
    let files = pack_week(cx, &week)?;
    if cx.index() > 0 {
        return Ok(None);
    }
    let committed = CommittedWeek {
        week: plan.week,
        commit: plan.commit,
        made: None,
        stands_on: plan.stands_on.clone(),
        key: journal.key.hash.clone(),
        documents: journal.counts.documents,
        urls: plan.new_urls(&journal),
        named: assigned_ids(plan, &new_ids),
    };
    let base = BaseWeek::committed(plan).map(|base| store.whole_base(base)).transpose()?;
    let kept = base.map(|base| base.kept_for(&journal.segments)).unwrap_or_default();
    let whole = WholeWeek {
        committed,
        method: plan.method.clone(),
        journal,
        files,
        kept,
        folders: plan.folders.clone(),
        readings: plan.readings.clone(),
    };
    let text = serde_json::to_vec_pretty(&summary).context("a summary is plain data")?;
    store.commit(&whole, &plan.job, &text, postings.as_ref())?;
    Ok(Some(summary))
}

/// How many cluster ids the week has assigned in each shard, given the new ones as shard and count.
/// After a deletion, those that the week had assigned before still count.
fn assigned_ids(plan: &Plan, new_ids: &[(u32, u64)]) -> Vec<u64> {
    let before = plan.deletion.iter().flat_map(|deletion| deletion.of.named.iter().copied());
    new_ids.iter().zip(before.chain(std::iter::repeat(0))).map(|((_, new), before)| before + new).collect()
}

fn read_journal(unfinished: &Unfinished) -> Result<WeekJournal> {
    let path = unfinished.journal();
    WeekJournal::read(&path)?.with_context(|| format!("{} is missing: the week was not begun", path.display()))
}

/// Whether all of a crawl was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CrawlEnd {
    /// All waves are committed.
    Whole,
    /// The run was asked to end after a wave; the waves before are committed.
    EndedEarly,
}

/// Reads the waves of the crawl that are not committed yet, and commits each.
fn read_crawl(cx: &mut Context, plan: &Arc<Plan>, polynomials: &Polynomials, journal: WeekJournal) -> Result<CrawlEnd> {
    let watch = &cx.watch().clone();
    let shared = &cx.shared().clone();
    let fingerprinter = Fingerprinter::new(&plan.method, polynomials, plan.reading.max_links, kernels::chosen()?)?;
    let fingerprinter = fingerprinter.keeping_chunks(plan.keep.chunks);
    // Kept until all workers have read all: a worker that came later would find a list that no
    // answer fills.
    let unread = shared.of(|| UnreadPieces::new(plan.workers, journal.waves..plan.waves.len()));
    run_dataflow(cx, |scope, probe| {
        let first_wave = journal.waves;
        deal(scope, plan, first_wave, &unread, watch);
        let Crawled { captures, failed, notes } =
            crawl(scope, plan, fingerprinter, unread.clone(), first_wave, probe.clone(), watch);
        let segments = segments(captures, plan, (first_wave, &unread), &journal.segments, watch);
        let failures = failures(failed, plan, (first_wave, &unread), watch);
        commit(notes.concat(segments).concat(failures), plan, journal, watch).probe_with(probe);
    })?;
    Ok(if unread.end() < plan.waves.len() { CrawlEnd::EndedEarly } else { CrawlEnd::Whole })
}
