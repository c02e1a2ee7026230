//! Reads files of Arrow record batches (Arrow Columnar Format, *Serialization and Interprocess
//! Communication*): streams, and files, which are streams between a signature and a table of
//! contents. Hugging Face `datasets` and Feather (version 2) write them.
//!
//! ```text
//! schema: with it a stream begins, and its columns are found by their names
//! batch:  only the columns that the job names are decoded, each row is a page
//! ```
//!
//! Lengths are claims: a head is believed up to a limit, a body is read as it comes, and a
//! compressed buffer must not claim more than a batch may have. The decoder of `arrow-ipc` checks
//! offsets. Texts are decoded as bytes, as they are stored, so that one that is not UTF-8 concerns
//! its row only. A damaged batch is a reject, and its bytes count as unread; the next one is read,
//! but not with a damaged dictionary.
//!
//! A stream on standard input must have its end marker: without it, nothing tells a stream that is
//! complete from one whose writer was killed. So it is an error, not a reject. Files and objects
//! need no marker.
//!
//! Memory: one batch, and the dictionaries.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::io::Read;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use nigh_kernels::structures::CompactSort;

use super::fields::{self, Date};
use super::find::STANDARD_INPUT;
use super::item::{Item, Reader, Reject, Unread};
use super::messages::{BODY, HEAD, IpcMessage, MessageBytes, MessageStep, NO_MEMORY, SIGNATURE};
use super::rows::{PageFields, PageRow, RowId};
use super::value;
use crate::reading::{Columns, Reading, TextColumns};
use nigh_text::contained::contained;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Reads the pages of one file of record batches, plain or compressed as a whole.
pub struct ArrowReader {
    bytes: MessageBytes,
    /// The stream that is being read; `None` if its columns are not those of the job.
    stream: Option<ArrowStream>,
    /// Whether the first stream has the column of the URLs.
    has_url: bool,
    /// Which fields the first stream has.
    has: Vec<bool>,
    /// The batch that is being read, its next row, and its rows.
    batch: Option<(PageFields<ArrowColumn>, usize, usize)>,
    /// The number, in the file, of the next row.
    row: u64,
    /// The batches so far.
    batches: u64,
    ended: bool,
    reading: Reading,
    name: String,
}

/// What the schema of a stream says, and its dictionaries.
struct ArrowStream {
    /// The schema with bytes for texts.
    schema: SchemaRef,
    columns: PageFields<ColumnPath>,
    /// The fields of the schema that are decoded, ascending.
    wanted: Vec<usize>,
    /// Whether the column of HTML has texts: UTF-8, whatever charset a page declares.
    html_is_text: bool,
    dictionaries: HashMap<i64, ArrayRef>,
}

/// Whether a file or a pipe begins with these bytes: the signature of a file, or the first message
/// of a stream.
pub fn begins(first: &[u8]) -> bool {
    let word = |at: usize| first.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u32::from_le_bytes(*word));
    // The head of the message, with its marker and length, is filled up to a multiple of eight
    // bytes. It begins with the place of its table.
    let is_stream = || match (word(0), word(4), word(8)) {
        (Some(u32::MAX), Some(length), Some(place)) => {
            (16..=HEAD as u64).contains(&length.into()) && length.is_multiple_of(8) && place < length
        }
        _ => false,
    };
    first.starts_with(SIGNATURE) || is_stream()
}

/// The names that lead to a column: of a field, and of fields within structures.
type ColumnPath = Vec<String>;

impl ArrowReader {
    /// Makes the reader of `source`, named `name` in errors; `None` if it is damaged before its
    /// schema ends.
    ///
    /// # Errors
    /// If it cannot be read, or lacks a column of the job; the message names those that it has. If
    /// it is standard input, and ends before its schema does.
    pub fn new(source: Box<dyn Read + Send>, name: &str, reading: &Reading) -> anyhow::Result<Option<ArrowReader>> {
        let failed = || format!("cannot read {name}");
        let mut bytes = MessageBytes::new(source, reading).with_context(failed)?;
        let head = match bytes.step().with_context(failed)? {
            MessageStep::Message(message) => message.head,
            MessageStep::Cut(_) | MessageStep::End(_) if name == STANDARD_INPUT => bail!(ended_early(0, 0)),
            _ => return Ok(None),
        };
        let Some(stream) = ArrowStream::new(&head, name, &reading.columns)? else { return Ok(None) };
        Ok(Some(ArrowReader {
            bytes,
            has_url: stream.columns.url.is_some(),
            has: stream.columns.has(),
            stream: Some(stream),
            batch: None,
            row: 0,
            batches: 0,
            ended: false,
            reading: reading.clone(),
            name: name.to_owned(),
        }))
    }

    /// The same, for the bytes of this local file, whose table of contents says where messages
    /// begin.
    #[must_use]
    pub fn with_contents(self, file: File) -> ArrowReader {
        ArrowReader { bytes: self.bytes.with_contents(file), ..self }
    }

    /// The names of its columns, also of those within structures; and which of those whose values
    /// are kept it has.
    pub fn columns(&self) -> (Vec<String>, Vec<bool>) {
        fn add(prefix: &str, fields: &Fields, names: &mut Vec<String>) {
            for field in fields {
                let name = format!("{prefix}{}", field.name());
                match field.data_type() {
                    DataType::Struct(inner) => add(&format!("{name}."), inner, names),
                    _ => names.push(name),
                }
            }
        }
        let mut names = Vec::new();
        let Some(stream) = &self.stream else { return (names, Vec::new()) };
        add("", stream.schema.fields(), &mut names);
        (names, stream.columns.values.iter().map(Option::is_some).collect())
    }

    /// Whether the file has the column of the URLs.
    pub fn has_url(&self) -> bool {
        self.has_url
    }

