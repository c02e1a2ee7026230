//! Both ways side by side: the mirrors that this job finds by URL, those that the mirrors job found
//! by content in the same week, and the directories that the collections job found to be copies.
//!
//! ```text
//! pairs of either way ─▶ clusters with pages of both hosts, and an example
//! principal collections and their copies ─▶ clusters with pages of both, and an example
//! ```
//!
//! Every worker has the pairs of both ways in memory, and the collections that are not noise; and
//! 24 bytes for each of its own pages of these hosts that are in clusters.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::{Context as _, Result};
use arrow_array::{BooleanArray, Date32Array, Int64Array, StringArray};
use nigh_exchange::Context;

use super::MirrorWays;
use super::steps::{ListedPairs, TestedPair};
use crate::records::DocId;
use crate::state::{PastWeek, Results, Store};
use crate::structures::{CompactSort, Ownership};
use crate::studies::collections::Collections;
use crate::studies::mirrors::Mirrors;
use crate::studies::mirrors::steps::{HostName, ListedHost, PageOfPlace, PairTable, SharedPages, shared_pages};
use crate::studies::{CommittedTables, StudyPlan};
use crate::tables::studies::collections::{CollectionPageRow, CollectionRow};
use crate::tables::studies::mirrors::MirrorPairRow;
use crate::tables::studies::mirrors_by_url::ComparedRow;
use crate::tables::{ClusterRow, Scan, Table, field};

/// Two names, the smaller one first.
type NamePair = [String; 2];

/// What the mirrors job says of a pair.
#[derive(Clone, Debug)]
struct ByContent {
    class: String,
    is_mirror: bool,
}

/// What the compared pairs are made from; the same at every worker.
pub(super) struct ComparedInputs<'a> {
    pub plan: &'a StudyPlan,
    pub owned: &'a Ownership,
    pub listed: &'a ListedPairs,
    pub tested: &'a [TestedPair],
}

/// The rows of the table, and whether there were tables of the other jobs for the week.
pub(super) struct ComparedTable {
    pub rows: Vec<ComparedRow>,
    pub has_mirrors: bool,
    pub has_collections: bool,
}

impl ComparedTable {
    /// The pairs of hosts by the ways that find them; `None` without tables of the mirrors job.
    pub fn ways(&self) -> Option<MirrorWays> {
        let count = |by_content: bool, by_url: bool| {
            let ways = (Some(by_content), by_url);
            self.rows.iter().filter(|row| row.kind == HOST && (row.by_content, row.by_url) == ways).count() as u64
        };
        self.has_mirrors.then(|| MirrorWays {
            both: count(true, true),
            by_content: count(true, false),
            by_url: count(false, true),
        })
    }

    /// The pairs of directories; `None` without tables of the collections job.
    pub fn directories(&self) -> Option<u64> {
        self.has_collections.then(|| self.rows.iter().filter(|row| row.kind == DIRECTORY).count() as u64)
    }
}

/// The kinds of rows.
const HOST: &str = "host";
const DIRECTORY: &str = "directory";

/// A collection that is no noise: its similar cluster, whether it is the principal one of that, its
/// name, its host and its directory.
type DirectoryOfCluster = (i64, Reverse<bool>, i64, String, String);

