//! The overlap job: finds the pages, or the hosts, of a week that share chunks of text (Shivakumar and Garcia-Molina 1998).
//!
//! ```text
//! pages of the week ─▶ copies: pages with one text; the first of them goes on
//! for each chunking:
//!     chunks of each page ─▶ pairs that share enough ─▶ overlap, families
//!     pairs, families, copies ─▶ replicas            (Fig. 1)
//!                             ─▶ components ─▶ savings, most, reasons
//! ```
//!
//! Small tables are written by worker 0. The pairs and families of a shard are written by its owner into one file. So no table depends on
//! the number of workers or processes.
//!
//! Memory: see `operators::overlap`; records in flight and pairs go to disk beyond their parts of `memory`. The members of families are in
//! memory, 32 bytes each.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::study_plan::StudyPlan;
use crate::config::{Chunking, Overlap, OverlapMethod, Unit};
use crate::operators::InProcess;
use crate::operators::exchange::all_gather;
use crate::operators::overlap::{
    Coarse, Copies, FamilyMember, Found, Group, PairTables, UnitPair, UnitSource, Units, copies, counted_pairs, groups,
    hosts, page_names, pages, prefix_pairs, refusal,
};
use crate::operators::set_join::{Requirement, SetJoinStage};
use crate::records::{DocId, Edge};
use crate::state::History;
use crate::stats::ratio;
use crate::structures::{ByKey, Ownership, Sorted, Sums};
use crate::summary::{
    ChunkingSummary, LargestGroup, OVERLAP_REASONS, OverlapSummary, REPLICAS, ReasonCount, ReplicaCount, Saving,
    replica_class,
};
use crate::tables::{FamilyRow, HostOverlapRow, MostRow, OverlapRow, ReasonRow, ReplicaRow, SavingRow, Table, Writer};
use crate::watch::{Stage, Watch};

/// Checks that the last week of a history has chunks.
///
/// # Errors
/// If it has pages with words and no chunks: says how to make them.
pub fn check_chunks(history: &History) -> Result<()> {
    if let (1.., 0) = history.pages_with_chunks() {
        let (week, store) = (history.last().week, history.store.display());
        bail!(
            "week {week} of {store} has no chunks, from which overlap is computed. This makes them: \
             `nigh run jobs/chunks.toml --store {store} --week {week} --input FILES`, with the crawl files of the week"
        );
    }
    Ok(())
}

/// The counts of one chunking: of one worker, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Counts {
    units: u64,
    pairs: u64,
    families: u64,
    family_pairs: u64,
    /// Units by replicas.
    replicas: [u64; REPLICAS.len()],
    /// Units by the others of their component.
    by_cluster: [u64; REPLICAS.len()],
    components: u64,
    saved_bytes: u64,
    reasons: [u64; OVERLAP_REASONS.len()],
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.units += other.units;
        self.pairs += other.pairs;
        self.families += other.families;
        self.family_pairs += other.family_pairs;
        let add = |sums: &mut [u64], counts: &[u64]| sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        add(&mut self.replicas, &other.replicas);
        add(&mut self.by_cluster, &other.by_cluster);
        self.components += other.components;
        self.saved_bytes += other.saved_bytes;
        add(&mut self.reasons, &other.reasons);
    }
}

/// The parts of the job that all chunkings share, on one worker.
struct Parts<'a> {
    plan: &'a StudyPlan,
    job: &'a Overlap,
    /// The URLs of the week.
    owned: Ownership,
    units: Units,
    /// If units are pages.
    copies: Option<Copies>,
    stage: SetJoinStage,
}

