//! The rows of pages that revisits mean: they are sent to the owners of the revisits, and written
//! there as those of the revisits.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, FixedSizeBinaryArray, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_select::interleave::interleave_record_batch;
use arrow_select::take::take_record_batch;
use nigh_exchange::{Context, send_rows};
use serde::{Deserialize, Serialize};

use super::search::{AskingRevisit, CapturePlace};
use super::{PlacedPage, RevisitInputs, SearchedWeek, first_row};
use crate::jobs::page_bundles::PageBundles;
use crate::operators::ingest::Revisited;
use crate::records::{DocId, Week, fold};
use crate::state::{BundleName, BundleWriter, Segment};
use crate::tables::{
    CaptureRow, ChunkRow, DocumentRow, FeatureRow, FoundLinkRow, LinkRow, RowRange, Scan, Table, UrlRow, field,
    maybe_text,
};
use crate::text::urls;

/// The rows that are put together at a time.
const ROWS_AT_ONCE: usize = 1024;

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
        match self {
            PageTable::Documents => column_names::<DocumentRow<'_>>(),
            PageTable::Features => column_names::<FeatureRow<'_>>(),
            PageTable::Chunks => column_names::<ChunkRow<'_>>(),
            PageTable::Links => column_names::<FoundLinkRow<'_>>(),
        }
    }
}

