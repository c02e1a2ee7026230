//! The columns of the tables that jobs make of committed weeks: one file for each job.

mod collections;
mod evolution;
mod genealogy;
mod mirrors;
mod mirrors_by_url;
mod overlap;
mod paragraphs;
mod samplers;

pub use self::collections::{
    AvoidRow, CollectionClusterRow, CollectionPageRow, CollectionReplicaRow, CollectionRow, CollectionSavingRow,
    CollectionSizeRow, JudgedRow,
};
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
    BoilerplateRow, ClusterSizeRow, CoverageRow, EstimateRow, GrowthRow, NearPageRow, ParagraphPageRow, RegionRow,
    SeedRow,
};
pub use self::samplers::{SamplerErrorRow, SamplerRow};
