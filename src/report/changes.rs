//! The changes of clusters since the week before: what `nigh show --changes` prints.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use arrow_array::{Array, Int64Array, StringArray};
use serde::Serialize;

use crate::records::Week;
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};
use crate::state::WeekTables;
use crate::structures::CompactSort;
use crate::summary::{OTHER_REASONS, Since};
use crate::tables::{ChangeRow, ClusterRow, Scan, Table, field, maybe_text};
use crate::text::printable;

/// How many events are listed: those with the most documents.
const LISTED: usize = 20;
/// How many reasons of failed downloads are named.
const REASONS: usize = 5;

/// The changes of clusters from the week before to a week.
#[derive(Debug, Serialize)]
pub struct WeekChanges {
    /// The later week.
    pub week: Week,
    /// The totals of the changes.
    pub since: Since,
    /// The events with the most documents, at most 20.
    pub largest: Vec<ClusterEvent>,
}

/// One event: a row of the table `changes`, with the URL of the cluster's root.
#[derive(Debug, Serialize)]
pub struct ClusterEvent {
    /// The cluster's id.
    pub cluster_id: i64,
    /// The event, by its name in the table.
    pub event: String,
    /// The id of the other cluster of a merge or a split.
    pub other_cluster_id: Option<i64>,
    /// Pages of the cluster the week before.
    pub before: i64,
    /// Pages in this week; of the other cluster, in a merge or a split.
    pub after: i64,
    /// Pages of the event; see [`ChangeRow::documents`].
    pub documents: i64,
    /// The name of the cluster's root: its URL, or its id; that of the week before if the cluster
    /// is gone.
    pub name: Option<String>,
}

/// Reads the changes of a week from the week's `tables` and from `last`, the tables of the week
/// before.
///
/// # Errors
/// Names the file that cannot be read.
pub fn changes(week: Week, tables: &WeekTables, last: &WeekTables, since: Since) -> Result<WeekChanges> {
    let mut rows: Vec<ClusterEvent> = Vec::new();
    for rows_of_file in tables.all(ChangeRow::NAME) {
        Scan::open(rows_of_file, &["cluster_id", "event", "other_cluster_id", "before", "after", "documents"])?
            .for_each(|batch| {
                let column = |name| field::<Int64Array>(batch, name);
                let (ids, others, befores) = (column("cluster_id")?, column("other_cluster_id")?, column("before")?);
                let (afters, documents) = (column("after")?, column("documents")?);
                let events: &StringArray = field(batch, "event")?;
                rows.extend((0..batch.num_rows()).map(|row| ClusterEvent {
                    cluster_id: ids.value(row),
                    event: events.value(row).to_owned(),
                    other_cluster_id: (!others.is_null(row)).then(|| others.value(row)),
                    before: befores.value(row),
                    after: afters.value(row),
                    documents: documents.value(row),
                    name: None,
                }));
                keep_largest(&mut rows);
                Ok(())
            })?;
    }
    let mut names: HashMap<i64, Option<String>> = rows.iter().map(|row| (row.cluster_id, None)).collect();
    for tables in [tables, last] {
        for rows_of_file in tables.all(ClusterRow::NAME) {
            Scan::open(rows_of_file, &["doc", "id", "url", "cluster_id", "similar_root"])?.for_each(|batch| {
                let (docs, ids): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "cluster_id")?);
                let (given, pages): (&StringArray, &StringArray) = (field(batch, "id")?, field(batch, "url")?);
                let roots: &Int64Array = field(batch, "similar_root")?;
                let is_root = |row: &usize| roots.value(*row) == docs.value(*row) && !ids.is_null(*row);
                for row in (0..batch.num_rows()).filter(is_root) {
                    if let Some(name) = names.get_mut(&ids.value(row)) {
                        name.get_or_insert_with(|| {
                            let name = maybe_text(pages, row).or_else(|| maybe_text(given, row));
                            name.unwrap_or_else(|| format!("document {}", docs.value(row)))
                        });
                    }
                }
                Ok(())
            })?;
        }
    }
    rows.iter_mut().for_each(|row| row.name = names.get(&row.cluster_id).cloned().flatten());
    Ok(WeekChanges { week, since, largest: rows })
}

