//! `metadata` records that name the page which a page is a near-duplicate of, and how similar they
//! are.
//!
//! ```text
//! documents, clusters ─▶ pages of very similar clusters, with their links of `evidence` and their
//!                        features ─▶ by cluster and order
//! the first of a cluster, and each page after it that is no exact copy of it
//!                        ─▶ what is said of the page, by file and place
//! ```
//!
//! The similarity is that of the page and the first one. If `evidence` links the two, it is the one
//! that is there, which can be exact. Else it is the share of their equal features: an estimate.
//!
//! Memory: of the pages of clusters in one segment, the features; of one cluster, the roots of
//! exact copies; the sorts are external.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use arrow_array::{Array as _, FixedSizeBinaryArray, Float32Array, Int64Array, StringArray, TimestampMicrosecondArray};
use serde::{Deserialize, Serialize};

use super::record::{NearDuplicate, warc_date};
use crate::export::revisits::arc_record_id;
use crate::export::verdicts::{Deciding, SegmentPage};
use crate::features::equal_features;
use crate::readers::{Dialect, Input};
use crate::records::{FeatureBits, Level};
use crate::state::{Segment, WeekTables};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::tables::{ClusterRow, EvidenceRow, FeatureRow, Found, Scan, Table, field, maybe_text};

/// A page of a very similar cluster.
#[derive(Debug, Serialize, Deserialize)]
struct SimilarPage {
    cluster: i64,
    /// Its group: so many of each group of a cluster stay.
    group: u64,
    is_new: bool,
    order: Vec<u8>,
    doc: i64,
    /// The root of its cluster of exact copies.
    exact: i64,
    /// The place of its record, and whether that is written and is not the one of another URL.
    file: u32,
    offset: u64,
    is_own: bool,
    url: Option<String>,
    id: Option<String>,
    fetched: Option<i64>,
    /// The page that `evidence` links it to, the similarity of both, and whether that is exact.
    link: Option<(i64, f32, bool)>,
    features: Vec<u8>,
}

impl Sortable for SimilarPage {
    type Key = (i64, u64, bool, Vec<u8>, i64);

    fn key(&self) -> Self::Key {
        (self.cluster, self.group, self.is_new, self.order.clone(), self.doc)
    }

    fn weight(&self) -> usize {
        let texts = [&self.url, &self.id].into_iter().flatten().map(String::len).sum::<usize>();
        size_of::<SimilarPage>() + self.order.len() + self.features.len() + texts
    }
}

impl SimilarPage {
    /// How similar this page and another one are, and whether that is exact.
    fn similarity(&self, other: &SimilarPage) -> Option<(f32, bool)> {
        let link = |from: &SimilarPage, to: &SimilarPage| from.link.filter(|(neighbour, ..)| *neighbour == to.doc);
        if let Some((_, similarity, is_exact)) = link(self, other).or_else(|| link(other, self)) {
            return Some((similarity, is_exact));
        }
        let [a, b] = [self, other].map(|page| -> Vec<FeatureBits> {
            page.features.chunks_exact(2).map(|bytes| FeatureBits::from_le_bytes([bytes[0], bytes[1]])).collect()
        });
        (a.len() == b.len() && !a.is_empty()).then(|| (equal_features(&a, &b) as f32 / a.len() as f32, false))
    }
}

/// What is said of the near-duplicates among the records that an export has, in the order of their
/// places. `inputs` are those that are written; records of ARC among them become records of WARC.
/// An exact copy gets no record, unless `of_copies`: if copies become revisits or stay, or if
/// near-duplicates go, too.
///
/// # Errors
/// If a table or a run cannot be read or written.
pub fn near_duplicates(deciding: &Deciding<'_>, inputs: &[Input], of_copies: bool) -> Result<Sorted<NearDuplicate>> {
    let by_names = Deciding { level: Level::Similar, names: true, older: true, ..deciding.clone() };
    let mut pages = ExternalSort::new(&deciding.scratch.join("similar"), deciding.memory / 2);
    let mut segments: Vec<&Segment> = deciding.segments.iter().filter(|segment| segment.documents > 0).collect();
    segments.sort_by_key(|segment| (segment.shard, segment.wave));
    let (files, mut links, mut of_shard) = (by_names.files(), HashMap::new(), None);
    for segment in segments {
        if of_shard.replace(segment.shard) != Some(segment.shard) {
            links = links_of(deciding.tables, segment.shard)?;
        }
        let of_segment = Similar::read(deciding.tables, segment)?;
        by_names.segment(&segment.file(), &files, &["record_id"], &mut |found| {
            let SegmentPage { verdict, is_new, order: Some(order), batch, row } = found else { return Ok(()) };
            let names = verdict.names.unwrap_or_default();
            let times: &TimestampMicrosecondArray = field(batch, "fetched")?;
            let file = by_names.written(verdict.file);
            // The id of a record of ARC is made when it becomes one of WARC.
            let input = file.and_then(|file| inputs.get(file as usize));
            let arc = input.filter(|input| input.format.dialect() == Some(Dialect::Arc));
            let id = match arc {
                Some(input) => Some(bare(&arc_record_id(&input.name, verdict.offset)).to_owned()),
                None => maybe_text(field(batch, "record_id")?, row),
            };
            pages.push(SimilarPage {
                cluster: verdict.cluster,
                // One that duplicates an older one goes, whatever group that is of.
                group: if deciding.only_older { 0 } else { verdict.group },
                is_new,
                order,
                doc: verdict.doc,
                exact: of_segment.exact.get(&verdict.doc).copied().unwrap_or(verdict.doc),
                file: file.unwrap_or_default(),
                offset: verdict.offset,
                is_own: file.is_some() && verdict.revisiting.is_none(),
                url: names.url,
                id,
                fetched: times.is_valid(row).then(|| times.value(row)),
                link: links.get(&verdict.doc).copied(),
                features: of_segment.features.get(&verdict.doc).cloned().unwrap_or_default(),
            })
        })?;
    }
    let mut said = ExternalSort::new(&deciding.scratch.join("near-duplicates"), deciding.memory / 2);
    let (mut pages, mut first): (_, Option<SimilarPage>) = (pages.sorted()?, None);
    let mut contents = HashSet::new();
    while let Some(page) = pages.record()? {
        let Some(first) = first.as_ref().filter(|first| (first.cluster, first.group) == (page.cluster, page.group))
        else {
            contents.clear();
            contents.insert(page.exact);
            first = Some(page);
            continue;
        };
        let is_copy = !contents.insert(page.exact);
        if page.is_own && page.exact != first.exact && (of_copies || !is_copy) {
            let date = first.fetched.and_then(warc_date);
            let (url, id, similarity) = (first.url.clone(), first.id.clone(), first.similarity(&page));
            said.push(NearDuplicate { file: page.file, offset: page.offset, url, id, date, similarity })?;
        }
    }
    said.sorted()
}

