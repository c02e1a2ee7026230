//! Tables that a job makes of committed weeks, in one folder of the store that is replaced by one
//! commit.
//!
//! ```text
//! STORE/NAME/TABLE/nigh-00007-00000.parquet      a table; 7 is the number of the commit
//! STORE/_nigh/NAME/00007/                        other files of the job: job.toml, summary.json, tables.json
//! ```
//!
//! A table of pages has rows of all workers. Each writes those of its shards to a bundle, as it
//! does for a week, and the bundles are packed. `tables.json` lists the files, and how many rows
//! are of which shard, so that a later run reads those of its own shards. Tables of nigh 0.2 and
//! before have no such list, and a file for each shard instead, whose number is that of the shard.
//!
//! The new tables are staged, and published as every commit is. A kill leaves the old tables or the
//! new ones.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::config::Method;
use crate::state::durable::replace;
use crate::state::store::{Store, TABLES, commit_of};
use crate::state::weeks::{Manifest, Unfinished, WeekFiles, pieces_of, shard_file};
use crate::structures::{CompactSort, Ownership};
use crate::tables::RowRange;

/// The results of one name, while they are made.
#[derive(Clone, Debug)]
pub struct Results {
    store: Store,
    name: String,
    /// The number of the commit that makes them.
    commit: u64,
}

impl Results {
    /// The results `name` of a store, to be made by its next commit.
    ///
    /// # Errors
    /// If the manifest cannot be read.
    pub fn next(store: &Store, name: &str) -> Result<Results> {
        Ok(Results::of(store, name, manifest(store)?.commits + 1))
    }

    /// The results `name` of a store that the commit with this number makes.
    pub fn of(store: &Store, name: &str, commit: u64) -> Results {
        Results { store: store.clone(), name: name.to_owned(), commit }
    }

    /// The number of the commit that makes them.
    pub fn commit_number(&self) -> u64 {
        self.commit
    }

    /// Their name, which is that of their folder in the store.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the tables.
    pub fn folder(&self) -> PathBuf {
        self.store.root().join(&self.name)
    }

    /// The path of file number `part` of a table that is being made.
    pub fn table(&self, table: &str, part: usize) -> PathBuf {
        self.store.staged_part(&Path::new(&self.name).join(table), self.commit, part)
    }

    /// The path of file number `part` of a committed table.
    pub fn committed_table(&self, table: &str, part: usize) -> PathBuf {
        self.store.part(&Path::new(&self.name).join(table), self.commit, part)
    }

    /// The files of a committed table, in order.
    ///
    /// # Errors
    /// If the folder of the table cannot be read: names it.
    pub fn committed_files(&self, table: &str) -> Result<Vec<PathBuf>> {
        let folder = self.folder().join(table);
        let failed = || format!("cannot read {}", folder.display());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&folder).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            if entry.file_name().to_str().and_then(commit_of) == Some(self.commit) {
                files.push(entry.path());
            }
        }
        let name = folder.display();
        ensure!(!files.is_empty(), "{name} was replaced by another run meanwhile: give the command again");
        files.sort_items();
        Ok(files)
    }

    /// The rows of own shards in a committed table, with the shard of each, which ascend. A shard
    /// without rows may be missing.
    ///
    /// # Errors
    /// If the list of the files cannot be read or is damaged, or a file of it is missing: names it,
    /// and says what to do.
    pub fn of_own_shards(&self, table: &str, owned: &Ownership) -> Result<Vec<(u32, RowRange)>> {
        let list = self.committed_file(TABLES);
        if !list.exists() {
            let files = owned.shards().map(|shard| (shard, self.committed_table(table, shard as usize)));
            return Ok(files.filter(|(_, file)| file.exists()).map(|(shard, file)| (shard, file.into())).collect());
        }
        let damaged = |file: &Path, what: &str| {
            let (file, name) = (file.display(), &self.name);
            format!(
                "{file} {what}: the tables are damaged. Run the {name} job again, with `mode = \"full\"` where it has `mode`"
            )
        };
        let text = std::fs::read(&list).with_context(|| format!("cannot read {}", list.display()))?;
        let files: WeekFiles = serde_json::from_slice(&text).with_context(|| damaged(&list, "is no list of files"))?;
        let files = files.get(table).with_context(|| damaged(&list, &format!("lacks the table `{table}`")))?;
        let folder = self.folder().join(table);
        if let Some(missing) = files.iter().map(|part| folder.join(&part.file)).find(|file| !file.exists()) {
            bail!(damaged(&missing, "is missing"));
        }
        let mut pieces = pieces_of(&folder, files);
        Ok(owned.shards().filter_map(|shard| Some((shard, pieces.remove(&shard_file(shard))?))).collect())
    }

    /// The committed results `name` of a store, if it has some.
    ///
    /// # Errors
    /// If the manifest cannot be read.
    pub fn committed(store: &Store, name: &str) -> Result<Option<Results>> {
        Ok(manifest(store)?.results.get(name).map(|commit| Results::of(store, name, *commit)))
    }

    /// The folder for what does not fit into memory. It is removed with the commit, or by the next
    /// run.
    pub fn scratch(&self) -> PathBuf {
        self.store.scratch_of_results()
    }

    /// The bundles of tables that are being made.
    pub fn unfinished(&self) -> Unfinished {
        Unfinished::new(self.scratch().join("tables"), self.scratch())
    }

    /// Lists the files into which the bundles were packed, for [`Results::of_own_shards`].
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn write_list(&self, files: &WeekFiles) -> Result<()> {
        let text = serde_json::to_vec(files).context("names and numbers are plain data")?;
        replace(&self.file(TABLES), &text)
    }

    /// The path of another file that is being made.
    pub fn file(&self, name: &str) -> PathBuf {
        self.store.staged_own(&self.version()).join(name)
    }

    /// The path of another file of the committed results.
    pub fn committed_file(&self, name: &str) -> PathBuf {
        self.store.own().join(self.version()).join(name)
    }

    /// The folder of the other files of the committed results, within the store's own folder.
    pub fn own_folder(&self) -> PathBuf {
        self.version()
    }

    fn version(&self) -> PathBuf {
        Path::new(&self.name).join(format!("{:05}", self.commit))
    }

    /// Whether the commit has begun or ended: then it ends even if the run is stopped.
    pub fn has_begun_to_commit(&self) -> bool {
        self.store.is_publishing() || self.is_committed()
    }

    /// Whether the new tables are those of the store.
    pub fn is_committed(&self) -> bool {
        manifest(&self.store).is_ok_and(|manifest| manifest.results.get(&self.name) == Some(&self.commit))
    }

    /// Removes the files of a killed run, and makes the folders for new ones. The caller holds the
    /// store's lock.
    ///
    /// # Errors
    /// If the store has a folder of this name that nigh did not make, or a folder cannot be made or
    /// removed.
    pub fn begin(&self) -> Result<()> {
        self.store.recover()?;
        let (folder, is_ours) = (self.folder(), manifest(&self.store)?.results.contains_key(&self.name));
        ensure!(
            is_ours || !folder.exists(),
            "{} is not a folder of nigh's tables: move it away, its name is needed",
            folder.display()
        );
        for folder in [self.store.staged_own(&self.version()), self.unfinished().folder().to_owned()] {
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        Ok(())
    }

    /// Puts the new tables in the place of the old ones, durably.
    ///
    /// # Errors
    /// If another run has committed meanwhile, or a file cannot be moved.
    pub fn commit(&self) -> Result<()> {
        let mut manifest = manifest(&self.store)?.next()?;
        ensure!(
            manifest.commits == self.commit,
            "another run has committed to {} meanwhile",
            self.store.root().display()
        );
        manifest.results.insert(self.name.clone(), self.commit);
        self.store.publish(&manifest)?;
        let _ = std::fs::remove_dir_all(self.scratch());
        // Fails if a week is unfinished: then the work folder stays.
        let _ = std::fs::remove_dir(self.store.work());
        Ok(())
    }
}

