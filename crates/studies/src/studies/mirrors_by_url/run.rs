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

use anyhow::{Context as _, Result};
use nigh_exchange::Context;

use super::compared::ComparedInputs;
use super::steps::{
    ListedPairs, TestPages, TestRules, UrlCounts, UrlStage, WantedUrls, WeekUrls, candidates, compare, host_features,
    sampled_hosts,
};
use super::write::UrlMirrorWriter;
use super::{MirrorsByUrl, MirrorsByUrlSummary};
use crate::features::Fingerprinter;
use crate::structures::Ownership;
use crate::studies::StudyPlan;
use crate::watch::{Stage, Watch};

/// Finds and tests mirrors on one worker, as [`run`](crate::studies::run) calls it. Worker 0 writes
/// the tables and returns the summary.
///
/// # Errors
/// If a file cannot be read or written, two hosts have the same hash, or a worker failed.
pub fn mirrors_by_url(cx: &mut Context, plan: &StudyPlan, job: &MirrorsByUrl) -> Result<Option<MirrorsByUrlSummary>> {
    let watch = &cx.watch().clone();
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
    cx.enter(Stage::Tables);
    if cx.index() > 0 {
        return Ok(None);
    }
    let (counts, passed_over) = sums;
    UrlMirrorWriter { plan, stage: &stage, rules, listed: &listed, tested: &tested, compared: &compared }
        .write(counts, all, passed_over)
        .map(Some)
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
