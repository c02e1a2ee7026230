//! The overlap job: finds the pages, or the hosts, of a week that share chunks of text (Shivakumar
//! and Garcia-Molina 1998).
//!
//! ```text
//! pages of the week ─▶ copies: pages with one text; the first of them goes on
//! for each chunking:
//!     chunks of each page ─▶ pairs that share enough ─▶ overlap, families, family-chunks
//!     pairs, families, copies ─▶ replicas            (Fig. 1)
//!                             ─▶ components ─▶ savings, most, reasons
//! ```
//!
//! A run for a later week takes the pairs that still hold from the tables of the run before, and
//! finds those of new texts: see `followed_run`.
//!
//! Memory: see `studies::overlap::steps`; records in flight and pairs go to disk beyond their parts
//! of `memory`. The members of families are in memory, 32 bytes each.

use std::time::Instant;

use anyhow::{Error, Result};
use nigh_exchange::Context;

use super::counts::{ChunkingCounts, chunking_summary};
use super::followed_run::FollowedRun;
use super::steps::{
    COMMON_BYTES, COUNTED_BYTES, Coarse, Copies, CountingWork, FINGERPRINT_BYTES, FamiliesAndEdges, FamilyChunks,
    FamilyMember, FormerTables, Group, PILOTED_BYTES, PairTables, UnitPair, UnitSource, Units, copies, counted_pairs,
    followed_pairs, groups, hosts, page_names, pages, prefix_pairs, refusal,
};
use super::write::{OverlapWriter, write_small};
use super::{ChunkingSummary, LargestGroup, Overlap, OverlapMethod, OverlapSummary, StepNeeds, Unit, replica_class};
use crate::config::{Chunking, Mode};
use crate::operators::set_join::{Requirement, SetJoinStage, TooManyPairs};
use crate::records::{DocId, Edge};
use crate::structures::{ByKey, CompactSort, Ownership, Sums};
use crate::studies::{CommittedTables, StudyPlan};
use crate::watch::Stage;

/// Bytes of a page with its text, while copies are looked for.
const TEXT_BYTES: usize = 24;

/// The parts of the job that all chunkings share, on one worker.
struct OverlapJob<'a> {
    plan: &'a StudyPlan,
    job: &'a Overlap,
    /// The URLs of the week.
    owned: Ownership,
    units: Units,
    /// If units are pages.
    copies: Option<Copies>,
    /// The former run, if this one follows it.
    followed: Option<FollowedRun>,
    stage: SetJoinStage,
}

