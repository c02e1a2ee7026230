//! The columns of the tables of the decontamination job: documents that match items of a reference.
//!
//! They lie in `decontamination/TABLE` of the store. `doc` joins them with the tables of the job's
//! week, and `item` with each other. Words count from 0, as the job compares them; bytes count in
//! the text of the record, as it is stored.

use nigh_derive::Table;

use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "decontamination",
    name_pages: true,
    read_chunks: false,
    tables: &[StoreTable::of::<ReferenceItemRow>(), StoreTable::of::<ReferenceMatchRow>()],
};

/// The items of the reference: records, or columns of these.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "items")]
pub struct ReferenceItemRow {
    /// The number of the item, from 0, in the order of the files.
    #[column(sorted, ascending)]
    pub item: i64,
    /// The file.
    pub file: String,
    /// The number of its record in the file, from 0.
    pub record: i64,
    /// The id of the record, or the URL of a page.
    pub id: Option<String>,
    /// The column, if items are columns.
    pub column: Option<String>,
    /// Its words.
    pub words: i64,
    /// Its n-grams, each once; 0 if it is not compared by them.
    pub grams: i32,
    /// The first item with the same words, which is compared in its place.
    ///
    /// Mostly the item itself.
    pub first: i64,
    /// Whether it is compared: false if it has too few words.
    pub compared: bool,
    /// Documents that match it, or the first item with its words.
    pub documents: i64,
    /// Its first words, in the form in which they are compared.
    pub begins: String,
}

/// The matches: one row for each document and item.
///
/// Of items with the same words only the first one has rows.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "matches")]
pub struct ReferenceMatchRow {
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// The number of the item.
    pub item: i64,
    /// The share of the n-grams of the item that the document has; null if it is less than the job
    /// asks for.
    ///
    /// It is null, too, if items are not compared so. So are `passage` and `similarity`.
    pub containment: Option<f64>,
    /// How many n-grams of the item the document has.
    pub grams: Option<i32>,
    /// The longest run of words in the document that common passages cover, in words.
    pub passage: Option<i32>,
    /// The similarity of the two, exactly.
    pub similarity: Option<f64>,
    /// The first word in the document of what matches.
    ///
    /// Of containment this is the longest run of words that n-grams of the item cover, each where
    /// it stands first; else the passage; else the whole document.
    pub word: i32,
    /// Its words.
    pub words: i32,
    /// Its first byte in the text.
    ///
    /// Null if the text has markup, or is not in UTF-8.
    pub offset: Option<i64>,
    /// Its bytes.
    pub bytes: Option<i64>,
}
