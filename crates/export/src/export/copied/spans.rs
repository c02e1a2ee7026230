//! Writes inputs again in which a record is a span of bytes, from its place to that of the next
//! one: lines of JSON, CSV, WARC records, and files that are one document.
//!
//! The input is read twice at the same time: as items, which are compared with the verdicts, and as
//! bytes, which are copied or passed over up to the place of the next item. What is copied is the
//! same byte for byte; only lines and CSV are compressed again.

use std::borrow::Cow;
use std::io::Write as _;
use std::iter::Peekable;
use std::path::Path;
use std::slice::Iter;

use anyhow::{Context, Result, bail, ensure};

use super::attached::Attached;
use super::compressed::Compressed;
use super::json_line::{own_field, with_text};
use crate::config::{Method, Reading};
use crate::export::dataset::{AddedField, AddedValue, Exported, What, annotated_before, changed};
use crate::export::near_duplicates::{NearDuplicate, Subject, warc_date};
use crate::export::place::Output;
use crate::export::renamed::{CsvNames, NewNames, csv_text};
use crate::export::revisits::{RevisitedRecord, arc_record_id, as_warc, http_head, readdressed, revisit, revisit_id};
use crate::export::rows::line_number;
use crate::export::texts::{Gone, LeftTexts, text_of};
use crate::export::verdicts::Verdict;
use crate::readers::{
    CountedIn, Dialect, Input, Item, LineKind, PageKind, RawBytes, RecordKind, RecordNames, Skip, Skipped, decoded,
    open,
};

/// What becomes of the bytes of a record.
enum RecordFate<'a> {
    /// They are copied.
    Copied,
    /// They are not.
    Left,
    /// They are written with another text, and what goes from the one that they have.
    Edited(String, &'a Gone),
    /// They are written with what is known of the record.
    Annotated(&'a Verdict),
    /// They are replaced by this record, which refers to one that stays.
    Replaced(Vec<u8>),
    /// They are replaced by this record, which is that of a document of another URL.
    Readdressed(Vec<u8>),
    /// They wait for the page that the record belongs to.
    Waits(RecordNames),
}

impl RecordFate<'_> {
    /// Whether the record is written, with its URL.
    fn is_written(&self) -> bool {
        !matches!(self, RecordFate::Left | RecordFate::Waits(_) | RecordFate::Readdressed(_))
    }
}

/// An input that is written again.
pub(crate) struct Spans<'a> {
    pub input: &'a Input,
    pub reading: &'a Reading,
    /// How its documents were compared.
    pub method: &'a Method,
    pub what: What,
    /// The fields that the records get.
    pub fields: &'a [AddedField],
    /// The columns that are written under other names.
    pub renamed: &'a NewNames,
    /// Whether records of WARC and ARC that go are replaced by revisit records. Then records of ARC
    /// become records of WARC.
    pub revisits: bool,
    /// Whether records say which pages are near-duplicates. Then, too.
    pub near_duplicates: bool,
    /// Whether records of WARC and ARC that are no pages are written, whatever they are.
    pub others: bool,
    /// The verdicts on its documents, in the order of their places.
    pub verdicts: &'a [Verdict],
}

/// The head of a record, and the HTTP head in its block.
type RecordHeads = (Vec<u8>, Vec<u8>);