/// Computes on one worker, as [`run`](crate::studies::run) calls it. Worker 0 returns the summary.
///
/// # Errors
/// If there are more pairs than allowed, a file cannot be read or written, or a worker failed.
pub fn overlap(cx: &mut Context, plan: &StudyPlan, job: &Overlap) -> Result<Option<OverlapSummary>> {
    // Workers may spill at the same time.
    let scratch = plan.results().scratch().join(format!("worker{:05}", cx.index()));
    let cx = &mut cx.with(plan.worker_memory / 4, &scratch);
    let begun = Instant::now();
    let parts = OverlapJob::read(cx, plan, job)?;
    let pages = cx.sum(parts.units.numbers().count() as u64)?;
    // Texts of hosts are not compared.
    let copies = StepNeeds::of_records("copies", parts.copies.is_some().then_some(pages), TEXT_BYTES);
    let mut steps = vec![timed(cx, begun, copies)?];
    cx.enter(Stage::Join);
    let pages = match &parts.copies {
        Some(copies) => copies.pages.clone(),
        None => parts.units.pages.iter().map(|pages| u32::from(*pages > 0)).collect(),
    };
    let mut tables = PairTables::new(&parts.units, pages, cx.scratch(), plan.worker_memory / 8);
    let (mut families, mut collections, mut components) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = Vec::new();
    for (number, (chunking, least)) in job.parts().enumerate() {
        tables.turn_to(number as u8);
        let of_chunking = parts.chunking(cx, chunking, least, &mut tables)?;
        families.extend(of_chunking.families.into_iter().map(|member| (number, member)));
        collections.extend(of_chunking.collections.into_iter().map(|collection| (number, collection)));
        components.extend(of_chunking.components.into_iter().map(|(unit, first)| (number, unit, first)));
        let of_steps = of_chunking.steps.into_iter();
        steps.extend(of_steps.map(|needs| StepNeeds { chunking: Some(chunking), ..needs }));
        found.push((of_chunking.counts, of_chunking.largest));
    }
    cx.enter(Stage::Tables);
    let begun = Instant::now();
    let (pairs, names) = tables.sorted(cx, &parts.units)?;
    let writer = OverlapWriter { plan, job, owned: &parts.owned, units: &parts.units };
    writer.write_pairs(pairs, &names)?;
    writer.write_families(families)?;
    writer.write_collections(collections)?;
    writer.write_components(components)?;
    let mut first: Vec<DocId> = found.iter().flat_map(|(_, largest)| largest.iter().map(|group| group.first)).collect();
    first.sort_rows();
    first.dedup();
    let names = page_names(cx, &plan.history, &parts.owned, &first)?;
    let summary = |((chunking, threshold), (counts, largest)): ((Chunking, u32), &(ChunkingCounts, Vec<Group>))| {
        let most = |group: &Group| {
            let name = names.get(&group.first).cloned().unwrap_or_default();
            LargestGroup {
                documents: group.pages,
                hosts: group.hosts,
                machines: group.machines,
                title: name.title,
                url: name.url,
                doc: group.first.to_table(),
            }
        };
        chunking_summary(job.unit, chunking, threshold, counts, largest.iter().map(most).collect())
    };
    let chunkings: Vec<ChunkingSummary> = job.parts().zip(&found).map(summary).collect();
    let tables = StepNeeds::of_records("tables", None, 0);
    steps.push(timed(cx, begun, tables)?);
    if cx.index() > 0 {
        return Ok(None);
    }
    write_small(plan, &chunkings, found.first().map_or(0, |(counts, _)| counts.units))?;
    let (words, chunks) = plan.history.last().pages_with_chunks();
    Ok(Some(OverlapSummary {
        store: plan.history.store.clone(),
        method: plan.history.method.clone(),
        first: plan.history.last().week,
        last: plan.history.last().week,
        week_commit: plan.history.last().commit,
        mode: if parts.followed.is_some() { Mode::Delta } else { Mode::Full },
        former: parts.followed.as_ref().map(|followed| followed.run.summary.last),
        changed: parts.followed.as_ref().map(|followed| followed.changes.share()),
        unit: job.unit,
        documents: found.first().map_or(0, |(counts, _)| counts.units),
        without_chunks: words.saturating_sub(chunks),
        chunkings,
        workers: cx.peers() as u64,
        steps,
    }))
}

/// What a step needed that this worker began at a time; of all workers the longest counts.
fn timed(cx: &mut Context, begun: Instant, needs: StepNeeds) -> Result<StepNeeds> {
    let micros = cx.max(begun.elapsed().as_micros() as u64)?;
    Ok(StepNeeds { seconds: Some(micros as f64 / 1e6), ..needs })
}

/// What finding pairs needed: the fingerprints of own units, if they are known, and what was
/// counted.
fn needs_of_pairs(
    cx: &mut Context,
    fingerprints: Option<u64>,
    work: CountingWork,
    has_pilot: bool,
) -> Result<Vec<StepNeeds>> {
    let own = [fingerprints.unwrap_or_default(), fingerprints.is_none().into(), work.common, work.piloted, work.exact];
    let [fingerprints, without, common, piloted, exact] = cx.sums(own)?;
    let fingerprints = (without == 0).then_some(fingerprints);
    let mut steps = vec![StepNeeds::of_records("fingerprints", fingerprints, FINGERPRINT_BYTES)];
    if common > 0 {
        steps.push(StepNeeds::of_records("common-chunks", Some(common), COMMON_BYTES));
        if has_pilot {
            steps.push(StepNeeds::of_records("piloted", Some(piloted), PILOTED_BYTES));
        }
        steps.push(StepNeeds::of_records("counted", Some(exact), COUNTED_BYTES));
    }
    Ok(steps)
}

