//! The tables of a store by name: those of a week, and those that jobs make of committed weeks.

use std::path::Path;

use anyhow::Result;

use super::columns::{Table, TableSpec};
use super::pack::pack;
use super::row_range::RowRange;
use super::rows::{
    AccuracyRow, CaptureRow, ChangeRow, ChunkRow, ClusterRow, DocumentRow, EvidenceRow, FeatureRow, HostFailureRow,
    LargestRow, LinkRow, MissingRow, RedirectRow, RejectRow, SizeRow, SplitOffRow, SummaryRow, UrlRow,
};
use super::studies::{
    AmountRow, AvoidRow, BirthRow, BoilerplateRow, BornPageRow, CandidateRow, ChangeClassRow, ClusterSizeRow,
    CollectionClusterRow, CollectionPageRow, CollectionReplicaRow, CollectionRow, CollectionSavingRow,
    CollectionSizeRow, ComparedRow, ComponentRow, CoverageRow, DeathRow, EstimateRow, FamilyChunkRow, FamilyRow,
    GrowthRow, HostChangeRow, HostOverlapRow, JudgedRow, LifetimeRow, MirrorChangeRow, MirrorClassRow, MirrorGroupRow,
    MirrorLagRow, MirrorPairRow, MirrorSizeRow, MirrorSpanRow, MirroredRow, MostRow, NearPageRow, OverlapRow,
    ParagraphPageRow, ParagraphTurnoverRow, ParentRow, PathTestRow, ProbeRow, RankingRow, ReasonRow, RegionRow,
    ReplicaRow, RetentionRow, SamplerErrorRow, SamplerRow, SavingRow, SeedRow, UrlDomainRow, UrlGroupRow, UrlLevelRow,
};

/// [`pack`](super::pack()) for the rows of one table.
pub type Pack = fn(&[RowRange], &Path, &[(&str, &str)]) -> Result<Vec<u64>>;

/// A table of a store.
#[derive(Clone, Copy)]
pub struct StoreTable {
    /// Its name, which is the name of its folder.
    pub name: &'static str,
    /// [`pack`](super::pack()) for its rows.
    pub pack: Pack,
    /// What it and its columns mean.
    pub spec: &'static TableSpec,
}

impl StoreTable {
    const fn of<T: Table>() -> StoreTable {
        StoreTable { name: T::NAME, pack: pack::<T>, spec: T::SPEC }
    }
}

/// The tables that every committed week has, in the order of their names. A week of an older version may lack
/// `accuracy`, `captures`, `chunks`, `host-failures`, `redirects` and `split-off`.
pub const WEEK_TABLES: [StoreTable; 18] = [
    StoreTable::of::<AccuracyRow>(),
    StoreTable::of::<CaptureRow>(),
    StoreTable::of::<ChangeRow>(),
    StoreTable::of::<ChunkRow>(),
    StoreTable::of::<ClusterRow>(),
    StoreTable::of::<DocumentRow>(),
    StoreTable::of::<EvidenceRow>(),
    StoreTable::of::<FeatureRow>(),
    StoreTable::of::<HostFailureRow>(),
    StoreTable::of::<LargestRow>(),
    StoreTable::of::<LinkRow>(),
    StoreTable::of::<MissingRow>(),
    StoreTable::of::<RedirectRow>(),
    StoreTable::of::<RejectRow>(),
    StoreTable::of::<SizeRow>(),
    StoreTable::of::<SplitOffRow>(),
    StoreTable::of::<SummaryRow>(),
    StoreTable::of::<UrlRow>(),
];

/// The tables that a job makes of committed weeks. They lie in one folder of the store.
#[derive(Clone, Copy)]
pub struct ResultTables {
    /// The folder, which has the name of the job.
    pub folder: &'static str,
    /// Whether they name pages or hosts. Then they are removed when pages are deleted, or one of their weeks is removed.
    pub name_pages: bool,
    /// The tables, in the order of their names.
    pub tables: &'static [StoreTable],
}

