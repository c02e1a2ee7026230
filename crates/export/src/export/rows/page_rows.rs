//! Writes the documents of files whose records have no fields, WARC, HTML and text, as rows: how
//! they are known, and their text.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::RowFields;
use super::columnar::annotated;
use super::format::RowFormat;
use super::writer::{BATCH_BYTES, RowWriter};
use crate::config::{Method, Reading};
use crate::export::dataset::{AddedField, Exported, What, changed};
use crate::export::place::Output;
use crate::export::texts::{LeftTexts, text_of};
use crate::export::verdicts::{RevisitingDocument, Verdict};
use crate::kernels::chosen;
use crate::readers::{Body, Input, Item, Page, open};
use crate::text::{Extract, charset, html, scan};

/// Rows of a batch.
const BATCH: usize = 256;

/// Writes the documents of an input that are wanted, in order.
///
/// # Errors
/// As [`Writing::write`](crate::export::Writing::write).
pub(crate) fn export(
    input: &Input,
    (reading, method): (&Reading, &Method),
    verdicts: &[Verdict],
    what: What,
    fields: RowFields<'_>,
    format: RowFormat,
    out: Output,
) -> Result<(Exported, Output)> {
    let schema = schema();
    let RowFields { added: fields, renamed } = fields;
    let of_rows = annotated(&schema, fields, input)?;
    let mut writer = RowWriter::new(format, out, renamed.schema(&of_rows, input)?, None)?;
    let mut rows =
        PendingRows { schema: of_rows, fields, pages: Vec::new(), verdicts: Vec::new(), extract: Extract::default() };
    let mut reader = open(input, reading)?;
    let (mut exported, mut left) = (Exported::default(), LeftTexts::new(method));
    let (mut verdicts, mut bytes) = (verdicts.iter().peekable(), 0);
    while let Some(item) = reader.next()? {
        let offset = item.offset();
        let is_document = |verdict: &&Verdict| verdict.offset == offset && matches!(item, Item::Page(_));
        let Some(verdict) = verdicts.next_if(is_document) else {
            exported.left_out.add(&item);
            continue;
        };
        let mut page = match item {
            Item::Page(page) if verdict.is_of(&page, input.format) => page,
            _ => return Err(changed(input, offset)),
        };
        exported.add(verdict, what);
        if !what.wants(verdict) {
            continue;
        }
        if let Some(RevisitingDocument { url, fetched, media_type }) = verdict.revisiting.as_deref() {
            (page.url, page.fetched, page.media_type) = (Some(url.clone()), *fetched, media_type.clone());
        }
        if verdict.gone.is_nothing() {
            rows.pages.push(page);
        } else {
            let Some(before) = text_of(&page.body) else { return Err(changed(input, offset)) };
            let after = left.of(&verdict.gone, before)?;
            exported.add_gone(verdict, before, after.as_deref());
            let Some(after) = after else { continue };
            rows.pages.push(Page { body: Body::Text(after), ..page });
        }
        rows.verdicts.push(verdict);
        bytes += rows.pages.last().map_or(0, |page| page.body.as_bytes().len());
        if rows.pages.len() == BATCH || bytes >= BATCH_BYTES {
            bytes = 0;
            writer.write(&rows.batch()?)?;
        }
    }
    if let Some(verdict) = verdicts.next() {
        return Err(changed(input, verdict.offset));
    }
    if !rows.pages.is_empty() {
        writer.write(&rows.batch()?)?;
    }
    Ok((exported, writer.finish()?))
}

/// The fields of a document.
pub(crate) fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let fields = [("url", DataType::Utf8), ("date", time), ("status", DataType::Int32), ("media_type", DataType::Utf8)];
    let fields = fields.into_iter().chain([("title", DataType::Utf8), ("text", DataType::Utf8)]);
    Arc::new(Schema::new(fields.map(|(name, kind)| Field::new(name, kind, name != "text")).collect::<Vec<_>>()))
}

/// Documents that are not written yet.
struct PendingRows<'a> {
    schema: SchemaRef,
    fields: &'a [AddedField],
    pages: Vec<Page>,
    verdicts: Vec<&'a Verdict>,
    extract: Extract,
}

impl PendingRows<'_> {
    /// The rows of the documents, which are taken.
    fn batch(&mut self) -> Result<RecordBatch> {
        let (pages, verdicts) = (std::mem::take(&mut self.pages), std::mem::take(&mut self.verdicts));
        let (mut titles, mut texts) = (Vec::new(), Vec::new());
        for page in &pages {
            let (title, text) = self.text(page)?;
            titles.push(title);
            texts.push(text);
        }
        let fetched: TimestampMicrosecondArray = pages.iter().map(|page| page.fetched).collect();
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(pages.iter().map(|page| page.url.as_deref()).collect::<StringArray>()),
            Arc::new(fetched.with_timezone("UTC")),
            Arc::new(pages.iter().map(|page| page.status.map(i32::from)).collect::<Int32Array>()),
            Arc::new(pages.iter().map(|page| page.media_type.as_deref()).collect::<StringArray>()),
            Arc::new(titles.iter().map(Option::as_deref).collect::<StringArray>()),
            Arc::new(texts.iter().map(Some).collect::<StringArray>()),
        ];
        columns.extend(super::columnar::annotations(&verdicts, self.fields));
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    /// The title and the text of a document, as they are compared: without markup, a line for each
    /// block, in which white space is one space.
    fn text(&mut self, page: &Page) -> Result<(Option<String>, String)> {
        let label = page.charset.as_deref();
        Ok(match &page.body {
            Body::Text(text) => (None, text.clone()),
            Body::Plain(bytes) => (None, charset::decode_plain(bytes, label).0.into_owned()),
            Body::Html(bytes) => {
                let (decoded, _) = charset::decode(bytes, label);
                scan(decoded.as_bytes(), 0, chosen()?, &mut self.extract);
                let text = String::from_utf8_lossy(&self.extract.text);
                let lines = text.split(char::from(html::LINE_END));
                let mut tidy = String::with_capacity(text.len());
                for line in lines {
                    let before = tidy.len();
                    for word in line.split_whitespace() {
                        tidy.push_str(if tidy.len() > before { " " } else { "" });
                        tidy.push_str(word);
                    }
                    if tidy.len() > before {
                        tidy.push('\n');
                    }
                }
                tidy.truncate(tidy.trim_end().len());
                (Some(self.extract.title.clone()).filter(|title| !title.is_empty()), tidy)
            }
        })
    }
}