impl RevisitInputs<'_> {
    /// Writes the segments of the pages that were found for revisits of own shards, and of the URLs
    /// of those that were not; returns them. `wanted` has each URL once, in the order of their
    /// hashes in each shard.
    ///
    /// # Errors
    /// If a file cannot be read or written (names it), or a worker of this process failed.
    pub(crate) fn write(&self, cx: &mut Context, wanted: &[(Revisited, Option<PlacedPage>)]) -> Result<Vec<Segment>> {
        let worker = cx.index();
        let ask = |(number, (_, found)): (usize, &(Revisited, Option<PlacedPage>))| {
            found.map(|(place, of)| (of, (place, AskingRevisit { worker, number })))
        };
        let mut to_send: BTreeMap<CapturePlace, Vec<AskingRevisit>> = BTreeMap::new();
        for (place, from) in send_rows(cx, wanted.iter().enumerate().filter_map(ask).collect())? {
            to_send.entry(place).or_default().push(from);
        }
        to_send.values_mut().for_each(|askers| askers.sort_unstable());
        let rows = self.rows(&to_send)?;
        let received = send_rows(cx, rows)?;
        self.write_segments(wanted, received)
    }

    /// The rows of some pages, for the workers of the revisits.
    fn rows(&self, to_send: &BTreeMap<CapturePlace, Vec<AskingRevisit>>) -> Result<Vec<(usize, PageRows)>> {
        let mut sent = Vec::new();
        for (number, week) in self.weeks.iter().enumerate() {
            let has = |is_page: bool| to_send.keys().any(|place| place.week == number && (place.row == 0) == is_page);
            let mut send = |table: PageTable, batch: &RecordBatch, place_of: &dyn Fn(u64, i64) -> CapturePlace| {
                let docs: &Int64Array = field(batch, "doc")?;
                let mut by_worker: BTreeMap<usize, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
                for (row, doc) in (0..).zip(docs.values()) {
                    for from in to_send.get(&place_of(row, *doc)).into_iter().flatten() {
                        let (numbers, rows) = by_worker.entry(from.worker).or_default();
                        numbers.push(from.number as u64);
                        rows.push(row);
                    }
                }
                for (to, (numbers, rows)) in by_worker {
                    let rows = take_record_batch(batch, &UInt64Array::from(rows))?;
                    sent.push((to, PageRows { table, numbers, stream: stream_of(&rows)? }));
                }
                anyhow::Ok(())
            };
            for segment in week.segments.iter().filter(|_| has(true)) {
                for table in PageTable::ALL {
                    let Some(rows) = self.table(week, table, segment)? else { continue };
                    Scan::open(rows, &table.columns())?.for_each(|batch| {
                        let place_of =
                            |_: u64, doc: i64| CapturePlace { week: number, row: 0, doc: DocId::from_table(doc) };
                        send(table, batch, &place_of)
                    })?;
                }
            }
            for (piece, rows) in week.captures.iter().enumerate().filter(|_| has(false)) {
                let mut first = first_row(piece);
                Scan::open(rows, &column_names::<CaptureRow<'_>>())?.for_each(|batch| {
                    for table in PageTable::ALL {
                        let (of_rows, batch) = of_captures(batch, table, week.week)?;
                        let place_of = |row: u64, doc: i64| {
                            let row = first + of_rows[row as usize];
                            CapturePlace { week: number, row, doc: DocId::from_table(doc) }
                        };
                        send(table, &batch, &place_of)?;
                    }
                    first += batch.num_rows() as u64;
                    Ok(())
                })?;
            }
        }
        Ok(sent)
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
        Ok(Some(match &week.tables {
            None => match table {
                PageTable::Documents => self.unfinished.rows::<DocumentRow>(&segment.file())?,
                PageTable::Features => self.unfinished.rows::<FeatureRow>(&segment.file())?,
                PageTable::Chunks => self.unfinished.rows::<ChunkRow>(&segment.file())?,
                PageTable::Links => self.unfinished.rows::<FoundLinkRow>(&segment.file())?,
            },
            Some(tables) => tables.of_segment(name, segment)?,
        }))
    }

    /// Writes the rows of found pages, as those of the revisits, and the URLs that are new.
    fn write_segments(
        &self,
        wanted: &[(Revisited, Option<PlacedPage>)],
        received: Vec<PageRows>,
    ) -> Result<Vec<Segment>> {
        let mut by_table: BTreeMap<PageTable, Vec<NumberedRows>> = BTreeMap::new();
        for PageRows { table, numbers, stream } in received {
            for rows in StreamReader::try_new(&stream[..], None)? {
                by_table.entry(table).or_default().push(NumberedRows { numbers: numbers.clone(), rows: rows? });
            }
        }
        let mut bundles = PageBundles::new(self.unfinished, BundleName::Revisited(self.worker));
        let (mut segments, docs) = self.write_urls(wanted, &mut bundles.urls)?;
        for table in PageTable::ALL {
            let rows = RowsByDocument::of(by_table.remove(&table).unwrap_or_default(), &docs);
            for segment in &mut segments {
                let file = segment.file();
                match table {
                    PageTable::Documents => {
                        rows.each_of_shard(segment.shard, |numbers, rows| {
                            let rows = as_visited(numbers, &rows, wanted, self.plan.week)?;
                            bundles.documents.writer()?.push_rows(&rows)
                        })?;
                        // Every segment has this piece.
                        segment.documents = bundles.documents.end_any_piece(&file)?;
                    }
                    PageTable::Features => {
                        segment.features = rows.write(segment.shard, &mut bundles.features, &file)?
                    }
                    PageTable::Chunks if !self.plan.keep.chunks => {}
                    PageTable::Chunks => segment.chunks = rows.write(segment.shard, &mut bundles.chunks, &file)?,
                    PageTable::Links => segment.links = rows.write(segment.shard, &mut bundles.found_links, &file)?,
                }
            }
        }
        bundles.finish()?;
        Ok(segments)
    }

    /// Writes the URLs that are new. Returns the segments, one for each shard with something to
    /// write, and the document of each revisit whose page was found, by its number.
    fn write_urls(
        &self,
        wanted: &[(Revisited, Option<PlacedPage>)],
        to: &mut BundleWriter<UrlRow<'static>>,
    ) -> Result<(Vec<Segment>, Vec<Option<DocId>>)> {
        let (shards, urls) = (self.plan.method.shards, self.plan.urls(self.journal));
        let mut by_shard: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (number, (revisit, found)) in wanted.iter().enumerate() {
            // A URL that is known already, and is not found, has nothing to write.
            if found.is_some() || revisit.doc.is_none() {
                by_shard.entry(revisit.hash.shard(shards)).or_default().push(number);
            }
        }
        let (mut segments, mut docs) = (Vec::new(), vec![None; wanted.len()]);
        for (shard, mut of_shard) in by_shard {
            let mut segment = Segment { wave: self.journal.waves, shard, ..Segment::default() };
            // New URLs get ids in the order of their hashes, as in a wave.
            of_shard.sort_unstable_by_key(|number| wanted[*number].0.hash);
            let mut next = urls[shard as usize];
            for number in of_shard {
                let (revisit, found) = &wanted[number];
                let doc = match revisit.doc {
                    Some(doc) => doc,
                    None => {
                        next += 1;
                        let doc = DocId::new(shard, next - 1);
                        let (hash, url) = (revisit.hash.to_bytes(), Some(revisit.url.as_str()));
                        to.push(UrlRow { doc: doc.to_table(), hash, url, id: None })?;
                        doc
                    }
                };
                docs[number] = found.is_some().then_some(doc);
            }
            segment.urls = to.end_piece(&segment.file())?;
            segments.push(segment);
        }
        Ok((segments, docs))
    }
}

