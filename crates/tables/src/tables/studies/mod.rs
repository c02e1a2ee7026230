//! The tables that studies make of committed weeks, with their columns: one file for each study.

mod collections;
mod decontamination;
mod evolution;
mod genealogy;
mod mirrors;
mod mirrors_by_url;
mod overlap;
mod paragraphs;
mod passages;
mod samplers;

pub use self::collections::{
    AvoidRow, CollectionClusterRow, CollectionPageRow, CollectionReplicaRow, CollectionRow, CollectionSavingRow,
    CollectionSizeRow, JudgedRow,
};
pub use self::decontamination::{ReferenceItemRow, ReferenceMatchRow};
pub use self::evolution::{AmountRow, BirthRow, ChangeClassRow, DeathRow, HostChangeRow, RetentionRow};
pub use self::genealogy::{BornPageRow, LifetimeRow, ParagraphTurnoverRow, ParentRow};
pub use self::mirrors::{
    MirrorChangeRow, MirrorClassRow, MirrorGroupRow, MirrorLagRow, MirrorPairRow, MirrorSizeRow, MirrorSpanRow,
    MirroredRow,
};
pub use self::mirrors_by_url::{
    CandidateRow, ComparedRow, PathTestRow, ProbeRow, RankingRow, UrlDomainRow, UrlGroupRow, UrlLevelRow,
};
pub use self::overlap::{
    ComponentRow, FamilyChunkRow, FamilyRow, HostOverlapRow, MostRow, OverlapRow, ReasonRow, ReplicaRow, SavingRow,
};
pub use self::paragraphs::{
    BoilerplateRow, ClusterSiteRow, ClusterSizeRow, CoverageRow, EstimateRow, GrowthRow, NearPageRow, ParagraphPageRow,
    RegionRow, SeedRow,
};
pub use self::passages::{PassageRow, PassageSourceRow};
pub use self::samplers::{SamplerErrorRow, SamplerRow};
use super::store_table::ResultTables;

/// The tables of all studies, in the order of their folders.
pub const RESULTS: [ResultTables; 9] = [
    collections::TABLES,
    decontamination::TABLES,
    evolution::TABLES,
    mirrors::TABLES,
    mirrors_by_url::TABLES,
    overlap::TABLES,
    paragraphs::TABLES,
    passages::TABLES,
    samplers::TABLES,
];
