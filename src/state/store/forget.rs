//! URLs that were deleted from a store leave no row behind: not in the week that they were deleted from, nor in the `urls`
//! of the weeks before it.
//!
//! The week is committed with the list of what was deleted from it (`deleted`); that is removed when no `urls` has a row
//! of it any more. A kill in between is mended by [`Store::recover`]: doing it again does no harm.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use arrow_array::Int64Array;

use super::folders::Store;
use crate::records::{DocId, Week};
use crate::state::Earlier;
use crate::state::durable::sync_folder;
use crate::state::indexes::RunRow;
use crate::tables::{DeletedRow, Scan, Table, UrlRow, Writer, copy_rows, field};

impl Store {
    /// Drops the rows of what was deleted from a committed week from the `urls` up to it, where anything was.
    ///
    /// # Errors
    /// Names the file that cannot be read or written; what is done by then stays done.
    pub(crate) fn forget(&self, week: Week) -> Result<()> {
        let list = self.week(week).join(DeletedRow::NAME);
        if !list.exists() {
            return Ok(());
        }
        let mut deleted: BTreeMap<u32, Vec<DocId>> = BTreeMap::new();
        for entry in std::fs::read_dir(&list).with_context(|| format!("cannot list {}", list.display()))? {
            let path = entry.with_context(|| format!("cannot list {}", list.display()))?.path();
            Scan::open(&path, &["doc"])?.for_each(|batch| {
                let docs = field::<Int64Array>(batch, "doc")?.values().iter().map(|doc| DocId::from_table(*doc));
                docs.for_each(|doc| deleted.entry(doc.shard()).or_default().push(doc));
                Ok(())
            })?;
        }
        let manifest = self.manifest()?.context("a week is committed")?;
        let mut weeks = Earlier::before(&manifest, week);
        weeks.weeks.extend(manifest.weeks.into_iter().filter(|known| known.week == week));
        let (files, indexes) = (self.url_files(&weeks)?, self.url_indexes(&weeks)?);
        for (shard, docs) in &mut deleted {
            docs.sort_unstable();
            let mut files = files.get(shard).into_iter().flatten();
            files.try_for_each(|path| self.without::<UrlRow>(path, docs))?;
            // Those of removed weeks have another order besides.
            let indexes = indexes.get(shard).into_iter().flatten();
            let mut runs = indexes.filter(|path| path.parent().is_some_and(|folder| folder.ends_with(RunRow::NAME)));
            runs.try_for_each(|path| self.without::<RunRow>(path, docs))?;
        }
        sync_folder(self.root())?;
        // Empty unless another week is unfinished.
        let _ = std::fs::remove_dir(self.work());
        std::fs::remove_dir_all(&list).with_context(|| format!("cannot remove {}", list.display()))
    }

    /// Drops the rows of some documents from a file.
    fn without<T: Table>(&self, path: &PathBuf, docs: &[DocId]) -> Result<()> {
        let temporary: &Path = &self.work().join("without.parquet");
        let sifted = copy_rows::<T>(path, temporary, &["doc"], |batch| {
            let all = field::<Int64Array>(batch, "doc")?.values().iter();
            Ok(all.map(|doc| Some(docs.binary_search(&DocId::from_table(*doc)).is_err())).collect())
        })?;
        if sifted.left_out == 0 {
            return std::fs::remove_file(temporary).with_context(|| format!("cannot remove {}", temporary.display()));
        }
        if sifted.kept == 0 {
            Writer::<T>::create(temporary)?.finish()?;
        }
        // Whole on the disk before it takes the only other copy's place.
        std::fs::File::open(temporary)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(temporary, path))
            .with_context(|| format!("cannot replace {}", path.display()))
    }
}