/// The names of the columns of a table.
fn column_names<T: Table>() -> Vec<&'static str> {
    T::COLUMNS.iter().map(|column| column.name).collect()
}

/// The rows that later captures of a week would have in a table of pages. Beside them, the row of
/// `captures` that each is made from.
fn of_captures(batch: &RecordBatch, table: PageTable, week: Week) -> Result<(Vec<u64>, RecordBatch)> {
    let all: Vec<u64> = (0..batch.num_rows() as u64).collect();
    // Those that have the bytes of the page of the week have no rows of their own.
    let same: &BooleanArray = field(batch, "same")?;
    let with = |column: &dyn Array| -> Vec<u64> {
        all.iter().copied().filter(|row| !same.value(*row as usize) && column.is_valid(*row as usize)).collect()
    };
    let bytes = |name: &str| field::<BinaryArray>(batch, name);
    match table {
        PageTable::Documents => {
            let crawled: ArrayRef = Arc::new(Date32Array::from_value(week.days(), batch.num_rows()));
            let column = |name: &str| match (batch.column_by_name(name), name) {
                (Some(column), _) => column.clone(),
                (None, "crawled" | "stored") => crawled.clone(),
                (None, _) => new_null_array(&arrow_schema::DataType::Utf8, batch.num_rows()),
            };
            let columns = DocumentRow::COLUMNS.iter();
            let columns = columns.map(|of| (of.name, column(of.name), of.nullable));
            Ok((all, RecordBatch::try_from_iter_with_nullable(columns)?))
        }
        PageTable::Features => {
            let (supershingles, features) = (bytes("supershingles")?, bytes("features")?);
            let rows = with(supershingles);
            let vectors = rows.iter().map(|row| {
                let (words, _) = supershingles.value(*row as usize).as_chunks::<8>();
                fold(&words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()) as i64
            });
            let vectors: ArrayRef = Arc::new(vectors.collect::<Int64Array>());
            let columns = [vectors, fixed(supershingles, &rows)?, fixed(features, &rows)?];
            with_docs::<FeatureRow<'_>>(batch, rows, columns)
        }
        PageTable::Chunks => {
            let texts: &FixedSizeBinaryArray = field(batch, "text")?;
            let rows = with(texts);
            let taken = take_record_batch(batch, &UInt64Array::from(rows.clone()))?;
            let names = ["text", "characters", "lines", "paragraphs"];
            let columns = names.map(|name| taken.column_by_name(name).cloned().context("captures have chunks"));
            let [text, characters, lines, paragraphs] = columns;
            with_docs::<ChunkRow<'_>>(batch, rows, [text?, characters?, lines?, paragraphs?])
        }
        PageTable::Links => {
            let links: &StringArray = field(batch, "links")?;
            let of_row = |row: u64| links.value(row as usize).lines().map(move |link| (row, link));
            let (rows, targets): (Vec<u64>, Vec<&str>) = with(links).into_iter().flat_map(of_row).unzip();
            with_docs::<FoundLinkRow<'_>>(batch, rows, [Arc::new(StringArray::from(targets)) as ArrayRef])
        }
    }
}

/// The values of some rows as byte strings of one length.
fn fixed(of: &BinaryArray, rows: &[u64]) -> Result<ArrayRef> {
    if rows.is_empty() {
        return Ok(Arc::new(FixedSizeBinaryArray::new_null(0, 0)));
    }
    Ok(Arc::new(FixedSizeBinaryArray::try_from_iter(rows.iter().map(|row| of.value(*row as usize)))?))
}