    fn item(&mut self) -> io::Result<Option<Item>> {
        loop {
            let html_is_text = self.stream.as_ref().is_some_and(|stream| stream.html_is_text);
            if let Some((columns, row, rows)) = &mut self.batch
                && row < rows
            {
                let item = contained(|| page(columns, *row, self.row, &self.reading, html_is_text));
                *row += 1;
                self.row += 1;
                return Ok(Some(
                    item.unwrap_or_else(|cause| reject(self.row - 1, format!("arrow: damaged batch: {cause}"))),
                ));
            }
            self.batch = None;
            if self.ended {
                return Ok(None);
            }
            let is_piped = self.name == STANDARD_INPUT;
            let reason = match self.bytes.step()? {
                MessageStep::End(has_marker) => {
                    self.ended = true;
                    if is_piped && !has_marker {
                        return Err(io::Error::other(ended_early(self.batches, self.row)));
                    }
                    return Ok(None);
                }
                MessageStep::Cut(_) if is_piped => {
                    return Err(io::Error::other(ended_early(self.batches, self.row)));
                }
                MessageStep::Message(message) if is_piped && message.is_schema && !message.follows_end => {
                    return Err(io::Error::other(ended_early(self.batches, self.row)));
                }
                MessageStep::Cut(reason) | MessageStep::Lost(reason) => {
                    // Maybe it was a dictionary.
                    self.stream.iter_mut().for_each(|stream| stream.dictionaries.clear());
                    Some((self.row, reason.to_owned()))
                }
                MessageStep::Message(message) => self.read(&message)?,
            };
            if let Some((place, reason)) = reason {
                return Ok(Some(reject(place, reason)));
            }
        }
    }

    /// Reads a message. Returns the place and the reason of a reject if it is damaged.
    fn read(&mut self, message: &IpcMessage) -> io::Result<Option<(u64, String)>> {
        let place = self.row;
        if message.is_schema {
            let stream = ArrowStream::new(&message.head, &self.name, &self.reading.columns);
            self.stream = stream.ok().flatten().filter(|stream| stream.columns.has() == self.has);
            if self.stream.is_some() {
                return Ok(None);
            }
            self.bytes.lose(message.length);
            return Ok(Some((place, "arrow: a stream that does not have the columns of the one before it".to_owned())));
        }
        let Some(stream) = &mut self.stream else {
            self.bytes.lose(message.length);
            return Ok(None);
        };
        let reason = match contained(|| stream.decode(message, self.bytes.longest)) {
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some((columns, rows)))) => {
                self.batch = Some((columns, 0, rows));
                self.batches += 1;
                return Ok(None);
            }
            Ok(Err(NO_MEMORY)) => return Err(io::Error::other(NO_MEMORY)),
            Ok(Err(reason)) => reason.to_owned(),
            Err(cause) => format!("arrow: damaged batch: {cause}"),
        };
        self.bytes.lose(message.length);
        // A batch must not be read with a dictionary that is older than its own.
        match contained(|| dictionary_of(&message.head)) {
            Ok(Some(dictionary)) => drop(stream.dictionaries.remove(&dictionary)),
            Ok(None) => {}
            Err(_) => stream.dictionaries.clear(),
        }
        // Later rows have the places that they would have if this batch were good.
        self.row += contained(|| rows_of(&message.head)).ok().flatten().unwrap_or_default();
        Ok(Some((place, reason)))
    }
}

/// The number of the dictionary that a message has.
fn dictionary_of(head: &[u8]) -> Option<i64> {
    Some(root_as_message(head).ok()?.header_as_dictionary_batch()?.id())
}

/// The rows that a batch claims to have.
fn rows_of(head: &[u8]) -> Option<u64> {
    let rows = root_as_message(head).ok()?.header_as_record_batch()?.length();
    u64::try_from(rows).ok().filter(|rows| *rows <= BODY)
}

/// The columns of a batch, and its rows.
type ArrowRows = (PageFields<ArrowColumn>, usize);

impl ArrowStream {
    /// The stream that begins with this schema; `None` if that is damaged.
    ///
    /// # Errors
    /// If it lacks a column of the job; the message names those that it has.
    fn new(head: &[u8], name: &str, of_job: &Columns) -> anyhow::Result<Option<ArrowStream>> {
        let schema = contained(|| {
            let head = root_as_message(head).ok()?.header_as_schema()?;
            let is_big_endian = head.endianness() == arrow_ipc::Endianness::Big;
            Some((is_big_endian, arrow_ipc::convert::try_fb_to_schema(head).ok()?))
        });
        let Ok(Some((is_big_endian, schema))) = schema else { return Ok(None) };
        if is_big_endian {
            bail!(
                "{name} has numbers with the highest byte first (big-endian), which are not read: write it again with pyarrow"
            );
        }
        let columns = columns(&schema, name, of_job)?;
        let mut wanted: Vec<usize> = columns.all().filter_map(|path| schema.index_of(&path[0]).ok()).collect();
        wanted.sort_rows();
        wanted.dedup();
        let html_is_text = columns.html.as_ref().is_some_and(|path| type_of(&schema, path).is_some_and(is_text));
        let schema = Arc::new(Schema::new(schema.fields().iter().map(with_bytes).collect::<Fields>()));
        Ok(Some(ArrowStream { schema, columns, wanted, html_is_text, dictionaries: HashMap::new() }))
    }