/// What one chunking gives.
struct OfChunking {
    /// The own units of families.
    families: Vec<FamilyMember>,
    /// The collections of own families.
    collections: Vec<FamilyChunks>,
    /// The own units of components of several, and the smallest unit of each.
    components: Vec<(DocId, DocId)>,
    /// The counts of all workers.
    counts: ChunkingCounts,
    largest: Vec<Group>,
    /// What its steps needed.
    steps: Vec<StepNeeds>,
}

impl<'a> OverlapJob<'a> {
    /// Reads the units of the week, and finds copies.
    fn read(cx: &mut Context, plan: &'a StudyPlan, job: &'a Overlap) -> Result<OverlapJob<'a>> {
        let owned = plan.owned(cx);
        let (units, texts) = match job.unit {
            Unit::Document => {
                let (units, texts) = pages(&plan.history, &owned)?;
                (units, Some(texts))
            }
            Unit::Host => (hosts(cx, &plan.history, &owned)?, None),
        };
        let stage = SetJoinStage {
            requirement: Requirement::Shared(1),
            family: job.family,
            with_collections: true,
            has_known: false,
            thorough: false,
            max_pairs: job.max_pairs,
        };
        let mut parts = OverlapJob { plan, job, owned, units, copies: None, followed: None, stage };
        if let Some(texts) = texts {
            let copies = copies(cx, &parts.owned, texts.clone())?;
            parts.followed = FollowedRun::read(cx, plan, job.mode, &parts.owned, (&texts, &copies))?;
            parts.copies = Some(copies);
        }
        Ok(parts)
    }

    /// Finds the pairs of one chunking, and counts.
    fn chunking(
        &self,
        cx: &mut Context,
        chunking: Chunking,
        least: u32,
        tables: &mut PairTables,
    ) -> Result<OfChunking> {
        let units = &self.units;
        let mut counts = ChunkingCounts { units: units.numbers().count() as u64, ..ChunkingCounts::default() };
        let begun = Instant::now();
        let (found, fingerprints) = match &self.copies {
            // Every pair is of two copies.
            Some(copies) if chunking == Chunking::Document => {
                let copied = copies.pages.iter().map(|pages| u64::from(*pages)).filter(|pages| *pages > 1);
                copied.for_each(|pages| counts.add_family(pages));
                let found = FamiliesAndEdges { families: self.copied(copies), ..FamiliesAndEdges::default() };
                (found, Some(units.numbers().count() as u64))
            }
            _ => {
                let (found, fingerprints) = match self.pairs(cx, chunking, least, tables) {
                    Ok(found) => found,
                    Err(error) => {
                        let history = &self.plan.history;
                        return Err(refusal(cx, error, chunking, units, history, &self.owned)?);
                    }
                };
                self.count_families(cx, &found.families, tables, &mut counts)?;
                (found, fingerprints)
            }
        };
        let FamiliesAndEdges { families, collections, mut edges, work } = found;
        counts.pairs = tables.listed;
        let mut steps = needs_of_pairs(cx, fingerprints, work, self.job.has_pilot())?;
        let pairs = cx.sum(counts.pairs)?;
        steps.push(timed(cx, begun, StepNeeds::of_records("pairs", Some(pairs), size_of::<UnitPair>()))?);
        let begun = Instant::now();
        for (pages, partners) in tables.pages().iter().zip(&tables.partners).filter(|(pages, _)| **pages > 0) {
            let pages = u64::from(*pages);
            counts.replicas[replica_class(pages - 1 + partners)] += pages;
        }
        if let Some(copies) = &self.copies {
            let pages = units.owned.docs().zip(&copies.centre);
            let copied = pages.filter(|(doc, centre)| doc != *centre && **centre != DocId::NONE);
            edges.extend(copied.map(|(doc, centre)| Edge { doc, root: *centre }));
        }
        let groups = groups(cx, units, edges)?;
        groups.sizes.iter().for_each(|size| counts.by_cluster[replica_class(size - 1)] += 1);
        (counts.components, counts.saved_bytes, counts.reasons) = (groups.count, groups.saved_bytes, groups.reasons);
        let mut all = ChunkingCounts::default();
        cx.concat(vec![counts])?.iter().for_each(|own| all.merge(own));
        let components = StepNeeds::of_records("components", Some(all.components), 0);
        steps.push(StepNeeds { bytes: None, ..timed(cx, begun, components)? });
        let (components, largest) = (groups.members, groups.largest);
        Ok(OfChunking { families, collections, components, counts: all, largest, steps })
    }

    /// The own pages with copies, as members of families of one text.
    fn copied(&self, copies: &Copies) -> Vec<FamilyMember> {
        let pages = self.owned.docs().zip(copies.centre.iter().zip(&copies.pages));
        let copied = pages.filter(|(doc, (centre, pages))| **centre != DocId::NONE && (doc != *centre || **pages > 1));
        copied.map(|(unit, (centre, _))| FamilyMember { unit, family: *centre, weight: 1, of: 1 }).collect()
    }

    /// Finds the pairs of one chunking, by the method of the job. Returns also the fingerprints of
    /// own units, if they were all read.
    fn pairs(
        &self,
        cx: &mut Context,
        chunking: Chunking,
        least: u32,
        tables: &mut PairTables,
    ) -> Result<(FamiliesAndEdges, Option<u64>)> {
        let (job, history, owned) = (self.job, &self.plan.history, &self.units.owned);
        let source = match &self.copies {
            Some(copies) => UnitSource::of_pages(history, owned, copies, chunking, job.cut)?,
            None => UnitSource::of_hosts(cx, history, &self.owned, &self.units, chunking, job.cut)?,
        };
        let stage = SetJoinStage { requirement: Requirement::Shared(least), ..self.stage.clone() };
        let bytes = job.counters.0 / cx.peers() as u64;
        let coarse = Coarse { bytes, hashes: job.hashes, pilot: job.pilot };
        let found = match job.method {
            OverlapMethod::Prefix => {
                let followed = self.followed.as_ref();
                if let Some((followed, counts)) = followed.and_then(|it| Some((it, it.counts(chunking, least)?))) {
                    let FollowedRun { run: CommittedTables { results, .. }, changes } = followed;
                    let former = FormerTables { results, owned, changes };
                    let found = followed_pairs(cx, &stage, source.clone(), &former, counts, tables);
                    // A whole run finds families, and so lists fewer pairs.
                    let is_refused = |error: &Error| error.is::<TooManyPairs>() && job.mode == Mode::Auto;
                    if !found.as_ref().is_err_and(is_refused) {
                        return Ok((found?, source.fingerprints()));
                    }
                }
                let family = job.has_families().then_some(job.family);
                prefix_pairs(cx, &stage, &source, family, tables, owned)
            }
            OverlapMethod::Sort => counted_pairs(cx, &stage, &source, least, None, tables, owned),
            OverlapMethod::Coarse => counted_pairs(cx, &stage, &source, least, Some(coarse), tables, owned),
        };
        Ok((found?, source.fingerprints()))
    }

    /// Counts families and their pairs, at worker 0, and the partners of own units in families.
    fn count_families(
        &self,
        cx: &mut Context,
        families: &[FamilyMember],
        tables: &mut PairTables,
        counts: &mut ChunkingCounts,
    ) -> Result<()> {
        let (mut members, mut pages) = (Sums::default(), Sums::default());
        for FamilyMember { unit, family, .. } in families {
            members.add(*family, 1);
            pages.add(*family, tables.pages()[self.units.owned.index(*unit)].into());
        }
        let own = members.finish().into_iter().zip(pages.finish());
        let own = own.map(|((family, members), (_, pages))| (family, cx.index(), members, pages)).collect();
        let all = cx.sorted(own)?;
        let mut pages_of: ByKey<u64, u64> = ByKey::default();
        for parts in all.chunk_by(|a, b| a.0 == b.0) {
            let (members, pages) = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.2, sum.1 + part.3));
            pages_of.insert(parts[0].0.to_table() as u64, pages);
            if cx.index() == 0 {
                counts.add_family(members);
            }
        }
        for FamilyMember { unit, family, .. } in families {
            let unit = self.units.owned.index(*unit);
            let pages = pages_of[&(family.to_table() as u64)] - u64::from(tables.pages()[unit]);
            tables.partners[unit] += pages;
        }
        Ok(())
    }
}
