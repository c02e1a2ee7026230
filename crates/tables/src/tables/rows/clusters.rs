//! The rows of clusters: the cluster map, why pages are in it and how right it is, and what became
//! of the clusters of the week before.

use nigh_derive::Table;

use crate::records::DocId;
use crate::tables::columns::values::{ColumnBuilder, Value, ValueType};

/// The cluster map: one row for each page, in the order of `doc` (Fetterly 2004, section 2).
#[derive(Clone, Debug, Table)]
#[table(name = "clusters")]
pub struct ClusterRow<'a> {
    /// The user's id, as in `documents`.
    #[column(searched, unique, unordered)]
    pub id: Option<&'a str>,
    /// Canonical URL, as in `documents`.
    #[column(searched, unique, unordered)]
    pub url: Option<&'a str>,
    /// Its host, as in `documents`.
    #[column(searched, unordered)]
    pub host: Option<&'a str>,
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// Smallest document id of its very similar cluster.
    ///
    /// Pages of one cluster have the same root, at each level; a page without duplicates is the
    /// root of a cluster of size 1.
    #[column(ascending)]
    pub similar_root: i64,
    /// Number of pages of its very similar cluster.
    pub similar_size: i64,
    /// Smallest document id of its cluster of virtually identical pages.
    #[column(ascending)]
    pub identical_root: i64,
    /// Number of pages of its cluster of virtually identical pages.
    pub identical_size: i64,
    /// Smallest document id of its cluster of exact copies.
    #[column(ascending)]
    pub exact_root: i64,
    /// Number of pages of its cluster of exact copies.
    pub exact_size: i64,
    /// The very similar cluster's id through the weeks; null for a page without a near-duplicate.
    ///
    /// It joins `cluster_id` of other weeks and of `changes`; it is not a `doc`.
    pub cluster_id: Option<i64>,
    /// Whether the page stays if duplicates are removed: chosen by the job's `canonical` of its
    /// very similar cluster, or without a near-duplicate.
    ///
    /// To deduplicate the week, keep the rows where this is true.
    pub canonical: bool,
}

/// What a row of `accuracy` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccuracyKind {
    /// Rows of `evidence` with a similarity in a band.
    Links,
    /// Pairs of pages of one of the largest clusters.
    Clusters,
    /// Pairs of pages with an exact similarity in a band.
    Recall,
}

impl AccuracyKind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            AccuracyKind::Links => "links",
            AccuracyKind::Clusters => "clusters",
            AccuracyKind::Recall => "recall",
        }
    }
}

/// How right the clusters are, from samples of pairs of pages that were compared, exactly where
/// their files allow it. A pair is similar enough if its similarity is at least that of the method,
/// or 0.8. No rows if the job says `accuracy = false`.
#[derive(Clone, Debug, Table)]
#[table(name = "accuracy")]
pub struct AccuracyRow {
    /// `links`: rows of `evidence`, which are right if they are similar enough; `clusters`: pairs
    /// of pages of one of the largest clusters, likewise; `recall`: pairs of pages that are similar
    /// enough, which are right if they are in one cluster.
    pub kind: AccuracyKind,
    /// Lower end of the band of similarity: that of `evidence` for `links`, the exact one for
    /// `recall`; null for `clusters`.
    pub low: Option<f64>,
    /// Upper end of the band.
    pub high: Option<f64>,
    /// Root of the cluster; null except for `clusters`.
    pub cluster: Option<i64>,
    /// Links of pages with words in the band; pages of the cluster; or, for `recall`, pages whose
    /// similar pages were looked for.
    pub population: i64,
    /// Pairs that were compared.
    pub sampled: i64,
    /// Those whose similarity is exact; the others are compared by their features, where pages
    /// could not be read again at their places.
    pub exact: i64,
    /// Those that are right.
    pub good: i64,
    /// Share of right pairs; for `recall` each pair counts as often as pairs of its page were left
    /// out.
    pub share: f64,
    /// Lower end of its 95% confidence interval.
    pub share_low: f64,
    /// Upper end of its 95% confidence interval.
    pub share_high: f64,
    /// For `recall`: mean probability that such a pair is linked directly; if estimates verify the
    /// clusters, that it also passes the check.
    pub expected: Option<f64>,
    /// Mean exact similarity of the pairs.
    pub similarity: f64,
}