impl ComparedInputs<'_> {
    /// Compares both ways. Every worker calls it and returns the same.
    ///
    /// # Errors
    /// If a file cannot be read or written, or a worker of this process failed.
    pub fn rows(&self, cx: &mut Context) -> Result<ComparedTable> {
        let Some(week) = self.plan.history.weeks.last() else {
            return Ok(ComparedTable { rows: Vec::new(), has_mirrors: false, has_collections: false });
        };
        let store = Store::at(&self.plan.history.store);
        let by_content = by_content(&store, week)?;
        let collections = collections_of(&store, week)?;
        let by_url = self.by_url();
        let mut rows = self.hosts(cx, &by_url, by_content.as_ref())?;
        if let Some((results, least_size)) = &collections {
            rows.extend(self.directories(cx, results, *least_size, &by_url)?);
        }
        Ok(ComparedTable { rows, has_mirrors: by_content.is_some(), has_collections: collections.is_some() })
    }

    /// The listed pairs by their names: the number in the list, and whether it is a mirror.
    fn by_url(&self) -> BTreeMap<NamePair, (usize, bool)> {
        let pairs = self.listed.pairs.iter().zip(self.tested).enumerate();
        let name = |host: usize| self.listed.hosts[host].name.clone();
        pairs
            .map(|(number, (pair, tested))| (sorted(pair.hosts.map(name)), (number, tested.level.is_mirror())))
            .collect()
    }

    /// The rows of hosts that either way finds.
    fn hosts(
        &self,
        cx: &mut Context,
        by_url: &BTreeMap<NamePair, (usize, bool)>,
        by_content: Option<&BTreeMap<NamePair, ByContent>>,
    ) -> Result<Vec<ComparedRow>> {
        let of_urls = by_url.iter().filter(|(_, (_, is_mirror))| *is_mirror).map(|(pair, _)| pair);
        let of_content = by_content.into_iter().flatten().filter(|(_, of)| of.is_mirror).map(|(pair, _)| pair);
        let pairs: BTreeSet<&NamePair> = of_urls.chain(of_content).collect();
        let names: BTreeSet<&String> = pairs.iter().flat_map(|pair| pair.iter()).collect();
        let table = places(
            names.iter().map(|name| HostName::of(name)),
            pairs.iter().map(|pair| pair.each_ref().map(|name| HostName::of(name))),
        );
        let pages = self.pages_of_hosts(&table)?;
        let shared = shared_pages(cx, pages, &table)?;
        let texts = self.texts(cx, shared.values())?;
        let row = |pair: &NamePair| -> Result<ComparedRow> {
            let listed = by_url.get(pair);
            let content = by_content.map(|all| all.get(pair));
            let shared = found(&table, &shared, pair.each_ref().map(|name| HostName::of(name)));
            Ok(ComparedRow {
                kind: HOST,
                hosts: pair.clone(),
                prefixes: None,
                collections: None,
                by_content: content.map(|of| of.is_some_and(|of| of.is_mirror)),
                by_url: listed.is_some_and(|(_, is_mirror)| *is_mirror),
                class: content.flatten().map(|of| of.class.clone()),
                rank: listed.map(|(number, _)| *number as i64 + 1),
                level: listed.map(|(number, _)| self.tested[*number].level.name()),
                score: listed.map(|(number, _)| self.listed.pairs[*number].candidate.score()),
                shared: shared.map_or(0, |shared| shared.clusters as i64),
                examples: examples(shared, &texts)?,
            })
        };
        pairs.into_iter().map(row).collect()
    }

    /// The own pages of hosts in pairs that are in clusters.
    fn pages_of_hosts(&self, table: &PairTable) -> Result<Vec<PageOfPlace>> {
        let history = &self.plan.history;
        let (number, mut pages) = (history.weeks.len() - 1, Vec::new());
        let tables = history.tables(number);
        for shard in self.owned.shards() {
            for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
                Scan::open(&rows, &["doc", "host", "similar_root", "similar_size"])?.for_each(|batch| {
                    let hosts: &StringArray = field(batch, "host")?;
                    let column = |name| field::<Int64Array>(batch, name);
                    let (docs, roots, sizes) = (column("doc")?, column("similar_root")?, column("similar_size")?);
                    for row in (0..batch.num_rows()).filter(|row| sizes.value(*row) > 1) {
                        if let Some(place) = table.number(HostName::of(hosts.value(row))) {
                            let [cluster, doc] = [roots, docs].map(|ids| DocId::from_table(ids.value(row)));
                            pages.push(PageOfPlace { cluster, place: place.into(), doc });
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(pages)
    }

    /// The rows of directories: a principal collection with each other one of its similar cluster,
    /// if neither is noise.
    fn directories(
        &self,
        cx: &mut Context,
        results: &Results,
        least_size: i64,
        by_url: &BTreeMap<NamePair, (usize, bool)>,
    ) -> Result<Vec<ComparedRow>> {
        let directories = self.own_directories(results, least_size)?;
        let directories: Vec<DirectoryOfCluster> = cx.sorted(directories)?;
        let copies = directories.chunk_by(|a, b| a.0 == b.0).filter(|of_cluster| of_cluster[0].1.0);
        let pairs: Vec<[&DirectoryOfCluster; 2]> =
            copies.flat_map(|of_cluster| of_cluster[1..].iter().map(|copy| [&of_cluster[0], copy])).collect();
        let name = |directory: &DirectoryOfCluster| HostName(directory.2 as u64);
        let table = places(directories.iter().map(name), pairs.iter().map(|pair| pair.map(name)));
        let mut pages = Vec::new();
        for (_, own) in results.of_own_shards(CollectionPageRow::NAME, self.owned)? {
            Scan::open(own, &["doc", "collection", "root"])?.for_each(|batch| {
                let column = |name| field::<Int64Array>(batch, name);
                let (docs, collections, roots) = (column("doc")?, column("collection")?, column("root")?);
                for row in 0..batch.num_rows() {
                    if let Some(place) = table.number(HostName(collections.value(row) as u64)) {
                        let [cluster, doc] = [roots, docs].map(|ids| DocId::from_table(ids.value(row)));
                        pages.push(PageOfPlace { cluster, place: place.into(), doc });
                    }
                }
                Ok(())
            })?;
        }
        let shared = shared_pages(cx, pages, &table)?;
        let texts = self.texts(cx, shared.values())?;
        let mut rows = Vec::new();
        for pair in pairs {
            let shared = found(&table, &shared, pair.map(name));
            let hosts = pair.map(|directory| directory.3.clone());
            rows.push(ComparedRow {
                kind: DIRECTORY,
                by_content: Some(true),
                by_url: by_url.get(&sorted(hosts.clone())).is_some_and(|(_, is_mirror)| *is_mirror),
                hosts,
                prefixes: Some(pair.map(|directory| directory.4.clone())),
                collections: Some(pair.map(|directory| directory.2)),
                class: None,
                rank: None,
                level: None,
                score: None,
                shared: shared.map_or(0, |shared| shared.clusters as i64),
                examples: examples(shared, &texts)?,
            });
        }
        rows.sort_items_by(|a, b| (&a.prefixes, &a.hosts).cmp(&(&b.prefixes, &b.hosts)));
        Ok(rows)
    }

    /// The collections of own shards that have a directory and are no noise.
    fn own_directories(&self, results: &Results, least_size: i64) -> Result<Vec<DirectoryOfCluster>> {
        let mut directories = Vec::new();
        for (_, own) in results.of_own_shards(CollectionRow::NAME, self.owned)? {
            let columns = ["cluster", "collection", "host", "prefix", "pages", "principal"];
            Scan::open(own, &columns)?.for_each(|batch| {
                let column = |name| field::<Int64Array>(batch, name);
                let (clusters, collections, pages) = (column("cluster")?, column("collection")?, column("pages")?);
                let [hosts, prefixes]: [&StringArray; 2] = [field(batch, "host")?, field(batch, "prefix")?];
                let principal: &BooleanArray = field(batch, "principal")?;
                for row in (0..batch.num_rows()).filter(|row| pages.value(*row) >= least_size) {
                    let [host, prefix] = [hosts, prefixes].map(|texts| texts.value(row).to_owned());
                    if !prefix.is_empty() {
                        let is_principal = Reverse(principal.value(row));
                        directories.push((clusters.value(row), is_principal, collections.value(row), host, prefix));
                    }
                }
                Ok(())
            })?;
        }
        Ok(directories)
    }

    /// The URLs of examples, at every worker.
    fn texts<'a>(
        &self,
        cx: &mut Context,
        shared: impl Iterator<Item = &'a SharedPages>,
    ) -> Result<BTreeMap<DocId, String>> {
        let wanted: BTreeSet<DocId> = shared.flat_map(|shared| shared.example).collect();
        let history = &self.plan.history;
        let (number, mut own) = (history.weeks.len() - 1, Vec::new());
        let tables = history.tables(number);
        for shard in self.owned.shards().filter(|shard| wanted.iter().any(|doc| doc.shard() == *shard)) {
            for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
                Scan::open(&rows, &["doc", "url"])?.for_each(|batch| {
                    let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                    let docs = docs.values().iter().map(|doc| DocId::from_table(*doc));
                    let rows = docs.zip(urls.iter().flatten()).filter(|(doc, _)| wanted.contains(doc));
                    own.extend(rows.map(|(doc, url)| (doc, url.to_owned())));
                    Ok(())
                })?;
            }
        }
        Ok(cx.sorted(own)?.into_iter().collect())
    }
}

/// The URLs of an example.
fn examples(shared: Option<SharedPages>, texts: &BTreeMap<DocId, String>) -> Result<Option<NamePair>> {
    let Some(shared) = shared else { return Ok(None) };
    let text =
        |doc: DocId| texts.get(&doc).cloned().with_context(|| format!("the table `clusters` lacks document {doc}"));
    let [a, b] = shared.example;
    Ok(Some([text(a)?, text(b)?]))
}

/// Two names in their order.
fn sorted(mut pair: NamePair) -> NamePair {
    pair.sort_items();
    pair
}

/// The table of pairs of places, in the order of their names.
fn places(names: impl Iterator<Item = HostName>, pairs: impl Iterator<Item = [HostName; 2]>) -> Rc<PairTable> {
    let place = |name| ListedHost { clustered: Reverse(0), name, pages: 0, addresses: 0 };
    let pairs: Vec<(HostName, HostName)> = pairs.map(|[a, b]| (a, b)).collect();
    Rc::new(PairTable::of(names.map(place).collect(), &pairs))
}

/// What two places have in common, with the example of the first one first.
fn found(table: &PairTable, shared: &BTreeMap<usize, SharedPages>, pair: [HostName; 2]) -> Option<SharedPages> {
    let [a, b] = [table.number(pair[0])?, table.number(pair[1])?];
    let mut shared = *shared.get(&table.pair(a.min(b), a.max(b))?)?;
    if a > b {
        shared.example.reverse();
    }
    Some(shared)
}

/// The pairs that the mirrors job found in a week, if its tables are of the week as it is.
fn by_content(store: &Store, week: &PastWeek) -> Result<Option<BTreeMap<NamePair, ByContent>>> {
    let Some(CommittedTables { results, summary }) = CommittedTables::<Mirrors>::find(store)? else { return Ok(None) };
    let is_of_week = |(date, commit)| (date, commit) == (week.week, week.made);
    if !summary.mirrors.iter().any(|of| is_of_week((of.week, of.week_commit))) {
        return Ok(None);
    }
    let mut pairs = BTreeMap::new();
    let columns = ["week", "host_a", "host_b", "class", "mirror"];
    Scan::open(results.committed_table(MirrorPairRow::NAME, 0), &columns)?.for_each(|batch| {
        let (weeks, mirrors): (&Date32Array, &BooleanArray) = (field(batch, "week")?, field(batch, "mirror")?);
        let [a, b, classes]: [&StringArray; 3] =
            [field(batch, "host_a")?, field(batch, "host_b")?, field(batch, "class")?];
        for row in (0..batch.num_rows()).filter(|row| weeks.value(*row) == week.week.days()) {
            let pair = sorted([a, b].map(|names| names.value(row).to_owned()));
            let (class, is_mirror) = (classes.value(row).to_owned(), mirrors.value(row));
            // A pair may have a row of class `redirect` in both directions.
            let of_pair = pairs.entry(pair).or_insert_with(|| ByContent { class: class.clone(), is_mirror });
            if is_mirror {
                *of_pair = ByContent { class, is_mirror };
            }
        }
        Ok(())
    })?;
    Ok(Some(pairs))
}

/// The tables of the collections job, and the pages that a collection of it has at least, if they
/// are of the week as it is.
fn collections_of(store: &Store, week: &PastWeek) -> Result<Option<(Results, i64)>> {
    let Some(CommittedTables { results, summary }) = CommittedTables::<Collections>::find(store)? else {
        return Ok(None);
    };
    let is_of_week = (summary.last, summary.week_commit) == (week.week, week.made);
    Ok(is_of_week.then(|| (results, summary.least_size.into())))
}
