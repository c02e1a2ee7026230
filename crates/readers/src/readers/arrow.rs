//! Reads files of Arrow record batches (Arrow Columnar Format, *Serialization and Interprocess
//! Communication*): streams, and files, which are streams between a signature and a table of
//! contents. Hugging Face `datasets` and Feather (version 2) write them.
//!
//! ```text
//! message: FFFFFFFF, length of the head, head, body          the first one has the schema
//! batch:   only the columns that the job names are decoded, each row is a page
//! ```
//!
//! Lengths are claims: a head is believed up to a limit, a body is read as it comes, and a
//! compressed buffer must not claim more than a batch may have. The decoder of `arrow-ipc` checks
//! offsets and UTF-8. A damaged batch is a reject, and so is what follows it.
//!
//! A stream on standard input must have its end marker: without it, nothing tells a stream that is
//! complete from one whose writer was killed. So it is an error, not a reject. Files and objects
//! need no marker.
//!
//! Memory: one batch, and the dictionaries.

use std::borrow::Cow;
use std::collections::HashMap;
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
use arrow_schema::{DataType, Fields, Schema, SchemaRef, TimeUnit};
use nigh_kernels::structures::CompactSort;

use super::fields::{self, Date};
use super::find::STANDARD_INPUT;
use super::item::{Item, Reader, Reject, Unread};
use super::rows::{PageFields, PageRow, RowId};
use super::streams::{MemberStep, Members, Stored};
use super::value;
use crate::reading::{Columns, Reading, TextColumns};
use nigh_text::contained::contained;

