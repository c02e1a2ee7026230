//! What people look at: tables, clusters, pages, figures.

/// The pages that `nigh browse` serves: against the tables, with hostile texts and requests, and in
/// a browser.
#[cfg(feature = "live")]
mod browse;
/// The figures of the papers, against the tables and in a browser.
mod figures;
/// Clusters, pages and the nearest documents, as they are looked up, against the tables.
mod look;
/// The page that `nigh report` writes.
mod page;
/// Tables open in DuckDB, Polars and pyarrow.
mod queries;
/// Tables as other programs read them.
mod table;
/// Why two pages are in one cluster, against tables and texts.
mod why;