fn bare(id: &str) -> &str {
    id.trim_start_matches('<').trim_end_matches('>')
}

/// The links of `evidence` in a shard, by the page.
fn links_of(tables: &WeekTables, shard: u32) -> Result<HashMap<i64, (i64, f32, bool)>> {
    let mut links = HashMap::new();
    let Some(rows) = tables.of_shard(EvidenceRow::NAME, shard) else { return Ok(links) };
    Scan::open(rows, &["doc", "neighbour", "similarity", "found"])?.for_each(|batch| {
        let (docs, neighbours): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "neighbour")?);
        let similarities: &Float32Array = field(batch, "similarity")?;
        let found: &StringArray = field(batch, "found")?;
        for row in 0..batch.num_rows() {
            let is_exact = Found::of_name(found.value(row)) != Some(Found::Features);
            links.insert(docs.value(row), (neighbours.value(row), similarities.value(row), is_exact));
        }
        Ok(())
    })?;
    Ok(links)
}

/// What a segment has of the pages of very similar clusters.
#[derive(Default)]
struct Similar {
    /// The roots of their clusters of exact copies.
    exact: HashMap<i64, i64>,
    features: HashMap<i64, Vec<u8>>,
}

impl Similar {
    fn read(tables: &WeekTables, segment: &Segment) -> Result<Similar> {
        let (mut similar, file) = (Similar::default(), segment.file());
        Scan::open(tables.rows(ClusterRow::NAME, &file)?, &["doc", "similar_size", "exact_root"])?.for_each(
            |batch| {
                let longs = |name| field::<Int64Array>(batch, name);
                let (docs, sizes, roots) = (longs("doc")?, longs("similar_size")?, longs("exact_root")?);
                let clustered = (0..batch.num_rows()).filter(|row| sizes.value(*row) > 1);
                similar.exact.extend(clustered.map(|row| (docs.value(row), roots.value(row))));
                Ok(())
            },
        )?;
        if segment.features == 0 {
            return Ok(similar);
        }
        Scan::open(tables.of_segment(FeatureRow::NAME, segment)?, &["doc", "features"])?.for_each(|batch| {
            let (docs, features): (&Int64Array, &FixedSizeBinaryArray) =
                (field(batch, "doc")?, field(batch, "features")?);
            for row in (0..batch.num_rows()).filter(|row| similar.exact.contains_key(&docs.value(*row))) {
                similar.features.insert(docs.value(row), features.value(row).to_vec());
            }
            Ok(())
        })?;
        Ok(similar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(doc: i64, link: Option<(i64, f32, bool)>, features: &[u8]) -> SimilarPage {
        let (cluster, order, url) = (1, doc.to_be_bytes().to_vec(), Some(format!("http://a.example/{doc}")));
        let features = features.to_vec();
        let (file, id, fetched) = (0, None, None);
        SimilarPage {
            cluster,
            group: 0,
            is_new: false,
            order,
            doc,
            exact: doc,
            file,
            offset: 0,
            is_own: true,
            url,
            id,
            fetched,
            link,
            features,
        }
    }

    #[test]
    fn a_link_counts_before_features() {
        let first = page(1, Some((3, 0.9, true)), &[1, 0, 2, 0]);
        let similarity = |link, features: &[u8]| first.similarity(&page(2, link, features));
        assert_eq!(similarity(Some((1, 0.5, true)), &[1, 0, 2, 0]), Some((0.5, true)));
        assert_eq!(similarity(Some((3, 0.7, true)), &[1, 0, 2, 1]), Some((0.5, false)));
        assert_eq!(similarity(None, &[]), None);
        assert_eq!(first.similarity(&page(3, None, &[])), Some((0.9, true)), "of the other one");
    }
}
