//! The clusters of a week, the pages of a cluster or of a host, and all that is known of a page.
//!
//! Cost: a pass over some columns of the table of clusters, and the rows of the pages that are
//! listed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::{Result, ensure};
use arrow_array::{Array as _, BooleanArray, Float32Array, Int32Array, Int64Array, StringArray};
use serde::Serialize;

use super::week::{LookedPage, LookedWeek, Pages, page_of};
use crate::records::{DocId, Level, mix};
use crate::structures::CompactSort;
use crate::tables::{EvidenceRow, MissingRow, Scan, Table as _, field};
use crate::text::canonical_host;

/// A cluster.
#[derive(Clone, Debug, Serialize)]
pub struct LookedCluster {
    /// Its level.
    pub level: Level,
    /// Its smallest document.
    pub root: DocId,
    /// The id of a very similar cluster.
    pub cluster_id: Option<i64>,
    /// Its pages.
    pub pages: u64,
    /// Distinct hosts of these; 0 if they have no URLs.
    pub hosts: u64,
    /// The page of the root.
    pub example: LookedPage,
}

/// Why a page is in its cluster: a row of the table of evidence.
#[derive(Clone, Debug, Serialize)]
pub struct LookedEvidence {
    /// How the other page is known.
    pub neighbour: String,
    /// Supershingles that both have.
    pub agreements: i32,
    /// Their similarity, 0 to 1.
    pub similarity: f32,
    /// How it was found.
    pub found: String,
}

/// A page of a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedPage {
    /// The page.
    pub page: LookedPage,
    /// Why it is in its cluster; none for a root, and for a page that is alone.
    pub evidence: Option<LookedEvidence>,
}

/// The first pages of a cluster, or of a host.
#[derive(Clone, Debug, Serialize)]
pub struct PageList {
    /// All of its pages.
    pub pages: u64,
    /// How many of these do not stay if duplicates are removed.
    pub duplicates: u64,
    /// Distinct hosts.
    pub hosts: u64,
    /// Some pages.
    pub listed: Vec<ListedPage>,
}

/// A page of a week, or why there is none.
#[derive(Clone, Debug, Serialize)]
pub enum KnownPage {
    /// The week has it.
    #[serde(rename = "known")]
    Page {
        /// The page.
        #[serde(flatten)]
        page: Box<ListedPage>,
        /// The page of its cluster that stays if duplicates are removed; empty if none does.
        canonical: String,
    },
    /// The reason in the table of missing pages.
    #[serde(rename = "missing")]
    Missing(String),
}

/// The names of the columns of a level's clusters.
fn columns_of(level: Level) -> [String; 2] {
    ["root", "size"].map(|what| format!("{}_{what}", level.name()))
}

