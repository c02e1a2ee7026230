//! The documents of a week whose texts are compared, and their texts, read again from the input
//! files.
//!
//! The corpus has an order: that of the input files, those of earlier batches first, and in a file
//! that of the records. Each file is read by one worker.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use arrow_array::{BooleanArray, Date32Array, FixedSizeBinaryArray, Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all};
use nigh_text::features::WordReader;
use serde::{Deserialize, Serialize};

use super::job::PassageDocuments;
use super::steps::{CorpusPlace, OpenText, ReadTexts, TextSource};
use crate::config::{Cluster, Method, Reading, Verify};
use crate::kernels;
use crate::operators::verify::readers_of;
use crate::plan::{inputs_at_hand, job_of_week, named_inputs};
use crate::readers::{self, Input, Item, Page, Reader};
use crate::records::{DocId, Week, checksum, mix};
use crate::state::Store;
use crate::structures::{CompactSort, Ownership};
use crate::studies::{StudyFiles, StudyPlan};
use crate::tables::{ClusterRow, DocumentRow, Scan, Table, field};

/// Up to so many bytes to the next wanted document are read rather than left out: to begin at
/// another place costs as much.
const GAP: u64 = 1 << 20;

/// The input files of a week in the order of the corpus: those of earlier batches whose documents
/// stay, as far as they are at hand, and `input`, or what the job of the week names if there is
/// none.
///
/// # Errors
/// If files of the store cannot be read, or an input matches nothing.
pub fn corpus_of_week(store: &Store, week: Week, input: &[String]) -> Result<StudyFiles> {
    let committed = store.committed(week)?;
    let Cluster { input: of_job, read: reading, .. } = job_of_week(store, &committed)?;
    let own = if input.is_empty() { readers::list(&of_job, &reading) } else { readers::list(input, &reading.here()) };
    let own = own.with_context(|| format!("the input files of week {week} are read again: give them with --input"))?;
    let whole = store.whole(&committed)?;
    let own = named_inputs((store, &whole), own, &reading);
    let journal = &whole.journal;
    let earlier = inputs_at_hand((store, &whole), journal.earlier_names(), &reading, Verify::Exact, true);
    let mut at_hand: BTreeMap<String, Input> =
        earlier.into_iter().chain(own).map(|input| (input.name.clone(), input)).collect();
    let names = journal.inputs(week).flat_map(|(_, names)| names.keys());
    let crawl = names.filter_map(|name| at_hand.remove(name)).collect();
    let method = store.manifest()?.map_or_else(Method::default, |manifest| manifest.method);
    Ok(StudyFiles { crawl, reading, method, ..StudyFiles::default() })
}

/// The documents of a batch that were compared: enough to know whether others are the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedBatch {
    /// The batch, or the week.
    pub week: Week,
    /// How many there are.
    pub documents: u64,
    /// A hash of their ids and checksums, in any order.
    pub digest: u64,
}

impl ComparedBatch {
    /// A batch without documents.
    pub fn new(week: Week) -> ComparedBatch {
        ComparedBatch { week, documents: 0, digest: 0 }
    }

    /// Adds a document.
    pub fn add(&mut self, doc: DocId, checksum: u128) {
        let [high, low] = halves(checksum);
        self.documents += 1;
        self.digest = self.digest.wrapping_add(mix(doc.to_table() as u64 ^ mix(high ^ mix(low))));
    }
}

/// Where a document is in the input files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct DocumentPlace {
    /// The number of the input.
    file: u64,
    /// Its place there: see [`Page::offset`].
    offset: u64,
    /// The document.
    doc: DocId,
    /// The high and the low half of its checksum.
    checksum: [u64; 2],
}

/// The texts that one worker reads from the input files.
pub struct CrawlTexts {
    inputs: Vec<Input>,
    reading: Reading,
    /// Which worker reads each input.
    readers: Vec<usize>,
    documents: Vec<(CorpusPlace, DocId)>,
    /// As many.
    places: Vec<DocumentPlace>,
    reader: WordReader,
}

