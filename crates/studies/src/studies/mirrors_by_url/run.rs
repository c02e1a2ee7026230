//! The mirrors-by-url job: finds hosts that mirror each other from URLs alone, and tests them by
//! some pages (Bharat and Broder 1999).
//!
//! ```text
//! URLs of pages, links and lists ─▶ hosts with enough of them, and a sample of their paths
//! names and sampled paths ─▶ features ─▶ candidates                                        candidates
//! pages of the week, and of `input` ─▶ tests ─▶ levels                                     tests, levels, ranking, domains, groups
//! unknown tests ─▶ what a crawler would fetch                                              probes
//! mirrors by content, and collections, of the same week ─▶ both ways side by side           compared
//! ```
//!
//! Samples and features are hashes, and scores are sums of whole numbers, so no table depends on
//! the number of workers or processes. Worker 0 writes the tables. Memory: see
//! `studies::mirrors_by_url::steps`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use nigh_exchange::Context;

use super::compared::ComparedInputs;
use super::steps::{
    ListedPairs, TestPages, TestRules, TestedPair, UrlCounts, UrlStage, WantedUrls, WeekUrls, candidates, compare,
    host_features, sampled_hosts,
};
use super::write::UrlMirrorWriter;
use super::{MirrorsByUrl, MirrorsByUrlSummary};
use crate::features::Fingerprinter;
use crate::host_order::{HostLeads, HostsOfWeek};
use crate::state::Store;
use crate::structures::Ownership;
use crate::studies::{StudyPlan, committed_leads};
use crate::watch::{Stage, Watch};

/// Finds and tests mirrors on one worker, as [`run`](crate::studies::run) calls it. Worker 0 writes
/// the tables and returns the summary.
///
/// # Errors
/// If a file cannot be read or written, two hosts have the same hash, or a worker failed.
pub fn mirrors_by_url(cx: &mut Context, plan: &StudyPlan, job: &MirrorsByUrl) -> Result<Option<MirrorsByUrlSummary>> {
    let watch = cx.watch();
    let owned = plan.owned(cx);
    let scratch = plan.results().scratch().join(format!("worker{:05}", cx.index()));
    let cx = &mut cx.with(plan.worker_memory / 4, &scratch);
    let stage = UrlStage::new(job);
    cx.enter(Stage::Read);
    let lists = plan.files.lists.iter().skip(cx.index()).step_by(cx.peers()).collect();
    let urls = WeekUrls { history: &plan.history, owned: &owned, choice: job.urls, lists };
    let (sample, counts) = sampled_hosts(cx, &stage, &urls).context("sampling the paths of hosts")?;
    let (features, texts) = host_features(cx, &stage, &urls, &sample).context("making features of hosts")?;
    drop(sample);
    cx.enter(Stage::Join);
    let (candidates, all) = candidates(cx, &stage, features).context("pairing hosts")?;
    let listed = ListedPairs::gather(cx, &candidates, texts)?;
    cx.enter(Stage::Weeks);
    let pages = pages(cx, plan, &owned, &listed, watch).context("reading pages for tests")?;
    let passed_over = pages.passed_over;
    let rules = TestRules {
        tests: job.tests.get() as usize,
        similar: job.similar.0,
        unfetched: job.unfetched,
        features: plan.history.features,
    };
    let tested = compare(cx, &listed, pages, rules).context("testing pairs of hosts")?;
    let mut sums = (UrlCounts::default(), 0);
    for (counts, passed_over) in cx.concat(vec![(counts, passed_over)])? {
        sums.0.add(&counts);
        sums.1 += passed_over;
    }
    let compared = ComparedInputs { plan, owned: &owned, listed: &listed, tested: &tested }.rows(cx);
    let compared = compared.context("comparing with mirrors by content")?;
    let places = places(cx, plan, &owned, &listed, &tested).context("putting hosts in order")?;
    cx.enter(Stage::Tables);
    if cx.index() > 0 {
        return Ok(None);
    }
    let (counts, passed_over) = sums;
    UrlMirrorWriter {
        plan,
        stage: &stage,
        rules,
        listed: &listed,
        tested: &tested,
        compared: &compared,
        places: &places,
    }
    .write(counts, all, passed_over)
    .map(Some)
}

/// The places of mirrors in the order of hosts, by number of the host; the same at every worker. If
/// the store has no week, URLs and names decide.
fn places(
    cx: &mut Context,
    plan: &StudyPlan,
    owned: &Ownership,
    listed: &ListedPairs,
    tested: &[TestedPair],
) -> Result<BTreeMap<usize, u32>> {
    let mirrors = listed.pairs.iter().zip(tested).filter(|(_, tested)| tested.level.is_mirror());
    let mirrors: Vec<[usize; 2]> = mirrors.map(|(pair, _)| pair.hosts).collect();
    let hosts: BTreeSet<usize> = mirrors.iter().flatten().copied().collect();
    let hosts: Vec<usize> = hosts.into_iter().collect();
    let names: Vec<&str> = hosts.iter().map(|host| listed.hosts[*host].name.as_str()).collect();
    let (mut of_week, mut leads) = (HostsOfWeek::unknown(&names), HostLeads::default());
    if let Some(week) = plan.history.weeks.last() {
        let number = plan.history.weeks.len() - 1;
        let place = |host: usize| hosts.partition_point(|other| *other < host) as u32;
        let pairs: Vec<(u32, u32)> = mirrors.iter().map(|[a, b]| (place(*a), place(*b))).collect();
        of_week = HostsOfWeek::read(cx, &plan.history, number, owned, &names, &pairs)?;
        leads = committed_leads(&Store::at(&plan.history.store), week)?;
    }
    let places = of_week.places(&leads, |host| listed.hosts[hosts[host]].urls, []);
    Ok(hosts.iter().copied().zip(places).collect())
}

/// What this worker knows of the pages that tests ask for.
fn pages(cx: &Context, plan: &StudyPlan, owned: &Ownership, listed: &ListedPairs, watch: &Watch) -> Result<TestPages> {
    let (files, wanted) = (&plan.files, WantedUrls::of(listed));
    let mut pages = TestPages::of_week(&plan.history, owned, &wanted)?;
    let own_lists = files.lists.iter().skip(cx.index()).step_by(cx.peers());
    own_lists.into_iter().try_for_each(|list| pages.add_list(list, &wanted))?;
    if !files.crawl.is_empty() {
        let mut fingerprinter = Fingerprinter::of_method(&files.method)?;
        for (number, input) in files.crawl.iter().enumerate().skip(cx.index()).step_by(cx.peers()) {
            pages.add_file(input, number, &files.reading, &mut fingerprinter, &wanted, watch)?;
        }
    }
    Ok(pages)
}