impl Spans<'_> {
    /// Writes the records that are wanted to `out`, a new file that will have the name `to`.
    ///
    /// # Errors
    /// If the input cannot be read, or has changed since the week was made; or the output cannot be
    /// written.
    pub(crate) fn export(&self, out: Output, to: &Path) -> Result<(Exported, Output)> {
        let Input { name, format, .. } = self.input;
        ensure!(
            self.fields.is_empty() || format.lines().is_some(),
            "{name} is {format}, whose records have no fields to write to: --list has what is known of them"
        );
        ensure!(
            self.renamed.is_empty() || format.lines().is_some(),
            "{name} is {format}, whose records have no columns to rename: leave out --rename, or give --format jsonl or parquet"
        );
        let mut reader = open(self.input, self.reading)?;
        reader.without_waiting();
        let mut item = || -> Result<Option<ReadItem>> {
            let Some(item) = reader.next()? else { return Ok(None) };
            let record = self.replaced(&item).and_then(|_| reader.stored_record());
            let record = record.map(|record| (record.head.to_vec(), http_head(record.block).to_vec()));
            let document = self.verdict(&item).and_then(|verdict| verdict.revisiting.as_deref());
            let readdressed = document.and_then(|document| readdressed(&reader.stored_record()?, document));
            let (counted_in, names) = (reader.counted_in(), reader.record_names());
            Ok(Some(ReadItem { item, counted_in, names, record, readdressed }))
        };
        // The first record of a compressed WARC begins a member, whether or not others are in it.
        let (first, second) = (item()?, item()?);
        let counted_in = match (format.records(), second.as_ref().or(first.as_ref())) {
            // A file without lines is decoded as one with lines.
            (RecordKind::Lines(_), None) => CountedIn::Decoded,
            (RecordKind::WholeFile(_), _) | (_, None) => CountedIn::Stored,
            (_, Some(found)) => found.counted_in,
        };
        let mut raw = RawBytes::open(self.input, counted_in)?;
        let member = match raw.peek().with_context(|| failed(self.input))? {
            _ if counted_in == CountedIn::Decoded => MemberOf::Output,
            [0x1f, 0x8b, ..] => MemberOf::Gzip,
            first if is_zstd(first) => MemberOf::Zstd,
            _ => MemberOf::Output,
        };
        let out = if counted_in == CountedIn::Stored { Compressed::stored(out) } else { Compressed::named(out, to)? };
        let (attached, span) = (Attached::new(self.others), Vec::new());
        let exported = Exported::default();
        let left = LeftTexts::new(self.method);
        let mut copy =
            Copy { spans: self, to, counted_in, member, raw, out, span, left, attached, exported, said: None };
        let mut verdicts = self.verdicts.iter().peekable();
        let items = [first, second].into_iter().flatten().map(Ok).chain(std::iter::from_fn(|| item().transpose()));
        let mut fate = None;
        for item in items {
            let ReadItem { item, counted_in: counted, names, record, readdressed } = item?;
            let offset = item.offset();
            if fate.is_some() && offset == 0 && matches!(item, Item::Reject(_)) {
                // Damage of a whole entry of a WACZ: it comes last, and ends no record.
                copy.exported.left_out.add(&item);
                continue;
            }
            match &fate {
                None => copy.head(offset)?,
                Some(_) if counted != counted_in || counted == CountedIn::Shared => bail!(
                    "{name} has several records in one compressed member, of which single ones cannot be copied: --list has what is to be removed"
                ),
                Some(fate) => copy.record(fate, offset)?,
            }
            fate = Some(match (names, &item) {
                (Some(record), Item::Skip(Skipped { why: Skip::RecordType, .. })) => copy.beside(record),
                (names, _) => {
                    let is_damaged = matches!(item, Item::Reject(_));
                    let near = self.near_duplicate(&item).map(|near| (near, subject(&item, names.as_ref())));
                    let head = record.as_ref().map(|(head, _)| head.clone());
                    let fate = self.fate(item, (record, readdressed), &mut verdicts, &mut copy)?;
                    copy.said = near.map(|(near, subject)| self.said(near, subject, &fate, head, offset));
                    let written = match names {
                        // The names may be those of the record before.
                        _ if is_damaged => copy.attached.damage(&mut copy.exported),
                        Some(names) => copy.attached.next_capture(names, fate.is_written(), &mut copy.exported),
                        None => Vec::new(),
                    };
                    copy.beside_capture(written)?;
                    fate
                }
            });
        }
        match &fate {
            None => copy.head(u64::MAX)?,
            Some(fate) => copy.record(fate, u64::MAX)?,
        }
        let written = copy.attached.end(&mut copy.exported);
        copy.beside_capture(written)?;
        match verdicts.next() {
            Some(verdict) => Err(changed(self.input, verdict.offset)),
            None => Ok((copy.exported, copy.out.finish()?)),
        }
    }

    /// The verdict on a page.
    fn verdict(&self, item: &Item) -> Option<&Verdict> {
        let Item::Page(page) = item else { return None };
        let place = self.verdicts.binary_search_by_key(&page.offset, |verdict| verdict.offset).ok()?;
        Some(&self.verdicts[place])
    }

    /// What a page refers to that is replaced by a revisit record.
    fn replaced(&self, item: &Item) -> Option<&RevisitedRecord> {
        self.verdict(item)?.original.as_deref()
    }

    /// What is said of a page that is a near-duplicate.
    fn near_duplicate(&self, item: &Item) -> Option<&NearDuplicate> {
        self.verdict(item)?.near.as_deref().filter(|_| self.input.format.has_captures())
    }

    /// The record that says it, of the record that is written for the page. `head` is that of a
    /// record that is replaced.
    fn said(
        &self,
        near: &NearDuplicate,
        mut subject: Subject,
        fate: &RecordFate<'_>,
        head: Option<Vec<u8>>,
        offset: u64,
    ) -> Vec<u8> {
        let name = &self.input.name;
        let id = match (fate, head) {
            (RecordFate::Replaced(_), Some(head)) => Some(revisit_id(&head, name, offset)),
            (RecordFate::Copied, _) if self.is_made_warc() => Some(arc_record_id(name, offset)),
            _ => None,
        };
        if let Some(id) = id {
            subject.id = Some(id.trim_matches(['<', '>']).to_owned());
        }
        near.record(&subject, &[name.as_bytes(), &offset.to_le_bytes()])
    }

    /// Whether the records are of ARC.
    fn is_arc(&self) -> bool {
        self.input.format.dialect() == Some(Dialect::Arc)
    }

    /// Whether records of ARC become records of WARC.
    fn is_made_warc(&self) -> bool {
        (self.revisits || self.near_duplicates) && self.is_arc()
    }

    /// What becomes of an item. `record` is the head of its record and the HTTP head in it, if it
    /// is replaced; `readdressed` its record with the URL of the document, if that is another one.
    fn fate<'v>(
        &self,
        item: Item,
        (record, readdressed): (Option<RecordHeads>, Option<Vec<u8>>),
        verdicts: &mut Peekable<Iter<'v, Verdict>>,
        Copy { exported, left, .. }: &mut Copy<'_>,
    ) -> Result<RecordFate<'v>> {
        let (offset, original) = (item.offset(), self.replaced(&item));
        // Another record can be in the member of a page. If it was a page before, its verdict is
        // left over.
        let is_document = |verdict: &&Verdict| verdict.offset == offset && matches!(item, Item::Page(_));
        let Some(verdict) = verdicts.next_if(is_document) else {
            // A page that is not of the week was deleted, or replaced by a later capture.
            let is_page = matches!(item, Item::Page(_) | Item::Reject(_));
            // The first record of an ARC file describes it.
            let is_head = self.is_arc() && matches!(item, Item::Skip(Skipped { offset: 0, why: Skip::RecordType }));
            let is_other = self.input.format.has_captures() && self.what == What::Kept && !is_page && self.others;
            if is_other || is_head {
                exported.others += 1;
                return Ok(RecordFate::Copied);
            }
            exported.left_out.add(&item);
            return Ok(RecordFate::Left);
        };
        let page = match item {
            Item::Page(page) if verdict.is_of(&page, self.input.format) => page,
            _ => return Err(changed(self.input, offset)),
        };
        // A row, or a record in segments, cannot be written with another URL.
        if verdict.revisiting.is_some() && readdressed.is_none() {
            exported.left_out.not_of_week += 1;
            return Ok(RecordFate::Left);
        }
        exported.add(verdict, self.what);
        // Of a text that was cut the rest is not known: it stays as it is.
        if verdict.stays && !verdict.gone.is_nothing() && !page.cut {
            let Some(before) = text_of(&page.body) else { bail!(changed(self.input, offset)) };
            let after = left.of(&verdict.gone, before)?;
            exported.add_gone(verdict, before, after.as_deref());
            return Ok(after.map_or(RecordFate::Left, |after| RecordFate::Edited(after, &verdict.gone)));
        }
        let fate = match self.what {
            what if what.wants(verdict) && !self.fields.is_empty() => RecordFate::Annotated(verdict),
            what if what.wants(verdict) => RecordFate::Copied,
            What::Kept if let Some(original) = original => {
                let made = record.and_then(|(head, http)| revisit(&head, &http, original, &self.input.name, offset));
                exported.revisits += 1;
                exported.outside += u64::from(original.is_outside);
                RecordFate::Replaced(made.ok_or_else(|| changed(self.input, offset))?)
            }
            What::Kept if self.revisits && self.input.format.has_captures() => {
                exported.kept_whole += 1;
                RecordFate::Copied
            }
            _ => RecordFate::Left,
        };
        Ok(match (fate, readdressed) {
            (RecordFate::Copied, Some(record)) => RecordFate::Readdressed(record),
            (fate, _) => fate,
        })
    }
}

