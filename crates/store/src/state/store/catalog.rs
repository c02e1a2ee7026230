//! The tables of a store as other programs describe them: a log of Delta Lake beside each table,
//! over the same files.
//!
//! The manifest says whether a store has it. Every commit then writes a version of each log whose
//! table has changed, after the manifest is replaced and before old files are removed; after a
//! kill, the next run writes it. A reader of a log sees the files of one commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::folders::Store;
use crate::state::durable::replace;
use crate::state::weeks::{CatalogFormat, Manifest};
use crate::tables::{CHOSEN_TABLES, DataFile, DeltaLog, LOG_FOLDER, StoreTable, result_tables, tables_of_weeks};

/// A table that the manifest lists.
pub struct ListedTable {
    /// Its folder, relative to the store: `clusters`, `evolution/births`.
    pub folder: String,
    /// What it is.
    pub table: StoreTable,
    /// Whether its files lie in a folder for each week.
    pub is_by_week: bool,
    /// Its files, relative to that folder.
    pub files: Vec<String>,
}

impl Store {
    /// Turns the description of the tables on, or off with `None`, and returns the folders of the
    /// tables. The caller holds the lock and has called [`Store::recover`].
    ///
    /// # Errors
    /// If the store does not exist, another program made a log in it, or a file cannot be written
    /// or removed.
    pub fn set_catalog(&self, catalog: Option<CatalogFormat>) -> Result<Vec<String>> {
        let mut manifest =
            self.manifest()?.with_context(|| format!("{} is not a nigh store", self.root().display()))?;
        let folders: Vec<String> = self.listed_tables(&manifest)?.into_iter().map(|table| table.folder).collect();
        for folder in &folders {
            let log = self.log_folder(folder);
            ensure!(
                !DeltaLog::read(&read_log(&log)?).is_ok_and(|log| log.is_foreign()),
                "{} was made by another program: remove it, or move it away, so that nigh can keep one there",
                log.display()
            );
        }
        if manifest.catalog != catalog {
            manifest = manifest.next()?;
            manifest.catalog = catalog;
            self.publish(&manifest)?;
        }
        if catalog.is_none() {
            for log in folders.iter().map(|folder| self.log_folder(folder)).filter(|log| log.exists()) {
                std::fs::remove_dir_all(&log).with_context(|| format!("cannot remove {}", log.display()))?;
            }
        }
        Ok(folders)
    }

    /// Brings the logs of all tables up to date, if the store has them.
    ///
    /// # Errors
    /// If a log is damaged or cannot be written; the message says how to make it again.
    pub(crate) fn write_catalog(&self) -> Result<()> {
        let Some(manifest) = Manifest::read(&self.manifest_path())? else { return Ok(()) };
        if manifest.catalog.is_none() {
            return Ok(());
        }
        for table in self.listed_tables(&manifest)? {
            let (folder, log_folder) = (self.root().join(&table.folder), self.log_folder(&table.folder));
            let mut files = Vec::new();
            for path in &table.files {
                let full = folder.join(path);
                let bytes = full.metadata().with_context(|| format!("cannot read {}", full.display()))?.len();
                files.push(DataFile { path: path.clone(), bytes });
            }
            let log = DeltaLog::read(&read_log(&log_folder)?).with_context(|| damaged(log_folder.display()))?;
            if let Some((name, text)) = table.next_version(&log, &files, &self.root().display().to_string()) {
                std::fs::create_dir_all(&log_folder)
                    .with_context(|| format!("cannot make {}", log_folder.display()))?;
                replace(&log_folder.join(name), &text)?;
            }
        }
        Ok(())
    }

    /// All tables that the manifest lists, with their files.
    ///
    /// # Errors
    /// As [`Store::listed_files`].
    pub(crate) fn listed_tables(&self, manifest: &Manifest) -> Result<Vec<ListedTable>> {
        let mut tables: Vec<ListedTable> = tables_of_weeks()
            .map(|table| ListedTable { folder: table.name.into(), table: *table, is_by_week: true, files: vec![] })
            .collect();
        tables.extend(manifest.results.keys().flat_map(|results| {
            result_tables(results).iter().map(move |table| ListedTable {
                folder: format!("{results}/{}", table.name),
                table: *table,
                is_by_week: false,
                files: vec![],
            })
        }));
        let mut by_folder: BTreeMap<String, &mut ListedTable> =
            tables.iter_mut().map(|table| (table.folder.clone(), table)).collect();
        for path in self.listed_files(manifest)? {
            let mut parents = path.ancestors().skip(1).filter_map(Path::to_str).map(str::to_owned);
            if let Some(folder) = parents.find(|folder| by_folder.contains_key(folder))
                && let Some(table) = by_folder.get_mut(&folder)
                && let Some(file) = path.strip_prefix(&folder).ok().and_then(Path::to_str)
            {
                table.files.push(file.to_owned());
            }
        }
        let is_chosen = |name| CHOSEN_TABLES.iter().any(|table| table.name == name);
        // A table that has a log stays in it without files, so that the log says that they are
        // gone.
        tables.retain(|table| {
            let is_always = table.is_by_week && !is_chosen(table.table.name);
            is_always || !table.files.is_empty() || self.log_folder(&table.folder).exists()
        });
        Ok(tables)
    }

    fn log_folder(&self, folder: &str) -> PathBuf {
        self.root().join(folder).join(LOG_FOLDER)
    }
}

impl ListedTable {
    /// The version of the log that says that the table has these files, as [`DeltaLog::next`];
    /// `seed` is the name of the store.
    pub fn next_version(&self, log: &DeltaLog, files: &[DataFile], seed: &str) -> Option<(String, Vec<u8>)> {
        let now = jiff::Timestamp::now().as_millisecond();
        log.next(self.table.spec, self.is_by_week, files, &format!("{seed} {}", self.folder), now)
    }
}

/// What to do about a log that cannot be continued.
pub fn damaged(log: impl std::fmt::Display) -> String {
    format!("the log {log} is damaged: remove it, and `nigh catalog` makes it again")
}

/// The files of a log by name; none if there is no folder.
fn read_log(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let failed = || format!("cannot read {}", folder.display());
    let mut files = BTreeMap::new();
    if !folder.exists() {
        return Ok(files);
    }
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if let Some(name) = entry.file_name().to_str().filter(|name| name.ends_with(".json")) {
            files.insert(name.to_owned(), std::fs::read(entry.path()).with_context(failed)?);
        }
    }
    Ok(files)
}