    /// Decodes a message: a batch, or a dictionary. The reason of a reject if it is damaged, or
    /// takes more than `longest` bytes.
    fn decode(&mut self, message: &IpcMessage, longest: u64) -> Result<Option<ArrowRows>, &'static str> {
        const DAMAGED: &str = "arrow: damaged batch";
        let head = root_as_message(&message.head).map_err(|_| DAMAGED)?;
        match head.header_type() {
            MessageHeader::RecordBatch => {
                let batch = head.header_as_record_batch().ok_or(DAMAGED)?;
                check_claims(&batch, &message.body, longest)?;
                let decoded = read_record_batch(
                    &message.body,
                    batch,
                    self.schema.clone(),
                    &self.dictionaries,
                    Some(&self.wanted),
                    &head.version(),
                );
                let decoded = decoded.map_err(|_| DAMAGED)?;
                let rows = decoded.num_rows();
                let columns = self.columns.map(|path| ArrowColumn::new(&decoded, path)).map_err(|()| DAMAGED)?;
                Ok(Some((columns, rows)))
            }
            MessageHeader::DictionaryBatch => {
                let batch = head.header_as_dictionary_batch().ok_or(DAMAGED)?;
                check_claims(&batch.data().ok_or(DAMAGED)?, &message.body, longest)?;
                read_dictionary(&message.body, batch, &self.schema, &mut self.dictionaries, &head.version())
                    .map_err(|_| DAMAGED)?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

/// Checks what the compressed buffers of a batch claim to become.
fn check_claims(batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer, longest: u64) -> Result<(), &'static str> {
    if batch.compression().is_none() {
        return Ok(());
    }
    let mut sum = 0_u64;
    for buffer in batch.buffers().into_iter().flatten().filter(|buffer| buffer.length() > 0) {
        let start = usize::try_from(buffer.offset()).ok();
        let claim =
            start.and_then(|start| body.get(start..)?.first_chunk::<8>()).map(|claim| i64::from_le_bytes(*claim));
        match claim {
            // The buffer is stored as it is.
            Some(-1) => {}
            Some(claim) if (0..=BODY as i64).contains(&claim) => sum += claim as u64,
            _ => return Err("arrow: a compressed buffer claims too many bytes"),
        }
    }
    if sum > longest { Err(NO_MEMORY) } else { Ok(()) }
}

/// A field with bytes where it has texts, which are stored in the same way: the decoder then does
/// not refuse a batch for a text that is not UTF-8.
fn with_bytes(field: &FieldRef) -> FieldRef {
    use DataType::{
        Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeList, LargeUtf8, List, Map, Struct, Utf8,
        Utf8View,
    };
    fn bytes(kind: &DataType) -> DataType {
        match kind {
            Utf8 => Binary,
            LargeUtf8 => LargeBinary,
            Utf8View => BinaryView,
            Dictionary(keys, values) => Dictionary(keys.clone(), Box::new(bytes(values))),
            Struct(fields) => Struct(fields.iter().map(with_bytes).collect()),
            List(field) => List(with_bytes(field)),
            LargeList(field) => LargeList(with_bytes(field)),
            FixedSizeList(field, length) => FixedSizeList(with_bytes(field), *length),
            Map(field, is_sorted) => Map(with_bytes(field), *is_sorted),
            kind => kind.clone(),
        }
    }
    Arc::new(field.as_ref().clone().with_data_type(bytes(field.data_type())))
}

/// The type of the column to which some names lead.
fn type_of<'a>(schema: &'a Schema, path: &ColumnPath) -> Option<&'a DataType> {
    let (first, inner) = path.split_first()?;
    inner.iter().try_fold(schema.field_with_name(first).ok()?.data_type(), |kind, name| match kind {
        DataType::Struct(fields) => Some(fields.find(name)?.1.data_type()),
        _ => None,
    })
}

/// Whether values of this type are texts.
fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        kind => matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}

/// The error of standard input that ends before its stream does.
fn ended_early(batches: u64, rows: u64) -> String {
    format!(
        "the Arrow stream on standard input ended early: it has no end marker after {rows} rows ({batches} batches). The program that writes it \
         was ended, or did not close its writer: it must end the stream. Run both again"
    )
}

/// Finds the columns of the job in a schema.
fn columns(schema: &Schema, name: &str, columns: &Columns) -> anyhow::Result<PageFields<ColumnPath>> {
    if columns.text.is_empty() && columns.html.is_none() {
        bail!("cannot read pages from {name}: set `text` or `html` in [cluster.read.columns]");
    }
    let find = |path: &String| {
        let Some((found, kind)) = find_column(schema, path) else {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            bail!(
                "{name} has no column `{path}` (its columns: {}); set the names in [cluster.read.columns], or by --id, --url and --text",
                names.join(", ")
            );
        };
        if !is_read(kind) {
            bail!("the column `{path}` of {name} is {kind}: name a column with one value in each row");
        }
        Ok(found)
    };
    let Columns { id, url, text, html, ip, date, values } = columns.clone();
    let url = url.or_else(|| find_column(schema, columns.url()).map(|_| columns.url().to_owned()));
    let text = text.of_file(|name| find_column(schema, name).is_some());
    let columns = PageFields { id, url, text, html, ip, date, values: Vec::new() }.map(find)?;
    let find_value = |path: String| match find_column(schema, &path) {
        Some((_, kind)) if !is_ordered(kind) => bail!(
            "the column `{path}` of {name} is {kind}, whose values are not kept: name a column of numbers, texts, times or booleans"
        ),
        found => Ok(found.map(|(path, _)| path)),
    };
    Ok(PageFields { values: values.into_iter().map(find_value).collect::<anyhow::Result<_>>()?, ..columns })
}

/// The names that lead to the column of a path such as `meta.url`, and its type.
fn find_column<'a>(schema: &'a Schema, path: &str) -> Option<(ColumnPath, &'a DataType)> {
    if let Ok(field) = schema.field_with_name(path) {
        return Some((vec![path.to_owned()], field.data_type()));
    }
    let names: ColumnPath = path.split('.').map(str::to_owned).collect();
    let mut kind = schema.field_with_name(&names[0]).ok()?.data_type();
    for name in &names[1..] {
        let DataType::Struct(fields) = kind else { return None };
        kind = fields.find(name)?.1.data_type();
    }
    Some((names, kind))
}