/// The page of an item, of which something is said. `names` are those of its record.
fn subject(item: &Item, names: Option<&RecordNames>) -> Subject {
    let Item::Page(page) = item else { return Subject { url: None, id: None, date: None } };
    let url = names.and_then(|names| names.url.clone()).or_else(|| page.url.clone());
    Subject { url, id: names.and_then(|names| names.id.clone()), date: page.fetched.and_then(warc_date) }
}

/// An item of an input.
struct ReadItem {
    item: Item,
    counted_in: CountedIn,
    /// What its record says, if it is of WARC.
    names: Option<RecordNames>,
    /// The head of its record and the HTTP head in it, if it is replaced.
    record: Option<RecordHeads>,
    /// Its record with the URL of the document, if that is another one.
    readdressed: Option<Vec<u8>>,
}

/// What a record that is made here is compressed as, in a file whose other records are copied as
/// they are stored.
#[derive(Clone, Copy, PartialEq)]
enum MemberOf {
    /// By the file that is written, or not at all.
    Output,
    Gzip,
    /// Without the dictionary that other frames may have.
    Zstd,
}

/// Whether bytes begin a frame of zstd, or one that is passed over, as a dictionary is.
fn is_zstd(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The copying of one input.
struct Copy<'a> {
    spans: &'a Spans<'a>,
    /// The name of the new file.
    to: &'a Path,
    counted_in: CountedIn,
    member: MemberOf,
    raw: RawBytes,
    out: Compressed,
    /// The bytes of a record that are not only copied.
    span: Vec<u8>,
    left: LeftTexts<'a>,
    attached: Attached,
    exported: Exported,
    /// A record that is written after the next one: what is said of it.
    said: Option<Vec<u8>>,
}