/// One row for each page that verification took out of its cluster of candidates, in the order of
/// `doc`: the roots before it, where `clusters` has those after it. Empty without `verify`.
#[derive(Clone, Debug, Table)]
#[table(name = "split-off")]
pub struct SplitOffRow {
    /// The page.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// Smallest document id of its cluster of candidates: pages that share supershingles.
    pub similar_root: i64,
    /// Smallest document id of the candidates that share all supershingles.
    pub identical_root: i64,
}

/// How the similarity of two pages was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Found {
    /// From their features: an estimate.
    #[default]
    Features,
    /// From their shingles, exactly.
    Shingles,
    /// Their bytes are equal.
    Bytes,
}

impl Found {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Found::Features => "features",
            Found::Shingles => "shingles",
            Found::Bytes => "bytes",
        }
    }

    /// The value with this name.
    pub fn of_name(name: &str) -> Option<Found> {
        [Found::Features, Found::Shingles, Found::Bytes].into_iter().find(|found| found.name() == name)
    }
}

/// One row for each clustered page except its root, in the order of `doc`: why it is in its
/// cluster.
#[derive(Clone, Debug, Table)]
#[table(name = "evidence")]
pub struct EvidenceRow {
    /// The page.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// Document id of a page of the same cluster: one with which it shares supershingles, or after
    /// verification the most similar one that was found; of pages without words the first with the
    /// same bytes.
    pub neighbour: i64,
    /// How many supershingles they share.
    pub agreements: i32,
    /// Jaccard similarity of their shingles, as `found` says.
    #[column(description = "Jaccard similarity of their shingles, as `found` says")]
    pub similarity: f32,
    /// `features`: the share of equal features, an estimate; `shingles`: exact; `bytes`: their
    /// bytes are equal.
    pub found: Found,
}

/// A change of a cluster from the week before to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// No page of the cluster was in a cluster the week before.
    Birth,
    /// None of the cluster's pages is in a cluster any more.
    Death,
    /// The cluster has more pages.
    Grow,
    /// The cluster has fewer pages.
    Shrink,
    /// Another cluster, which keeps its own id, has most of the cluster's pages.
    Merge,
    /// Some of the cluster's pages are in another cluster, which is not its successor.
    Split,
}

impl Event {
    /// All events, in the order of the type.
    pub const ALL: [Event; 6] = [Event::Birth, Event::Death, Event::Grow, Event::Shrink, Event::Merge, Event::Split];

    /// The name in the column `changes.event`.
    pub fn name(self) -> &'static str {
        match self {
            Event::Birth => "birth",
            Event::Death => "death",
            Event::Grow => "grow",
            Event::Shrink => "shrink",
            Event::Merge => "merge",
            Event::Split => "split",
        }
    }
}

/// What became of the clusters of the week before: one row for each event.
///
/// These are clusters of at least two very similar pages. A store's first week has no such table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Table)]
#[table(name = "changes")]
pub struct ChangeRow {
    /// The cluster: of the week before, except for a birth.
    ///
    /// It joins `clusters.cluster_id` of that week.
    pub cluster_id: i64,
    /// `birth`, `death`, `grow`, `shrink`, `merge` or `split`.
    pub event: Event,
    /// The other cluster of a merge or split; null for other events.
    ///
    /// It joins this week's `clusters.cluster_id`.
    #[column(name = "other_cluster_id")]
    pub other: Option<i64>,
    /// Pages of the cluster the week before.
    ///
    /// 0 in a birth.
    pub before: i64,
    /// Pages now; of the other cluster in a merge or split.
    ///
    /// 0 in a death.
    pub after: i64,
    /// Pages that make the event: born, dead, added or gone, or moved to the other cluster.
    ///
    /// In a birth or a death, the cluster's; in growth or shrinkage, the difference.
    pub documents: i64,
}

impl ChangeRow {
    /// The row of an event; `(before, after)` are numbers of pages.
    pub fn new(
        event: Event,
        id: DocId,
        other: Option<DocId>,
        (before, after): (u64, u64),
        documents: u64,
    ) -> ChangeRow {
        let (cluster_id, other) = (id.to_table(), other.map(DocId::to_table));
        ChangeRow { cluster_id, event, other, before: before as i64, after: after as i64, documents: documents as i64 }
    }
}

/// Values that are in tables by name.
macro_rules! named_values {
    ($($value:ty),*) => {$(
        impl Value for $value {
            const VALUES: ValueType = ValueType::Text;

            fn append(&self, column: &mut ColumnBuilder) {
                self.name().append(column);
            }
        }
    )*};
}

named_values!(AccuracyKind, Found, Event);
