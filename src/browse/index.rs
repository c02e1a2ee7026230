//! What has no order in the tables by which it could be found, in one: the clusters of a week by
//! size, looseness, growth and hosts; the pages of each cluster in all weeks; its changes; the
//! pages of each host; and what studies found of hosts.
//!
//! It is made once, in one pass over the tables of clusters and changes and some columns of others.
//! What has a row for each page is sorted into temporary files ([`SortedRowFile`]); in memory is
//! what has a row for each cluster (about 60 bytes) and for each host (its name, and about 40).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};
use arrow_array::{Array as _, BooleanArray, Float32Array, Int64Array, StringArray};
use serde::{Deserialize, Serialize};

use super::request::ClusterOrder;
use super::sorted_rows::{RowSorter, Scratch, SortedRowFile};
use crate::look::LookedWeek;
use crate::mirror::ReadStore;
use crate::query::ranges_of_results;
use crate::records::{DocId, KeyHash};
use crate::state::{CommittedWeek, Manifest, Results};
use crate::structures::{CompactSort as _, ExternalSort, Sortable};
use crate::studies::{AnyStudy, HostRows, StudySummary};
use crate::tables::{ChangeRow, ClusterRow, EvidenceRow, RowRange, Scan, Table as _, field};

/// Bytes of rows that are in memory while they are sorted; at most two sorts go on at a time.
const BUDGET: u64 = 128 << 20;
/// A place in a table: the number of the file, then that of the row.
const ROW_BITS: u32 = 40;

/// A very similar cluster of the week.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexedCluster {
    pub(super) id: i64,
    /// The page that stays if duplicates are removed; the first one if none does.
    pub(super) example: DocId,
    pub(super) pages: u32,
    /// Distinct hosts; 0 if its pages have no URLs.
    pub(super) hosts: u32,
    /// The mean and the least similarity of the links that hold it together; not a number if no
    /// link is known.
    pub(super) mean: f32,
    pub(super) least: f32,
    /// Its pages the week before; as many as now if there is no week before.
    pub(super) before: u32,
}

impl IndexedCluster {
    /// How many pages it gained since the week before.
    pub(super) fn growth(&self) -> i64 {
        i64::from(self.pages) - i64::from(self.before)
    }
}

/// A host of the week.
#[derive(Clone, Debug)]
pub(super) struct IndexedHost {
    pub(super) name: Box<str>,
    pub(super) pages: u32,
}

/// What a study found of hosts.
pub(super) struct HostFindings {
    pub(super) study: &'static str,
    pub(super) rows: HostRows,
    /// The files of the table; `None` if the store does not have it until the week of the index.
    files: Option<Vec<RowRange>>,
}

/// The index of a week.
pub(super) struct Index {
    /// By id.
    clusters: Vec<IndexedCluster>,
    /// The numbers of clusters in each order.
    orders: [Vec<u32>; ClusterOrder::ALL.len()],
    /// Most pages first.
    pub(super) hosts: Vec<IndexedHost>,
    /// The id of a cluster, the number of a week, a page.
    members: SortedRowFile,
    /// The hash of a host, the complement of the size of the cluster of a page, the page.
    of_hosts: SortedRowFile,
    /// The id of a cluster, the number of a week, a place in the table of changes of that week.
    changes: SortedRowFile,
    change_files: Vec<Vec<RowRange>>,
    /// The hash of a host, the number of a study in `of_studies`, a place in its table.
    findings: SortedRowFile,
    /// Those whose rows name two hosts come first.
    pub(super) of_studies: Vec<HostFindings>,
}

/// What an index is made of.
pub(super) struct Sources<'a> {
    pub(super) store: &'a ReadStore,
    pub(super) manifest: &'a Manifest,
    pub(super) week: &'a LookedWeek<'a>,
    /// The weeks until this one, oldest first.
    pub(super) weeks: &'a [CommittedWeek],
    /// Says how far it is.
    pub(super) notify: &'a dyn Fn(&str),
    /// Set if the user wants it to stop.
    pub(super) is_stopped: &'a AtomicBool,
}

/// A page of a cluster.
#[derive(Serialize, Deserialize)]
struct IndexedPage {
    id: i64,
    doc: i64,
    host: Option<u64>,
    similarity: Option<f32>,
    stays: bool,
}

