//! Writes the table `found-links` page by page: without a string, or a row, for each link.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::Int64Array;
use arrow_array::builder::{ArrayBuilder as _, StringBuilder};

use super::Writer;
use crate::records::DocId;
use crate::tables::rows::FoundLinkRow;

/// Links after which they are written.
const BATCH: usize = 4096;

/// Collects the links of pages for a writer of the table.
#[derive(Default)]
pub struct FoundLinks {
    /// Of the links that are not written yet.
    docs: Vec<i64>,
    targets: StringBuilder,
}

impl FoundLinks {
    /// Adds the links of a page, lines of `targets`.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, doc: DocId, targets: &str, writer: &mut Writer<FoundLinkRow<'static>>) -> Result<()> {
        targets.lines().for_each(|target| self.targets.append_value(target));
        self.docs.resize(self.targets.len(), doc.to_table());
        if self.docs.len() >= BATCH { self.flush(writer) } else { Ok(()) }
    }

    /// Writes the links that are not written yet.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn flush(&mut self, writer: &mut Writer<FoundLinkRow<'static>>) -> Result<()> {
        if self.docs.is_empty() {
            return Ok(());
        }
        let docs = Int64Array::from_iter_values(self.docs.drain(..));
        writer.push_columns(vec![Arc::new(docs), Arc::new(self.targets.finish())])
    }
}