/// Computes on one worker, as [`study`](super::study::study) calls it. Worker 0 returns the summary.
///
/// # Errors
/// If there are more pairs than allowed, a file cannot be read or written, or a worker failed.
pub fn overlap(
    worker: &mut Worker,
    plan: &StudyPlan,
    job: &Overlap,
    in_process: &Arc<InProcess>,
    watch: &Arc<Watch>,
) -> Result<Option<OverlapSummary>> {
    let parts = Parts::read(worker, plan, job, in_process, watch)?;
    watch.enter(Stage::Join);
    let pages = match &parts.copies {
        Some(copies) => copies.pages.clone(),
        None => parts.units.pages.iter().map(|pages| u32::from(*pages > 0)).collect(),
    };
    let mut tables = PairTables::new(&parts.units, pages, &parts.stage.scratch, plan.worker_memory / 8);
    let (mut families, mut found) = (Vec::new(), Vec::new());
    for (number, (chunking, least)) in job.parts().enumerate() {
        tables.turn_to(number as u8);
        let of_chunking = parts.chunking(worker, chunking, least, &mut tables)?;
        families.extend(of_chunking.families.into_iter().map(|member| (number, member)));
        found.push((of_chunking.counts, of_chunking.largest));
    }
    watch.enter(Stage::Tables);
    let (pairs, names) = tables.sorted(worker, &parts.units, watch)?;
    parts.write_pairs(pairs, &names)?;
    parts.write_families(families)?;
    let mut first: Vec<DocId> = found.iter().flat_map(|(_, largest)| largest.iter().map(|group| group.first)).collect();
    first.sort_unstable();
    first.dedup();
    let names = page_names(worker, &plan.history, &parts.owned, &first, watch)?;
    let summary = |((chunking, threshold), (counts, largest)): ((Chunking, u32), &(Counts, Vec<Group>))| {
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
    if worker.index() > 0 {
        return Ok(None);
    }
    write_small(plan, &chunkings, found.first().map_or(0, |(counts, _)| counts.units))?;
    let (words, chunks) = plan.history.pages_with_chunks();
    Ok(Some(OverlapSummary {
        store: plan.history.store.clone(),
        method: plan.history.method.clone(),
        first: plan.history.last().week,
        last: plan.history.last().week,
        unit: job.unit,
        documents: found.first().map_or(0, |(counts, _)| counts.units),
        without_chunks: words.saturating_sub(chunks),
        chunkings,
    }))
}

/// What one chunking gives.
struct OfChunking {
    /// The own units of families.
    families: Vec<FamilyMember>,
    /// The counts of all workers.
    counts: Counts,
    largest: Vec<Group>,
}

impl<'a> Parts<'a> {
    /// Reads the units of the week, and finds copies.
    fn read(
        worker: &mut Worker,
        plan: &'a StudyPlan,
        job: &'a Overlap,
        in_process: &Arc<InProcess>,
        watch: &Arc<Watch>,
    ) -> Result<Parts<'a>> {
        let owned = plan.owned(worker);
        // Workers may spill at the same time.
        let scratch: PathBuf = plan.results().scratch().join(format!("worker{:05}", worker.index()));
        let memory = plan.worker_memory / 4;
        let (units, copies) = match job.unit {
            Unit::Document => {
                let (units, texts) = pages(&plan.history, &owned)?;
                let copies = copies(worker, &owned, texts, memory, &scratch, watch)?;
                (units, Some(copies))
            }
            Unit::Host => (hosts(worker, &plan.history, &owned, watch)?, None),
        };
        let stage = SetJoinStage {
            requirement: Requirement::Shared(1),
            family: job.family,
            max_pairs: job.max_pairs,
            memory,
            scratch,
            shared: in_process.clone(),
            watch: watch.clone(),
        };
        Ok(Parts { plan, job, owned, units, copies, stage })
    }

    /// Finds the pairs of one chunking, and counts.
    fn chunking(
        &self,
        worker: &mut Worker,
        chunking: Chunking,
        least: u32,
        tables: &mut PairTables,
    ) -> Result<OfChunking> {
        let (units, watch) = (&self.units, &self.stage.watch);
        let mut counts = Counts { units: units.numbers().count() as u64, ..Counts::default() };
        let Found { families, mut edges } = match &self.copies {
            // Every pair is of two copies.
            Some(copies) if chunking == Chunking::Document => {
                let copied = copies.pages.iter().map(|pages| u64::from(*pages)).filter(|pages| *pages > 1);
                copied.for_each(|pages| counts.add_family(pages));
                Found { families: self.copied(copies), edges: Vec::new() }
            }
            _ => {
                let found = match self.pairs(worker, chunking, least, tables) {
                    Ok(found) => found,
                    Err(error) => {
                        let history = &self.plan.history;
                        return Err(refusal(worker, error, chunking, units, history, &self.owned, watch)?);
                    }
                };
                self.count_families(worker, &found.families, tables, &mut counts)?;
                found
            }
        };
        counts.pairs = tables.listed;
        for (pages, partners) in tables.pages().iter().zip(&tables.partners).filter(|(pages, _)| **pages > 0) {
            let pages = u64::from(*pages);
            counts.replicas[replica_class(pages - 1 + partners)] += pages;
        }
        if let Some(copies) = &self.copies {
            let pages = units.owned.docs().zip(&copies.centre);
            let copied = pages.filter(|(doc, centre)| doc != *centre && **centre != DocId::NONE);
            edges.extend(copied.map(|(doc, centre)| Edge { doc, root: *centre }));
        }
        let groups = groups(worker, units, edges, watch)?;
        groups.sizes.iter().for_each(|size| counts.by_cluster[replica_class(size - 1)] += 1);
        (counts.components, counts.saved_bytes, counts.reasons) = (groups.count, groups.saved_bytes, groups.reasons);
        let mut all = Counts::default();
        all_gather(worker, vec![(worker.index(), counts)], watch)?.iter().for_each(|(_, own)| all.merge(own));
        Ok(OfChunking { families, counts: all, largest: groups.largest })
    }

    /// The own pages with copies, as members of families of one text.
    fn copied(&self, copies: &Copies) -> Vec<FamilyMember> {
        let pages = self.owned.docs().zip(copies.centre.iter().zip(&copies.pages));
        let copied = pages.filter(|(doc, (centre, pages))| **centre != DocId::NONE && (doc != *centre || **pages > 1));
        copied.map(|(unit, (centre, _))| FamilyMember { unit, family: *centre, weight: 1, of: 1 }).collect()
    }

    /// Finds the pairs of one chunking, by the method of the job.
    fn pairs(&self, worker: &mut Worker, chunking: Chunking, least: u32, tables: &mut PairTables) -> Result<Found> {
        let (job, history, owned) = (self.job, &self.plan.history, &self.units.owned);
        let source = match &self.copies {
            Some(copies) => UnitSource::of_pages(history, owned, copies, chunking, job.cut)?,
            None => {
                let watch = &self.stage.watch;
                UnitSource::of_hosts(worker, history, &self.owned, &self.units, chunking, job.cut, watch)?
            }
        };
        let stage = SetJoinStage { requirement: Requirement::Shared(least), ..self.stage.clone() };
        let coarse = Coarse { bytes: job.counters.0 / worker.peers() as u64 };
        match job.method {
            OverlapMethod::Prefix => {
                let family = job.has_families().then_some(job.family);
                prefix_pairs(worker, &stage, &source, family, tables, owned)
            }
            OverlapMethod::Sort => counted_pairs(worker, &stage, &source, least, None, tables, owned),
            OverlapMethod::Coarse => counted_pairs(worker, &stage, &source, least, Some(coarse), tables, owned),
        }
    }

    /// Counts families and their pairs, at worker 0, and the partners of own units in families.
    fn count_families(
        &self,
        worker: &mut Worker,
        families: &[FamilyMember],
        tables: &mut PairTables,
        counts: &mut Counts,
    ) -> Result<()> {
        let (mut members, mut pages) = (Sums::default(), Sums::default());
        for FamilyMember { unit, family, .. } in families {
            members.add(*family, 1);
            pages.add(*family, tables.pages()[self.units.owned.index(*unit)].into());
        }
        let own = members.finish().into_iter().zip(pages.finish());
        let own = own.map(|((family, members), (_, pages))| (family, worker.index(), members, pages)).collect();
        let all = all_gather(worker, own, &self.stage.watch)?;
        let mut pages_of: ByKey<u64, u64> = ByKey::default();
        for parts in all.chunk_by(|a, b| a.0 == b.0) {
            let (members, pages) = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.2, sum.1 + part.3));
            pages_of.insert(parts[0].0.to_table() as u64, pages);
            if worker.index() == 0 {
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

    /// Writes the pairs of own shards; the table of the other unit has no rows.
    fn write_pairs(&self, mut pairs: Sorted<UnitPair>, names: &ByKey<u64, String>) -> Result<()> {
        let chunking = |pair: &UnitPair| self.job.chunkings[usize::from(pair.chunking)].name();
        let containment = |pair: &UnitPair, of: usize| f64::from(pair.shared) / f64::from(pair.sizes[of].max(1));
        let (mut of_pages, mut of_hosts) = (self.shard_files(), self.shard_files());
        if self.job.unit == Unit::Document {
            while let Some(pair) = pairs.record()? {
                let row = OverlapRow {
                    chunking: chunking(&pair),
                    doc_a: pair.a.to_table(),
                    doc_b: pair.b.to_table(),
                    shared: pair.shared as i32,
                    containment_a: containment(&pair, 0),
                    containment_b: containment(&pair, 1),
                };
                of_pages.push(pair.a.shard(), row)?;
            }
        } else {
            let mut rows = Vec::new();
            while let Some(pair) = pairs.record()? {
                let of_a = &self.units.names[self.units.owned.index(pair.a)];
                let of_b = &names[&(pair.b.to_table() as u64)];
                // In the order of the alphabet, in the file of the first host's shard.
                let order = if of_a < of_b { [0, 1] } else { [1, 0] };
                let [host_a, host_b] = order.map(|at| [of_a, of_b][at].clone());
                let [containment_a, containment_b] = order.map(|at| containment(&pair, at));
                let shared = pair.shared as i32;
                let row =
                    HostOverlapRow { chunking: chunking(&pair), host_a, host_b, shared, containment_a, containment_b };
                rows.push((pair.a.shard(), pair.chunking, row));
            }
            rows.sort_unstable_by(|(a_shard, a_chunking, a), (b_shard, b_chunking, b)| {
                (a_shard, a_chunking, &a.host_a, &a.host_b).cmp(&(b_shard, b_chunking, &b.host_a, &b.host_b))
            });
            rows.into_iter().try_for_each(|(shard, _, row)| of_hosts.push(shard, row))?;
        }
        of_pages.finish()?;
        of_hosts.finish()
    }

    /// Writes the families of own shards.
    fn write_families(&self, mut families: Vec<(usize, FamilyMember)>) -> Result<()> {
        families.sort_unstable_by_key(|(number, member)| (member.unit.shard(), *number, member.family, member.unit));
        let mut files = self.shard_files();
        for (number, FamilyMember { unit, family, weight, of }) in families {
            let host = self.units.names.get(self.units.owned.index(unit)).cloned();
            let row = FamilyRow {
                chunking: self.job.chunkings[number].name(),
                family: family.to_table(),
                doc: unit.to_table(),
                host,
                weight: weight.into(),
                of: of.into(),
            };
            files.push(unit.shard(), row)?;
        }
        files.finish()
    }

    fn shard_files<T: Table>(&self) -> ShardFiles<'_, T> {
        ShardFiles { plan: self.plan, has_first: self.owned.shards().next() == Some(0), writer: None }
    }
}