impl Copy<'_> {
    /// Copies what is before the first record, at `end`: the names of columns, a dictionary.
    fn head(&mut self, end: u64) -> Result<()> {
        let Spans { input, fields, renamed, .. } = *self.spans;
        match input.format.lines() {
            Some(LineKind::Delimited(delimiter)) if !fields.is_empty() || !renamed.is_empty() => {
                self.take(end)?;
                let head = std::mem::take(&mut self.span);
                let names = CsvNames::of(&head, delimiter, input)?;
                let own = |name: Cow<'_, str>| fields.iter().find(|field| name == field.name());
                if let Some(field) = names.texts().find_map(own) {
                    bail!(annotated_before(input, *field));
                }
                let of_csv = |field: &AddedField| csv_text(renamed.of(field.name()), delimiter).into_owned();
                let added: Vec<String> = fields.iter().map(of_csv).collect();
                renamed.check(fields.iter().map(|field| field.name()), &input.name)?;
                let names = names.renamed(renamed, input)?;
                self.with_fields(delimiter, &names, &added)
            }
            _ if self.spans.is_made_warc() => self.passed(end),
            _ => self.copied(end),
        }
    }

    /// What becomes of a WARC record that is no capture.
    fn beside(&mut self, record: RecordNames) -> RecordFate<'static> {
        let is_written = if record.kind == "warcinfo" {
            Some(self.spans.what != What::Annotated)
        } else {
            self.attached.is_written(&record)
        };
        match is_written {
            Some(true) => {
                self.exported.others += 1;
                RecordFate::Copied
            }
            Some(false) => {
                self.exported.left_out.attached += 1;
                RecordFate::Left
            }
            None => RecordFate::Waits(record),
        }
    }

    /// Writes records that waited.
    fn beside_capture(&mut self, records: Vec<Vec<u8>>) -> Result<()> {
        for bytes in records {
            self.out.write_all(&bytes)?;
            self.out.end_member()?;
        }
        Ok(())
    }

    /// Writes the record whose bytes are those up to `end`.
    fn record(&mut self, fate: &RecordFate<'_>, end: u64) -> Result<()> {
        let (Spans { input, .. }, start) = (self.spans, self.raw.place());
        match fate {
            RecordFate::Copied if self.spans.is_made_warc() => {
                self.take(end)?;
                let record = match self.counted_in {
                    CountedIn::Decoded => std::mem::take(&mut self.span),
                    _ => decoded(std::mem::take(&mut self.span), input.format).with_context(|| failed(input))?,
                };
                let record = as_warc(&record, &input.name, start).ok_or_else(|| changed(input, start))?;
                self.whole_member(&record)?;
            }
            RecordFate::Copied if input.format.has_json_lines() && !self.spans.renamed.is_empty() => {
                self.take(end)?;
                let record = std::mem::take(&mut self.span);
                self.write_line(&record, start)?;
                self.span = record;
            }
            RecordFate::Copied => self.copied(end)?,
            RecordFate::Edited(text, gone) => {
                self.take(end)?;
                let record = std::mem::take(&mut self.span);
                match input.format.records() {
                    RecordKind::WholeFile(PageKind::Text) => {
                        self.out.compress_as(self.to)?;
                        self.out.write_all(text.as_bytes())?;
                    }
                    _ => {
                        let reading = input.reading(self.spans.reading);
                        let columns = &reading.columns.text;
                        let line = with_text(&record, columns, text, gone, &mut self.left)?;
                        let line = line.with_context(|| {
                            format!("{} has no `{}` where it had one", input.name, columns.names().join("`, `"))
                        })?;
                        self.write_line(&line, start)?;
                    }
                }
                self.span = record;
            }
            RecordFate::Waits(record) => {
                self.take(end)?;
                let bytes = std::mem::take(&mut self.span);
                let older = self.attached.wait(record.clone(), bytes, &mut self.exported);
                self.beside_capture(older)?;
            }
            RecordFate::Left => self.passed(end)?,
            RecordFate::Annotated(verdict) => {
                self.take(end)?;
                let record = std::mem::take(&mut self.span);
                match input.format.lines() {
                    Some(LineKind::Delimited(delimiter)) => {
                        let values = self.spans.fields.iter().map(|field| field.value(verdict).to_string());
                        let values: Vec<String> = values.collect();
                        self.with_fields(delimiter, &record, &values)?;
                    }
                    _ => self.annotated_line(&record, verdict, start)?,
                }
                self.span = record;
            }
            RecordFate::Readdressed(record) if self.spans.is_made_warc() => {
                self.passed(end)?;
                let record = as_warc(record, &input.name, start).ok_or_else(|| changed(input, start))?;
                self.whole_member(&record)?;
            }
            RecordFate::Replaced(record) | RecordFate::Readdressed(record) => {
                self.passed(end)?;
                self.whole_member(record)?;
            }
        }
        // Each record of a WARC is a member of its own.
        if input.format.has_captures() {
            self.out.end_member()?;
        }
        if let Some(record) = self.said.take() {
            self.exported.near_duplicates += 1;
            self.whole_member(&record)?;
            self.out.end_member()?;
        }
        Ok(())
    }

    /// Writes a record that was made here to a file whose other records are copied as they are
    /// stored.
    fn whole_member(&mut self, record: &[u8]) -> Result<()> {
        match self.member {
            MemberOf::Output => self.out.write_all(record)?,
            MemberOf::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(&mut self.out, flate2::Compression::default());
                encoder.write_all(record)?;
                encoder.finish()?;
            }
            MemberOf::Zstd => self.out.write_all(&zstd::bulk::compress(record, 0)?)?,
        }
        Ok(())
    }

    /// Passes over the bytes up to `end`.
    fn passed(&mut self, end: u64) -> Result<()> {
        while !self.raw.before(end).with_context(|| failed(self.spans.input))?.is_empty() {}
        Ok(())
    }

    fn copied(&mut self, end: u64) -> Result<()> {
        loop {
            let bytes = self.raw.before(end).with_context(|| failed(self.spans.input))?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.out.write_all(bytes)?;
        }
    }

    /// Takes the bytes up to `end` into `span`.
    fn take(&mut self, end: u64) -> Result<()> {
        self.span.clear();
        loop {
            let bytes = self.raw.before(end).with_context(|| failed(self.spans.input))?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.span.extend_from_slice(bytes);
        }
    }

    /// Writes the object of a line with further fields at its end.
    fn annotated_line(&mut self, record: &[u8], verdict: &Verdict, start: u64) -> Result<()> {
        // Blank lines can follow.
        let line = record.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
        let fields = self.spans.fields;
        if let Some(field) = own_field(line, fields) {
            bail!(annotated_before(self.spans.input, field));
        }
        let object = line.strip_suffix(b"}").unwrap_or(line).trim_ascii_end();
        let mut comma = if object.ends_with(b"{") { "" } else { "," };
        let mut annotated = object.to_vec();
        for field in fields {
            let value = match field.value(verdict) {
                AddedValue::Double(None) | AddedValue::MaybeLong(None) => "null".to_owned(),
                value => value.to_string(),
            };
            write!(annotated, "{comma}\"{}\":{value}", field.name())?;
            comma = ",";
        }
        annotated.extend_from_slice(b"}\n");
        self.write_line(&annotated, start)
    }

    /// Writes a line, with the new names of its columns. `start` is the place of its record.
    fn write_line(&mut self, line: &[u8], start: u64) -> Result<()> {
        let Spans { renamed, input, .. } = *self.spans;
        if renamed.is_empty() {
            return Ok(self.out.write_all(line)?);
        }
        let mut of_new_names = Vec::with_capacity(line.len());
        let place = || match line_number(input, start) {
            Ok(number) => format!("{}, line {number}", input.name),
            Err(_) => format!("{}, byte {start}", input.name),
        };
        renamed.line(line, &place, &mut of_new_names)?;
        Ok(self.out.write_all(&of_new_names)?)
    }

    /// Writes a record of CSV with further fields at its end.
    fn with_fields(&mut self, delimiter: u8, record: &[u8], fields: &[String]) -> Result<()> {
        let end = record.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        let line_end: &[u8] = if record[end..].starts_with(b"\r\n") { b"\r\n" } else { b"\n" };
        self.out.write_all(&record[..end])?;
        for field in fields {
            self.out.write_all(&[delimiter])?;
            self.out.write_all(field.as_bytes())?;
        }
        self.out.write_all(line_end)?;
        Ok(())
    }
}

fn failed(input: &Input) -> String {
    format!("cannot read {}", input.name)
}