/// The tables of all jobs that read committed weeks, in the order of their folders.
pub const RESULTS: [ResultTables; 7] = [
    ResultTables {
        folder: "collections",
        name_pages: true,
        tables: &[
            StoreTable::of::<AvoidRow>(),
            StoreTable::of::<CollectionClusterRow>(),
            StoreTable::of::<CollectionRow>(),
            StoreTable::of::<JudgedRow>(),
            StoreTable::of::<CollectionPageRow>(),
            StoreTable::of::<CollectionReplicaRow>(),
            StoreTable::of::<CollectionSavingRow>(),
            StoreTable::of::<CollectionSizeRow>(),
        ],
    },
    ResultTables {
        folder: "evolution",
        name_pages: false,
        tables: &[
            StoreTable::of::<AmountRow>(),
            StoreTable::of::<BirthRow>(),
            StoreTable::of::<ChangeClassRow>(),
            StoreTable::of::<DeathRow>(),
            StoreTable::of::<HostChangeRow>(),
            StoreTable::of::<RetentionRow>(),
        ],
    },
    ResultTables {
        folder: "mirrors",
        name_pages: true,
        tables: &[
            StoreTable::of::<MirrorChangeRow>(),
            StoreTable::of::<MirrorClassRow>(),
            StoreTable::of::<MirrorGroupRow>(),
            StoreTable::of::<MirrorLagRow>(),
            StoreTable::of::<MirroredRow>(),
            StoreTable::of::<MirrorPairRow>(),
            StoreTable::of::<MirrorSizeRow>(),
            StoreTable::of::<MirrorSpanRow>(),
        ],
    },
    ResultTables {
        folder: "mirrors-by-url",
        name_pages: true,
        tables: &[
            StoreTable::of::<CandidateRow>(),
            StoreTable::of::<ComparedRow>(),
            StoreTable::of::<UrlDomainRow>(),
            StoreTable::of::<UrlGroupRow>(),
            StoreTable::of::<UrlLevelRow>(),
            StoreTable::of::<ProbeRow>(),
            StoreTable::of::<RankingRow>(),
            StoreTable::of::<PathTestRow>(),
        ],
    },
    ResultTables {
        folder: "overlap",
        name_pages: true,
        tables: &[
            StoreTable::of::<ComponentRow>(),
            StoreTable::of::<FamilyRow>(),
            StoreTable::of::<FamilyChunkRow>(),
            StoreTable::of::<HostOverlapRow>(),
            StoreTable::of::<MostRow>(),
            StoreTable::of::<OverlapRow>(),
            StoreTable::of::<ReasonRow>(),
            StoreTable::of::<ReplicaRow>(),
            StoreTable::of::<SavingRow>(),
        ],
    },
    ResultTables {
        folder: "paragraphs",
        name_pages: true,
        tables: &[
            StoreTable::of::<BornPageRow>(),
            StoreTable::of::<BoilerplateRow>(),
            StoreTable::of::<CoverageRow>(),
            StoreTable::of::<EstimateRow>(),
            StoreTable::of::<GrowthRow>(),
            StoreTable::of::<LifetimeRow>(),
            StoreTable::of::<NearPageRow>(),
            StoreTable::of::<ParagraphPageRow>(),
            StoreTable::of::<ParentRow>(),
            StoreTable::of::<SeedRow>(),
            StoreTable::of::<ClusterSizeRow>(),
            StoreTable::of::<RegionRow>(),
            StoreTable::of::<ParagraphTurnoverRow>(),
        ],
    },
    ResultTables {
        folder: "samplers",
        name_pages: false,
        tables: &[StoreTable::of::<SamplerErrorRow>(), StoreTable::of::<SamplerRow>()],
    },
];

/// Whether the tables of one of these jobs name pages or hosts; so do those of a job that this version of nigh does not have.
pub fn name_pages(folder: &str) -> bool {
    RESULTS.iter().find(|results| results.folder == folder).is_none_or(|results| results.name_pages)
}

/// The tables of one of these jobs; none if this version of nigh has no job of this name.
pub fn result_tables(folder: &str) -> &'static [StoreTable] {
    RESULTS.iter().find(|results| results.folder == folder).map_or(&[], |results| results.tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_names() {
        assert!(WEEK_TABLES.is_sorted_by(|a, b| a.name < b.name) && RESULTS.is_sorted_by(|a, b| a.folder < b.folder));
        assert!(RESULTS.iter().all(|results| results.tables.is_sorted_by(|a, b| a.name < b.name)));
    }
}