/// The `top` largest clusters of each of some levels that have at least two pages. Of equally large
/// ones, those with the smallest roots come first.
///
/// # Errors
/// If a table cannot be read.
pub fn largest(week: &LookedWeek<'_>, levels: &[Level], top: usize) -> Result<Vec<Vec<LookedCluster>>> {
    let names: Vec<[String; 2]> = levels.iter().copied().map(columns_of).collect();
    let columns = |own: &'static str, of_level: &[usize]| {
        let of_levels = names.iter().flat_map(|names| of_level.iter().map(|place| names[*place].as_str()));
        std::iter::once(own).chain(of_levels).collect::<Vec<&str>>()
    };
    // The largest so far, by descending size and ascending root.
    let mut best: Vec<BTreeSet<(std::cmp::Reverse<i64>, i64)>> = vec![BTreeSet::new(); levels.len()];
    week.each_cluster_row(&columns("doc", &[0, 1]), |batch| {
        let docs: &Int64Array = field(batch, "doc")?;
        for (best, [root, size]) in best.iter_mut().zip(&names) {
            let (roots, sizes): (&Int64Array, &Int64Array) = (field(batch, root)?, field(batch, size)?);
            for row in 0..batch.num_rows() {
                let size = sizes.value(row);
                if docs.value(row) == roots.value(row) && size > 1 {
                    best.insert((std::cmp::Reverse(size), docs.value(row)));
                    if best.len() > top {
                        best.pop_last();
                    }
                }
            }
        }
        Ok(())
    })?;
    let roots_of = |best: &BTreeSet<(std::cmp::Reverse<i64>, i64)>| best.iter().map(|(_, root)| *root).collect();
    let roots: Vec<Vec<i64>> = best.iter().map(roots_of).collect();
    let no_hosts = |roots: &Vec<i64>| roots.iter().map(|root| (*root, HashSet::new())).collect();
    let mut hosts: Vec<HashMap<i64, HashSet<String>>> = roots.iter().map(no_hosts).collect();
    week.each_cluster_row(&columns("host", &[0]), |batch| {
        let of_pages: &StringArray = field(batch, "host")?;
        for (hosts, [root, _]) in hosts.iter_mut().zip(&names) {
            let roots: &Int64Array = field(batch, root)?;
            for (root, host) in roots.values().iter().zip(of_pages) {
                if let (Some(of_cluster), Some(host)) = (hosts.get_mut(root), host)
                    && !of_cluster.contains(host)
                {
                    of_cluster.insert(host.to_owned());
                }
            }
        }
        Ok(())
    })?;
    let pages = week.pages(roots.iter().flatten().map(|root| DocId::from_table(*root)))?;
    let cluster = |(level, root, hosts): (Level, i64, u64)| {
        let root = DocId::from_table(root);
        let example = page_of(&pages, root, "the root of a cluster", week.week.week)?;
        let (cluster_id, pages) =
            (example.cluster_id.filter(|_| level == Level::Similar), example.clusters[level as usize].1);
        Ok(LookedCluster { level, root, cluster_id, pages, hosts, example })
    };
    let of_level = |place: usize| {
        let (level, hosts) = (levels[place], &hosts[place]);
        roots[place].iter().map(|root| cluster((level, *root, hosts[root].len() as u64))).collect()
    };
    (0..levels.len()).map(of_level).collect()
}

/// Some pages of a very similar cluster, for showing it.
#[derive(Clone, Debug)]
pub(super) struct ClusterSample {
    /// Its pages.
    pub(super) pages: u64,
    /// Distinct hosts of these; 0 if they have no URLs.
    pub(super) hosts: u64,
    /// The page that stays if duplicates are removed.
    pub(super) canonical: DocId,
    /// Other pages: all of them, or some that depend on their ids alone.
    pub(super) others: Vec<DocId>,
}

/// Samples of at most `top` other pages of very similar clusters, by their `cluster_id`, in one
/// pass. An id that the week does not have is left out.
pub(super) fn samples(week: &LookedWeek<'_>, ids: &BTreeSet<i64>, top: usize) -> Result<BTreeMap<i64, ClusterSample>> {
    #[derive(Default)]
    struct Found {
        pages: u64,
        hosts: HashSet<String>,
        canonical: Option<i64>,
        others: BTreeSet<(u64, i64)>,
    }
    let mut found: HashMap<i64, Found> = ids.iter().map(|id| (*id, Found::default())).collect();
    week.each_cluster_row(&["doc", "host", "cluster_id", "canonical"], |batch| {
        let [docs, of_pages] = [field::<Int64Array>(batch, "doc")?, field(batch, "cluster_id")?];
        let (hosts, canonical): (&StringArray, &BooleanArray) = (field(batch, "host")?, field(batch, "canonical")?);
        for (row, id) in of_pages.iter().enumerate() {
            let Some(found) = id.and_then(|id| found.get_mut(&id)) else { continue };
            let doc = docs.value(row);
            found.pages += 1;
            if hosts.is_valid(row) && !found.hosts.contains(hosts.value(row)) {
                found.hosts.insert(hosts.value(row).to_owned());
            }
            // Of several that stay, the first; the others are like any.
            if canonical.value(row) && found.canonical.is_none() {
                found.canonical = Some(doc);
                continue;
            }
            found.others.insert((mix(doc as u64), doc));
            if found.others.len() > top {
                found.others.pop_last();
            }
        }
        Ok(())
    })?;
    let sample = |(id, found): (i64, Found)| {
        let mut others: Vec<DocId> = found.others.iter().map(|(_, doc)| DocId::from_table(*doc)).collect();
        // If none stays, one of them stands for the cluster.
        let canonical = match found.canonical {
            Some(doc) => DocId::from_table(doc),
            None if others.is_empty() => return None,
            None => others.remove(0),
        };
        Some((id, ClusterSample { pages: found.pages, hosts: found.hosts.len() as u64, canonical, others }))
    };
    Ok(found.into_iter().filter_map(sample).collect())
}

