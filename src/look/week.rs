//! The pages and clusters of a committed week.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use arrow_array::{Array as _, Date32Array, FixedSizeBinaryArray, Int64Array, StringArray};
use serde::Serialize;

use crate::config::Method;
use crate::operators::scan::{VectorFiles, Vectors};
use crate::operators::verify::read_features;
use crate::records::{DocId, DocumentKey, FeatureBits, KeyHash, Level, Week};
use crate::state::{CommittedWeek, Earlier, Manifest, Segment, Store, UrlLookup, WeekTables, WholeWeek};
use crate::structures::Ownership;
use crate::tables::{ClusterRow, DocumentRow, FeatureRow, Scan, Table as _, field, maybe_text};
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
}

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
        Ok(LookedWeek { store, method: manifest.method.clone(), week: week.clone(), earlier, whole, tables })
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
        let files = self.store.url_indexes(&self.earlier)?.remove(&hash.shard(self.method.shards)).unwrap_or_default();
        let doc = UrlLookup::open(files)?.find(hash)?;
        doc.with_context(|| format!("{name} is not known: no week until {} has it", self.week.week))
    }

    /// What the week has of some documents, in the order of their ids.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn pages(&self, docs: &[DocId]) -> Result<Vec<LookedPage>> {
        let mut pages: BTreeMap<DocId, LookedPage> = BTreeMap::new();
        let has = |doc: DocId| docs.contains(&doc);
        for segment in self.segments(|segment| docs.iter().any(|doc| doc.shard() == segment.shard)) {
            self.read_documents(segment, &has, &mut pages)?;
            self.read_clusters(segment, &mut pages)?;
        }
        Ok(pages.into_values().collect())
    }

    fn segments(&self, is_wanted: impl Fn(&Segment) -> bool) -> impl Iterator<Item = &Segment> {
        self.whole.journal.segments.iter().filter(move |segment| segment.documents > 0 && is_wanted(segment))
    }

    fn owned(&self) -> Ownership {
        let mut urls = vec![0; self.method.shards as usize];
        for week in &self.earlier.weeks {
            urls.iter_mut().zip(&week.urls).for_each(|(sum, urls)| *sum += urls);
        }
        if let Some(removed) = &self.earlier.removed {
            urls.iter_mut().zip(&removed.urls).for_each(|(sum, urls)| *sum += urls);
        }
        Ownership::new(0, 1, &urls)
    }

    fn read_documents(
        &self,
        segment: &Segment,
        has: &impl Fn(DocId) -> bool,
        pages: &mut BTreeMap<DocId, LookedPage>,
    ) -> Result<()> {
        let rows = self.tables.rows(DocumentRow::NAME, &segment.file())?;
        let columns = ["doc", "url", "id", "title", "words", "crawled", "file", "offset"];
        Scan::open(rows, &columns)?.for_each(|batch| {
            let texts = |name| field::<StringArray>(batch, name);
            let longs = |name| field::<Int64Array>(batch, name);
            let docs = longs("doc")?;
            for row in (0..batch.num_rows()).filter(|row| has(DocId::from_table(docs.value(*row)))) {
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
                };
                pages.insert(doc, page);
            }
            Ok(())
        })
    }

    fn read_clusters(&self, segment: &Segment, pages: &mut BTreeMap<DocId, LookedPage>) -> Result<()> {
        let columns = Level::ALL.map(|level| ["root", "size"].map(|what| format!("{}_{what}", level.name())));
        let mut names: Vec<&str> = columns.iter().flatten().map(String::as_str).collect();
        names.extend(["doc", "cluster_id"]);
        let rows = self.tables.rows(ClusterRow::NAME, &segment.file())?;
        Scan::open(rows, &names)?.for_each(|batch| {
            let longs = |name: &str| field::<Int64Array>(batch, name);
            let (docs, ids) = (longs("doc")?, longs("cluster_id")?);
            for row in 0..batch.num_rows() {
                let Some(page) = pages.get_mut(&DocId::from_table(docs.value(row))) else { continue };
                for (cluster, [root, size]) in page.clusters.iter_mut().zip(&columns) {
                    *cluster = (DocId::from_table(longs(root)?.value(row)), longs(size)?.value(row) as u64);
                }
                page.cluster_id = ids.is_valid(row).then(|| ids.value(row));
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
            Scan::open(rows, &["doc", "checksum"])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                let sums: &FixedSizeBinaryArray = field(batch, "checksum")?;
                if let Some(row) = docs.values().iter().position(|doc| *doc == wanted.to_table()) {
                    found = Some(u128::from_be_bytes(sums.value(row).try_into().context("a checksum has 16 bytes")?));
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
        for segment in self.segments(|_| true) {
            let rows = self.tables.rows(ClusterRow::NAME, &segment.file())?;
            Scan::open(rows, &["doc", "similar_root"])?.for_each(|batch| {
                let (docs, roots): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "similar_root")?);
                let of_root = docs.values().iter().zip(roots.values()).filter(|(_, of)| **of == root.to_table());
                members.extend(of_root.map(|(doc, _)| DocId::from_table(*doc)));
                Ok(())
            })?;
        }
        members.sort_unstable();
        Ok(members)
    }

    /// The supershingles and the features of documents, which ascend: those of a document after those of the one before.
    ///
    /// # Errors
    /// If one has none, or a table cannot be read.
    pub fn sketches(&self, docs: &[DocId]) -> Result<(Vec<u64>, Vec<FeatureBits>)> {
        let rows = |segment: &Segment| self.tables.rows(FeatureRow::NAME, &segment.file());
        let files = VectorFiles::of_week(&self.whole.journal, &self.owned(), self.method.supershingles, rows)?;
        let (found, supershingles) = files.find(docs)?;
        let of_all = || {
            let segments = self.segments(|segment| segment.features > 0);
            Vectors::of_rows(segments.filter_map(|segment| self.tables.find(FeatureRow::NAME, &segment.file())))
        };
        let (with_features, features) = read_features(docs, self.method.features, &files, of_all)?;
        ensure!(found == docs && with_features == docs, "the table features lacks documents of the week");
        Ok((supershingles, features))
    }

    /// The names of the input files of a week that has pages here, for reading these again.
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        let journal = &self.whole.journal;
        journal.inputs(self.week.week).flat_map(|(_, names)| names.keys()).map(String::as_str)
    }
}

/// Checks that there is a page.
///
/// # Errors
/// If the week has no page of the document.
pub(super) fn page_of(pages: &[LookedPage], doc: DocId, name: &str, week: Week) -> Result<LookedPage> {
    match pages.iter().find(|page| page.doc == doc) {
        Some(page) => Ok(page.clone()),
        None => bail!("{name} has no page in week {week}: see the table `missing`"),
    }
}