impl Sortable for IndexedPage {
    type Key = (i64, i64);

    fn key(&self) -> (i64, i64) {
        (self.id, self.doc)
    }

    fn weight(&self) -> usize {
        size_of::<IndexedPage>()
    }
}

/// The pages of clusters and the changes of all weeks: as the fields of [`Index`].
struct OfWeeks {
    members: SortedRowFile,
    changes: SortedRowFile,
    change_files: Vec<Vec<RowRange>>,
    /// What clusters of this week that are new, grew or shrank had the week before, by id.
    before: Vec<(i64, i64)>,
}

/// What stands for a host in sorted rows.
fn hash(host: &str) -> u64 {
    KeyHash::of(host).halves()[0]
}

impl Sources<'_> {
    fn check_goes_on(&self) -> Result<()> {
        if self.is_stopped.load(Ordering::Relaxed) {
            bail!("stopped while the index was made");
        }
        Ok(())
    }

    /// Makes the index.
    ///
    /// # Errors
    /// If a table cannot be read, a temporary file cannot be written, or the user stops it.
    pub(super) fn index(&self) -> Result<Index> {
        // It goes at the end of this function. The files of sorted rows stay open without names, so
        // nothing is left behind, however the process ends.
        let scratch = Scratch::new()?;
        let OfWeeks { members, changes, change_files, before } = self.weeks(&scratch)?;
        let (clusters, hosts, of_hosts) = self.pages(&scratch, &before)?;
        let (findings, of_studies) = self.findings(&scratch)?;
        let ordered = |order: ClusterOrder| {
            let mut numbers: Vec<u32> = (0..clusters.len() as u32).collect();
            let of = |number: &u32| &clusters[*number as usize];
            match order {
                ClusterOrder::Size => numbers.sort_rows_by_key(|number| (Reverse(of(number).pages), of(number).id)),
                ClusterOrder::Hosts => {
                    numbers.sort_rows_by_key(|number| {
                        (Reverse(of(number).hosts), Reverse(of(number).pages), of(number).id)
                    });
                }
                ClusterOrder::Growth => {
                    numbers.sort_rows_by_key(|number| {
                        (Reverse(of(number).growth()), Reverse(of(number).pages), of(number).id)
                    });
                }
                // Similarities are from 0 to 1: their bits ascend as they do, and what is not a
                // number comes last.
                ClusterOrder::Loose => numbers
                    .sort_rows_by_key(|number| (of(number).mean.to_bits(), Reverse(of(number).pages), of(number).id)),
            }
            numbers
        };
        let orders = ClusterOrder::ALL.map(ordered);
        Ok(Index { orders, clusters, hosts, members, of_hosts, changes, change_files, findings, of_studies })
    }

    /// What is read of all weeks.
    fn weeks(&self, scratch: &Scratch) -> Result<OfWeeks> {
        let mut members = RowSorter::new(scratch, "members", BUDGET);
        let mut changes = RowSorter::new(scratch, "changes", BUDGET);
        let (mut files, mut before) = (Vec::new(), Vec::new());
        for (number, week) in (0..).zip(self.weeks) {
            (self.notify)(&format!(
                "making the index: clusters of week {}, {} of {}",
                week.week,
                number + 1,
                self.weeks.len()
            ));
            for table in [ClusterRow::NAME, ChangeRow::NAME] {
                self.store.need(table, &[&format!("{}/", week.week.folder())])?;
            }
            let tables = self.store.store().tables(week)?;
            for rows in tables.all(ClusterRow::NAME) {
                Scan::open(rows, &["doc", "cluster_id"])?.for_each(|batch| {
                    let [docs, ids] = [field::<Int64Array>(batch, "doc")?, field(batch, "cluster_id")?];
                    let of_clusters = (0..batch.num_rows()).filter(|row| ids.is_valid(*row));
                    of_clusters
                        .map(|row| [ids.value(row) as u64, number, docs.value(row) as u64])
                        .try_for_each(|row| members.push(row))?;
                    self.check_goes_on()
                })?;
            }
            let is_last = number + 1 == self.weeks.len() as u64;
            for (file, rows) in (0u64..).zip(tables.all(ChangeRow::NAME)) {
                let mut place = file << ROW_BITS;
                Scan::open(rows, &["cluster_id", "event", "other_cluster_id", "before"])?.for_each(|batch| {
                    let longs = |name| field::<Int64Array>(batch, name);
                    let (ids, others, befores) = (longs("cluster_id")?, longs("other_cluster_id")?, longs("before")?);
                    let events: &StringArray = field(batch, "event")?;
                    for row in 0..batch.num_rows() {
                        let id = ids.value(row);
                        changes.push([id as u64, number, place])?;
                        if others.is_valid(row) && others.value(row) != id {
                            changes.push([others.value(row) as u64, number, place])?;
                        }
                        if is_last && matches!(events.value(row), "birth" | "grow" | "shrink") {
                            before.push((id, befores.value(row)));
                        }
                        place += 1;
                    }
                    self.check_goes_on()
                })?;
            }
            files.push(tables.all(ChangeRow::NAME).to_vec());
        }
        before.sort_rows();
        Ok(OfWeeks { members: members.finish()?, changes: changes.finish()?, change_files: files, before })
    }

    /// The clusters of this week, its hosts, and the pages of these.
    fn pages(
        &self,
        scratch: &Scratch,
        before: &[(i64, i64)],
    ) -> Result<(Vec<IndexedCluster>, Vec<IndexedHost>, SortedRowFile)> {
        let mut members: ExternalSort<IndexedPage> = ExternalSort::new(&scratch.file("clusters"), BUDGET);
        let mut of_hosts = RowSorter::new(scratch, "hosts", BUDGET);
        let mut hosts: HashMap<Box<str>, u32> = HashMap::new();
        (self.notify)(&format!("making the index: pages of week {}", self.week.week.week));
        for shard in 0..self.week.method.shards {
            let similarities = self.similarities(shard)?;
            for rows in self.week.cluster_rows(shard)? {
                let columns = ["doc", "host", "cluster_id", "canonical", "similar_size"];
                Scan::open(rows, &columns)?.for_each(|batch| {
                    let longs = |name| field::<Int64Array>(batch, name);
                    let (docs, ids, sizes) = (longs("doc")?, longs("cluster_id")?, longs("similar_size")?);
                    let names: &StringArray = field(batch, "host")?;
                    let stays: &BooleanArray = field(batch, "canonical")?;
                    for row in 0..batch.num_rows() {
                        let doc = docs.value(row);
                        let host = names.is_valid(row).then(|| hash(names.value(row)));
                        if let Some(host) = host {
                            of_hosts.push([host, !(sizes.value(row) as u64), doc as u64])?;
                            match hosts.get_mut(names.value(row)) {
                                Some(pages) => *pages += 1,
                                None => _ = hosts.insert(names.value(row).into(), 1),
                            }
                        }
                        if ids.is_valid(row) {
                            let found = similarities.binary_search_by_key(&doc, |(doc, _)| *doc).ok();
                            let similarity = found.map(|found| similarities[found].1);
                            members.push(IndexedPage {
                                id: ids.value(row),
                                doc,
                                host,
                                similarity,
                                stays: stays.value(row),
                            })?;
                        }
                    }
                    self.check_goes_on()
                })?;
            }
        }
        let mut hosts: Vec<IndexedHost> = hosts.into_iter().map(|(name, pages)| IndexedHost { name, pages }).collect();
        hosts.sort_items_by(|a, b| b.pages.cmp(&a.pages).then_with(|| a.name.cmp(&b.name)));
        Ok((clusters(members, before)?, hosts, of_hosts.finish()?))
    }

    /// The similarity of each page of a shard to the page that it hangs on.
    fn similarities(&self, shard: u32) -> Result<Vec<(i64, f32)>> {
        let mut found = Vec::new();
        let Some(rows) = self.week.of_shard(EvidenceRow::NAME, shard) else { return Ok(found) };
        Scan::open(rows, &["doc", "similarity"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            let similarities: &Float32Array = field(batch, "similarity")?;
            found.extend(docs.values().iter().copied().zip(similarities.values().iter().copied()));
            Ok(())
        })?;
        Ok(found)
    }

    /// What studies found of hosts until this week, as it is.
    fn findings(&self, scratch: &Scratch) -> Result<(SortedRowFile, Vec<HostFindings>)> {
        let mut findings = RowSorter::new(scratch, "findings", BUDGET);
        let of_study =
            |study: &AnyStudy| study.host_rows().map(|rows| HostFindings { study: study.name(), rows, files: None });
        let mut of_studies: Vec<HostFindings> = AnyStudy::all().iter().filter_map(of_study).collect();
        of_studies.sort_items_by_key(|of| Reverse(of.rows.hosts.len()));
        for (number, HostFindings { study, rows: HostRows { table, hosts, .. }, files }) in (0..).zip(&mut of_studies) {
            let Some(commit) = self.manifest.results.get(*study) else { continue };
            let results = Results::of(self.store.store(), study, *commit);
            self.store.need_own(&results.own_folder())?;
            let until = StudySummary::read(self.store.store(), study, *commit)?.week();
            if until.is_none_or(|until| until > self.week.week.week || self.manifest.outdates(until, study)) {
                continue;
            }
            let of_table = ranges_of_results(self.store, &results, table)?;
            for (file, rows) in (0u64..).zip(&of_table) {
                let mut place = file << ROW_BITS;
                Scan::open(rows, hosts)?.for_each(|batch| {
                    let names = hosts.iter().map(|column| field::<StringArray>(batch, column));
                    let names = names.collect::<Result<Vec<&StringArray>>>()?;
                    for row in 0..batch.num_rows() {
                        let mut hashes: Vec<u64> = names.iter().map(|names| hash(names.value(row))).collect();
                        hashes.dedup();
                        hashes.into_iter().try_for_each(|host| findings.push([host, number, place]))?;
                        place += 1;
                    }
                    self.check_goes_on()
                })?;
            }
            *files = Some(of_table);
        }
        Ok((findings.finish()?, of_studies))
    }
}

