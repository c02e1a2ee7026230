//! `views.sql`: one view for each table, for DuckDB.
//!
//! A view names the files that the manifest and the weeks' records list, so it never shows half of
//! a commit: the file is replaced after the manifest, and before the files of older versions are
//! removed.
//!
//! Paths are relative to the variable `nigh_store`, or to the current folder if it is not set.

use anyhow::Result;

use super::catalog::ListedTable;
use super::folders::Store;
use crate::state::durable::replace;
use crate::state::weeks::Manifest;

/// The name of the file.
pub const VIEWS: &str = "views.sql";

/// What stands before the views.
const HEAD: &str = "\
-- The tables of a nigh store as views for DuckDB. nigh replaces this file with each commit.
--
-- In the folder of the store:    duckdb -init views.sql
-- From elsewhere:                SET VARIABLE nigh_store = 'path/of/the/store/'; then .read path/of/the/store/views.sql

-- The share of features that two rows of `features` have in common: an estimate of the resemblance of the two pages.
CREATE OR REPLACE MACRO nigh_similarity(a, b) AS
  len(list_filter(range(octet_length(a) // 2), lambda i:
    substr(hex(a), CAST(4 * i + 1 AS INTEGER), 4) = substr(hex(b), CAST(4 * i + 1 AS INTEGER), 4)))
  / (octet_length(a) // 2);
-- How many supershingles two rows of `features` have in common: 2 of 6 make pages very similar in the study.
CREATE OR REPLACE MACRO nigh_agreements(a, b) AS
  len(list_filter(range(octet_length(a) // 8), lambda i:
    substr(hex(a), CAST(16 * i + 1 AS INTEGER), 16) = substr(hex(b), CAST(16 * i + 1 AS INTEGER), 16)));
";

impl Store {
    /// Replaces `views.sql` by the views of the committed tables, unless it has them already.
    ///
    /// # Errors
    /// If a `week.json` is damaged, or the file cannot be written.
    pub(crate) fn write_views(&self) -> Result<()> {
        let Some(manifest) = Manifest::read(&self.manifest_path())? else { return Ok(()) };
        let (path, text) = (self.root().join(VIEWS), views(&self.listed_tables(&manifest)?));
        let is_same = std::fs::read(&path).is_ok_and(|bytes| bytes == text.as_bytes());
        if is_same { Ok(()) } else { replace(&path, text.as_bytes()) }
    }
}

/// The text of `views.sql` for these tables. A table without files has no view.
pub(crate) fn views(tables: &[ListedTable]) -> String {
    let with_files = tables.iter().filter(|table| !table.files.is_empty());
    [HEAD.to_owned()].into_iter().chain(with_files.map(view)).collect()
}

/// The view of a table.
fn view(table: &ListedTable) -> String {
    let options = if table.is_by_week { ", hive_partitioning = true, hive_types = {'week': DATE}" } else { "" };
    let path = |file: &String| format!("  coalesce(getvariable('nigh_store'), '') || '{}/{file}'", table.folder);
    let paths = table.files.iter().map(path).collect::<Vec<_>>().join(",\n");
    format!(
        "\nCREATE OR REPLACE VIEW {} AS SELECT * FROM read_parquet([\n{paths}\n]{options});\n",
        table.folder.replace(['/', '-'], "_")
    )
}