/// A batch of a table whose first column is the document: those of some rows of a batch, and the
/// other columns.
fn with_docs<T: Table>(
    of: &RecordBatch,
    rows: Vec<u64>,
    columns: impl IntoIterator<Item = ArrayRef>,
) -> Result<(Vec<u64>, RecordBatch)> {
    let docs: &Int64Array = field(of, "doc")?;
    let docs: Int64Array = rows.iter().map(|row| docs.value(*row as usize)).collect();
    let columns = [Arc::new(docs) as ArrayRef].into_iter().chain(columns);
    let columns = T::COLUMNS.iter().zip(columns).map(|(column, values)| (column.name, values, column.nullable));
    Ok((rows, RecordBatch::try_from_iter_with_nullable(columns)?))
}

/// Rows of a table, each with the number of its revisit.
struct NumberedRows {
    numbers: Vec<u64>,
    rows: RecordBatch,
}

/// The row of a batch that becomes one of a document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RowOfDocument {
    doc: DocId,
    batch: u32,
    row: u32,
}

/// Rows in the order of their documents.
struct RowsByDocument {
    batches: Vec<NumberedRows>,
    order: Vec<RowOfDocument>,
}

impl RowsByDocument {
    /// The rows of the revisits that have documents, given by their numbers.
    fn of(batches: Vec<NumberedRows>, docs: &[Option<DocId>]) -> RowsByDocument {
        let mut order: Vec<RowOfDocument> = Vec::with_capacity(batches.iter().map(|batch| batch.numbers.len()).sum());
        for (batch, NumberedRows { numbers, .. }) in (0..).zip(&batches) {
            let with_doc = (0..).zip(numbers).filter_map(|(row, number)| Some((row, docs[*number as usize]?)));
            order.extend(with_doc.map(|(row, doc)| RowOfDocument { doc, batch, row }));
        }
        // The rows of a page keep their order: links are sorted within it.
        order.sort_unstable();
        RowsByDocument { batches, order }
    }

    /// Calls `each` with the rows of the documents of a shard, which take the place of those that
    /// the rows have, and the number of the revisit of each. They are some at a time: together they
    /// may have more text than one array can hold.
    fn each_of_shard(&self, shard: u32, mut each: impl FnMut(&[u64], RecordBatch) -> Result<()>) -> Result<()> {
        let before = |shard: u32| self.order.partition_point(|row| row.doc.shard() < shard);
        for rows in self.order[before(shard)..before(shard + 1)].chunks(ROWS_AT_ONCE) {
            // The batches that have some of the rows, each with its place among them.
            let mut places: BTreeMap<u32, usize> = rows.iter().map(|row| (row.batch, 0)).collect();
            places.values_mut().enumerate().for_each(|(number, place)| *place = number);
            let batches: Vec<&RecordBatch> = places.keys().map(|batch| &self.batches[*batch as usize].rows).collect();
            let indices: Vec<(usize, usize)> = rows.iter().map(|row| (places[&row.batch], row.row as usize)).collect();
            let docs: Int64Array = rows.iter().map(|row| row.doc.to_table()).collect();
            let batch = interleave_record_batch(&batches, &indices)?;
            let number = |row: &RowOfDocument| self.batches[row.batch as usize].numbers[row.row as usize];
            let numbers: Vec<u64> = rows.iter().map(number).collect();
            each(&numbers, replaced(&batch, [("doc", Arc::new(docs) as ArrayRef)])?)?;
        }
        Ok(())
    }

    /// Writes the rows of the documents of a shard as a piece; returns how many.
    fn write<T: Table>(&self, shard: u32, to: &mut BundleWriter<T>, piece: &str) -> Result<u64> {
        self.each_of_shard(shard, |_, rows| to.writer()?.push_rows(&rows))?;
        to.end_piece(piece)
    }
}

