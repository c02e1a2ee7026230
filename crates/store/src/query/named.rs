//! The tables of a store by the names that docs/tables.md gives them.

use crate::tables::studies::RESULTS;
use crate::tables::{ResultTables, StoreTable, TableSpec, tables_of_weeks};

/// A table of a store: one that weeks have, or one of a study.
#[derive(Clone, Copy)]
pub enum NamedTable {
    /// A table of each week, as `clusters`.
    OfWeeks(&'static StoreTable),
    /// A table of a study, as `evolution/amounts`.
    OfStudy(&'static ResultTables, &'static StoreTable),
}

impl NamedTable {
    /// All tables that a store can have: those of weeks come first.
    pub fn all() -> impl Iterator<Item = NamedTable> {
        let of_studies = RESULTS
            .iter()
            .flat_map(|results| results.tables.iter().map(move |table| NamedTable::OfStudy(results, table)));
        tables_of_weeks().map(NamedTable::OfWeeks).chain(of_studies)
    }

    /// The table of this name; `None` if there is none.
    ///
    /// ```
    /// use nigh_store::query::NamedTable;
    /// assert_eq!(NamedTable::find("evolution/amounts").map(|table| table.name()).as_deref(), Some("evolution/amounts"));
    /// assert!(NamedTable::find("clusters").is_some() && NamedTable::find("amounts").is_none());
    /// ```
    pub fn find(name: &str) -> Option<NamedTable> {
        NamedTable::all().find(|table| table.name() == name)
    }

    /// Its name: of a table of a study with the name of that before it.
    pub fn name(self) -> String {
        match self {
            NamedTable::OfWeeks(table) => table.name.to_owned(),
            NamedTable::OfStudy(results, table) => format!("{}/{}", results.folder, table.name),
        }
    }

    /// What it and its columns mean.
    pub fn spec(self) -> &'static TableSpec {
        match self {
            NamedTable::OfWeeks(table) | NamedTable::OfStudy(_, table) => table.spec,
        }
    }
}