/// Whether a column of this type has one value in each row, which takes bytes of the file.
fn is_read(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_bytes(values),
        kind => {
            is_bytes(kind)
                || kind.is_integer()
                || kind.is_temporal()
                || kind.is_decimal()
                || matches!(kind, DataType::Float32 | DataType::Float64)
        }
    }
}

/// Whether a column of this type has values that are [texts](super::ColumnValue).
fn is_ordered(kind: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Dictionary, Float16, Timestamp};
    match kind {
        Date32 | Date64 | Timestamp(..) | Boolean | Float16 => true,
        Dictionary(_, values) => is_ordered(values),
        kind => is_read(kind) && !kind.is_temporal(),
    }
}

fn is_bytes(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// A column of a batch.
struct ArrowColumn {
    /// The structures around it, whose nulls are its own.
    around: Vec<ArrayRef>,
    values: ArrayRef,
    /// Of a dictionary, the place of the value of each row among its values, which then are
    /// `values`.
    keys: Option<(ArrayRef, Vec<usize>)>,
}

impl ArrowColumn {
    fn new(batch: &RecordBatch, path: &ColumnPath) -> Result<ArrowColumn, ()> {
        let mut values = batch.column_by_name(&path[0]).ok_or(())?.clone();
        let mut around = Vec::new();
        for name in &path[1..] {
            let field = values.as_struct_opt().and_then(|fields| fields.column_by_name(name)).ok_or(())?.clone();
            around.push(std::mem::replace(&mut values, field));
        }
        let keys = values.as_any_dictionary_opt().map(|dictionary| {
            let keys = if dictionary.values().is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            (dictionary.values().clone(), keys)
        });
        let keys = keys.map(|(of_dictionary, keys)| (std::mem::replace(&mut values, of_dictionary), keys));
        Ok(ArrowColumn { around, values, keys })
    }

    /// The place of the value of a row among the values; `None` if it is null.
    fn place(&self, row: usize) -> Option<usize> {
        if self.around.iter().any(|fields| fields.is_null(row)) {
            return None;
        }
        let place = match &self.keys {
            Some((rows, _)) if rows.is_null(row) => return None,
            Some((_, keys)) => *keys.get(row)?,
            None => row,
        };
        self.values.is_valid(place).then_some(place)
    }

    /// The value of a row, if it is bytes or text.
    fn bytes(&self, row: usize) -> Option<&[u8]> {
        let (place, values) = (self.place(row)?, &self.values);
        Some(match values.data_type() {
            DataType::Binary => values.as_binary::<i32>().value(place),
            DataType::LargeBinary => values.as_binary::<i64>().value(place),
            DataType::BinaryView => values.as_binary_view().value(place),
            _ => return None,
        })
    }

    /// The value of a row as text, with invalid bytes as U+FFFD.
    fn text(&self, row: usize) -> Option<Cow<'_, str>> {
        self.bytes(row).map(fields::utf8)
    }

    /// The value of a row, if it is an integer; `None` of a larger one than 64 bits with a sign
    /// have.
    fn integer(&self, row: usize) -> Option<i64> {
        let (place, values) = (self.place(row)?, &self.values);
        Some(match values.data_type() {
            DataType::Int8 => values.as_primitive::<Int8Type>().value(place).into(),
            DataType::Int16 => values.as_primitive::<Int16Type>().value(place).into(),
            DataType::Int32 => values.as_primitive::<Int32Type>().value(place).into(),
            DataType::Int64 => values.as_primitive::<Int64Type>().value(place),
            DataType::UInt8 => values.as_primitive::<UInt8Type>().value(place).into(),
            DataType::UInt16 => values.as_primitive::<UInt16Type>().value(place).into(),
            DataType::UInt32 => values.as_primitive::<UInt32Type>().value(place).into(),
            DataType::UInt64 => values.as_primitive::<UInt64Type>().value(place).try_into().ok()?,
            _ => return None,
        })
    }

    /// The value of a row as an id: text, or a whole number.
    fn id(&self, row: usize) -> RowId<'_> {
        let Some(place) = self.place(row) else { return RowId::None };
        match self.values.data_type() {
            DataType::UInt64 => self.values.as_primitive::<UInt64Type>().value(place).into(),
            kind if kind.is_integer() => self.integer(row).map_or(RowId::Unusable, RowId::from),
            DataType::Decimal32(_, 0) => self.values.as_primitive::<Decimal32Type>().value(place).into(),
            DataType::Decimal64(_, 0) => self.values.as_primitive::<Decimal64Type>().value(place).into(),
            DataType::Decimal128(_, 0) => self.values.as_primitive::<Decimal128Type>().value(place).into(),
            DataType::Decimal256(_, 0) => self.values.as_primitive::<Decimal256Type>().value(place).into(),
            _ => self.bytes(row).map_or(RowId::Unusable, RowId::of_bytes),
        }
    }

    /// The value of a row as text.
    fn value(&self, row: usize) -> Option<String> {
        let (place, values) = (self.place(row)?, &self.values);
        match values.data_type() {
            DataType::Boolean => Some(values.as_boolean().value(place).to_string()),
            DataType::Float16 => value::of_half(values.as_primitive::<Float16Type>().value(place).to_bits()),
            DataType::Float32 => value::of_float(values.as_primitive::<Float32Type>().value(place)),
            DataType::Float64 => value::of_double(values.as_primitive::<Float64Type>().value(place)),
            DataType::UInt64 => Some(values.as_primitive::<UInt64Type>().value(place).to_string()),
            kind if kind.is_integer() => Some(self.integer(row)?.to_string()),
            DataType::Decimal32(_, scale) => {
                let whole = values.as_primitive::<Decimal32Type>().value(place);
                Some(value::of_decimal(whole.into(), (*scale).into()))
            }
            DataType::Decimal64(_, scale) => {
                let whole = values.as_primitive::<Decimal64Type>().value(place);
                Some(value::of_decimal(whole.into(), (*scale).into()))
            }
            DataType::Decimal128(_, scale) => {
                Some(value::of_decimal(values.as_primitive::<Decimal128Type>().value(place), (*scale).into()))
            }
            DataType::Decimal256(..) => Some(values.as_primitive::<Decimal256Type>().value_as_string(place)),
            kind if kind.is_temporal() => self.date(row).microseconds().and_then(value::of_time),
            _ => self.bytes(row).and_then(value::of_bytes),
        }
    }

    /// The value of a row as a time.
    fn date(&self, row: usize) -> Date {
        let Some(place) = self.place(row) else { return Date::None };
        let values = &self.values;
        let at = |microseconds: Option<i64>| microseconds.map_or(Date::Unreadable, Date::At);
        match values.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                at(values.as_primitive::<TimestampSecondType>().value(place).checked_mul(1_000_000))
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                at(values.as_primitive::<TimestampMillisecondType>().value(place).checked_mul(1000))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                at(Some(values.as_primitive::<TimestampMicrosecondType>().value(place)))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                at(Some(values.as_primitive::<TimestampNanosecondType>().value(place).div_euclid(1000)))
            }
            DataType::Date32 => at(i64::from(values.as_primitive::<Date32Type>().value(place)).checked_mul(DAY)),
            DataType::Date64 => at(values.as_primitive::<Date64Type>().value(place).checked_mul(1000)),
            DataType::Float32 => fields::epoch(values.as_primitive::<Float32Type>().value(place).into()),
            DataType::Float64 => fields::epoch(values.as_primitive::<Float64Type>().value(place)),
            kind if kind.is_integer() => {
                self.integer(row).map_or(Date::Unreadable, |value| fields::epoch(value as f64))
            }
            _ => match self.bytes(row) {
                Some(bytes) => std::str::from_utf8(bytes).map_or(Date::Unreadable, fields::date),
                None => Date::Unreadable,
            },
        }
    }
}

