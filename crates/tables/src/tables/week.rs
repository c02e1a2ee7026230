//! The tables of a store by name: those of a week, and those that jobs make of committed weeks.

use super::rows::{
    AccuracyRow, CaptureRow, ChangeRow, ChunkRow, ClusterRow, DocumentRow, EvidenceRow, FeatureRow, HostFailureRow,
    LargestRow, LinkRow, MissingRow, RedirectRow, RejectRow, SizeRow, SplitOffRow, SummaryRow, UrlRow, ValueRow,
};
use super::store_table::StoreTable;
use super::studies::RESULTS;

/// The tables that every committed week has, in the order of their names. A week of an older
/// version may lack `accuracy`, `captures`, `chunks`, `host-failures`, `redirects` and `split-off`.
pub const WEEK_TABLES: [StoreTable; 18] = [
    StoreTable::of::<AccuracyRow>(),
    StoreTable::of::<CaptureRow>(),
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
    StoreTable::of::<SplitOffRow>(),
    StoreTable::of::<SummaryRow>(),
    StoreTable::of::<UrlRow>(),
];

/// The tables that a committed week has if its job asks for them, in the order of their names.
/// Without rows a week has no file of them.
pub const CHOSEN_TABLES: [StoreTable; 1] = [StoreTable::of::<ValueRow>()];

/// All tables of weeks: those that every week has come first.
pub fn tables_of_weeks() -> impl Iterator<Item = &'static StoreTable> {
    WEEK_TABLES.iter().chain(&CHOSEN_TABLES)
}

/// Whether the tables of one of these jobs name pages or hosts; so do those of a job that this
/// version of nigh does not have.
pub fn name_pages(folder: &str) -> bool {
    RESULTS.iter().find(|results| results.folder == folder).is_none_or(|results| results.name_pages)
}

/// Whether the tables of one of these jobs are made of `chunks`.
pub fn read_chunks(folder: &str) -> bool {
    RESULTS.iter().any(|results| results.folder == folder && results.read_chunks)
}

/// The tables of one of these jobs; none if this version of nigh has no job of this name.
pub fn result_tables(folder: &str) -> &'static [StoreTable] {
    RESULTS.iter().find(|results| results.folder == folder).map_or(&[], |results| results.tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_names() {
        assert!(CHOSEN_TABLES.is_sorted_by(|a, b| a.name < b.name));
        assert!(WEEK_TABLES.is_sorted_by(|a, b| a.name < b.name) && RESULTS.is_sorted_by(|a, b| a.folder < b.folder));
        assert!(RESULTS.iter().all(|results| results.tables.is_sorted_by(|a, b| a.name < b.name)));
    }
}
