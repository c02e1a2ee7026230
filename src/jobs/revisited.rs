//! Pages of which a crawl says only what they are the same as: of another URL, or of a week before the last one.
//!
//! ```text
//! revisits ─▶ owner of the URL that they name ─▶ the page of this week, else of the newest week, that has the digest or the time
//!          ─▶ if there is none: any page that has the digest, of the newest week, with the smallest id
//! rows of these pages ─▶ owners of the revisits ─▶ a segment of each shard, after the waves; new URLs get ids in the order of their hashes
//! ```
//!
//! A page that is what it was in the week before is none of these: it is kept where it is ([`kept_pages`](super::kept_pages)).
//!
//! Cost: three columns of `documents` of this week and, until all pages are found, of each week before; and the rows of the pages that are found.
//! Memory: 100 bytes for each revisit, and the rows of the found pages of own shards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use nigh_exchange::{Context, send_rows};
use serde::{Deserialize, Serialize};

use super::page_bundles::PageBundles;
use crate::operators::ingest::{Revisited, SamePage};
use crate::operators::scan::{docs_with_urls, own_segments};
use crate::plan::Plan;
use crate::records::{DocId, KeyHash, Week};
use crate::state::{BundleName, BundleWriter, Journal, Segment, Unfinished, UrlIndex, WeekTables};
use crate::structures::Ownership;
use crate::tables::{
    ChunkRow, DocumentRow, FeatureRow, FoundLinkRow, LinkRow, RowRange, Scan, Table, UrlRow, field, maybe_text,
};
use crate::text::urls;

/// What the pages of revisits are found with.
pub(crate) struct Finding<'a> {
    pub plan: &'a Plan,
    pub unfinished: &'a Unfinished,
    /// The journal of the week, whose waves are all complete.
    pub journal: &'a Journal,
    pub owned: &'a Ownership,
    /// The number of the worker.
    pub worker: usize,
}

/// Which page is asked for, and for which revisit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Question {
    target: KeyHash,
    same: SamePage,
    from: Asker,
}

/// A revisit: its worker, and its number among those of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Asker {
    worker: usize,
    number: usize,
}

/// A page that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place {
    /// 0 for this week, 1 for the week before, and so on.
    week: usize,
    doc: DocId,
}

/// Rows of a table for some revisits.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PageRows {
    table: PageTable,
    /// The number of the revisit of each row.
    numbers: Vec<u64>,
    /// The rows, as a stream of record batches.
    stream: Vec<u8>,
}

/// The tables of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum PageTable {
    Documents,
    Features,
    Chunks,
    Links,
}

impl PageTable {
    const ALL: [PageTable; 4] = [PageTable::Documents, PageTable::Features, PageTable::Chunks, PageTable::Links];

    fn columns(self) -> Vec<&'static str> {
        let columns = match self {
            PageTable::Documents => DocumentRow::COLUMNS,
            PageTable::Features => FeatureRow::COLUMNS,
            PageTable::Chunks => ChunkRow::COLUMNS,
            PageTable::Links => FoundLinkRow::COLUMNS,
        };
        columns.iter().map(|column| column.name).collect()
    }
}

/// A week whose pages are searched.
enum SearchedWeek {
    This,
    Earlier(WeekTables, Vec<Segment>),
}

