//! `views.sql`: one view for each table, for DuckDB.
//!
//! A view names the weeks and the commits that the manifest lists, so it never shows half of a
//! commit: the file is replaced after the manifest, and before the files of older versions are
//! removed.
//!
//! Paths are relative to the variable `nigh_store`, or to the current folder if it is not set.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::folders::{Store, commit_of};
use crate::state::durable::replace;
use crate::state::weeks::Manifest;
use crate::structures::CompactSort;
use crate::tables::{result_tables, tables_of_weeks};

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
        let (path, text) = (self.root().join(VIEWS), self.views(&manifest)?);
        let is_same = std::fs::read(&path).is_ok_and(|bytes| bytes == text.as_bytes());
        if is_same { Ok(()) } else { replace(&path, text.as_bytes()) }
    }

    /// The text of `views.sql`.
    fn views(&self, manifest: &Manifest) -> Result<String> {
        let mut text = HEAD.to_owned();
        let mut files_of: Vec<(&str, Vec<String>)> = tables_of_weeks().map(|table| (table.name, Vec::new())).collect();
        for week in &manifest.weeks {
            let whole = self.whole(week)?;
            for (table, patterns) in &mut files_of {
                for (week, files) in whole.kept.iter().chain([(&week.week, &whole.files)]) {
                    let parts = files.get(*table).into_iter().flatten();
                    let mut commits: Vec<u64> = parts.filter_map(|part| commit_of(&part.file)).collect();
                    commits.dedup();
                    let pattern = |commit| format!("{table}/{}/nigh-{commit:05}-*.parquet", week.folder());
                    patterns.extend(commits.into_iter().map(pattern));
                }
                patterns.sort_items();
                patterns.dedup();
            }
        }
        for (table, patterns) in files_of {
            view(&mut text, table, &patterns, ", hive_partitioning = true, hive_types = {'week': DATE}")?;
        }
        for (results, commit) in &manifest.results {
            for table in result_tables(results).iter().map(|table| table.name) {
                let pattern = format!("{results}/{table}/nigh-{commit:05}-*.parquet");
                let exists = self.root().join(Path::new(results)).join(table).exists();
                let name = format!("{results}_{}", table.replace('-', "_"));
                view(&mut text, &name, &[pattern][..usize::from(exists)], "")?;
            }
        }
        Ok(text)
    }
}

/// Adds a view of the files that match the patterns; none if there are no patterns.
fn view(text: &mut String, name: &str, patterns: &[String], options: &str) -> Result<()> {
    if patterns.is_empty() {
        return Ok(());
    }
    let paths = patterns.iter().map(|pattern| format!("  coalesce(getvariable('nigh_store'), '') || '{pattern}'"));
    let paths = paths.collect::<Vec<_>>().join(",\n");
    let written = write!(
        text,
        "\nCREATE OR REPLACE VIEW {} AS SELECT * FROM read_parquet([\n{paths}\n]{options});\n",
        name.replace('-', "_")
    );
    written.context("a text grows")
}
