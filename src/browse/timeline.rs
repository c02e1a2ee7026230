//! What became of a cluster, week by week.

use anyhow::Result;
use arrow_array::{Array as _, Int64Array, StringArray};

use super::index::Index;
use crate::records::Week;
use crate::structures::CompactSort as _;
use crate::tables::field;

/// Pages of two weeks that are compared one by one, at most.
const COMPARED: u64 = 200_000;
/// Changes of a week that are told, at most.
const TOLD: u64 = 20;

/// A change that another cluster has a part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeKind {
    /// The other cluster came to this one.
    MergedFrom,
    /// Most pages of this one went to the other one, which keeps its own id.
    MergedInto,
    /// Pages of the other cluster came to this one.
    SplitFrom,
    /// Pages went to the other cluster.
    SplitTo,
}

/// A change of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClusterExchange {
    pub(super) kind: ExchangeKind,
    pub(super) other: i64,
    /// Pages that went from one to the other.
    pub(super) pages: u64,
}

/// A cluster in a week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) week: Week,
    pub(super) pages: u64,
    /// Pages that joined and that left since the week before; `None` in the first week, and if
    /// there are too many to compare.
    pub(super) moved: Option<[u64; 2]>,
    /// Some changes, and how many rows of the table name the cluster.
    pub(super) exchanges: Vec<ClusterExchange>,
    pub(super) rows: u64,
}

/// A cluster in all weeks from the first that has it to the one after the last.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn timeline(index: &Index, weeks: &[Week], id: i64) -> Result<Vec<Moment>> {
    let mut moments = Vec::new();
    let mut last_pages = 0;
    for (number, week) in (0..).zip(weeks) {
        let pages = index.size(id, number)?;
        let (rows, exchanges) = exchanges(index, id, number)?;
        if pages > 0 || last_pages > 0 {
            let moved =
                if number > 0 && pages + last_pages <= COMPARED { Some(moved(index, id, number)?) } else { None };
            moments.push(Moment { week: *week, pages, moved, exchanges, rows });
        }
        last_pages = pages;
    }
    Ok(moments)
}

/// How many pages joined and left in a week.
fn moved(index: &Index, id: i64, week: u64) -> Result<[u64; 2]> {
    let [before, now] = [week - 1, week].map(|week| index.members(id, week, 0, COMPARED));
    let (before, now) = (before?, now?);
    let stayed = now.iter().filter(|doc| before.binary_search(doc).is_ok()).count();
    Ok([(now.len() - stayed) as u64, (before.len() - stayed) as u64])
}

/// What other clusters had a part in.
fn exchanges(index: &Index, id: i64, week: u64) -> Result<(u64, Vec<ClusterExchange>)> {
    let (rows, scans) = index.changes(id, week, TOLD)?;
    let mut exchanges = Vec::new();
    for scan in scans {
        scan.for_each(|batch| {
            let longs = |name| field::<Int64Array>(batch, name);
            let (ids, others, documents) = (longs("cluster_id")?, longs("other_cluster_id")?, longs("documents")?);
            let events: &StringArray = field(batch, "event")?;
            for row in (0..batch.num_rows()).filter(|row| others.is_valid(*row)) {
                let is_own = ids.value(row) == id;
                let other = if is_own { others.value(row) } else { ids.value(row) };
                let kind = match (events.value(row), is_own) {
                    ("merge", true) => ExchangeKind::MergedInto,
                    ("merge", false) => ExchangeKind::MergedFrom,
                    ("split", true) => ExchangeKind::SplitTo,
                    ("split", false) => ExchangeKind::SplitFrom,
                    _ => continue,
                };
                exchanges.push(ClusterExchange { kind, other, pages: documents.value(row) as u64 });
            }
            Ok(())
        })?;
    }
    exchanges.sort_items_by_key(|exchange| (std::cmp::Reverse(exchange.pages), exchange.other));
    Ok((rows, exchanges))
}