/// The clusters, by id, given their pages, and what those that changed had before.
fn clusters(members: ExternalSort<IndexedPage>, before: &[(i64, i64)]) -> Result<Vec<IndexedCluster>> {
    let mut clusters: Vec<IndexedCluster> = Vec::new();
    let mut sorted = members.sorted()?;
    let mut next = sorted.record()?;
    let mut hosts: Vec<u64> = Vec::new();
    while let Some(first) = next {
        let (id, mut example) = (first.id, first.doc);
        let (mut pages, mut links, mut sum, mut least, mut has_example) = (0, 0u32, 0.0, f32::INFINITY, false);
        hosts.clear();
        next = Some(first);
        while let Some(member) = next.take_if(|member| member.id == id) {
            pages += 1;
            if member.stays && !has_example {
                (example, has_example) = (member.doc, true);
            }
            hosts.extend(member.host);
            if let Some(similarity) = member.similarity {
                (links, sum, least) = (links + 1, sum + f64::from(similarity), least.min(similarity));
            }
            next = sorted.record()?;
        }
        hosts.sort_rows();
        hosts.dedup();
        let (mean, least) = if links == 0 { (f32::NAN, f32::NAN) } else { ((sum / f64::from(links)) as f32, least) };
        let changed = before.binary_search_by_key(&id, |(id, _)| *id).ok();
        let before = changed.map_or(pages, |place| before[place].1 as u32);
        let example = DocId::from_table(example);
        clusters.push(IndexedCluster { id, example, pages, hosts: hosts.len() as u32, mean, least, before });
    }
    Ok(clusters)
}

