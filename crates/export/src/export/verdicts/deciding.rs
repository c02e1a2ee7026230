//! The documents of a week with their clusters, in the order of the input files: which stay.
//!
//! ```text
//! documents, clusters ─▶ members of clusters, by cluster and policy ─▶ rank; the first stays
//!                     └▶ records without a duplicate ──────────────┴─▶ verdicts, by file and place
//! ```
//!
//! Both sorts are external: memory does not depend on the number of documents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use arrow_array::{
    Array, Date32Array, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use serde::{Deserialize, Serialize};

use super::cluster_file::read_clusters;
use super::scores::{Means, Scored};
use super::sequence::Verdicts;
use super::verdict::{RecordKey, RevisitingDocument, Verdict};
use crate::config::{Canonical, ChosenSoFar, DocumentFacts};
use crate::export::revisits::Reference;
use crate::export::texts::{Gone, ParagraphPlace};
use crate::records::{Level, Week};
use crate::state::{Segment, WeekTables};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::tables::{ClusterRow, DocumentRow, RowRange, Scan, Table, ValueRow, ValueRows, field, maybe_text};

/// The numbers of input files, by the week of the crawl (days since 1970) and the name.
pub(super) type FileNumbers<'a> = BTreeMap<i32, BTreeMap<&'a str, u32>>;

/// What verdicts are made from.
#[derive(Clone)]
pub struct Deciding<'a> {
    /// The tables of the week.
    pub tables: &'a WeekTables,
    /// Its segments.
    pub segments: &'a [Segment],
    /// The weeks and names of its input files, in order.
    pub inputs: &'a [(Week, String)],
    /// If given: of documents of this week and later ones only those stay that no earlier one is in
    /// a cluster with.
    pub since: Option<Week>,
    /// With `since`: whether all documents of that week and later ones stay that no older one is in
    /// a cluster with, also if they duplicate each other.
    pub only_older: bool,
    /// Whether older documents, which are only duplicated, have verdicts, too.
    pub older: bool,
    /// The level of the clusters.
    pub level: Level,
    /// Which records of a cluster stay.
    pub canonical: &'a Canonical,
    /// The column of the scores, if verdicts have scores.
    pub score: Option<&'a str>,
    /// A folder with the values of columns, a file for each segment that has some, if they are not
    /// those of the week: see [`InputValues`](crate::export::InputValues).
    pub values: Option<&'a Path>,
    /// A folder with the clusters of documents, a file for each segment, if they are not those of
    /// the week: see [`Thresholds`](crate::export::Thresholds).
    pub clusters: Option<&'a Path>,
    /// Whether verdicts have names.
    pub names: bool,
    /// A folder for runs of the sorts.
    pub scratch: PathBuf,
    /// Memory for both sorts, in bytes.
    pub memory: u64,
}