/// The manifest of a store, which need not exist yet: studies of lists need no week.
fn manifest(store: &Store) -> Result<Manifest> {
    Ok(store.manifest()?.unwrap_or_else(|| Manifest::new(&Method::default())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Table as _;
    use crate::tables::studies::evolution::AmountRow;

    /// The text of the committed table's file, and of the file beside it; of the only version that
    /// is there.
    fn committed(store: &Store) -> Option<(String, String)> {
        let commit = *manifest(store).unwrap().results.get("evolution")?;
        let results = Results::of(store, "evolution", commit);
        let files: Vec<PathBuf> = std::fs::read_dir(results.folder().join(AmountRow::NAME))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        Some((read(&files[0]), read(&results.committed_file("file"))))
    }

    /// Begins new results with this text, as far as the commit.
    fn make(store: &Store, text: &str) -> Results {
        let results = Results::next(store, "evolution").unwrap();
        results.begin().unwrap();
        std::fs::create_dir_all(results.table(AmountRow::NAME, 0).parent().unwrap()).unwrap();
        std::fs::write(results.table(AmountRow::NAME, 0), text).unwrap();
        std::fs::write(results.file("file"), text).unwrap();
        results
    }

    fn store(folder: &Path) -> Store {
        let store = Store::at(folder);
        std::fs::create_dir_all(store.own()).unwrap();
        Manifest::new(&Method::default()).next().unwrap().write(&store.manifest_path()).unwrap();
        store
    }

    #[test]
    fn results_are_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let results = make(&store, "one");
        assert_eq!(committed(&store), None);
        results.commit().unwrap();
        let results = make(&store, "two");
        assert_eq!(committed(&store), Some(("one".into(), "one".into())));
        assert!(!results.has_begun_to_commit() && !results.is_committed());
        results.commit().unwrap();
        assert!(results.has_begun_to_commit() && results.is_committed());
        assert_eq!(committed(&store), Some(("two".into(), "two".into())));
        assert!(!store.work().exists());
    }

    #[test]
    fn a_run_that_was_killed_before_its_commit_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        make(&store, "one").commit().unwrap();
        make(&store, "two");
        store.recover().unwrap();
        assert_eq!(committed(&store), Some(("one".into(), "one".into())));
        assert!(!store.staged().exists());
    }

    #[test]
    fn a_folder_of_the_user_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        std::fs::create_dir_all(folder.path().join("evolution/notes")).unwrap();
        let error = Results::next(&store, "evolution").unwrap().begin().unwrap_err().to_string();
        assert!(error.contains("evolution") && error.contains("move it away"), "{error}");
    }
}