/// The pages of a cluster: of a very similar one by its `cluster_id`, of another level by its root.
/// First comes the page that stays if duplicates are removed, then the others by document; `top`
/// are listed.
///
/// # Errors
/// If there is no such cluster, or a table cannot be read.
pub fn pages_of_cluster(week: &LookedWeek<'_>, level: Level, id: i64, top: usize) -> Result<PageList> {
    let [root, _] = columns_of(level);
    let by = if level == Level::Similar { "cluster_id" } else { &root };
    let list = pages_where(week, &[by], top, |batch| {
        let of: &Int64Array = field(batch, by)?;
        Ok((0..batch.num_rows()).map(|row| (of.is_valid(row) && of.value(row) == id).then_some(0)).collect())
    })?;
    ensure!(
        list.pages > 0,
        "week {} has no {} cluster {id}: `nigh show STORE --level {}` lists the largest ones",
        week.week.week,
        level.title(),
        level.name()
    );
    Ok(list)
}

/// The pages of a host: those of the largest very similar clusters first; `top` are listed.
///
/// # Errors
/// If the week has no page of it, or a table cannot be read.
pub fn pages_of_host(week: &LookedWeek<'_>, host: &str, top: usize) -> Result<PageList> {
    let host = canonical_host(host).unwrap_or_else(|| host.to_lowercase());
    let list = pages_where(week, &["similar_size"], top, |batch| {
        let (hosts, sizes): (&StringArray, &Int64Array) = (field(batch, "host")?, field(batch, "similar_size")?);
        Ok(hosts.iter().zip(sizes.values()).map(|(of, size)| (of == Some(host.as_str())).then_some(-size)).collect())
    })?;
    ensure!(list.pages > 0, "week {} has no page of the host {host}", week.week.week);
    Ok(list)
}

/// The pages for which `rank` returns a number, in the order of these numbers; with equal ones,
/// pages that stay come first, then smaller documents. `rank` is called with the named columns and
/// those that every list needs.
fn pages_where(
    week: &LookedWeek<'_>,
    columns: &[&str],
    top: usize,
    mut rank: impl FnMut(&arrow_array::RecordBatch) -> Result<Vec<Option<i64>>>,
) -> Result<PageList> {
    let mut columns = columns.to_vec();
    columns.extend(["doc", "host", "canonical"]);
    let (mut pages, mut duplicates, mut hosts) = (0, 0, HashSet::new());
    let mut first: BTreeSet<(i64, bool, i64)> = BTreeSet::new();
    week.each_cluster_row(&columns, |batch| {
        let (docs, names): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "host")?);
        let canonical: &BooleanArray = field(batch, "canonical")?;
        for (row, rank) in rank(batch)?.into_iter().enumerate() {
            let Some(rank) = rank else { continue };
            pages += 1;
            duplicates += u64::from(!canonical.value(row));
            if names.is_valid(row) && !hosts.contains(names.value(row)) {
                hosts.insert(names.value(row).to_owned());
            }
            first.insert((rank, !canonical.value(row), docs.value(row)));
            if first.len() > top {
                first.pop_last();
            }
        }
        Ok(())
    })?;
    let docs: Vec<DocId> = first.into_iter().map(|(.., doc)| DocId::from_table(doc)).collect();
    Ok(PageList { pages, duplicates, hosts: hosts.len() as u64, listed: listed(week, &docs)? })
}