impl CrawlTexts {
    /// Finds the documents of the week in its tables, and deals them to the workers that read their
    /// files; with `since` only those of batches from that date on. Also returns how many there are
    /// of each batch, in its order.
    ///
    /// # Errors
    /// If a table cannot be read, or names an input that is not at hand; or a worker of this
    /// process failed.
    pub fn find(
        cx: &mut Context,
        plan: &StudyPlan,
        owned: &Ownership,
        which: PassageDocuments,
        since: Option<Week>,
    ) -> Result<(CrawlTexts, Vec<ComparedBatch>)> {
        let files = &plan.files;
        ensure!(files.crawl.len() < 1 << 24, "{} input files are too many: at most 2^24", files.crawl.len());
        let readers = readers_of(&files.crawl, cx.peers());
        let (places, own) = own_documents(plan, owned, which, since)?;
        let mut dealer = cx.dealer();
        places.into_iter().for_each(|place| dealer.deal(readers[place.file as usize] as u64, place));
        let mut places: Vec<DocumentPlace> = Vec::new();
        all_to_all(cx, dealer)?.iter().for_each(|block| places.extend_from_slice(block.records()));
        places.sort_rows();
        let mut documents = Vec::with_capacity(places.len());
        for of_file in places.chunk_by(|a, b| a.file == b.file) {
            documents
                .extend((0..).zip(of_file).map(|(number, place)| (CorpusPlace::new(place.file, number), place.doc)));
        }
        let mut batches: BTreeMap<Week, ComparedBatch> = BTreeMap::new();
        for of_worker in cx.concat(own)? {
            let batch = batches.entry(of_worker.week).or_insert(ComparedBatch::new(of_worker.week));
            batch.documents += of_worker.documents;
            batch.digest = batch.digest.wrapping_add(of_worker.digest);
        }
        let reader = WordReader::new(&files.method, kernels::chosen()?)?;
        let (inputs, reading) = (files.crawl.clone(), files.reading.clone());
        let texts = CrawlTexts { inputs, reading, readers, documents, places, reader };
        Ok((texts, batches.into_values().collect()))
    }
}

/// The places of own documents, and their number by batch.
fn own_documents(
    plan: &StudyPlan,
    owned: &Ownership,
    which: PassageDocuments,
    since: Option<Week>,
) -> Result<(Vec<DocumentPlace>, Vec<ComparedBatch>)> {
    let history = &plan.history;
    let number = history.weeks.len() - 1;
    let tables = history.tables(number);
    let mut is_wanted = vec![which == PassageDocuments::All; owned.len()];
    if which == PassageDocuments::Kept {
        for shard in owned.shards() {
            for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
                Scan::open(&rows, &["doc", "canonical"])?.for_each(|batch| {
                    let (docs, canonical): (&Int64Array, &BooleanArray) =
                        (field(batch, "doc")?, field(batch, "canonical")?);
                    for (row, doc) in docs.values().iter().enumerate() {
                        let doc = DocId::from_table(*doc);
                        history.check(number, doc, shard, rows.path())?;
                        is_wanted[owned.index(doc)] = canonical.value(row);
                    }
                    Ok(())
                })?;
            }
        }
    }
    let names: BTreeMap<&str, u64> = plan.files.crawl.iter().map(|input| input.name.as_str()).zip(0..).collect();
    let mut places = Vec::new();
    let mut batches: BTreeMap<i32, ComparedBatch> = BTreeMap::new();
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "crawled", "file", "offset", "checksum"])?.for_each(|batch| {
                let (docs, offsets): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "offset")?);
                let (weeks, files): (&Date32Array, &StringArray) = (field(batch, "crawled")?, field(batch, "file")?);
                let checksums: &FixedSizeBinaryArray = field(batch, "checksum")?;
                for (row, doc) in docs.values().iter().enumerate() {
                    let doc = DocId::from_table(*doc);
                    history.check(number, doc, shard, rows.path())?;
                    let days = weeks.value(row);
                    if !is_wanted[owned.index(doc)] || since.is_some_and(|since| days < since.days()) {
                        continue;
                    }
                    let file = files.value(row);
                    let Some(file) = names.get(file).copied() else {
                        ensure!(
                            !readers::is_passing(file),
                            "documents of {} must be read again, and they came from standard input or a pipe ({file}), which nothing gives again: \
                             make the store from files for this job",
                            Week::from_days(days)
                        );
                        bail!(
                            "{file} is not at hand, and its documents must be read again: put the input files of the week back, \
                             under the names that they had, or give those of the week with --input"
                        )
                    };
                    let sum = u128::from_be_bytes(checksums.value(row).try_into().context("a checksum has 16 bytes")?);
                    let checksum = halves(sum);
                    places.push(DocumentPlace { file, offset: offsets.value(row) as u64, doc, checksum });
                    batches.entry(days).or_insert(ComparedBatch::new(Week::from_days(days))).add(doc, sum);
                }
                Ok(())
            })?;
        }
    }
    Ok((places, batches.into_values().collect()))
}