/// The first bytes of a file; two zeros follow.
pub const SIGNATURE: &[u8] = b"ARROW1";
/// The longest head of a message, in bytes.
const HEAD: usize = 64 << 20;
/// The most bytes of a batch or dictionary as stored, and those that one of its compressed buffers
/// may claim.
const BODY: u64 = 1 << 31;
/// The error of a batch that is longer than the memory allows. Not a reject: which rows there are
/// does not depend on the memory.
const NO_MEMORY: &str = "a batch is larger than the memory of a worker allows: raise `memory`, or run fewer workers";
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Reads the pages of one file of record batches, plain or compressed as a whole.
pub struct ArrowReader {
    bytes: MessageBytes,
    schema: SchemaRef,
    columns: PageFields<ColumnPath>,
    /// The fields of the schema that are decoded, ascending.
    wanted: Vec<usize>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// The batch that is being read, and its next row.
    batch: Option<(PageFields<ArrowColumn>, usize, usize)>,
    /// The number, in the file, of the next row.
    row: u64,
    /// The batches so far.
    batches: u64,
    ended: bool,
    reading: Reading,
    name: String,
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
        let first = bytes.take(SIGNATURE.len() + 2).with_context(failed)?;
        // Some programs fill up more than the eight bytes of the signature.
        if first.is_some_and(|first| first.starts_with(SIGNATURE)) {
            while bytes.take(4).with_context(failed)?.is_some_and(|zeros| zeros == [0; 4]) {}
        }
        bytes.go_back();
        let Some(message) = bytes.message().with_context(failed)? else {
            if bytes.is_short && name == STANDARD_INPUT {
                bail!(ended_early(0, 0));
            }
            return Ok(None);
        };
        let schema = contained(|| {
            let head = root_as_message(&message.head).ok()?.header_as_schema()?;
            let is_big_endian = head.endianness() == arrow_ipc::Endianness::Big;
            Some((is_big_endian, arrow_ipc::convert::try_fb_to_schema(head).ok()?))
        });
        let Ok(Some((is_big_endian, schema))) = schema else { return Ok(None) };
        if is_big_endian {
            bail!(
                "{name} has numbers with the highest byte first (big-endian), which are not read: write it again with pyarrow"
            );
        }
        let columns = columns(&schema, name, &reading.columns)?;
        let mut wanted: Vec<usize> = columns.all().filter_map(|path| schema.index_of(&path[0]).ok()).collect();
        wanted.sort_rows();
        wanted.dedup();
        Ok(Some(ArrowReader {
            bytes,
            schema: Arc::new(schema),
            columns,
            wanted,
            dictionaries: HashMap::new(),
            batch: None,
            row: 0,
            batches: 0,
            ended: false,
            reading: reading.clone(),
            name: name.to_owned(),
        }))
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
        add("", self.schema.fields(), &mut names);
        (names, self.columns.values.iter().map(Option::is_some).collect())
    }

    /// Whether the file has the column of the URLs.
    pub fn has_url(&self) -> bool {
        self.columns.url.is_some()
    }

    fn item(&mut self) -> io::Result<Option<Item>> {
        loop {
            if let Some((columns, row, rows)) = &mut self.batch
                && row < rows
            {
                let item = contained(|| page(columns, *row, self.row, &self.reading));
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
            let Some(message) = self.bytes.message()? else {
                self.ended = true;
                if self.bytes.is_short && self.name == STANDARD_INPUT {
                    return Err(io::Error::other(ended_early(self.batches, self.row)));
                }
                return Ok(self.bytes.damage.take().map(|reason| reject(self.row, reason.to_owned())));
            };
            match contained(|| self.decode(&message)) {
                Ok(Ok(())) => {}
                Ok(Err(NO_MEMORY)) => return Err(io::Error::other(NO_MEMORY)),
                // The places of later rows are not known.
                Ok(Err(reason)) => {
                    self.ended = true;
                    return Ok(Some(reject(self.row, reason.to_owned())));
                }
                Err(cause) => {
                    self.ended = true;
                    return Ok(Some(reject(self.row, format!("arrow: damaged batch: {cause}"))));
                }
            }
        }
    }

    /// Decodes a message: a batch, or a dictionary. The reason of a reject if it is damaged.
    fn decode(&mut self, message: &IpcMessage) -> Result<(), &'static str> {
        const DAMAGED: &str = "arrow: damaged batch";
        let head = root_as_message(&message.head).map_err(|_| DAMAGED)?;
        match head.header_type() {
            MessageHeader::RecordBatch => {
                let batch = head.header_as_record_batch().ok_or(DAMAGED)?;
                self.check_claims(&batch, &message.body)?;
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
                self.batch = Some((columns, 0, rows));
                self.batches += 1;
            }
            MessageHeader::DictionaryBatch => {
                let batch = head.header_as_dictionary_batch().ok_or(DAMAGED)?;
                self.check_claims(&batch.data().ok_or(DAMAGED)?, &message.body)?;
                read_dictionary(&message.body, batch, &self.schema, &mut self.dictionaries, &head.version())
                    .map_err(|_| DAMAGED)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks what the compressed buffers of a batch claim to become.
    fn check_claims(&self, batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer) -> Result<(), &'static str> {
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
        if sum > self.bytes.longest { Err(NO_MEMORY) } else { Ok(()) }
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

    fn is_text(&self) -> bool {
        matches!(self.values.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
    }

    /// The value of a row, if it is bytes or text.
    fn bytes(&self, row: usize) -> Option<&[u8]> {
        let (place, values) = (self.place(row)?, &self.values);
        Some(match values.data_type() {
            DataType::Utf8 => values.as_string::<i32>().value(place).as_bytes(),
            DataType::LargeUtf8 => values.as_string::<i64>().value(place).as_bytes(),
            DataType::Utf8View => values.as_string_view().value(place).as_bytes(),
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
fn page(columns: &PageFields<ArrowColumn>, row: usize, offset: u64, reading: &Reading) -> Item {
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
        // A string column is UTF-8, whatever charset the page declares.
        html_is_text: columns.html.as_ref().is_some_and(ArrowColumn::is_text),
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
        self.bytes.members.position()
    }

    fn unread(&self) -> Unread {
        self.bytes.members.unread()
    }
}

/// A message: its head, a flatbuffer, and its body.
struct IpcMessage {
    head: Vec<u8>,
    body: Buffer,
}

/// The decoded bytes of a file, cut into messages.
struct MessageBytes {
    members: Members,
    buffer: Vec<u8>,
    next: usize,
    ended: bool,
    /// The most bytes of a batch, as stored and as decoded.
    longest: u64,
    /// Why the messages end before the file does.
    damage: Option<&'static str>,
    /// Whether fewer bytes were there than should be taken.
    is_short: bool,
}

impl MessageBytes {
    fn new(source: Box<dyn Read + Send>, reading: &Reading) -> io::Result<MessageBytes> {
        let members = Members::new(Stored::new(source), |bytes| !bytes.is_empty())?;
        let longest = reading.max_decoded_bytes.saturating_mul(4);
        Ok(MessageBytes { members, buffer: Vec::new(), next: 0, ended: false, longest, damage: None, is_short: false })
    }

    /// Takes some bytes; `None` if there are fewer.
    fn take(&mut self, count: usize) -> io::Result<Option<&[u8]>> {
        // A body is kept as it comes, so that a claimed length reserves nothing.
        self.buffer.drain(..self.next);
        self.next = 0;
        while self.buffer.len() < count && !self.ended {
            match self.members.step(&mut self.buffer)? {
                MemberStep::Bytes | MemberStep::Start(_) => {}
                MemberStep::Damage { reason, .. } => {
                    self.damage = Some(reason);
                    self.ended = true;
                }
                MemberStep::End => self.ended = true,
            }
        }
        self.is_short = self.buffer.len() < count;
        if self.is_short {
            return Ok(None);
        }
        self.next = count;
        Ok(Some(&self.buffer[..count]))
    }

    /// Gives back the bytes that were taken last.
    fn go_back(&mut self) {
        self.next = 0;
    }

    /// The next message; `None` at the end of the stream, or of what can be read.
    fn message(&mut self) -> io::Result<Option<IpcMessage>> {
        let damaged = |bytes: &mut MessageBytes, reason| {
            bytes.damage.get_or_insert(reason);
            Ok(None)
        };
        let Some(marker) = self.take(4)? else { return Ok(None) };
        let mut length = u32::from_le_bytes(marker.try_into().unwrap_or_default());
        // Before version 0.15 the marker was missing.
        if length == u32::MAX {
            let Some(bytes) = self.take(4)? else { return damaged(self, "arrow: the file ends inside a message") };
            length = u32::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        if length == 0 {
            return Ok(None);
        }
        if length as usize > HEAD {
            return damaged(self, "arrow: no message where one should begin");
        }
        let Some(head) = self.take(length as usize)?.map(<[u8]>::to_vec) else {
            return damaged(self, "arrow: the file ends inside a message");
        };
        let claim = contained(|| root_as_message(&head).ok().map(|message| message.bodyLength()));
        let body = match claim.ok().flatten() {
            Some(length) if !(0..=BODY as i64).contains(&length) => {
                return damaged(self, "arrow: a batch claims too many bytes");
            }
            Some(length) if length as u64 > self.longest => return Err(io::Error::other(NO_MEMORY)),
            Some(length) => length as usize,
            None => return damaged(self, "arrow: no message where one should begin"),
        };
        match self.take(body)? {
            Some(body) => Ok(Some(IpcMessage { body: Buffer::from(body), head })),
            None => damaged(self, "arrow: the file ends inside a message"),
        }
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
