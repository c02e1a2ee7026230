//! The paragraphs job: finds duplicates by their paragraphs, where in the web they are, and how
//! they grow (Pereira, Baeza-Yates and Ziviani 2006).
//!
//! ```text
//! paragraphs of each page ─▶ duplicates and their clusters ─▶ growth, estimates     Fig. 5
//!                         ─▶ near-duplicates               ─▶ near
//!                         ─▶ repeated paragraphs           ─▶ boilerplate           beyond the study
//! links                   ─▶ the connected part            ─▶ seeds
//! pages that changed since the week before                 ─▶ births, parents, lifetimes, turnover      beyond the study
//! all of them                                              ─▶ summary, coverage, sizes, sites, pages    Tables 2 to 6, Fig. 2 to 4
//! ```
//!
//! All counts are whole numbers, so no table depends on the number of workers or processes. Memory:
//! see `studies::paragraphs::steps`.

use anyhow::{Context as _, Error, Result, anyhow, bail};
use nigh_exchange::Context;

use super::followed::{Genealogy, GenealogyJob, PagesOfWeek};
use super::reach::{Connected, OpenLinks, connected};
use super::seeds::seed_pages;
use super::small_tables::write_small;
use super::steps::{
    PageParts, ParagraphFiles, ParagraphStage, WeekDuplicates, WeekPages, boilerplate, duplicates, near_duplicates,
    region_counts, site_counts,
};
use super::summarize::ParagraphsFound;
use super::write::ParagraphsWriter;
use super::{FollowedWeek, Paragraphs, ParagraphsSummary, PartOrder};
use crate::config::Mode;
use crate::operators::scan::{LinkReader, UrlTargets};
use crate::operators::set_join::{ExactShare, TooManyPairs};
use crate::records::DocId;
use crate::structures::Ownership;
use crate::studies::StudyPlan;
use crate::studies::overlap::steps::page_names;
use crate::watch::Stage;

/// Computes on one worker, as [`run`](crate::studies::run) calls it. Worker 0 returns the summary.
///
/// # Errors
/// If there are more pairs than allowed, a seed is not a page, a file cannot be read or written, or
/// a worker failed.
pub fn paragraphs(cx: &mut Context, plan: &StudyPlan, job: &Paragraphs) -> Result<Option<ParagraphsSummary>> {
    let cx = &mut cx.with(plan.worker_memory / 2, &plan.results().scratch().join(format!("worker{:05}", cx.index())));
    let stage = ParagraphStage { max_pairs: job.max_pairs };
    let study = ParagraphsJob { plan, job, owned: plan.owned(cx), stage };
    let owned = &study.owned;
    let number = plan.history.weeks.len() - 1;
    let seeds = seed_pages(cx, &plan.history, owned, &job.seeds)?;
    cx.enter(Stage::Weeks);
    // The growth of the week before, if it is read.
    let before = number.checked_sub(1).map(|before| study.duplicates(cx, before)).transpose()?;
    let (before, earlier) = match before {
        Some((source, pages, found, is_cut)) => (Some((source, pages, found.sets)), is_cut.then_some(found.growth)),
        None => (None, None),
    };
    let (source, pages, found, _) = study.duplicates(cx, number)?;
    let writer = ParagraphsWriter { plan, job, owned };
    let genealogy = if job.genealogy {
        let now = PagesOfWeek { source: &source, sets: &found.sets, hosts: &pages.hosts };
        let before = before.as_ref().map(|(source, pages, sets)| PagesOfWeek { source, sets, hosts: &pages.hosts });
        let least_characters = job.least_characters;
        let genealogy = GenealogyJob { plan, owned, least_characters, writer: &writer };
        genealogy.run(cx, before, now).context("following paragraphs")?
    } else {
        writer.write_births(&[], &[])?;
        writer.write_lifetimes(|_| Ok(()))?;
        let week = plan.history.last();
        let followed = vec![FollowedWeek { week: week.week, commit: week.commit }];
        Genealogy { followed, lifetimes: 0, mode: Mode::Full, births: None, turnover: Vec::new() }
    };
    drop(before);
    cx.enter(Stage::Join);
    let near = study.near(cx, &source, &found)?;
    let repeated = boilerplate(cx, owned, &source, &pages.hosts, (found.count, job.boilerplate.get().into()))
        .context("counting the pages of paragraphs")?;
    cx.enter(Stage::Links);
    let connected = study.connected(cx, &pages, &seeds).context("following links")?;
    cx.enter(Stage::Tables);
    let (counts, sizes) = region_counts(cx, owned, &found.roots, &connected.pages)?;
    let sites = site_counts(cx, &found.roots, &sizes, &pages).context("counting the sites of clusters")?;
    let (mut near_counts, mut near_sizes) = (Vec::new(), Vec::new());
    for roots in &near {
        let (counts, sizes) = region_counts(cx, owned, roots, &connected.pages)?;
        near_counts.push(counts);
        near_sizes.push(sizes);
    }
    writer.write_pages(&found, &sizes, &connected.pages, &repeated.of_pages)?;
    writer.write_near(&near, &near_sizes)?;
    writer.write_boilerplate(&repeated.paragraphs)?;

    let boilerplate = cx.sum(repeated.paragraphs.len() as u64)?;
    let docs: Vec<DocId> = connected.seeds.iter().map(|seed| seed.doc).collect();
    let names = page_names(cx, &plan.history, owned, &docs)?;
    let found = ParagraphsFound {
        plan,
        job,
        counts,
        sites,
        near: near_counts,
        false_matches: found.false_matches.iter().map(|of| of.pairs()).sum(),
        growth: found.growth,
        earlier,
        seeds: connected.seeds,
        names,
        boilerplate,
        genealogy,
    };
    if cx.index() > 0 {
        return Ok(None);
    }
    let summary = found.summary();
    write_small(&found, &summary)?;
    Ok(Some(summary))
}