impl Index {
    /// How many clusters there are.
    pub(super) fn clusters(&self) -> u64 {
        self.clusters.len() as u64
    }

    /// Some clusters of an order.
    pub(super) fn ordered(
        &self,
        order: ClusterOrder,
        from: usize,
        most: usize,
    ) -> impl Iterator<Item = &IndexedCluster> {
        self.orders[order as usize].iter().skip(from).take(most).map(|number| &self.clusters[*number as usize])
    }

    /// The cluster with an id; `None` if the week has none.
    pub(super) fn cluster(&self, id: i64) -> Option<&IndexedCluster> {
        let place = self.clusters.binary_search_by_key(&id, |cluster| cluster.id).ok()?;
        Some(&self.clusters[place])
    }

    /// Whether a week has or had a cluster with an id.
    ///
    /// # Errors
    /// If the file cannot be read, as of all that follow.
    pub(super) fn knows(&self, id: i64) -> Result<bool> {
        Ok(!self.members.range([id as u64])?.is_empty())
    }

    /// How many pages a cluster had in a week, by the number of the week.
    pub(super) fn size(&self, id: i64, week: u64) -> Result<u64> {
        let places = self.members.range([id as u64, week])?;
        Ok(places.end - places.start)
    }

    /// Some pages of a cluster in a week, by document.
    pub(super) fn members(&self, id: i64, week: u64, from: u64, most: u64) -> Result<Vec<DocId>> {
        let places = self.members.range([id as u64, week])?;
        let from = places.start.saturating_add(from).min(places.end);
        let rows = self.members.read(from..places.end.min(from.saturating_add(most)))?;
        Ok(rows.into_iter().map(|[_, _, doc]| DocId::from_table(doc as i64)).collect())
    }

