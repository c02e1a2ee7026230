//! The pages and clusters of a committed week.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use arrow_array::{Array as _, BooleanArray, Date32Array, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray};
use serde::Serialize;

use super::sketches::Sketches;
use crate::config::{Method, Reading, Verify};
use crate::operators::scan::{SketchFiles, VectorFiles, Vectors};
use crate::plan::{inputs_at_hand, named_inputs};
use crate::readers::Input;
use crate::records::{DocId, DocumentKey, KeyHash, Level, Week};
use crate::state::{CommittedWeek, Earlier, Manifest, PostingRuns, Segment, Store, UrlLookup, WeekTables, WholeWeek};
use crate::structures::{CompactSort, Ownership};
use crate::tables::{ClusterRow, DocumentRow, FeatureRow, RowRange, Scan, Table as _, field, maybe_text};
use crate::text::canonical;

/// A committed week.
pub struct LookedWeek<'a> {
    store: &'a Store,
    /// The parameters of the store.
    pub method: Method,
    /// The week.
    pub week: CommittedWeek,
    earlier: Earlier,
    whole: WholeWeek,
    tables: WeekTables,
    /// The files in which URLs are looked up, by shard, once one was looked up.
    urls: OnceLock<BTreeMap<u32, Vec<RowRange>>>,
}

/// What a week has of a page.
#[derive(Clone, Debug, Serialize)]
pub struct LookedPage {
    /// The document.
    pub doc: DocId,
    /// How it is known: its URL, else its id, else its file and place.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Words of its text.
    pub words: u64,
    /// The week whose crawl has it.
    pub crawled: Week,
    /// The input file of that crawl.
    pub file: String,
    /// Its place there.
    pub offset: u64,
    /// The root and the number of pages of its cluster, at each level.
    pub clusters: [(DocId, u64); 3],
    /// The id of its very similar cluster.
    pub cluster_id: Option<i64>,
    /// Whether it stays if duplicates are removed.
    pub canonical: bool,
}

/// Pages, by document.
pub type Pages = BTreeMap<DocId, LookedPage>;

impl<'a> LookedWeek<'a> {
    /// Opens a week of a store.
    ///
    /// # Errors
    /// If its records cannot be read.
    pub fn open(store: &'a Store, manifest: &Manifest, week: &CommittedWeek) -> Result<LookedWeek<'a>> {
        let whole = store.whole(week)?;
        let mut earlier = Earlier::before(manifest, week.week);
        earlier.weeks.push(week.clone());
        let tables = whole.tables(store.root());
        let urls = OnceLock::new();
        Ok(LookedWeek { store, method: manifest.method.clone(), week: week.clone(), earlier, whole, tables, urls })
    }

    /// The document of a URL, or of an id.
    ///
    /// # Errors
    /// If the name is no URL, or no week has it; or a table cannot be read.
    pub fn find(&self, name: &str) -> Result<DocId> {
        let hash = match self.method.documents {
            DocumentKey::Url => {
                let url = canonical(name).with_context(|| format!("{name} is no URL of a page"))?;
                KeyHash::of(url.as_str())
            }
            DocumentKey::Id => KeyHash::of(name),
            DocumentKey::Row => {
                let doc = name.parse().ok().map(DocId::from_table).filter(|doc| self.owned().knows(*doc));
                return doc.with_context(|| format!("{name} is no document: the store knows them by their `doc` only"));
            }
        };
        let files = self.urls()?.get(&hash.shard(self.method.shards)).cloned().unwrap_or_default();
        let doc = UrlLookup::open(files)?.find(hash)?;
        doc.with_context(|| format!("{name} is not known: no week until {} has it", self.week.week))
    }

    fn urls(&self) -> Result<&BTreeMap<u32, Vec<RowRange>>> {
        match self.urls.get() {
            Some(urls) => Ok(urls),
            None => {
                let urls = self.store.url_indexes(&self.earlier)?;
                Ok(self.urls.get_or_init(|| urls))
            }
        }
    }

    /// What the week has of some documents, by document.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn pages(&self, docs: impl IntoIterator<Item = DocId>) -> Result<Pages> {
        let docs: BTreeSet<DocId> = docs.into_iter().collect();
        let mut pages = Pages::default();
        for of_shard in docs.iter().copied().collect::<Vec<_>>().chunk_by(|a, b| a.shard() == b.shard()) {
            let wanted: Vec<i64> = of_shard.iter().map(|doc| doc.to_table()).collect();
            for segment in self.segments(|segment| segment.shard == of_shard[0].shard()) {
                self.read_documents(segment, &wanted, &mut pages)?;
                self.read_clusters(segment, &wanted, &mut pages)?;
            }
        }
        Ok(pages)
    }