/// The parts of the job that its steps share, on one worker.
struct ParagraphsJob<'a> {
    plan: &'a StudyPlan,
    job: &'a Paragraphs,
    owned: Ownership,
    stage: ParagraphStage,
}

impl ParagraphsJob<'_> {
    /// The pages and the duplicates of week number `number`; and whether it was cut into the parts
    /// of the job. The last week must be.
    fn duplicates(&self, cx: &mut Context, number: usize) -> Result<(ParagraphFiles, WeekPages, WeekDuplicates, bool)> {
        let ParagraphsJob { plan, job, owned, .. } = self;
        let (with_times, parts) = (job.order == PartOrder::Crawl, job.parts.get());
        let pages = WeekPages::read(&plan.history, number, owned, with_times)?;
        let (is_last, name) = (number + 1 == plan.history.weeks.len(), plan.history.weeks[number].week);
        let (parts, is_cut) = match job.order {
            PartOrder::Hash => (PageParts::Hash(parts), true),
            PartOrder::Crawl => match PageParts::in_order(cx, parts, &pages)? {
                Ok(parts) => (parts, true),
                Err([without, all]) if is_last => bail!(
                    "`order = \"crawl\"` needs the time at which each page was fetched, and {without} of {all} pages of week {name} \
                     have none: use `order = \"hash\"`"
                ),
                Err(_) => (PageParts::Hash(1), false),
            },
        };
        let source = ParagraphFiles::open(&plan.history, number, owned, job.least_characters)?;
        let week = || format!("finding duplicates of week {name}");
        let found = duplicates(cx, owned, &source, &parts).with_context(week)?;
        Ok((source, pages, found, is_cut))
    }

    /// The roots of own pages among near-duplicates, for each threshold.
    fn near(&self, cx: &mut Context, source: &ParagraphFiles, found: &WeekDuplicates) -> Result<Vec<Vec<DocId>>> {
        let shares: Option<Vec<ExactShare>> = self.job.near.iter().map(|share| ExactShare::new(share.0)).collect();
        let shares = shares.context("near: shares are above 0 and at most 1")?;
        match near_duplicates(cx, &self.stage, &self.owned, source, found, &shares) {
            Err(error) => Err(self.refusal(cx, error)?),
            roots => roots,
        }
    }

    /// The text for the user if an error says that there are too many pairs. All workers call it.
    fn refusal(&self, cx: &mut Context, error: Error) -> Result<Error> {
        let too_many = match error.downcast::<TooManyPairs>() {
            Ok(too_many) => too_many,
            Err(error) => return Ok(error),
        };
        let examples: Vec<DocId> =
            too_many.elements.iter().map(|element| DocId::from_table(element.example as i64)).collect();
        let names = page_names(cx, &self.plan.history, &self.owned, &examples)?;
        let mut text = format!(
            "too many pairs for near-duplicates: up to {} would be looked at, and `max-pairs` allows {}",
            too_many.pairs, too_many.most
        );
        for (element, example) in too_many.elements.iter().zip(&examples) {
            let url = names.get(example).map_or("", |name| name.url.as_str());
            text += &format!("\n{:>12} pairs of {} pages such as {url}", element.pairs, element.sets);
        }
        text += "\nRaise `max-pairs` or the lowest share of `near`";
        Ok(anyhow!(text))
    }

    /// The connected part of the last week.
    fn connected(&self, cx: &mut Context, pages: &WeekPages, seeds: &[DocId]) -> Result<Connected> {
        let (history, owned) = (&self.plan.history, &self.owned);
        let number = history.weeks.len() - 1;
        let targets = UrlTargets::of_week(cx, history, number, owned)?;
        let open: &OpenLinks<'_> = &|| Ok(Box::new(LinkReader::open(history, number, owned, &targets)?));
        connected(cx, owned, &pages.hosts, open, seeds)
    }
}