impl Deciding<'_> {
    /// The verdicts on all documents, by file and place.
    ///
    /// # Errors
    /// If a table or a run cannot be read or written; or the week has a file that is not among the
    /// inputs.
    pub fn verdicts(&self) -> Result<Verdicts> {
        Verdicts::new(self.sorted()?, None, None)
    }

    /// The verdicts, without these paragraphs, which are in the order of their places.
    ///
    /// # Errors
    /// As [`verdicts`](Deciding::verdicts).
    pub(in crate::export) fn without(&self, gone: Sorted<ParagraphPlace>) -> Result<Verdicts> {
        Verdicts::new(self.sorted()?, Some(gone), None)
    }

    /// The verdicts, with what records that go refer to, which is in the order of their places.
    ///
    /// # Errors
    /// As [`verdicts`](Deciding::verdicts).
    pub(in crate::export) fn with_references(&self, references: Sorted<Reference>) -> Result<Verdicts> {
        Verdicts::new(self.sorted()?, None, Some(references))
    }

    fn sorted(&self) -> Result<Sorted<Verdict>> {
        let files = self.files();
        let mut members = ExternalSort::new(&self.scratch.join("members"), self.memory / 2);
        let mut verdicts = ExternalSort::new(&self.scratch.join("verdicts"), self.memory / 2);
        let mut scores = ExternalSort::new(&self.scratch.join("scores"), self.memory / 8);
        for segment in self.segments.iter().filter(|segment| segment.documents > 0) {
            self.segment(&segment.file(), &files, &[], &mut |page| match page {
                SegmentPage { verdict, is_new, order: Some(order), .. } => {
                    if let Some(number) = verdict.score {
                        scores.push(Scored { cluster: verdict.cluster, number, doc: verdict.doc })?;
                    }
                    members.push(VerdictMember { verdict, is_new, order })
                }
                SegmentPage { verdict, .. } => verdicts.push(verdict),
            })?;
        }
        let (mut members, mut means) = (members.sorted()?, Means::new(scores.sorted()?)?);
        let (mut cluster, mut rank, mut score) = (None, 0, None);
        // Older documents come first in their cluster.
        let mut has_older = false;
        // What is chosen of each group of the cluster.
        let mut chosen: BTreeMap<u64, ChosenSoFar> = BTreeMap::new();
        while let Some(VerdictMember { mut verdict, is_new, order }) = members.record()? {
            if cluster != Some(verdict.cluster) {
                (cluster, rank) = (Some(verdict.cluster), 0);
                chosen.clear();
                score = means.of(verdict.cluster)?;
                has_older = !is_new;
            }
            rank += 1;
            (verdict.rank, verdict.score) = (rank, score);
            let of_group = chosen.entry(verdict.group).or_insert_with(|| ChosenSoFar::new(self.canonical));
            verdict.stays = of_group.stays(&order);
            if self.only_older && is_new {
                verdict.stays = !has_older;
            }
            if is_new || self.since.is_none() || self.older {
                verdicts.push(verdict)?;
            }
        }
        verdicts.sorted()
    }

    /// The values that the documents of a segment have in columns.
    fn values(&self, segment: &str) -> Result<Option<RowRange>> {
        let Some(folder) = self.values else { return Ok(self.tables.find(ValueRow::NAME, segment)) };
        let file = folder.join(segment);
        let is_there = file.try_exists().with_context(|| format!("cannot read {}", file.display()))?;
        Ok(is_there.then(|| RowRange::file(file)))
    }

    /// The inputs before those whose documents have verdicts.
    fn skipped(&self) -> u32 {
        let since = self.since.filter(|_| !self.older);
        since.map_or(0, |since| self.inputs.iter().filter(|(week, _)| *week < since).count() as u32)
    }

    /// The numbers of all inputs.
    pub(in crate::export) fn files(&self) -> FileNumbers<'_> {
        let mut files: FileNumbers<'_> = BTreeMap::new();
        for ((week, name), number) in self.inputs.iter().zip(0..) {
            files.entry(week.days()).or_default().insert(name, number);
        }
        files
    }

    /// The number that an input, which has this one among all, has among those that are written.
    pub(in crate::export) fn written(&self, file: u32) -> Option<u32> {
        let before = |since: Week| self.inputs.iter().filter(|(week, _)| *week < since).count() as u32;
        file.checked_sub(self.since.map_or(0, before))
    }

    /// Hands on the documents of a segment beside their clusters; with their rows of `documents`,
    /// which have the columns `others`, too.
    pub(in crate::export) fn segment(
        &self,
        file: &str,
        files: &FileNumbers<'_>,
        others: &[&str],
        found: &mut dyn FnMut(SegmentPage<'_>) -> Result<()>,
    ) -> Result<()> {
        let [root, size] = ["root", "size"].map(|what| format!("{}_{what}", self.level.name()));
        let mut clusters: Vec<(i64, i64)> = Vec::new();
        match self.clusters {
            Some(folder) => clusters = read_clusters(&folder.join(file))?,
            None => Scan::open(self.tables.rows(ClusterRow::NAME, file)?, &[&root, &size])?.for_each(|batch| {
                let (roots, sizes): (&Int64Array, &Int64Array) = (field(batch, &root)?, field(batch, &size)?);
                clusters.extend(roots.values().iter().copied().zip(sizes.values().iter().copied()));
                Ok(())
            })?,
        }
        let (mut clusters, skipped) = (clusters.into_iter(), self.skipped());
        let mut columns = self.canonical.columns();
        columns.extend(self.score.map(str::to_owned).filter(|score| !columns.contains(score)));
        let of_score = columns.iter().position(|column| Some(column.as_str()) == self.score);
        let columns: Arc<[String]> = columns.into();
        let comparison = self.canonical.comparison(&columns);
        let mut values = ValueRows::open(self.values(file)?, columns.clone())?;
        let columns = [
            "doc",
            "file",
            "offset",
            "crawled",
            "checksum",
            "words",
            "bytes",
            "fetched",
            "url",
            "host",
            "given_url",
            "record_url",
            "media_type",
            "id",
        ];
        let columns = if self.names { &columns[..] } else { &columns[..13] };
        Scan::open(self.tables.rows(DocumentRow::NAME, file)?, &[columns, others].concat())?.for_each(|batch| {
            let longs = |name| field::<Int64Array>(batch, name);
            let (docs, offsets, words, bytes) = (longs("doc")?, longs("offset")?, longs("words")?, longs("bytes")?);
            let texts = |name| field::<StringArray>(batch, name);
            let (names, urls, hosts) = (texts("file")?, texts("url")?, texts("host")?);
            let (given_urls, of_records) = (texts("given_url")?, texts("record_url")?);
            let media_types = texts("media_type")?;
            let ids = if self.names { Some(texts("id")?) } else { None };
            let checksums: &FixedSizeBinaryArray = field(batch, "checksum")?;
            let times: &TimestampMicrosecondArray = field(batch, "fetched")?;
            let weeks: &Date32Array = field(batch, "crawled")?;
            for row in 0..batch.num_rows() {
                let (cluster, size) =
                    clusters.next().with_context(|| format!("`clusters` has fewer rows than `documents` in {file}"))?;
                let (name, week) = (names.value(row), weeks.value(row));
                let number = files.get(&week).and_then(|names| names.get(name));
                let number =
                    *number.with_context(|| format!("{name} is no input of the week: the store is damaged"))?;
                let is_new = self.since.is_some_and(|since| week >= since.days());
                if self.since.is_some() && !is_new && size < 2 {
                    continue;
                }
                let (offset, size) = (offsets.value(row) as u64, size as u64);
                let checksum = u128::from_be_bytes(checksums.value(row).try_into().context("a checksum has 16 bytes")?);
                let doc = docs.value(row);
                let fetched = times.is_valid(row).then(|| times.value(row));
                // A null says that the URL was given in canonical form.
                let url = || maybe_text(given_urls, row).or_else(|| maybe_text(urls, row));
                let of_record = maybe_text(of_records, row);
                let revisiting = of_record.as_ref().and_then(|_| url()).map(|url| {
                    let media_type = maybe_text(media_types, row);
                    Box::new(RevisitingDocument { url, fetched, media_type })
                });
                let names = ids.map(|ids| {
                    let url = of_record.or_else(url);
                    Box::new(RecordKey { id: maybe_text(ids, row), url })
                });
                let is_alone = size < 2;
                let values = values.of(doc)?;
                let candidate = DocumentFacts {
                    file: number,
                    offset,
                    words: words.value(row) as u64,
                    bytes: bytes.value(row) as u64,
                    fetched,
                    url_bytes: urls.is_valid(row).then(|| urls.value(row).len() as u32),
                    host: hosts.is_valid(row).then(|| hosts.value(row)),
                    crawled: week,
                };
                let verdict = Verdict {
                    doc,
                    score: of_score.and_then(|place| values[place].as_ref()?.number()),
                    file: number.saturating_sub(skipped),
                    offset,
                    checksum,
                    cluster,
                    size,
                    rank: 1,
                    stays: is_alone,
                    names,
                    revisiting,
                    gone: Gone::default(),
                    group: comparison.group(&candidate, values),
                    original: None,
                    near: None,
                    matched: None,
                };
                let order = (!is_alone).then(|| {
                    let mut order = Vec::new();
                    comparison.write_order(&candidate, values, &mut order);
                    order
                });
                found(SegmentPage { verdict, is_new, order, batch, row })?;
            }
            Ok(())
        })?;
        ensure!(clusters.next().is_none(), "`clusters` has more rows than `documents` in {file}: the store is damaged");
        Ok(())
    }
}

/// A member of a cluster of two or more.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct VerdictMember {
    verdict: Verdict,
    /// Whether it is one of those that must duplicate nothing older.
    is_new: bool,
    /// Its order; the smallest stay.
    order: Vec<u8>,
}

impl Sortable for VerdictMember {
    type Key = (i64, bool, Vec<u8>, i64);

    fn key(&self) -> Self::Key {
        (self.verdict.cluster, self.is_new, self.order.clone(), self.verdict.doc)
    }

    fn weight(&self) -> usize {
        size_of::<VerdictMember>() - size_of::<Verdict>() + self.order.len() + self.verdict.weight()
    }
}

/// A page of a segment, beside its cluster.
pub(in crate::export) struct SegmentPage<'a> {
    pub(in crate::export) verdict: Verdict,
    /// Whether it is one of those that must duplicate nothing older.
    pub(in crate::export) is_new: bool,
    /// Its order in its cluster; `None` if it is alone there.
    pub(in crate::export) order: Option<Vec<u8>>,
    /// Its row of `documents`.
    pub(in crate::export) batch: &'a RecordBatch,
    pub(in crate::export) row: usize,
}