/// Rows of `documents` as those of the revisits with these numbers: what is known of the download
/// is theirs, all else is that of the page.
fn as_visited(
    numbers: &[u64],
    rows: &RecordBatch,
    wanted: &[(Revisited, Option<PlacedPage>)],
    week: Week,
) -> Result<RecordBatch> {
    let of = || numbers.iter().map(|number| &wanted[*number as usize].0);
    let host = |revisit: &Revisited| url_host(&revisit.url);
    let texts = |of: &mut dyn Iterator<Item = Option<String>>| Arc::new(of.collect::<StringArray>()) as ArrayRef;
    let times: TimestampMicrosecondArray = of().map(|revisit| revisit.named.before).collect();
    let fetched = rows.column_by_name("fetched").context("a document has a time")?;
    let times = arrow_array::cast::as_primitive_array::<arrow_array::types::TimestampMicrosecondType>(&times)
        .clone()
        .with_data_type(fetched.data_type().clone());
    let (urls, of_records): (&StringArray, &StringArray) = (field(rows, "url")?, field(rows, "record_url")?);
    let mut record_urls = of().enumerate().map(|(row, revisit)| {
        let of_record = maybe_text(of_records, row).or_else(|| maybe_text(urls, row));
        of_record.filter(|url| *url != revisit.url)
    });
    let of_pages: &StringArray = field(rows, "media_type")?;
    let mut media_types = of().enumerate().map(|(row, revisit)| {
        let of_revisit = revisit.media_type.clone();
        of_revisit.or_else(|| maybe_text(of_pages, row))
    });
    let batch = replaced(
        rows,
        [
            ("url", texts(&mut of().map(|revisit| Some(revisit.url.clone())))),
            ("given_url", texts(&mut of().map(|revisit| revisit.given_url.clone()))),
            ("ip", texts(&mut of().map(|revisit| revisit.ip.clone()))),
            ("host", texts(&mut of().map(host))),
            ("domain", texts(&mut of().map(|revisit| host(revisit).map(|host| urls::domain(&host).to_owned())))),
            ("fetched", Arc::new(times) as ArrayRef),
            ("media_type", texts(&mut media_types)),
            ("record_url", texts(&mut record_urls)),
        ],
    )?;
    DocumentRow::stored_in(&batch, week)
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

/// A batch as a stream of bytes.
fn stream_of(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of one page are in two batches, and those of another one are more than are put
    /// together at a time.
    #[test]
    fn rows_come_by_shard_in_the_order_of_documents() {
        let batch = |first: usize, numbers: Vec<u64>| {
            let targets: StringArray = (first..).take(numbers.len()).map(|target| Some(target.to_string())).collect();
            let docs: Int64Array = numbers.iter().map(|_| 7_i64).collect();
            let columns = [Arc::new(docs) as ArrayRef, Arc::new(targets)];
            let columns = FoundLinkRow::COLUMNS.iter().zip(columns);
            let columns = columns.map(|(column, values)| (column.name, values, column.nullable));
            NumberedRows { numbers, rows: RecordBatch::try_from_iter_with_nullable(columns).unwrap() }
        };
        let [a, b, c] = [DocId::new(1, 5), DocId::new(0, 9), DocId::new(1, 2)];
        let many = 3 * ROWS_AT_ONCE;
        let batches = vec![batch(0, vec![0, 2, 0, 1]), batch(100, vec![3; many]), batch(8000, vec![2, 0])];
        let all = RowsByDocument::of(batches, &[Some(a), None, Some(b), Some(c)]);
        let of_shard = |shard: u32| {
            let (mut found, mut parts) = (Vec::new(), 0);
            let each = |numbers: &[u64], rows: RecordBatch| {
                let (docs, targets): (&Int64Array, &StringArray) = (field(&rows, "doc")?, field(&rows, "target_url")?);
                for (row, number) in numbers.iter().enumerate() {
                    found.push((*number, DocId::from_table(docs.value(row)), targets.value(row).to_owned()));
                }
                parts += 1;
                anyhow::Ok(())
            };
            all.each_of_shard(shard, each).unwrap();
            (found, parts)
        };
        let row = |number: u64, doc: DocId, target: usize| (number, doc, target.to_string());
        assert_eq!(of_shard(0), (vec![row(2, b, 1), row(2, b, 8000)], 1));
        let of_c = (100..100 + many).map(|target| row(3, c, target));
        let of_a = [0, 2, 8001].map(|target| row(0, a, target));
        assert_eq!(of_shard(1), (of_c.chain(of_a).collect(), 4));
        assert_eq!(of_shard(2), (Vec::new(), 0));
    }
}