impl Finding<'_> {
    /// Writes the segments of the pages of these revisits of own shards that are found, and returns them.
    ///
    /// # Errors
    /// If a file cannot be read or written (names it), or a worker of this process failed.
    pub(crate) fn find(&self, cx: &mut Context, wanted: &[Revisited]) -> Result<Vec<Segment>> {
        let (index, peers, shards) = (cx.index(), cx.peers(), self.plan.method.shards);
        let owner = |hash: KeyHash| hash.shard(shards) as usize % peers;
        let ask = |(number, revisit): (usize, &Revisited)| {
            let question =
                Question { target: revisit.target, same: revisit.same, from: Asker { worker: index, number } };
            (owner(revisit.target), question)
        };
        let mut questions = send_rows(cx, wanted.iter().enumerate().map(ask).collect())?;
        questions.sort_unstable();
        let weeks = self.weeks()?;
        let mut search = Search { by_doc: self.targets(&questions)?, ..Search::default() };
        self.search(&weeks, &mut search)?;
        // The owner of a target answers; else the asker takes any page with the digest.
        let answers = search.found.keys().map(|from| (from.worker, from.number)).collect();
        let answered: BTreeSet<usize> = send_rows(cx, answers)?.into_iter().collect();
        let others = wanted.iter().enumerate().filter(|(number, _)| !answered.contains(number));
        let digests: BTreeSet<u64> = others.filter_map(|(_, revisit)| revisit.same.digest).collect();
        let digests = cx.sorted(digests.into_iter().collect())?;
        search.by_doc.clear();
        search.digests = digests.into_iter().collect();
        self.search(&weeks, &mut search)?;
        let same = search.same.iter().map(|(digest, place)| (*digest, *place, index)).collect();
        let mut by_digest: BTreeMap<u64, (Place, usize)> = BTreeMap::new();
        for (digest, place, cx) in cx.sorted(same)? {
            by_digest.entry(digest).or_insert((place, cx));
        }
        let others = wanted.iter().enumerate().filter(|(number, _)| !answered.contains(number));
        let others = others.filter_map(|(number, revisit)| {
            let (place, cx) = by_digest.get(&revisit.same.digest?)?;
            Some((*cx, (*place, Asker { worker: index, number })))
        });
        let mut to_send: BTreeMap<Place, Vec<Asker>> = BTreeMap::new();
        search.found.iter().for_each(|(from, place)| to_send.entry(*place).or_default().push(*from));
        for (place, from) in send_rows(cx, others.collect())? {
            to_send.entry(place).or_default().push(from);
        }
        to_send.values_mut().for_each(|askers| askers.sort_unstable());
        let rows = self.rows(&weeks, &to_send)?;
        let received = send_rows(cx, rows)?;
        self.write(wanted, received)
    }

    /// This week, and those before it, the newest first.
    fn weeks(&self) -> Result<Vec<SearchedWeek>> {
        let store = self.plan.open_store();
        let earlier = self.plan.earlier.weeks.iter().rev().map(|week| {
            let whole = store.whole(week)?;
            let segments = own_segments(&whole.journal, self.owned).into();
            Ok(SearchedWeek::Earlier(whole.tables(store.root()), segments))
        });
        std::iter::once(Ok(SearchedWeek::This)).chain(earlier).collect()
    }

    /// The questions about each document; those about URLs that no week has are left out. `questions` are sorted.
    fn targets(&self, questions: &[Question]) -> Result<BTreeMap<DocId, Vec<Question>>> {
        let store = self.plan.open_store();
        let (url_files, segments) = (store.url_indexes(&self.plan.earlier)?, self.journal.by_shard());
        let shard_of = |question: &Question| question.target.shard(self.plan.method.shards);
        let mut by_doc: BTreeMap<DocId, Vec<Question>> = BTreeMap::new();
        for of_shard in questions.chunk_by(|a, b| shard_of(a) == shard_of(b)) {
            let shard = shard_of(&of_shard[0]);
            let earlier = url_files.get(&shard).map_or(&[][..], |files| files);
            let segments = segments.get(&shard).map_or(&[][..], |segments| segments);
            let index = UrlIndex { unfinished: self.unfinished, shard, segments, earlier };
            let mut urls = index.lookup(self.journal.waves)?;
            for question in of_shard {
                if let Some(doc) = urls.find(question.target)? {
                    by_doc.entry(doc).or_default().push(*question);
                }
            }
        }
        Ok(by_doc)
    }

    /// The own segments of a week.
    fn segments(&self, week: &SearchedWeek) -> Vec<Segment> {
        match week {
            SearchedWeek::This => own_segments(self.journal, self.owned).into(),
            SearchedWeek::Earlier(_, segments) => segments.clone(),
        }
    }

    /// The rows of a segment in a table, if it has any.
    fn table(&self, week: &SearchedWeek, table: PageTable, segment: &Segment) -> Result<Option<RowRange>> {
        let (name, rows) = match table {
            PageTable::Documents => (DocumentRow::NAME, segment.documents),
            PageTable::Features => (FeatureRow::NAME, segment.features),
            PageTable::Chunks => (ChunkRow::NAME, segment.chunks),
            PageTable::Links => (LinkRow::NAME, segment.links),
        };
        if rows == 0 {
            return Ok(None);
        }
        Ok(Some(match week {
            SearchedWeek::This => match table {
                PageTable::Documents => self.unfinished.rows::<DocumentRow>(&segment.file())?,
                PageTable::Features => self.unfinished.rows::<FeatureRow>(&segment.file())?,
                PageTable::Chunks => self.unfinished.rows::<ChunkRow>(&segment.file())?,
                PageTable::Links => self.unfinished.rows::<FoundLinkRow>(&segment.file())?,
            },
            SearchedWeek::Earlier(tables, _) => tables.of_segment(name, segment)?,
        }))
    }

    /// Looks in all weeks, the newest first, until everything is found. Deleted pages, which earlier weeks have, are not found.
    fn search(&self, weeks: &[SearchedWeek], search: &mut Search) -> Result<()> {
        let has_url = docs_with_urls(&self.plan.open_store().url_files(&self.plan.earlier)?, self.owned)?;
        for (number, week) in weeks.iter().enumerate() {
            if search.is_over() {
                return Ok(());
            }
            for segment in self.segments(week) {
                let Some(rows) = self.table(week, PageTable::Documents, &segment)? else { continue };
                Scan::open(rows, &["doc", "digest", "fetched"])?.for_each(|batch| {
                    let (docs, digests): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "digest")?);
                    let times: &TimestampMicrosecondArray = field(batch, "fetched")?;
                    for row in 0..batch.num_rows() {
                        let place = Place { week: number, doc: DocId::from_table(docs.value(row)) };
                        if number > 0 && !has_url[self.owned.index(place.doc)] {
                            continue;
                        }
                        let digest = digests.is_valid(row).then(|| SamePage::hash(digests.value(row)));
                        search.see(place, digest, times.is_valid(row).then(|| times.value(row)));
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// The rows of some pages, for the workers of the revisits.
    fn rows(&self, weeks: &[SearchedWeek], to_send: &BTreeMap<Place, Vec<Asker>>) -> Result<Vec<(usize, PageRows)>> {
        let mut sent = Vec::new();
        for (number, week) in weeks.iter().enumerate() {
            let has_some = to_send.keys().any(|place| place.week == number);
            for segment in self.segments(week).iter().filter(|_| has_some) {
                for table in PageTable::ALL {
                    let Some(rows) = self.table(week, table, segment)? else { continue };
                    Scan::open(rows, &table.columns())?.for_each(|batch| {
                        let docs: &Int64Array = field(batch, "doc")?;
                        let mut by_worker: BTreeMap<usize, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
                        for (row, doc) in (0..).zip(docs.values()) {
                            let place = Place { week: number, doc: DocId::from_table(*doc) };
                            for from in to_send.get(&place).into_iter().flatten() {
                                let (numbers, rows) = by_worker.entry(from.worker).or_default();
                                numbers.push(from.number as u64);
                                rows.push(row);
                            }
                        }
                        for (to, (numbers, rows)) in by_worker {
                            let rows = take_record_batch(batch, &UInt64Array::from(rows))?;
                            sent.push((to, PageRows { table, numbers, stream: stream_of(&rows)? }));
                        }
                        Ok(())
                    })?;
                }
            }
        }
        Ok(sent)
    }

    /// Writes the rows of found pages, as those of the revisits, and the URLs that are new.
    fn write(&self, wanted: &[Revisited], received: Vec<PageRows>) -> Result<Vec<Segment>> {
        let mut by_table: BTreeMap<PageTable, Vec<(Vec<u64>, RecordBatch)>> = BTreeMap::new();
        let mut found: BTreeSet<usize> = BTreeSet::new();
        for PageRows { table, numbers, stream } in received {
            if table == PageTable::Documents {
                found.extend(numbers.iter().map(|number| *number as usize));
            }
            for batch in StreamReader::try_new(&stream[..], None)? {
                by_table.entry(table).or_default().push((numbers.clone(), batch?));
            }
        }
        let (shards, urls) = (self.plan.method.shards, self.plan.urls(self.journal));
        let mut by_shard: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        found.iter().for_each(|number| by_shard.entry(wanted[*number].hash.shard(shards)).or_default().push(*number));
        let mut segments = Vec::new();
        let mut bundles = PageBundles::new(self.unfinished, BundleName::Revisited(self.worker));
        for (shard, mut of_shard) in by_shard {
            let mut segment = Segment { wave: self.journal.waves, shard, ..Segment::default() };
            let file = segment.file();
            // New URLs get ids in the order of their hashes, as in a wave.
            of_shard.sort_unstable_by_key(|number| wanted[*number].hash);
            let mut next = urls[shard as usize];
            let mut docs: BTreeMap<u64, DocId> = BTreeMap::new();
            for number in of_shard {
                let revisit = &wanted[number];
                let doc = match revisit.doc {
                    Some(doc) => doc,
                    None => {
                        next += 1;
                        let doc = DocId::new(shard, next - 1);
                        let (hash, url) = (revisit.hash.to_bytes(), Some(revisit.url.as_str()));
                        bundles.urls.push(UrlRow { doc: doc.to_table(), hash, url, id: None })?;
                        doc
                    }
                };
                docs.insert(number as u64, doc);
            }
            segment.urls = bundles.urls.end_piece(&file)?;
            let rows = |table: PageTable| Sorted::of(by_table.get(&table).map_or(&[][..], |rows| rows), &docs);
            let week = self.plan.week;
            if let Some(sorted) = rows(PageTable::Documents)? {
                let batch = sorted.as_visited(wanted, week)?;
                segment.documents = write(&mut bundles.documents, &file, &batch)?;
            }
            if let Some(sorted) = rows(PageTable::Features)? {
                segment.features = write(&mut bundles.features, &file, &sorted.rows)?;
            }
            if let Some(sorted) = rows(PageTable::Chunks)?.filter(|_| self.plan.keep.chunks) {
                segment.chunks = write(&mut bundles.chunks, &file, &sorted.rows)?;
            }
            if let Some(sorted) = rows(PageTable::Links)? {
                segment.links = write(&mut bundles.found_links, &file, &sorted.rows)?;
            }
            segments.push(segment);
        }
        bundles.finish()?;
        Ok(segments)
    }
}

/// What is searched, and what was found.
#[derive(Default)]
struct Search {
    by_doc: BTreeMap<DocId, Vec<Question>>,
    digests: BTreeSet<u64>,
    /// By the URL.
    found: BTreeMap<Asker, Place>,
    /// By the digest alone: the smallest document of the newest week that has one.
    same: BTreeMap<u64, Place>,
}

impl Search {
    /// Whether nothing more can be found.
    fn is_over(&self) -> bool {
        self.by_doc.is_empty() && self.digests.len() == self.same.len()
    }

    /// Sees a page; those of newer weeks come first.
    fn see(&mut self, place: Place, digest: Option<u64>, fetched: Option<i64>) {
        if let Some(questions) = self.by_doc.get_mut(&place.doc) {
            questions.retain(|question| {
                let is_of = question.same.is_of(digest, fetched);
                if is_of {
                    self.found.insert(question.from, place);
                }
                !is_of
            });
            if questions.is_empty() {
                self.by_doc.remove(&place.doc);
            }
        }
        if let Some(digest) = digest.filter(|digest| self.digests.contains(digest)) {
            let best = self.same.entry(digest).or_insert(place);
            *best = (*best).min(place);
        }
    }
}

/// Rows in the order of their documents.
struct Sorted {
    numbers: Vec<u64>,
    rows: RecordBatch,
}

impl Sorted {
    /// The rows of the revisits that have these documents, which take the place of those that the rows have; `None` if there are none.
    fn of(batches: &[(Vec<u64>, RecordBatch)], docs: &BTreeMap<u64, DocId>) -> Result<Option<Sorted>> {
        let Some((_, first)) = batches.first() else { return Ok(None) };
        let all = concat_batches(&first.schema(), batches.iter().map(|(_, batch)| batch))?;
        let numbers: Vec<u64> = batches.iter().flat_map(|(numbers, _)| numbers.iter().copied()).collect();
        // The rows of a page keep their order: links are sorted within it.
        let mut order: Vec<(DocId, u64, u64)> =
            (0..).zip(&numbers).filter_map(|(row, number)| docs.get(number).map(|doc| (*doc, row, *number))).collect();
        order.sort_unstable();
        if order.is_empty() {
            return Ok(None);
        }
        let rows = take_record_batch(&all, &order.iter().map(|(_, row, _)| *row).collect::<UInt64Array>())?;
        let docs: Int64Array = order.iter().map(|(doc, ..)| doc.to_table()).collect();
        let rows = replaced(&rows, [("doc", Arc::new(docs) as ArrayRef)])?;
        Ok(Some(Sorted { numbers: order.into_iter().map(|(_, _, number)| number).collect(), rows }))
    }

    /// Rows of `documents` as those of the revisits: what is known of the download is theirs, all else is that of the page.
    fn as_visited(&self, wanted: &[Revisited], week: Week) -> Result<RecordBatch> {
        let of = || self.numbers.iter().map(|number| &wanted[*number as usize]);
        let host = |revisit: &Revisited| url_host(&revisit.url);
        let texts = |of: &mut dyn Iterator<Item = Option<String>>| Arc::new(of.collect::<StringArray>()) as ArrayRef;
        let times: TimestampMicrosecondArray = of().map(|revisit| revisit.fetched).collect();
        let fetched = self.rows.column_by_name("fetched").context("a document has a time")?;
        let times = arrow_array::cast::as_primitive_array::<arrow_array::types::TimestampMicrosecondType>(&times)
            .clone()
            .with_data_type(fetched.data_type().clone());
        let (urls, of_records): (&StringArray, &StringArray) =
            (field(&self.rows, "url")?, field(&self.rows, "record_url")?);
        let mut record_urls = of().enumerate().map(|(row, revisit)| {
            let of_record = maybe_text(of_records, row).or_else(|| maybe_text(urls, row));
            of_record.filter(|url| *url != revisit.url)
        });
        let batch = replaced(
            &self.rows,
            [
                ("url", texts(&mut of().map(|revisit| Some(revisit.url.clone())))),
                ("given_url", texts(&mut of().map(|revisit| revisit.given_url.clone()))),
                ("ip", texts(&mut of().map(|revisit| revisit.ip.clone()))),
                ("host", texts(&mut of().map(host))),
                ("domain", texts(&mut of().map(|revisit| host(revisit).map(|host| urls::domain(&host).to_owned())))),
                ("fetched", Arc::new(times) as ArrayRef),
                ("record_url", texts(&mut record_urls)),
            ],
        )?;
        DocumentRow::stored_in(&batch, week)
    }
}

/// The host of a canonical URL.
fn url_host(url: &str) -> Option<String> {
    urls::canonical(url).map(|url| url.host().to_owned())
}

/// A batch with other values in some columns.
fn replaced<const N: usize>(batch: &RecordBatch, columns: [(&str, ArrayRef); N]) -> Result<RecordBatch> {
    let mut all = batch.columns().to_vec();
    for (name, column) in columns {
        all[batch.schema().index_of(name)?] = column;
    }
    Ok(RecordBatch::try_new(batch.schema(), all)?)
}

/// Writes a batch as a piece; returns its rows.
fn write<T: Table>(to: &mut BundleWriter<T>, piece: &str, batch: &RecordBatch) -> Result<u64> {
    to.writer()?.push_rows(batch)?;
    to.end_piece(piece)
}

/// A batch as a stream of bytes.
fn stream_of(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}
