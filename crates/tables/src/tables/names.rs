//! What a document is called on screen and in messages.

use std::borrow::Cow;

use anyhow::Result;
use arrow_array::{Array, Int64Array, RecordBatch, StringArray};

use super::read::field;

/// The names of the documents of some rows of `documents`: the URL, where there is one; else the
/// id; else the file and the place there.
pub struct Names<'a> {
    urls: &'a StringArray,
    ids: &'a StringArray,
    files: &'a StringArray,
    offsets: &'a Int64Array,
}

impl Names<'_> {
    /// The columns that the rows must have.
    pub const COLUMNS: [&'static str; 4] = ["url", "id", "file", "offset"];

    /// The names of these rows.
    ///
    /// # Errors
    /// If a column is missing, or of another type: the table is damaged.
    pub fn of(batch: &RecordBatch) -> Result<Names<'_>> {
        Ok(Names {
            urls: field(batch, "url")?,
            ids: field(batch, "id")?,
            files: field(batch, "file")?,
            offsets: field(batch, "offset")?,
        })
    }

    /// The name of a row.
    pub fn name(&self, row: usize) -> Cow<'_, str> {
        if self.urls.is_valid(row) {
            self.urls.value(row).into()
        } else if self.ids.is_valid(row) {
            self.ids.value(row).into()
        } else {
            format!("{}:{}", self.files.value(row), self.offsets.value(row)).into()
        }
    }
}