fn keep_largest(rows: &mut Vec<ClusterEvent>) {
    let key = |row: &ClusterEvent| {
        (std::cmp::Reverse(row.documents), row.cluster_id, row.event.clone(), row.other_cluster_id)
    };
    rows.sort_items_by_key(key);
    rows.truncate(LISTED);
}

/// What a summary says about changes since the week before.
pub(super) fn since(since: &Since, sheet: &mut Sheet) {
    sheet.fact(
        "Since",
        format!(
            "{}: {}; {} not downloaded",
            since.week,
            plural(since.new_urls, "new URL"),
            plural(since.not_downloaded, "known one")
        ),
    );
    if !since.missing.is_empty() {
        sheet.fact("", format!("not downloaded: {}", reasons(&since.missing)));
    }
    let event = |(event, (count, documents)): (&String, &(u64, u64))| {
        format!("{event} {} ({})", grouped(*count), plural(*documents, "page"))
    };
    let events: Vec<String> = since.changes.iter().map(event).collect();
    let events = if events.is_empty() { "none changed".into() } else { events.join(", ") };
    sheet.fact("", format!("clusters: {events}"));
    sheet.fact("", format!("found {}", since.found));
}

/// The most frequent reasons with their counts, and the rest as one sum.
fn reasons(missing: &BTreeMap<String, u64>) -> String {
    let mut named: Vec<(&String, u64)> = missing.iter().map(|(reason, count)| (reason, *count)).collect();
    // The counts may have a rest already; it stands last and is part of the new rest.
    named.sort_items_by_key(|(reason, count)| (*reason == OTHER_REASONS, Reverse(*count)));
    let rest = named.split_off(named.iter().take(REASONS).take_while(|(reason, _)| *reason != OTHER_REASONS).count());
    let mut parts: Vec<String> =
        named.into_iter().map(|(reason, count)| format!("{} {}", grouped(count), printable(reason))).collect();
    if !rest.is_empty() {
        parts.push(format!("{} for {OTHER_REASONS}", grouped(rest.iter().map(|(_, count)| count).sum())));
    }
    parts.join(", ")
}

impl WeekChanges {
    /// The report: the totals, and the events with the most documents.
    pub fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.fact("Week", self.week.to_string());
        since(&self.since, &mut sheet);
        sheet.blank();
        let numbers = ["pages", "before", "after", "cluster"].map(|name| (name, GridColumn::Number));
        let columns = [("event", GridColumn::Text)].into_iter().chain(numbers);
        let mut grid = Grid::new(columns.chain([("with", GridColumn::Number), ("page", GridColumn::Text)]));
        for row in &self.largest {
            let [documents, before, after] = [row.documents, row.before, row.after].map(|count| grouped(count as u64));
            let with = row.other_cluster_id.map_or(String::new(), |other| other.to_string());
            let name = printable(row.name.as_deref().unwrap_or_default()).into_owned();
            grid.row([row.event.clone(), documents, before, after, row.cluster_id.to_string(), with, name]);
        }
        sheet.grid(grid);
        sheet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_reasons_are_named_and_the_rest_is_summed() {
        let text = |counts: &[(&str, u64)]| {
            reasons(&counts.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect())
        };
        assert_eq!(text(&[("dns", 1), ("not seen", 1200), ("timeout", 30)]), "1,200 not seen, 30 timeout, 1 dns");
        let many = [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6), ("g", 7)];
        assert_eq!(text(&many), "7 g, 6 f, 5 e, 4 d, 3 c, 3 for other reasons");
        assert_eq!(text(&[("a", 1), ("other reasons", 9)]), "1 a, 9 for other reasons");
    }
}
