//! What the overlap job counts, and the summary of a chunking.

use serde::{Deserialize, Serialize};

use super::{ChunkingSummary, LargestGroup, REASONS, REPLICAS, ReasonCount, ReplicaCount, Saving, Unit};
use crate::config::Chunking;
use crate::stats::ratio;

/// The counts of one chunking: of one worker, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ChunkingCounts {
    pub units: u64,
    pub pairs: u64,
    pub families: u64,
    pub family_pairs: u64,
    /// Units by replicas.
    pub replicas: [u64; REPLICAS.len()],
    /// Units by the others of their component.
    pub by_cluster: [u64; REPLICAS.len()],
    pub components: u64,
    pub saved_bytes: u64,
    pub reasons: [u64; REASONS.len()],
}

impl ChunkingCounts {
    /// Adds those of another worker.
    pub fn merge(&mut self, other: &ChunkingCounts) {
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

    /// Adds a family of so many members.
    pub fn add_family(&mut self, members: u64) {
        self.families += 1;
        self.family_pairs += members * members.saturating_sub(1) / 2;
    }
}

/// The summary of a chunking.
pub(super) fn chunking_summary(
    unit: Unit,
    chunking: Chunking,
    threshold: u32,
    counts: &ChunkingCounts,
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
    let reasons = REASONS.iter().zip(counts.reasons);
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
