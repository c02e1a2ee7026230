//! The tables of a store by name: those of a week, and those that jobs make of several weeks.

use std::path::Path;

use anyhow::Result;

use super::describe::{Description, description};
use super::evolution::{AmountRow, BirthRow, ChangeClassRow, DeathRow, HostChangeRow, RetentionRow};
use super::pack::pack_labelled;
use super::row_groups::RowGroups;
use super::rows::{
    ChangeRow, ChunkRow, ClusterRow, DocumentRow, EvidenceRow, FeatureRow, HostFailureRow, LargestRow, LinkRow,
    MissingRow, RedirectRow, RejectRow, SizeRow, SummaryRow, Table, UrlRow,
};

/// [`pack_labelled`] for the rows of one table.
pub type Pack = fn(&[RowGroups], &Path, &[(&str, &str)]) -> Result<Vec<usize>>;

/// A table of a store.
#[derive(Clone, Copy)]
pub struct StoreTable {
    /// Its name, which is the name of its folder.
    pub name: &'static str,
    /// [`pack_labelled`] for its rows.
    pub pack: Pack,
    /// What it and its columns mean.
    pub describe: fn() -> Description,
}

impl StoreTable {
    const fn of<T: Table>() -> StoreTable {
        StoreTable { name: T::NAME, pack: pack_labelled::<T>, describe: description::<T> }
    }
}

/// The tables that every committed week has, in the order of their names. A week of an older version may lack
/// `chunks`, `host-failures` and `redirects`.
pub const WEEK_TABLES: [StoreTable; 15] = [
    StoreTable::of::<ChangeRow>(),
    StoreTable::of::<ChunkRow>(),
    StoreTable::of::<ClusterRow>(),
    StoreTable::of::<DocumentRow>(),
    StoreTable::of::<EvidenceRow>(),
    StoreTable::of::<FeatureRow>(),
    StoreTable::of::<HostFailureRow>(),
    StoreTable::of::<LargestRow>(),
    StoreTable::of::<LinkRow>(),
    StoreTable::of::<MissingRow>(),
    StoreTable::of::<RedirectRow>(),
    StoreTable::of::<RejectRow>(),
    StoreTable::of::<SizeRow>(),
    StoreTable::of::<SummaryRow>(),
    StoreTable::of::<UrlRow>(),
];

/// The tables that jobs make of several weeks, in the order of their names.
pub const RESULT_TABLES: [StoreTable; 6] = [
    StoreTable::of::<AmountRow>(),
    StoreTable::of::<BirthRow>(),
    StoreTable::of::<ChangeClassRow>(),
    StoreTable::of::<DeathRow>(),
    StoreTable::of::<HostChangeRow>(),
    StoreTable::of::<RetentionRow>(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_names() {
        assert!(WEEK_TABLES.is_sorted_by(|a, b| a.name < b.name) && RESULT_TABLES.is_sorted_by(|a, b| a.name < b.name));
    }
}