    /// Calls `each` with the named columns of all rows of the table of clusters, in batches.
    pub(crate) fn each_cluster_row(
        &self,
        columns: &[&str],
        mut each: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        for segment in self.segments(|_| true) {
            Scan::open(self.tables.rows(ClusterRow::NAME, &segment.file())?, columns)?.for_each(&mut each)?;
        }
        Ok(())
    }

    /// Calls `each` with the named columns of all rows of the table of documents, in batches.
    pub(crate) fn each_document_row(
        &self,
        columns: &[&str],
        mut each: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        for segment in self.segments(|_| true) {
            Scan::open(self.tables.rows(DocumentRow::NAME, &segment.file())?, columns)?.for_each(&mut each)?;
        }
        Ok(())
    }

    /// Calls `each` with the named columns of all rows that the week has written of a table, in
    /// batches.
    pub(super) fn each_row(
        &self,
        table: &str,
        columns: &[&str],
        mut each: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.tables.all(table).iter().try_for_each(|rows| Scan::open(rows, columns)?.for_each(&mut each))
    }

    /// The rows of the table of clusters of a shard, segment by segment.
    ///
    /// # Errors
    /// If the week lacks some: the store is damaged.
    pub fn cluster_rows(&self, shard: u32) -> Result<Vec<RowRange>> {
        let of_shard = self.segments(|segment| segment.shard == shard);
        of_shard.map(|segment| self.tables.rows(ClusterRow::NAME, &segment.file())).collect()
    }

    /// The rows of the table of documents, segment by segment.
    ///
    /// # Errors
    /// As [`LookedWeek::cluster_rows`].
    pub fn document_rows(&self) -> Result<Vec<RowRange>> {
        self.segments(|_| true).map(|segment| self.tables.rows(DocumentRow::NAME, &segment.file())).collect()
    }

    /// Whether the store has an inverted index of the week.
    pub fn has_index(&self) -> bool {
        self.store.postings(&self.week).is_some()
    }

    /// The rows of a table that has one file for each shard.
    pub fn of_shard(&self, table: &str, shard: u32) -> Option<RowRange> {
        self.tables.of_shard(table, shard)
    }

    fn segments(&self, is_wanted: impl Fn(&Segment) -> bool) -> impl Iterator<Item = &Segment> {
        self.whole.journal.segments.iter().filter(move |segment| segment.documents > 0 && is_wanted(segment))
    }

    fn owned(&self) -> Ownership {
        Ownership::new(0, 1, &self.earlier.urls(self.method.shards))
    }

    fn read_documents(&self, segment: &Segment, wanted: &[i64], pages: &mut Pages) -> Result<()> {
        let rows = self.tables.rows(DocumentRow::NAME, &segment.file())?;
        let columns = ["doc", "url", "id", "title", "words", "crawled", "file", "offset"];
        Scan::each_of_docs(rows, &columns, wanted, |batch| {
            let texts = |name| field::<StringArray>(batch, name);
            let longs = |name| field::<Int64Array>(batch, name);
            let docs = longs("doc")?;
            for row in 0..batch.num_rows() {
                let doc = DocId::from_table(docs.value(row));
                let (file, offset) = (texts("file")?.value(row).to_owned(), longs("offset")?.value(row) as u64);
                let name = maybe_text(texts("url")?, row).or(maybe_text(texts("id")?, row));
                let crawled: &Date32Array = field(batch, "crawled")?;
                let page = LookedPage {
                    doc,
                    name: name.unwrap_or_else(|| format!("{file} at {offset}")),
                    title: texts("title")?.value(row).to_owned(),
                    words: longs("words")?.value(row) as u64,
                    crawled: Week::from_days(crawled.value(row)),
                    file,
                    offset,
                    clusters: [(doc, 1); 3],
                    cluster_id: None,
                    canonical: true,
                };
                pages.insert(doc, page);
            }
            Ok(())
        })
    }

    fn read_clusters(&self, segment: &Segment, wanted: &[i64], pages: &mut Pages) -> Result<()> {
        let columns = Level::ALL.map(|level| ["root", "size"].map(|what| format!("{}_{what}", level.name())));
        let mut names: Vec<&str> = columns.iter().flatten().map(String::as_str).collect();
        names.extend(["doc", "cluster_id", "canonical"]);
        let rows = self.tables.rows(ClusterRow::NAME, &segment.file())?;
        Scan::each_of_docs(rows, &names, wanted, |batch| {
            let longs = |name: &str| field::<Int64Array>(batch, name);
            let (docs, ids, canonical) =
                (longs("doc")?, longs("cluster_id")?, field::<BooleanArray>(batch, "canonical")?);
            for row in 0..batch.num_rows() {
                let Some(page) = pages.get_mut(&DocId::from_table(docs.value(row))) else { continue };
                for (cluster, [root, size]) in page.clusters.iter_mut().zip(&columns) {
                    *cluster = (DocId::from_table(longs(root)?.value(row)), longs(size)?.value(row) as u64);
                }
                page.cluster_id = ids.is_valid(row).then(|| ids.value(row));
                page.canonical = canonical.value(row);
            }
            Ok(())
        })
    }

