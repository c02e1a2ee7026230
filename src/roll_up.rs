//! Roll-up: a ranked list of URLs in which each set of replicas and each replicated collection
//! appears once (Cho, Shivakumar and Garcia-Molina 2000, section 5.2).
//!
//! Memory: 24 bytes, and as many in the table's free slots, for each page that has a replica. URLs
//! are equal up to collisions of 64-bit hashes.

use anyhow::{Context, Result};
use arrow_array::{Int64Array, RecordBatch, StringArray};
use serde::Serialize;

use crate::config::Chunking;
use crate::records::KeyHash;
use crate::state::{CommittedWeek, Results, Store};
use crate::structures::ByKey;
use crate::studies::collections::{CollectionsSummary, ReplicaLevel};
use crate::tables::studies::collections::CollectionPageRow;
use crate::tables::studies::overlap::ComponentRow;
use crate::tables::{ClusterRow, Scan, Table, field};
use crate::text::canonical;

/// Why a URL is below another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyBelow {
    /// The page is a replica of the other one.
    Replica,
    /// The page is of the same collection, or of a copy of it.
    Collection,
}

/// A URL that stays in the list, and those that are below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit<'a> {
    /// The URL as it was given.
    pub url: &'a str,
    /// The URLs below it, in the order of the list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folded: Vec<Folded<'a>>,
}

/// A URL below another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Folded<'a> {
    /// The URL as it was given.
    pub url: &'a str,
    /// Why it is there.
    pub why: WhyBelow,
}

/// What a page is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Membership {
    /// The root of its trivial cluster.
    root: i64,
    /// Its similar cluster, or −1.
    cluster: i64,
}

/// The pages with replicas of the week of a collections job.
#[derive(Clone, Debug, Default)]
pub struct RollUp(ByKey<u64, Membership>);

fn key(url: &str) -> u64 {
    KeyHash::of(url).halves()[1]
}

impl RollUp {
    /// Reads the pages with replicas.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn read(
        store: &Store,
        week: &CommittedWeek,
        results: &Results,
        summary: &CollectionsSummary,
    ) -> Result<RollUp> {
        let mut clusters: ByKey<u64, i64> = ByKey::default();
        each_batch(results, CollectionPageRow::NAME, &["doc", "cluster"], |batch| {
            let (docs, names): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "cluster")?);
            clusters.extend(docs.values().iter().map(|doc| *doc as u64).zip(names.values().iter().copied()));
            Ok(())
        })?;
        let components = match (summary.level, summary.chunking) {
            (ReplicaLevel::Overlap, Some(chunking)) => Some(components(store, chunking)?),
            _ => None,
        };
        let (root, size) = match summary.level {
            ReplicaLevel::Identical => ("identical_root", "identical_size"),
            ReplicaLevel::Similar | ReplicaLevel::Overlap => ("similar_root", "similar_size"),
        };
        let mut places: ByKey<u64, Membership> = ByKey::default();
        for rows in store.tables(week)?.all(ClusterRow::NAME) {
            Scan::open(rows, &["doc", "url", root, size])?.for_each(|batch| {
                let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                let (roots, sizes): (&Int64Array, &Int64Array) = (field(batch, root)?, field(batch, size)?);
                for (row, doc) in docs.values().iter().enumerate() {
                    let root = match &components {
                        Some(components) => components.get(&(*doc as u64)).copied(),
                        None => (sizes.value(row) > 1).then(|| roots.value(row)),
                    };
                    if let Some(root) = root {
                        let cluster = clusters.get(&(*doc as u64)).copied().unwrap_or(-1);
                        places.insert(key(urls.value(row)), Membership { root, cluster });
                    }
                }
                Ok(())
            })?;
        }
        Ok(RollUp(places))
    }

    /// The number of pages with replicas.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no page has a replica.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Rolls up a list of URLs, the best first. A URL that the week does not have, or that is no
    /// URL, stays as it is.
    pub fn fold<'a>(&self, urls: &[&'a str]) -> Vec<Hit<'a>> {
        let mut hits: Vec<Hit<'a>> = Vec::with_capacity(urls.len());
        // By similar cluster, or by trivial cluster: the first hit, and its trivial cluster.
        let mut first: ByKey<u64, (usize, i64)> = ByKey::default();
        for url in urls {
            let place = canonical(url).and_then(|url| self.0.get(&key(url.as_str())));
            let Some(Membership { root, cluster }) = place else {
                hits.push(Hit { url, folded: Vec::new() });
                continue;
            };
            // Ids are less than 2^63, and pages of a trivial cluster are all in collections, or
            // none is.
            let of = if *cluster >= 0 { *cluster as u64 | 1 << 63 } else { *root as u64 };
            match first.get(&of) {
                Some((hit, best)) => {
                    let why = if best == root { WhyBelow::Replica } else { WhyBelow::Collection };
                    hits[*hit].folded.push(Folded { url, why });
                }
                None => {
                    first.insert(of, (hits.len(), *root));
                    hits.push(Hit { url, folded: Vec::new() });
                }
            }
        }
        hits
    }
}

/// The component of each page of the overlap job's tables.
fn components(store: &Store, chunking: Chunking) -> Result<ByKey<u64, i64>> {
    let results = Results::committed(store, "overlap")?;
    let results = results.context("the store has no tables of overlap any more: run the collections job again")?;
    let mut components = ByKey::default();
    each_batch(&results, ComponentRow::NAME, &["chunking", "doc", "component"], |batch| {
        let chunkings: &StringArray = field(batch, "chunking")?;
        let (docs, names): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "component")?);
        let rows = (0..batch.num_rows()).filter(|row| chunkings.value(*row) == chunking.name());
        components.extend(rows.map(|row| (docs.value(row) as u64, names.value(row))));
        Ok(())
    })?;
    Ok(components)
}

/// Calls `each` with the batches of a table of committed results.
fn each_batch(
    results: &Results,
    table: &str,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    results.committed_files(table)?.into_iter().try_for_each(|file| Scan::open(file, columns)?.for_each(&mut each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_and_collections_come_once_and_all_else_stays() {
        let urls = [
            "http://a.example/1",
            "http://a.example/2",
            "http://b.example/1",
            "http://c.example/",
            "http://d.example/",
        ];
        let places = [(1, 1), (2, 1), (1, 1), (7, -1), (7, -1)].map(|(root, cluster)| Membership { root, cluster });
        let roll_up = RollUp(urls.iter().map(|url| key(url)).zip(places).collect());
        let list =
            ["no URL", urls[3], urls[1], "http://A.example:80/1#top", urls[2], urls[1], urls[4], "http://e.example/"];
        let hits = roll_up.fold(&list);
        let text: Vec<String> = hits.iter().map(|hit| serde_json::to_string(hit).unwrap()).collect();
        assert_eq!(
            text,
            [
                r#"{"url":"no URL"}"#,
                r#"{"url":"http://c.example/","folded":[{"url":"http://d.example/","why":"replica"}]}"#,
                concat!(
                    r#"{"url":"http://a.example/2","folded":[{"url":"http://A.example:80/1#top","why":"collection"},"#,
                    r#"{"url":"http://b.example/1","why":"collection"},{"url":"http://a.example/2","why":"replica"}]}"#
                ),
                r#"{"url":"http://e.example/"}"#,
            ]
        );
        assert!(roll_up.fold(&[]).is_empty());
    }
}