fn halves(sum: u128) -> [u64; 2] {
    [(sum >> 64) as u64, sum as u64]
}

/// The file that is read.
struct OpenTexts {
    file: u64,
    reader: Box<dyn Reader>,
    /// The place of the last record that was read.
    last: u64,
    /// Whether it was begun inside, at the place of a document.
    is_inside: bool,
    /// Whether places of this file are not those of its bytes, so that it is read in order.
    in_order: bool,
}

impl CrawlTexts {
    /// Begins to read a file from its beginning.
    fn open(&self, file: u64) -> Result<OpenTexts> {
        let mut reader = readers::open(&self.inputs[file as usize], &self.reading)?;
        reader.without_waiting();
        Ok(OpenTexts { file, reader, last: 0, is_inside: false, in_order: false })
    }

    /// Begins to read a file at a place, if it can be read there.
    fn open_at(&self, file: u64, offset: u64) -> Result<Option<OpenTexts>> {
        let reader = readers::open_at(&self.inputs[file as usize], &self.reading, offset)?;
        Ok(reader.map(|mut reader| {
            reader.without_waiting();
            OpenTexts { file, reader, last: offset, is_inside: true, in_order: false }
        }))
    }

    /// The page of a document, in the file that is open or in another one.
    fn page(&self, wanted: DocumentPlace, open: &mut Option<OpenTexts>) -> Result<Page> {
        let DocumentPlace { file, offset, checksum: sum, doc } = wanted;
        let name = &self.inputs[file as usize].name;
        let failed = || format!("cannot read {name}");
        let before = open.take().filter(|open| open.file == file);
        let mut in_order = before.as_ref().is_some_and(|open| open.in_order);
        let inside = match before.as_ref().map_or(0, |open| open.last) {
            last if offset > last + GAP && !in_order => self.open_at(file, offset)?,
            _ => None,
        };
        let mut reading = match inside.or(before) {
            Some(reading) => reading,
            None => self.open(file)?,
        };
        let mut is_whole = false;
        loop {
            reading.reader.skip_to(offset).with_context(failed)?;
            while let Some(item) = reading.reader.next().with_context(failed)? {
                reading.last = item.offset();
                if let Item::Page(page) = item
                    && page.offset == offset
                    && halves(checksum(page.body.as_bytes())) == sum
                {
                    *open = Some(reading);
                    return Ok(page);
                }
                if reading.is_inside && reading.last > offset {
                    break;
                }
            }
            // It is not behind what was read before: records that share a place are in any order.
            ensure!(
                !is_whole,
                "{name} does not have the record of document {doc} at {offset} any more: the file has changed since it was read. Put it \
                 back and run again, or make the week again"
            );
            // What began at the place found other things: this file is not begun inside again.
            in_order |= reading.is_inside;
            reading = OpenTexts { in_order, ..self.open(file)? };
            is_whole = true;
        }
    }
}

impl TextSource for CrawlTexts {
    fn readers(&self) -> &[usize] {
        &self.readers
    }

    fn read(&mut self, reader: &mut dyn ReadTexts) -> Result<()> {
        let (mut open, mut last): (Option<OpenTexts>, Option<(DocumentPlace, Page)>) = (None, None);
        while let Some(number) = reader.next(&self.documents)? {
            let wanted = self.places[number];
            // A record can be the page of several documents.
            let is_same =
                |of: &DocumentPlace| (of.file, of.offset, of.checksum) == (wanted.file, wanted.offset, wanted.checksum);
            if !last.as_ref().is_some_and(|(of, _)| is_same(of)) {
                let page = self.page(wanted, &mut open)?;
                last = Some((wanted, page));
            }
            if let Some((_, page)) = &last {
                let label = page.charset.as_deref();
                reader.take(
                    self.documents[number],
                    &mut OpenText { reader: &mut self.reader, body: &page.body, label },
                )?;
            }
        }
        Ok(())
    }
}