/// Makes the page of a row, or a reject.
fn page(columns: &PageFields<ArrowColumn>, row: usize, offset: u64, reading: &Reading, html_is_text: bool) -> Item {
    let html = columns.html.as_ref().and_then(|column| column.bytes(row)).map(Cow::Borrowed);
    let page = PageRow {
        id: columns.id.as_ref().map(|column| column.id(row)).unwrap_or_default(),
        url: columns.url.as_ref().and_then(|column| column.bytes(row)).map(fields::url),
        // Read only if needed: it would be searched for invalid UTF-8.
        text: match html {
            None => TextColumns::joined(columns.text.iter().map(|column| column.as_ref()?.text(row))),
            Some(_) => None,
        },
        html,
        html_is_text,
        ip: columns.ip.as_ref().and_then(|column| column.text(row)),
        fetched: columns.date.as_ref().map_or(Date::None, |column| column.date(row)),
        values: columns.values.iter().map(|column| column.as_ref()?.value(row)).collect(),
    };
    page.item(offset, reading.page_limit(), "arrow")
}

fn reject(offset: u64, reason: String) -> Item {
    Item::Reject(Reject { offset, url: None, reason })
}

impl Reader for ArrowReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        self.item().with_context(|| format!("cannot read {}", self.name))
    }

    fn position(&self) -> u64 {
        self.bytes.position()
    }

    fn unread(&self) -> Unread {
        self.bytes.unread()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        ArrayRef, BinaryArray, Decimal128Array, DictionaryArray, Int32Array, Int64Array, LargeStringArray, StringArray,
        StringViewArray, StructArray, TimestampMillisecondArray, UInt64Array,
    };
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::readers::item::{Body, Page};

    /// A batch with columns of many types, some of them null.
    fn batch(rows: i32) -> RecordBatch {
        let some = |row: i32, of: i32| (row % of > 0).then_some(row);
        let texts = || (0..rows).map(|row| some(row, 5).map(|row| format!("text {row} of the batch")));
        let urls: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("http://a/{row}"))));
        let meta =
            StructArray::from(vec![(Arc::new(arrow_schema::Field::new("url", DataType::Utf8, true)), urls.clone())]);
        let keys = Int32Array::from_iter((0..rows).map(|row| some(row, 7).map(|row| row % 3)));
        let values: ArrayRef = Arc::new(StringArray::from(vec!["zero", "one", "two"]));
        let decimal = |scale| {
            let values =
                (0..rows).map(|row| some(row, 6).map(|row| i128::from(row - 9) * 1_000_000_000_000_000_000_000));
            Decimal128Array::from_iter(values).with_precision_and_scale(38, scale).unwrap()
        };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("url", urls),
            ("meta", Arc::new(meta)),
            ("text", Arc::new(StringArray::from_iter(texts()))),
            ("large", Arc::new(LargeStringArray::from_iter(texts()))),
            ("view", Arc::new(StringViewArray::from_iter(texts()))),
            ("binary", Arc::new(BinaryArray::from_iter(texts().map(|text| text.map(String::into_bytes))))),
            ("dictionary", Arc::new(DictionaryArray::new(keys, values))),
            ("number", Arc::new(Int64Array::from_iter((0..rows).map(|row| some(row, 4).map(i64::from))))),
            ("unsigned", Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| u64::MAX - row as u64)))),
            ("decimal", Arc::new(decimal(0))),
            ("scaled", Arc::new(decimal(2))),
            (
                "time",
                Arc::new(TimestampMillisecondArray::from_iter(
                    (0..rows).map(|row| some(row, 3).map(|row| i64::from(row) * 86_400_000)),
                )),
            ),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    fn stream(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    }

    fn file(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    }

    fn reading(text: &str) -> Reading {
        toml::from_str(&format!("[columns]\n{text}")).unwrap()
    }

    fn read(bytes: &[u8], reading: &Reading) -> Option<Vec<Item>> {
        let source = Box::new(io::Cursor::new(bytes.to_vec()));
        let mut reader = ArrowReader::new(source, "test.arrow", reading).unwrap()?;
        Some(std::iter::from_fn(|| reader.next().unwrap()).collect())
    }

    #[test]
    fn rows_are_those_of_parquet() {
        let batches = [batch(100), batch(30)];
        let parquet = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(parquet.try_clone().unwrap(), batches[0].schema(), None).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.close().unwrap();
        for columns in [
            "",
            "url = \"meta.url\"\ntext = \"large\"\nid = \"number\"",
            "text = \"view\"\nid = \"unsigned\"\ndate = \"time\"",
            "text = \"dictionary\"\nhtml = \"binary\"\ndate = \"number\"",
            "text = \"text\"\nhtml = \"text\"\nid = \"dictionary\"",
            "id = \"decimal\"",
            "id = \"scaled\"",
        ] {
            let reading = reading(columns);
            let mut reader =
                crate::readers::parquet::open(parquet.try_clone().unwrap(), "test.parquet", &reading).unwrap();
            let wanted: Vec<Item> = std::iter::from_fn(|| reader.next().unwrap())
                .map(|item| match item {
                    Item::Reject(reject) => {
                        Item::Reject(Reject { reason: reject.reason.replace("parquet", "arrow"), ..reject })
                    }
                    item => item,
                })
                .collect();
            assert_eq!(wanted.len(), 130);
            for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
                assert_eq!(read(&file(&batches, compression), &reading).unwrap(), wanted, "{columns}");
                assert_eq!(read(&stream(&batches, compression), &reading).unwrap(), wanted, "{columns}");
            }
            let packed = zstd::bulk::compress(&stream(&batches, None), 1).unwrap();
            assert_eq!(read(&packed, &reading).unwrap(), wanted);
        }
    }

    #[test]
    fn streams_and_files_are_known_by_their_first_bytes() {
        let batches = [batch(3)];
        for compression in [None, Some(CompressionType::LZ4_FRAME)] {
            assert!(begins(&stream(&batches, compression)) && begins(&file(&batches, compression)));
        }
        let schema = Schema::empty();
        assert!(begins(&StreamWriter::try_new(Vec::new(), &schema).unwrap().into_inner().unwrap()));
        for other in [&b""[..], b"\xff\xff\xff\xff", &[0xff; 64], b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0", b"{\"text\": 1}"]
        {
            assert!(!begins(other), "{other:?}");
        }
    }

    #[test]
    fn a_column_that_is_not_there_is_named_with_those_that_are() {
        let bytes = stream(&[batch(1)], None);
        let error = |columns: &str| {
            let source = Box::new(io::Cursor::new(bytes.clone()));
            ArrowReader::new(source, "test.arrow", &reading(columns)).err().unwrap().to_string()
        };
        assert!(error("text = \"content\"").contains("has no column `content` (its columns: url, meta, text,"));
        assert!(error("text = \"meta\"").contains("the column `meta` of test.arrow is"));
    }

    #[test]
    fn damage_ends_the_rows_with_a_reject() {
        let (batches, reading) = ([batch(20), batch(20)], Reading::default());
        let bytes = stream(&batches, None);
        let cut = read(&bytes[..bytes.len() - 500], &reading).unwrap();
        assert_eq!(cut.len(), 21);
        assert!(matches!(&cut[20], Item::Reject(reject) if reject.reason == "arrow: the file ends inside a message"));
        assert_eq!(read(b"ARROW1", &reading), None);
        assert_eq!(read(b"", &reading), None);
    }

    /// The ids and texts of the pages, the rejects, and what could not be read.
    fn outcome(bytes: &[u8], name: &str) -> (Vec<String>, Vec<Reject>, Unread) {
        let reading = reading("id = \"id\"");
        let source = Box::new(io::Cursor::new(bytes.to_vec()));
        let mut reader = ArrowReader::new(source, name, &reading).unwrap().unwrap();
        let mut contents = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut contents, bytes).unwrap();
        reader = reader.with_contents(contents);
        let (mut pages, mut rejects) = (Vec::new(), Vec::new());
        while let Some(item) = reader.next().unwrap() {
            match item {
                Item::Page(Page { id: Some(id), body: Body::Text(text), .. }) => pages.push(format!("{id} {text}")),
                Item::Reject(reject) => rejects.push(reject),
                item => panic!("{item:?}"),
            }
        }
        assert_eq!(reader.position(), bytes.len() as u64);
        (pages, rejects, reader.unread())
    }

    /// A batch with the rows from one number on, and what `outcome` makes of them.
    fn numbered(from: usize, rows: usize) -> (RecordBatch, Vec<String>) {
        let ids: ArrayRef = Arc::new(StringArray::from_iter_values((from..from + rows).map(|row| format!("id{row}"))));
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values((from..from + rows).map(|row| format!("text of {row}"))));
        let pages = (from..from + rows).map(|row| format!("id{row} text of {row}"));
        (RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap(), pages.collect())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        use io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn streams_behind_each_other_are_read_with_their_own_columns() {
        let ((first, some), (second, others)) = (numbered(0, 50), numbered(50, 7));
        // The other order of columns.
        let swapped = second.project(&[1, 0]).unwrap();
        let all = [some.clone(), others].concat();
        for second in [&second, &swapped] {
            let [a, b] = [&first, second].map(|batch| stream(std::slice::from_ref(batch), None));
            for zeros in [&b""[..], &[0; 4], &[0; 512], &[0; 3]] {
                let joined = [&a[..], zeros, &b, zeros].concat();
                // Zeros are a multiple of four between streams.
                if zeros.len() != 3 {
                    for name in ["test.arrow", STANDARD_INPUT] {
                        assert_eq!(outcome(&joined, name), (all.clone(), vec![], Unread::default()), "{name}");
                    }
                }
            }
            let members = [gzip(&a), gzip(&b)].concat();
            assert_eq!(outcome(&members, "test.arrow"), (all.clone(), vec![], Unread::default()));
            // Without the end marker of the first one.
            let unfinished = [&a[..a.len() - 8], &b].concat();
            assert_eq!(outcome(&unfinished, "test.arrow"), (all.clone(), vec![], Unread::default()));
            let source = Box::new(io::Cursor::new(unfinished));
            let mut piped = ArrowReader::new(source, STANDARD_INPUT, &reading("id = \"id\"")).unwrap().unwrap();
            let error = (0..60).find_map(|_| piped.next().err()).unwrap();
            assert!(format!("{error:#}").contains("ended early"), "{error:#}");
        }
        let a = stream(&[first], None);
        let other = stream(&[batch(9)], None);
        for behind in [&other[..], b"no stream at all", b"\n", &[a.as_slice(), b"x"].concat()[1..]] {
            let (pages, rejects, unread) = outcome(&[&a[..], behind].concat(), "test.arrow");
            assert_eq!((pages, rejects.len()), (some.clone(), 1), "{behind:?}");
            // The end marker of a stream without the columns is read.
            let bytes = behind.len() as u64;
            assert!(
                (bytes - bytes.min(8)..=bytes).contains(&unread.bytes) && unread.bytes > 0,
                "{unread:?} of {bytes}"
            );
        }
    }

    #[test]
    fn what_is_behind_the_end_of_a_file_is_unread() {
        let ((first, pages), (second, _)) = (numbered(0, 50), numbered(50, 50));
        let [a, b] = [first, second].map(|batch| file(&[batch], None));
        assert_eq!(outcome(&a, "test.arrow"), (pages.clone(), vec![], Unread::default()));
        for behind in [&b"x"[..], &[0; 8], &b] {
            for name in ["test.arrow", STANDARD_INPUT] {
                let (read, rejects, unread) = outcome(&[&a[..], behind].concat(), name);
                assert_eq!((&read, &rejects[..]), (&pages, &[of_contents(50)][..]));
                assert!(unread.bytes > behind.len() as u64, "{unread:?}");
            }
        }
        let (read, rejects, unread) = outcome(&[gzip(&a), gzip(&b)].concat(), "test.arrow");
        assert_eq!((read, rejects), (pages.clone(), vec![of_contents(50)]));
        assert!(unread.bytes > b.len() as u64 / 20, "{unread:?}");
        // The table of contents is cut: all rows are there.
        let (read, rejects, unread) = outcome(&a[..a.len() - 20], "test.arrow");
        assert_eq!((read, rejects), (pages, vec![of_contents(50)]));
        assert!(unread.bytes > 0);
    }

    fn of_contents(offset: u64) -> Reject {
        Reject { offset, url: None, reason: "arrow: the file does not end with its table of contents".to_owned() }
    }

    #[test]
    fn a_file_that_is_cut_counts_as_unread() {
        let batches: Vec<RecordBatch> = (0..6).map(|number| numbered(number * 10, 10).0).collect();
        for bytes in [stream(&batches, None), file(&batches, None)] {
            let cut = &bytes[..bytes.len() / 2];
            let (pages, rejects, unread) = outcome(cut, "test.arrow");
            assert!((10..40).contains(&pages.len()) && rejects.len() == 1, "{rejects:?}");
            assert_eq!(unread, Unread { bytes: cut.len() as u64, ends_early: true });
            let packed = gzip(&bytes);
            let (_, rejects, unread) = outcome(&packed[..packed.len() / 2], "test.arrow");
            assert_eq!((rejects.len(), unread), (1, Unread { bytes: packed.len() as u64 / 2, ends_early: true }));
        }
    }

    #[test]
    fn batches_behind_a_damaged_one_are_read() {
        let batches: Vec<RecordBatch> = (0..6).map(|number| numbered(number * 10, 10).0).collect();
        let place = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).position(|found| found == text).unwrap();
        let without = |from: usize, to: usize| {
            let rows = (0..60).filter(|row| !(from..to).contains(row));
            rows.map(|row| format!("id{row} text of {row}")).collect::<Vec<_>>()
        };
        for (bytes, is_file) in [(stream(&batches, None), false), (file(&batches, None), true)] {
            // The offsets of the ids stand before these.
            let mut offsets = bytes.clone();
            let at = place(&bytes, b"id20id21") - 40;
            offsets[at..at + 12].fill(0xff);
            let (pages, rejects, unread) = outcome(&offsets, "test.arrow");
            assert_eq!((pages, rejects.len(), rejects[0].offset), (without(20, 30), 1, 20));
            assert!(unread.bytes * 3 > bytes.len() as u64 / 6 && unread.bytes < bytes.len() as u64 / 3, "{unread:?}");
            // Damage in a head: a stream is read no further, a file says where the next one begins.
            let message = bytes[..place(&bytes, b"id20id21")].windows(4).rposition(|word| word == [0xff; 4]).unwrap();
            let mut head = bytes.clone();
            head[message + 8..message + 16].fill(0xff);
            let (pages, rejects, unread) = outcome(&head, "test.arrow");
            assert_eq!((pages, rejects.len()), (without(20, if is_file { 30 } else { 60 }), 1));
            let rest = if is_file { bytes.len() / 3 } else { bytes.len() - message };
            assert!(unread.bytes > 0 && unread.bytes <= rest as u64, "{unread:?}");
            assert!(is_file || unread.bytes == rest as u64, "{unread:?}");
            // A head that claims more bytes than follow: of a stream it may as well have been cut.
            let mut long = bytes.clone();
            long[message + 4..message + 8].copy_from_slice(&(1_u32 << 25).to_le_bytes());
            let (pages, rejects, unread) = outcome(&long, "test.arrow");
            assert_eq!((pages, rejects.len()), (without(20, if is_file { 30 } else { 60 }), 1));
            assert!(unread.ends_early != is_file && (is_file || unread.bytes == bytes.len() as u64), "{unread:?}");
            // An end that was never written.
            if !is_file {
                let lost = [&bytes[..message], &[0; 9000]].concat();
                let (pages, rejects, unread) = outcome(&lost, "test.arrow");
                assert_eq!((pages, rejects.len()), (without(20, 60), 1));
                assert!(unread.ends_early && (8900..=9000).contains(&unread.bytes), "{unread:?}");
            }
        }
    }

    #[test]
    fn a_text_that_is_not_utf8_concerns_its_row() {
        let batches: Vec<RecordBatch> = (0..4).map(|number| numbered(number * 10, 10).0).collect();
        for mut bytes in [stream(&batches, None), file(&batches, None)] {
            let texts = bytes.windows(10).position(|found| found == b"text of 25").unwrap();
            bytes[texts + 3] = 0xe9;
            let ids = bytes.windows(4).position(|found| found == b"id12").unwrap();
            bytes[ids] = 0xff;
            let (pages, rejects, unread) = outcome(&bytes, "test.arrow");
            assert_eq!((pages.len(), unread), (39, Unread::default()));
            assert!(pages.contains(&"id25 tex\u{fffd} of 25".to_owned()), "{pages:?}");
            let reason = "arrow: an id that is neither text nor a whole number".to_owned();
            assert_eq!(rejects, [Reject { offset: 12, url: None, reason }]);
        }
    }

    #[test]
    fn no_batch_is_read_with_an_older_dictionary_than_its_own() {
        let batch = |from: usize| {
            let keys = Int32Array::from_iter_values(0..3);
            let words: ArrayRef =
                Arc::new(StringArray::from_iter_values((from..from + 3).map(|word| format!("word{word}"))));
            let ids: ArrayRef = Arc::new(StringArray::from_iter_values((from..from + 3).map(|id| format!("id{id}"))));
            let texts: ArrayRef = Arc::new(DictionaryArray::new(keys, words));
            RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap()
        };
        let mut bytes = stream(&[batch(0), batch(3), batch(6)], None);
        let all = outcome(&bytes, "test.arrow").0;
        assert_eq!((all.len(), all[3].as_str()), (9, "id3 word3"));
        let words = bytes.windows(10).position(|found| found == b"word3word4").unwrap();
        bytes[words - 60..words - 40].fill(0xff);
        let (pages, rejects, unread) = outcome(&bytes, "test.arrow");
        assert!(pages.iter().all(|page| all.contains(page)), "{pages:?}");
        assert!(pages.len() < 9 && !rejects.is_empty() && unread.bytes > 0, "{pages:?}");
    }

    #[test]
    fn a_stream_on_standard_input_must_have_its_end() {
        // As writers end it today, and as they did before version 0.15.
        let legacy = IpcWriteOptions::try_new(8, true, arrow_ipc::MetadataVersion::V4).unwrap();
        for (options, marker) in [(IpcWriteOptions::default(), 8), (legacy, 4)] {
            let batches = [batch(3), batch(2)];
            let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
            let bytes = writer.into_inner().unwrap();
            let read = |length: usize, name: &str| -> anyhow::Result<usize> {
                let source = Box::new(io::Cursor::new(bytes[..length].to_vec()));
                let Some(mut reader) = ArrowReader::new(source, name, &Reading::default())? else { return Ok(0) };
                let mut items = 0;
                while reader.next()?.is_some() {
                    items += 1;
                }
                Ok(items)
            };
            assert_eq!(read(bytes.len(), STANDARD_INPUT).unwrap(), 5);
            let mut said = Vec::new();
            for length in 0..bytes.len() {
                let error = format!("{:#}", read(length, STANDARD_INPUT).unwrap_err());
                assert!(error.contains("on standard input ended early"), "{length}: {error}");
                said.push(error);
                // Elsewhere it is a reject, or the end.
                assert!(read(length, "test.arrow").unwrap() <= 5 + 1, "{length}");
            }
            assert!(said[bytes.len() - marker].contains("after 5 rows (2 batches)"), "{said:?}");
            assert!(said[bytes.len() - marker - 1].contains("after 3 rows (1 batches)"), "{said:?}");
            assert!(said[20].contains("after 0 rows (0 batches)"), "{said:?}");
        }
        // A file has the marker before its table of contents.
        let bytes = file(&[batch(3)], None);
        let open = |bytes: &[u8]| {
            let source = Box::new(io::Cursor::new(bytes.to_vec()));
            ArrowReader::new(source, STANDARD_INPUT, &Reading::default()).unwrap().unwrap()
        };
        let mut whole = open(&bytes);
        assert_eq!(std::iter::from_fn(|| whole.next().unwrap()).count(), 3);
        assert!(open(&bytes[..bytes.len() / 2]).next().is_err());
    }

    #[test]
    fn hostile_bytes_are_rejects() {
        let reading = reading("text = \"dictionary\"\nid = \"view\"");
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            let bytes = stream(&[batch(3), batch(3)], compression);
            for at in 0..bytes.len() {
                for change in [0x01, 0x80, 0xFF] {
                    let mut bytes = bytes.clone();
                    bytes[at] ^= change;
                    let source = Box::new(io::Cursor::new(bytes));
                    // Another schema can lack the columns of the job.
                    let Ok(Some(mut reader)) = ArrowReader::new(source, "test.arrow", &reading) else { continue };
                    let items = std::iter::from_fn(|| reader.next().unwrap()).take(20).count();
                    assert!(items < 20, "{at}: {items} items");
                }
            }
        }
    }
}
