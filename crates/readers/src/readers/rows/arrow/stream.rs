//! One stream: its schema, and the batches and dictionaries that are decoded by it.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::bail;
use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::{Fields, Schema, SchemaRef};
use nigh_kernels::structures::CompactSort;
use nigh_text::contained::contained;

use super::column::ArrowColumn;
use super::messages::{BODY, IpcMessage, NO_MEMORY};
use super::schema::{ColumnPath, columns, is_text, type_of, with_bytes};
use crate::readers::rows::page_row::PageFields;
use crate::reading::Columns;

/// What the schema of a stream says, and its dictionaries.
pub struct ArrowStream {
    /// The schema with bytes for texts.
    pub schema: SchemaRef,
    pub columns: PageFields<ColumnPath>,
    /// The fields of the schema that are decoded, ascending.
    wanted: Vec<usize>,
    /// Whether the column of HTML has texts: UTF-8, whatever charset a page declares.
    pub html_is_text: bool,
    pub dictionaries: HashMap<i64, ArrayRef>,
}

/// The columns of a batch, and its rows.
pub type ArrowRows = (PageFields<ArrowColumn>, usize);

impl ArrowStream {
    /// The stream that begins with this schema; `None` if that is damaged.
    ///
    /// # Errors
    /// If it lacks a column of the job; the message names those that it has.
    pub fn new(head: &[u8], name: &str, of_job: &Columns) -> anyhow::Result<Option<ArrowStream>> {
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
    pub fn decode(&mut self, message: &IpcMessage, longest: u64) -> Result<Option<ArrowRows>, &'static str> {
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

/// The number of the dictionary that a message has.
pub fn dictionary_of(head: &[u8]) -> Option<i64> {
    Some(root_as_message(head).ok()?.header_as_dictionary_batch()?.id())
}

/// The rows that a batch claims to have.
pub fn rows_of(head: &[u8]) -> Option<u64> {
    let rows = root_as_message(head).ok()?.header_as_record_batch()?.length();
    u64::try_from(rows).ok().filter(|rows| *rows <= BODY)
}