impl Counts {
    fn add_family(&mut self, members: u64) {
        self.families += 1;
        self.family_pairs += members * members.saturating_sub(1) / 2;
    }
}

/// The files of a table, one for each shard that has rows; the first shard has one in any case.
struct ShardFiles<'a, T: Table> {
    plan: &'a StudyPlan,
    /// Whether this worker has shard 0, and its file is not begun.
    has_first: bool,
    writer: Option<(u32, Writer<T>)>,
}

impl<T: Table> ShardFiles<'_, T> {
    /// Adds a row to the file of a shard. Shards ascend.
    fn push(&mut self, shard: u32, row: T) -> Result<()> {
        if self.writer.as_ref().is_none_or(|(of, _)| *of != shard) {
            self.turn_to(shard)?;
        }
        self.writer.as_mut().map_or(Ok(()), |(_, writer)| writer.push(row))
    }

    fn turn_to(&mut self, shard: u32) -> Result<()> {
        if let Some((_, writer)) = self.writer.take() {
            writer.finish()?;
        }
        if self.has_first && shard > 0 {
            self.plan.write(0, std::iter::empty::<T>())?;
        }
        self.has_first = false;
        let path = self.plan.results().table(T::NAME, shard as usize);
        self.writer = Some((shard, Writer::create(&path)?));
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if let Some((_, writer)) = self.writer.take() {
            writer.finish()?;
        }
        if self.has_first { self.plan.write(0, std::iter::empty::<T>()) } else { Ok(()) }
    }
}

