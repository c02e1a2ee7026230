//! Removes the rows of deleted URLs from the `urls` tables of a store.
//!
//! `nigh delete` commits a new version of the last week without the deleted URLs, and with their list in the table `deleted`. This
//! file then rewrites each `urls` file, of that week and of all weeks before it, that has a row of a deleted URL; for removed weeks
//! also the `url-runs` files. At the end it removes the list. If a kill comes before that, [`Store::recover`] does everything again,
//! which does no harm.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use arrow_array::Int64Array;

use super::folders::Store;
use crate::records::{DocId, Week};
use crate::state::Earlier;
use crate::state::durable::sync_folder;
use crate::state::indexes::UrlRunRow;
use crate::tables::{DeletedRow, Scan, Table, UrlRow, Writer, copy_rows, field};

impl Store {
    /// Removes the rows of the URLs that were deleted from a committed week, if any, from the `urls` of the weeks up to it.
    ///
    /// # Errors
    /// If a file cannot be read or written; the message names it. Files rewritten before that stay so.
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
        weeks.weeks.extend(manifest.weeks.into_iter().filter(|committed| committed.week == week));
        let (files, indexes) = (self.url_files(&weeks)?, self.url_indexes(&weeks)?);
        for (shard, docs) in &mut deleted {
            docs.sort_unstable();
            let mut files = files.get(shard).into_iter().flatten();
            files.try_for_each(|path| self.rewrite_without::<UrlRow>(path, docs))?;
            // The URLs of removed weeks are stored twice: by id in `urls`, by hash in `url-runs`.
            let indexes = indexes.get(shard).into_iter().flatten();
            let mut runs = indexes.filter(|path| path.parent().is_some_and(|folder| folder.ends_with(UrlRunRow::NAME)));
            runs.try_for_each(|path| self.rewrite_without::<UrlRunRow>(path, docs))?;
        }
        sync_folder(self.root())?;
        // Fails if another week is unfinished: then the work folder stays.
        let _ = std::fs::remove_dir(self.work());
        std::fs::remove_dir_all(&list).with_context(|| format!("cannot remove {}", list.display()))
    }

    /// Rewrites a file without the rows of these documents, which ascend.
    fn rewrite_without<T: Table>(&self, path: &PathBuf, docs: &[DocId]) -> Result<()> {
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
        // It replaces the only other copy, so it must be on the disk first.
        std::fs::File::open(temporary)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(temporary, path))
            .with_context(|| format!("cannot replace {}", path.display()))
    }
}
