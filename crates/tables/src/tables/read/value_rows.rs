//! The values of documents, read beside them.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Int64Array, RecordBatch, StringArray};

use super::row_range::RowRange;
use super::{Scan, field};
use crate::readers::ColumnValue;

/// A reader of a piece of the table `values`, document by document.
pub struct ValueRows {
    columns: Arc<[String]>,
    scan: Option<Scan>,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    next: usize,
    values: Vec<Option<ColumnValue>>,
}

impl ValueRows {
    /// Opens the rows of some columns; a segment without values has none.
    ///
    /// # Errors
    /// As [`Scan::open`].
    pub fn open(rows: Option<RowRange>, columns: Arc<[String]>) -> Result<ValueRows> {
        let rows = rows.filter(|_| !columns.is_empty());
        let scan = rows.map(|rows| Scan::open(rows, &["doc", "column", "value"])).transpose()?;
        Ok(ValueRows { columns, scan, batch: None, next: 0, values: Vec::new() })
    }

    /// The values of a document, in the order of the columns. Each call must be for a larger
    /// document than the one before.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn of(&mut self, doc: i64) -> Result<&[Option<ColumnValue>]> {
        self.values.clear();
        self.values.resize(self.columns.len(), None);
        loop {
            if let Some(batch) = &self.batch {
                let docs: &Int64Array = field(batch, "doc")?;
                let (columns, values): (&StringArray, &StringArray) = (field(batch, "column")?, field(batch, "value")?);
                while self.next < docs.len() && docs.value(self.next) <= doc {
                    let row = self.next;
                    self.next += 1;
                    if docs.value(row) == doc
                        && let Some(number) = self.columns.iter().position(|column| column == columns.value(row))
                    {
                        self.values[number] = ColumnValue::of(values.value(row));
                    }
                }
                if self.next < docs.len() {
                    return Ok(&self.values);
                }
            }
            let batch = self.scan.as_mut().map(Scan::batch).transpose()?.flatten();
            if batch.is_none() {
                (self.batch, self.scan) = (None, None);
                return Ok(&self.values);
            }
            (self.batch, self.next) = (batch, 0);
        }
    }
}