fn chunking_summary(
    unit: Unit,
    chunking: Chunking,
    threshold: u32,
    counts: &Counts,
    most: Vec<LargestGroup>,
) -> ChunkingSummary {
    let replicas = |(place, replicas): (usize, &&str)| ReplicaCount {
        replicas: (*replicas).into(),
        documents: counts.replicas[place],
        share: ratio(counts.replicas[place], counts.units),
        by_cluster: counts.by_cluster[place],
        published: ReplicaCount::published(unit, chunking, place),
    };
    let copies = counts.units - counts.components;
    let reasons = OVERLAP_REASONS.iter().zip(counts.reasons);
    ChunkingSummary {
        chunking,
        threshold,
        pairs: counts.pairs,
        families: counts.families,
        family_pairs: counts.family_pairs,
        replicas: REPLICAS.iter().enumerate().map(replicas).collect(),
        saving: Saving {
            copies,
            share: ratio(copies, counts.units),
            bytes: counts.saved_bytes,
            published: Saving::published(unit, chunking),
        },
        reasons: reasons.map(|(reason, documents)| ReasonCount { reason: (*reason).into(), documents }).collect(),
        most,
    }
}

/// Writes the small tables, from the summary.
fn write_small(plan: &StudyPlan, chunkings: &[ChunkingSummary], units: u64) -> Result<()> {
    let replicas = chunkings.iter().flat_map(|of| {
        of.replicas.iter().zip(REPLICAS).map(|(row, replicas)| ReplicaRow {
            chunking: of.chunking.name(),
            replicas,
            documents: row.documents as i64,
            share: row.share,
            by_cluster: row.by_cluster as i64,
            published: row.published,
        })
    });
    plan.write(0, replicas)?;
    let savings = chunkings.iter().map(|of| SavingRow {
        chunking: of.chunking.name(),
        documents: units as i64,
        copies: of.saving.copies as i64,
        share: of.saving.share,
        bytes: of.saving.bytes as i64,
        published: of.saving.published,
    });
    plan.write(0, savings)?;
    let reasons = chunkings.iter().flat_map(|of| {
        let row = |(row, reason): (&ReasonCount, &'static str)| ReasonRow {
            chunking: of.chunking.name(),
            reason,
            documents: row.documents as i64,
        };
        of.reasons.iter().zip(OVERLAP_REASONS).map(row)
    });
    plan.write(0, reasons)?;
    let most = chunkings.iter().flat_map(|of| {
        of.most.iter().zip(1..).map(|(group, rank)| MostRow {
            chunking: of.chunking.name(),
            rank,
            documents: group.documents as i64,
            hosts: group.hosts as i64,
            machines: group.machines as i64,
            title: group.title.clone(),
            url: group.url.clone(),
            doc: group.doc,
        })
    });
    plan.write(0, most)
}
