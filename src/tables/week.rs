//! The tables of a store by name: those of a week, and those that jobs make of several weeks.

use std::path::Path;

use anyhow::Result;

use super::evolution::{AmountRow, BirthRow, ChangeClassRow, DeathRow, HostChangeRow, RetentionRow};
use super::pack::pack_labelled;
use super::row_groups::RowGroups;
use super::rows::{
    ChangeRow, ClusterRow, DocumentRow, EvidenceRow, FeatureRow, LargestRow, LinkRow, MissingRow, RejectRow, SizeRow,
    SummaryRow, Table, UrlRow,
};

/// [`pack_labelled`] for the rows of one table.
pub type Pack = fn(&[RowGroups], &Path, &[(&str, &str)]) -> Result<Vec<usize>>;

/// A table of a week.
#[derive(Clone, Copy)]
pub struct WeekTable {
    /// Its name, which is the name of its folder.
    pub name: &'static str,
    /// [`pack_labelled`] for its rows.
    pub pack: Pack,
}

impl WeekTable {
    const fn of<T: Table>() -> WeekTable {
        WeekTable { name: T::NAME, pack: pack_labelled::<T> }
    }
}

/// The tables that every committed week has, in the order of their names.
pub const WEEK_TABLES: [WeekTable; 12] = [
    WeekTable::of::<ChangeRow>(),
    WeekTable::of::<ClusterRow>(),
    WeekTable::of::<DocumentRow>(),
    WeekTable::of::<EvidenceRow>(),
    WeekTable::of::<FeatureRow>(),
    WeekTable::of::<LargestRow>(),
    WeekTable::of::<LinkRow>(),
    WeekTable::of::<MissingRow>(),
    WeekTable::of::<RejectRow>(),
    WeekTable::of::<SizeRow>(),
    WeekTable::of::<SummaryRow>(),
    WeekTable::of::<UrlRow>(),
];

/// The names of the tables that jobs make of several weeks.
pub const RESULT_TABLES: [&str; 6] =
    [AmountRow::NAME, BirthRow::NAME, ChangeClassRow::NAME, DeathRow::NAME, HostChangeRow::NAME, RetentionRow::NAME];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_names() {
        assert!(WEEK_TABLES.is_sorted_by(|a, b| a.name < b.name) && RESULT_TABLES.is_sorted());
    }
}
