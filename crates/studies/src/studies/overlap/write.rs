//! The tables of the overlap job.
//!
//! Small tables are written by worker 0, and the rows of a shard by its owner.

use anyhow::Result;

use super::steps::{FamilyChunks, FamilyMember, UnitPair, Units};
use super::{ChunkingSummary, Overlap, REASONS, REPLICAS, ReasonCount, Unit};
use crate::records::DocId;
use crate::structures::{ByKey, CompactSort, Ownership, Sorted};
use crate::studies::StudyPlan;
use crate::studies::shards::ShardRows;
use crate::tables::Table;
use crate::tables::studies::overlap::{
    ComponentRow, FamilyChunkRow, FamilyRow, HostOverlapRow, MostRow, OverlapRow, ReasonRow, ReplicaRow, SavingRow,
};

/// Writes the tables of own shards.
pub(super) struct OverlapWriter<'a> {
    pub plan: &'a StudyPlan,
    pub job: &'a Overlap,
    /// The URLs of the week.
    pub owned: &'a Ownership,
    pub units: &'a Units,
}

impl OverlapWriter<'_> {
    /// Writes the pairs of own shards; the table of the other unit has no rows.
    pub(super) fn write_pairs(&self, mut pairs: Sorted<UnitPair>, names: &ByKey<u64, String>) -> Result<()> {
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
                // In the order of the alphabet, among the rows of the first host's shard.
                let order = if of_a < of_b { [0, 1] } else { [1, 0] };
                let [host_a, host_b] = order.map(|at| [of_a, of_b][at].clone());
                let [containment_a, containment_b] = order.map(|at| containment(&pair, at));
                let shared = pair.shared as i32;
                let row =
                    HostOverlapRow { chunking: chunking(&pair), host_a, host_b, shared, containment_a, containment_b };
                rows.push((pair.a.shard(), pair.chunking, row));
            }
            rows.sort_items_by(|(a_shard, a_chunking, a), (b_shard, b_chunking, b)| {
                (a_shard, a_chunking, &a.host_a, &a.host_b).cmp(&(b_shard, b_chunking, &b.host_a, &b.host_b))
            });
            rows.into_iter().try_for_each(|(shard, _, row)| of_hosts.push(shard, row))?;
        }
        of_pages.finish()?;
        of_hosts.finish()
    }

    /// Writes the families of own shards.
    pub(super) fn write_families(&self, mut families: Vec<(usize, FamilyMember)>) -> Result<()> {
        families.sort_rows_by_key(|(number, member)| (member.unit.shard(), *number, member.family, member.unit));
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

    /// Writes the collections of families. Each is at the owner of its family.
    pub(super) fn write_collections(&self, mut collections: Vec<(usize, FamilyChunks)>) -> Result<()> {
        collections.sort_items_by_key(|(number, collection)| (collection.family.shard(), *number, collection.family));
        let mut files = self.shard_files();
        for (number, FamilyChunks { family, chunks }) in collections {
            for chunk in chunks {
                let chunking = self.job.chunkings[number].name();
                files.push(
                    family.shard(),
                    FamilyChunkRow { chunking, family: family.to_table(), chunk: chunk as i64 },
                )?;
            }
        }
        files.finish()
    }

    /// Writes the members of components, of own shards.
    pub(super) fn write_components(&self, mut members: Vec<(usize, DocId, DocId)>) -> Result<()> {
        members.sort_rows_by_key(|(number, unit, _)| (unit.shard(), *number, *unit));
        let mut files = self.shard_files();
        for (number, unit, component) in members {
            let row = ComponentRow {
                chunking: self.job.chunkings[number].name(),
                component: component.to_table(),
                doc: unit.to_table(),
                host: self.units.names.get(self.units.owned.index(unit)).cloned(),
            };
            files.push(unit.shard(), row)?;
        }
        files.finish()
    }

    fn shard_files<T: Table>(&self) -> ShardRows<T> {
        ShardRows::new(self.plan, self.owned)
    }
}

/// Writes the small tables, from the summary.
pub(super) fn write_small(plan: &StudyPlan, chunkings: &[ChunkingSummary], units: u64) -> Result<()> {
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
    plan.write(replicas)?;
    let savings = chunkings.iter().map(|of| SavingRow {
        chunking: of.chunking.name(),
        documents: units as i64,
        copies: of.saving.copies as i64,
        share: of.saving.share,
        bytes: of.saving.bytes as i64,
        published: of.saving.published,
    });
    plan.write(savings)?;
    let reasons = chunkings.iter().flat_map(|of| {
        let row = |(row, reason): (&ReasonCount, &'static str)| ReasonRow {
            chunking: of.chunking.name(),
            reason,
            documents: row.documents as i64,
        };
        of.reasons.iter().zip(REASONS).map(row)
    });
    plan.write(reasons)?;
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
    plan.write(most)
}