    /// The checksum of a document's page.
    ///
    /// # Errors
    /// If a table cannot be read, or the week has no page of it.
    pub fn checksum(&self, wanted: DocId) -> Result<u128> {
        let mut found = None;
        for segment in self.segments(|segment| segment.shard == wanted.shard()) {
            let rows = self.tables.rows(DocumentRow::NAME, &segment.file())?;
            Scan::each_of_docs(rows, &["checksum"], &[wanted.to_table()], |batch| {
                let sums: &FixedSizeBinaryArray = field(batch, "checksum")?;
                for sum in sums.iter().flatten() {
                    found = Some(u128::from_be_bytes(sum.try_into().context("a checksum has 16 bytes")?));
                }
                Ok(())
            })?;
        }
        found.with_context(|| format!("week {} has no page of document {wanted}", self.week.week))
    }

    /// The documents of a very similar cluster, given by its root; ascending.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn members(&self, root: DocId) -> Result<Vec<DocId>> {
        let mut members = Vec::new();
        self.each_cluster_row(&["doc", "similar_root"], |batch| {
            let (docs, roots): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "similar_root")?);
            let of_root = docs.values().iter().zip(roots.values()).filter(|(_, of)| **of == root.to_table());
            members.extend(of_root.map(|(doc, _)| DocId::from_table(*doc)));
            Ok(())
        })?;
        members.sort_rows();
        Ok(members)
    }

    /// The sketches of documents, which ascend.
    ///
    /// # Errors
    /// If one has none, or a table cannot be read.
    pub(super) fn sketches(&self, docs: &[DocId]) -> Result<Sketches> {
        let sketches = self.sketches_of_any(docs)?;
        ensure!(sketches.docs == docs, "the table features lacks documents of the week");
        Ok(sketches)
    }

    /// As [`LookedWeek::sketches`], of those of the documents that have any.
    pub(super) fn sketches_of_any(&self, docs: &[DocId]) -> Result<Sketches> {
        let files = self.vectors()?;
        let (found, supershingles) = files.find(docs)?;
        let (with_features, features) = SketchFiles::new(files, self.method.features).features(&found)?;
        ensure!(found == with_features, "the table features lacks documents of the week");
        Ok(Sketches { docs: found, supershingles, features })
    }

    /// The supershingles of all pages.
    pub(super) fn vectors(&self) -> Result<VectorFiles> {
        let rows = |segment: &Segment| self.tables.of_segment(FeatureRow::NAME, segment);
        VectorFiles::of_week(&self.whole.journal, &self.owned(), self.method.supershingles, rows)
    }

    /// All sketches, for one pass.
    ///
    /// # Errors
    /// If the week lacks some: the store is damaged.
    pub(crate) fn whole_sketches(&self) -> Result<Vectors> {
        Ok(SketchFiles::new(self.vectors()?, self.method.features).all())
    }

    /// The postings of the week; `None` if the store has none of it.
    pub(super) fn postings(&self) -> Option<(PathBuf, PostingRuns)> {
        Some((self.store.postings_folder(), self.store.postings(&self.week)?))
    }

    /// The input files with pages of the week that a user names, for reading these again.
    ///
    /// # Errors
    /// If a name matches nothing.
    pub fn named_inputs(&self, items: &[String], reading: &Reading) -> Result<Vec<Input>> {
        let inputs = crate::readers::list(items, &reading.here())?;
        Ok(named_inputs((self.store, &self.whole), inputs, reading))
    }

    /// The input files with pages of the week that are at hand, for reading these again: with
    /// `verify = "none"` without those of servers.
    pub fn inputs_at_hand(&self, reading: &Reading, verify: Verify) -> Vec<Input> {
        let names = self.whole.journal.input_names(self.week.week);
        inputs_at_hand((self.store, &self.whole), names, reading, verify, true)
    }
}

/// Checks that there is a page.
///
/// # Errors
/// If the week has no page of the document.
pub(super) fn page_of(pages: &Pages, doc: DocId, name: &str, week: Week) -> Result<LookedPage> {
    match pages.get(&doc) {
        Some(page) => Ok(page.clone()),
        None => bail!("{name} has no page in week {week}: see the table `missing`"),
    }
}
