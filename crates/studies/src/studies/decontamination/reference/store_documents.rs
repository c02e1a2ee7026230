//! The documents of a store that is a reference, as they lie in its input files.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use arrow_array::{FixedSizeBinaryArray, Int64Array, StringArray};

use crate::readers::Page;
use crate::records::checksum;
use crate::sheet::plural;
use crate::state::{Store, WeekTables};
use crate::structures::CompactSort as _;
use crate::studies::ReferenceStore;
use crate::tables::{DocumentRow, Scan, Table as _, field};

/// The place of a document in its file, and the checksum of its body.
type PlacedBody = (u64, u128);

/// The documents of a store by their files, of those that were not opened yet.
#[derive(Default)]
pub struct StoreDocuments {
    of: Option<ReferenceStore>,
    files: BTreeMap<String, Vec<PlacedBody>>,
}

/// The documents of a store in one file.
pub struct DocumentsOfFile {
    /// Ascending, each once.
    documents: Vec<PlacedBody>,
    is_found: Vec<bool>,
}

impl StoreDocuments {
    /// Those in a file.
    ///
    /// # Errors
    /// If a table of the store cannot be read; or at the first file of a store, if one before it
    /// has documents that were not read.
    pub fn in_file(&mut self, of: &ReferenceStore, file: &str) -> Result<DocumentsOfFile> {
        if self.of.as_ref() != Some(of) {
            self.check_all_opened()?;
            let store = Store::at(&of.store);
            self.files = by_file(&store.tables(&store.committed(of.week)?)?)?;
            self.of = Some(of.clone());
        }
        let documents = self.files.remove(file).unwrap_or_default();
        Ok(DocumentsOfFile { is_found: vec![false; documents.len()], documents })
    }

    /// Checks that each file with documents of the store was opened.
    ///
    /// # Errors
    /// If not: names the file.
    pub fn check_all_opened(&self) -> Result<()> {
        if let (Some((file, documents)), Some(of)) = (self.files.first_key_value(), &self.of) {
            bail!(
                "{} of week {} of the reference {} are in {file}, which is no input of that week that is at hand: put the input \
                 files back as they were, or name files instead of the store",
                plural(documents.len() as u64, "document"),
                of.week,
                of.store.display()
            );
        }
        Ok(())
    }
}

impl DocumentsOfFile {
    /// Whether a page of the file is one of them. If not, it was deleted since, another record has
    /// taken its place, or the file has changed.
    pub fn has(&mut self, page: &Page) -> bool {
        let at = self.documents.partition_point(|(offset, _)| *offset < page.offset);
        if self.documents.get(at).is_none_or(|(offset, _)| *offset != page.offset) {
            return false;
        }
        let found = self.documents.binary_search(&(page.offset, checksum(page.body.as_bytes())));
        found.map(|number| self.is_found[number] = true).is_ok()
    }

    /// How many of them no page was.
    pub fn missing(&self) -> u64 {
        self.is_found.iter().filter(|is_found| !**is_found).count() as u64
    }
}

/// The documents of a week, by the names of the files.
fn by_file(tables: &WeekTables) -> Result<BTreeMap<String, Vec<PlacedBody>>> {
    let mut by_file: BTreeMap<String, Vec<PlacedBody>> = BTreeMap::new();
    for rows in tables.all(DocumentRow::NAME) {
        Scan::open(rows, &["file", "offset", "checksum"])?.for_each(|batch| {
            let (files, offsets): (&StringArray, &Int64Array) = (field(batch, "file")?, field(batch, "offset")?);
            let checksums: &FixedSizeBinaryArray = field(batch, "checksum")?;
            for (row, offset) in offsets.values().iter().enumerate() {
                let sum = checksums.value(row).try_into().context("a checksum has 16 bytes")?;
                let (file, body) = (files.value(row), (*offset as u64, u128::from_be_bytes(sum)));
                match by_file.get_mut(file) {
                    Some(of_file) => of_file.push(body),
                    None => drop(by_file.insert(file.to_owned(), vec![body])),
                }
            }
            Ok(())
        })?;
    }
    for of_file in by_file.values_mut() {
        of_file.sort_items();
        of_file.dedup();
    }
    Ok(by_file)
}