/// Pages with their evidence, in the order of `docs`.
fn listed(week: &LookedWeek<'_>, docs: &[DocId]) -> Result<Vec<ListedPage>> {
    let mut evidence = evidence(week, docs)?;
    let neighbours = evidence.values().map(|(neighbour, _)| *neighbour);
    let pages = week.pages(docs.iter().copied().chain(neighbours))?;
    let listed = |doc: &DocId| {
        let page = page_of(&pages, *doc, "a page of the list", week.week.week)?;
        let evidence = evidence.remove(doc).map(|(neighbour, evidence)| named(&pages, neighbour, evidence));
        Ok(ListedPage { page, evidence })
    };
    docs.iter().map(listed).collect()
}

fn named(pages: &Pages, neighbour: DocId, evidence: LookedEvidence) -> LookedEvidence {
    let neighbour = pages.get(&neighbour).map_or_else(|| neighbour.to_string(), |page| page.name.clone());
    LookedEvidence { neighbour, ..evidence }
}

/// The neighbours of some documents and what they have in common, as far as the table of evidence
/// has them. The neighbours have no names yet.
///
/// # Errors
/// If a table cannot be read.
pub fn evidence(week: &LookedWeek<'_>, docs: &[DocId]) -> Result<BTreeMap<DocId, (DocId, LookedEvidence)>> {
    let mut docs: Vec<DocId> = docs.to_vec();
    docs.sort_rows();
    let mut found = BTreeMap::new();
    for of_shard in docs.chunk_by(|a, b| a.shard() == b.shard()) {
        let Some(rows) = week.of_shard(EvidenceRow::NAME, of_shard[0].shard()) else { continue };
        let wanted: Vec<i64> = of_shard.iter().map(|doc| doc.to_table()).collect();
        let columns = ["doc", "neighbour", "agreements", "similarity", "found"];
        Scan::each_of_docs(rows, &columns, &wanted, |batch| {
            let [docs, neighbours] = [field::<Int64Array>(batch, "doc")?, field(batch, "neighbour")?];
            let agreements: &Int32Array = field(batch, "agreements")?;
            let similarities: &Float32Array = field(batch, "similarity")?;
            let how: &StringArray = field(batch, "found")?;
            for row in 0..batch.num_rows() {
                let evidence = LookedEvidence {
                    neighbour: String::new(),
                    agreements: agreements.value(row),
                    similarity: similarities.value(row),
                    found: how.value(row).to_owned(),
                };
                found.insert(DocId::from_table(docs.value(row)), (DocId::from_table(neighbours.value(row)), evidence));
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// What the week has of a page, given by its URL or id.
///
/// # Errors
/// If no week has it, or a table cannot be read.
pub fn known_page(week: &LookedWeek<'_>, name: &str) -> Result<KnownPage> {
    let doc = week.find(name)?;
    if !week.pages([doc])?.contains_key(&doc) {
        return Ok(KnownPage::Missing(missing(week, doc)?));
    }
    let page = Box::new(listed(week, &[doc])?.swap_remove(0));
    let canonical = match page.page.cluster_id.filter(|_| !page.page.canonical) {
        None => page.page.name.clone(),
        Some(id) => {
            let list = pages_of_cluster(week, Level::Similar, id, 1)?;
            let stays = list.listed.into_iter().next().filter(|first| first.page.canonical);
            stays.map_or_else(String::new, |first| first.page.name)
        }
    };
    Ok(KnownPage::Page { page, canonical })
}

/// Why the week has no page of a document.
fn missing(week: &LookedWeek<'_>, doc: DocId) -> Result<String> {
    let mut reason = "the table `missing` does not say why".to_owned();
    if let Some(rows) = week.of_shard(MissingRow::NAME, doc.shard()) {
        Scan::each_of_docs(rows, &["reason"], &[doc.to_table()], |batch| {
            let reasons: &StringArray = field(batch, "reason")?;
            reasons.iter().flatten().for_each(|found| reason = found.to_owned());
            Ok(())
        })?;
    }
    Ok(reason)
}
