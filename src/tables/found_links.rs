//! Writes the table `found-links` page by page: without a string, or a row, for each link.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::Int64Array;
use arrow_array::builder::StringBuilder;

use super::rows::FoundLinkRow;
use super::write::Writer;
use crate::records::DocId;
use crate::structures::TextList;

/// Links after which they are written.
const BATCH: usize = 4096;

/// Writes one file of the table.
pub struct FoundLinkWriter {
    writer: Writer<FoundLinkRow>,
    /// Of the links that are not written yet.
    docs: Vec<i64>,
    targets: StringBuilder,
}

impl FoundLinkWriter {
    /// As [`Writer::create`].
    ///
    /// # Errors
    /// Names the folder that cannot be made.
    pub fn create(path: &Path) -> Result<FoundLinkWriter> {
        Ok(FoundLinkWriter { writer: Writer::create(path)?, docs: Vec::new(), targets: StringBuilder::new() })
    }

    /// Adds the links of a page.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, doc: DocId, targets: &TextList) -> Result<()> {
        self.docs.resize(self.docs.len() + targets.len(), doc.to_table());
        targets.iter().for_each(|target| self.targets.append_value(target));
        if self.docs.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let docs = Int64Array::from_iter_values(self.docs.drain(..));
        self.writer.push_columns(vec![Arc::new(docs), Arc::new(self.targets.finish())])
    }

    /// As [`Writer::finish_if_any`].
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish_if_any(mut self) -> Result<u64> {
        if !self.docs.is_empty() {
            self.flush()?;
        }
        self.writer.finish_if_any()
    }
}
