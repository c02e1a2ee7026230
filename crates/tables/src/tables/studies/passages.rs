//! The columns of the tables of the passages job: passages of texts that stand more than once in a
//! corpus.
//!
//! They lie in `passages/TABLE` of the store. `doc` and `first_doc` join them with the tables of
//! the job's week. Words count from 0, as nigh compares them; bytes count in the text of the
//! record, as it is stored.

use nigh_derive::Table;

use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "passages",
    name_pages: true,
    read_chunks: false,
    tables: &[StoreTable::of::<PassageRow>(), StoreTable::of::<PassageSourceRow>()],
};

/// Passages that stand more than once: one row for each occurrence. Two passages of a document
/// overlap by less than the least words of a passage.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "passages")]
pub struct PassageRow {
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// The number of its first word in the document.
    pub word: i32,
    /// Its words.
    pub words: i32,
    /// Its first byte in the text.
    ///
    /// Null if the text has markup, or is not in UTF-8.
    pub offset: Option<i64>,
    /// Its bytes, from its first word to its last one.
    pub bytes: Option<i64>,
    /// The most occurrences of as many words of it as a passage has at least.
    pub occurrences: i64,
    /// Document id of its first occurrence.
    ///
    /// A row whose `first_doc` and `first_word` are its own `doc` and `word` is a first occurrence.
    pub first_doc: i64,
    /// The number of the first word of its first occurrence.
    pub first_word: i32,
    /// The last words of it that are a copy.
    ///
    /// 0 of a first occurrence; fewer than `words` if it overlaps its first occurrence, in a text
    /// that repeats itself.
    pub copied: i32,
    /// The bytes of these words.
    pub copied_bytes: Option<i64>,
}

/// From which documents the copies in a document are: one row for each two documents.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "sources")]
pub struct PassageSourceRow {
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// Document id of the first occurrence of its copies.
    ///
    /// It can be the document itself.
    pub source: i64,
    /// The copies.
    pub passages: i32,
    /// Their words in `doc`, each once.
    pub words: i32,
}