    /// The number of a page in the list of a cluster's pages in a week, from 1; `None` if it was
    /// not in it.
    pub(super) fn number(&self, id: i64, week: u64, doc: DocId) -> Result<Option<u64>> {
        let place = self.members.range([id as u64, week, doc.to_table() as u64])?;
        let first = self.members.range([id as u64, week])?.start;
        Ok((!place.is_empty()).then(|| place.start - first + 1))
    }

    /// Whether a page was in a cluster in a week.
    pub(super) fn has_member(&self, id: i64, week: u64, doc: DocId) -> Result<bool> {
        Ok(!self.members.range([id as u64, week, doc.to_table() as u64])?.is_empty())
    }

    /// How many pages a host has.
    pub(super) fn pages_of_host(&self, host: &str) -> Result<u64> {
        let places = self.of_hosts.range([hash(host)])?;
        Ok(places.end - places.start)
    }

    /// Some pages of a host: those of the largest clusters first.
    pub(super) fn members_of_host(&self, host: &str, from: u64, most: u64) -> Result<Vec<DocId>> {
        let places = self.of_hosts.range([hash(host)])?;
        let from = places.start.saturating_add(from).min(places.end);
        let rows = self.of_hosts.read(from..places.end.min(from.saturating_add(most)))?;
        Ok(rows.into_iter().map(|[_, _, doc]| DocId::from_table(doc as i64)).collect())
    }

    /// The first rows of the changes of a week that name a cluster, and how many there are.
    pub(super) fn changes(&self, id: i64, week: u64, most: u64) -> Result<(u64, Vec<Scan>)> {
        let places = self.changes.range([id as u64, week])?;
        let rows = self.changes.read(places.start..places.end.min(places.start + most))?;
        let files = self.change_files.get(week as usize).context("the number of a week")?;
        let columns = ["cluster_id", "event", "other_cluster_id", "before", "after", "documents"];
        Ok((places.end - places.start, scans(files, rows.into_iter().map(|row| row[2]), &columns)?))
    }

    /// The first rows of a study that name a host, and how many there are; `None` if the store has
    /// no such table until this week. `number` is that of the study in `of_studies`.
    pub(super) fn findings(
        &self,
        number: usize,
        host: &str,
        columns: &[&str],
        most: u64,
    ) -> Result<Option<(u64, Vec<Scan>)>> {
        let Some(files) = &self.of_studies[number].files else { return Ok(None) };
        let places = self.findings.range([hash(host), number as u64])?;
        let rows = self.findings.read(places.start..places.end.min(places.start + most))?;
        Ok(Some((places.end - places.start, scans(files, rows.into_iter().map(|row| row[2]), columns)?)))
    }
}

/// The rows at some places of a table, which ascend, file by file.
fn scans(files: &[RowRange], places: impl Iterator<Item = u64>, columns: &[&str]) -> Result<Vec<Scan>> {
    let places: Vec<u64> = places.collect();
    let file_of = |place: &u64| (place >> ROW_BITS) as usize;
    let of_file = |places: &[u64]| {
        let file = files.get(file_of(&places[0])).context("the number of a file")?;
        let rows: Vec<u64> = places.iter().map(|place| place & ((1 << ROW_BITS) - 1)).collect();
        Scan::columns_of_rows(file, columns, &rows)
    };
    places.chunk_by(|a, b| file_of(a) == file_of(b)).map(of_file).collect()
}
