//! A table of a store by name, and the tables of one folder.

use std::path::Path;

use anyhow::Result;

use super::columns::{Table, TableSpec};
use super::read::row_range::RowRange;
use super::write::pack::{PackedFile, pack};

/// [`pack`](super::pack()) for the rows of one table.
pub type Pack = fn(&[RowRange], &Path, &[(&str, &str)]) -> Result<PackedFile>;

/// A table of a store.
#[derive(Clone, Copy)]
pub struct StoreTable {
    /// Its name, which is the name of its folder.
    pub name: &'static str,
    /// [`pack`](super::pack()) for its rows.
    pub pack: Pack,
    /// What it and its columns mean.
    pub spec: &'static TableSpec,
}

impl StoreTable {
    pub(super) const fn of<T: Table>() -> StoreTable {
        StoreTable { name: T::NAME, pack: pack::<T>, spec: T::SPEC }
    }
}

/// The tables that a job makes of committed weeks. They lie in one folder of the store.
#[derive(Clone, Copy)]
pub struct ResultTables {
    /// The folder, which has the name of the job.
    pub folder: &'static str,
    /// Whether they name pages or hosts. Then they are removed when pages are deleted, or one of
    /// their weeks is removed.
    pub name_pages: bool,
    /// Whether they are made of `chunks`.
    pub read_chunks: bool,
    /// The tables, in the order of their names.
    pub tables: &'static [StoreTable],
}
