//! Leaves the URLs of deleted documents out of a store: the commit of a deletion replaces the
//! `urls` of all weeks.
//!
//! The week that is made again has no row of them already. Of each earlier week, the parts of
//! `urls` that have such rows are written again without them, and its `week.json` with the new
//! files; the URLs of removed weeks likewise. All of it is staged, so that the deletion is one
//! commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use arrow_array::Int64Array;

use super::folders::{Store, WEEK, removed_folder};
use crate::records::DocId;
use crate::state::indexes::UrlRunRow;
use crate::state::weeks::{CommittedWeek, Manifest, Piece, TablePart, Unfinished, shard_file};
use crate::structures::CompactSort;
use crate::tables::{RowRange, Scan, Table, UrlRow, Writer, copy_rows, field, name_pages, pack};

/// The ids of deleted documents, by shard, ascending.
type Deleted = BTreeMap<u32, Vec<DocId>>;

impl Store {
    /// Stages the `urls` of all weeks of the manifest, except the unfinished one, without the rows
    /// of the documents that this one deletes; and lists them in the manifest. Does nothing if the
    /// unfinished week is not made by a deletion.
    ///
    /// # Errors
    /// If a file cannot be read or written; the message names it.
    pub(super) fn stage_forgotten(&self, manifest: &mut Manifest, unfinished: &Unfinished) -> Result<()> {
        let list = unfinished.deleted();
        if !list.exists() {
            return Ok(());
        }
        manifest.results.retain(|folder, _| !name_pages(folder));
        let mut deleted = Deleted::new();
        Scan::open(&list, &["doc"])?.for_each(|batch| {
            let docs = field::<Int64Array>(batch, "doc")?.values().iter().map(|doc| DocId::from_table(*doc));
            docs.for_each(|doc| deleted.entry(doc.shard()).or_default().push(doc));
            Ok(())
        })?;
        deleted.values_mut().for_each(|docs| docs.sort_rows());
        let commit = manifest.commits;
        for week in &mut manifest.weeks {
            if self.unfinished(week.week).folder != unfinished.folder {
                self.stage_week_without(week, commit, &deleted, unfinished)?;
            }
        }
        if let Some(removed) = &mut manifest.removed {
            let from = self.own().join(removed_folder(removed));
            removed.commit = commit;
            let to = self.staged_own(&removed_folder(removed));
            for shard in removed.shards() {
                let docs = deleted.get(&shard).map_or(&[][..], |docs| docs);
                let file = |folder: &Path, table: &str| folder.join(table).join(shard_file(shard));
                // The URLs of removed weeks are stored twice: by id in `urls`, by hash in
                // `url-runs`.
                write_without::<UrlRow>(file(&from, UrlRow::NAME).into(), &file(&to, UrlRow::NAME), docs)?;
                write_without::<UrlRunRow>(file(&from, UrlRunRow::NAME).into(), &file(&to, UrlRunRow::NAME), docs)?;
            }
        }
        Ok(())
    }

    /// Stages new parts of a week's `urls` in place of those with rows of deleted documents, and
    /// the week's records with them.
    fn stage_week_without(
        &self,
        week: &mut CommittedWeek,
        commit: u64,
        deleted: &Deleted,
        unfinished: &Unfinished,
    ) -> Result<()> {
        let (mut whole, records) = (self.whole(week)?, self.records(week));
        let tables = whole.tables(self.root());
        let folder = Path::new(UrlRow::NAME).join(week.week.folder());
        let shard_of: BTreeMap<String, u32> =
            whole.journal.segments.iter().map(|segment| (segment.file(), segment.shard)).collect();
        let mut changed = false;
        for (number, part) in whole.files.get_mut(UrlRow::NAME).into_iter().flatten().enumerate() {
            let mut pieces = Vec::new();
            let mut left_out = 0;
            for Piece(name, _) in &part.pieces {
                let rows = tables.rows(UrlRow::NAME, name)?;
                let docs = shard_of.get(name).and_then(|shard| deleted.get(shard));
                let Some(docs) = docs else {
                    pieces.push((name.clone(), rows));
                    continue;
                };
                let copy = unfinished.scratch_table("urls-without", &format!("{}-{name}", week.week));
                left_out += write_without::<UrlRow>(rows, &copy, docs)?;
                pieces.push((name.clone(), copy.into()));
            }
            if left_out == 0 {
                continue;
            }
            let path = self.staged_part(&folder, commit, number);
            *part = TablePart::pack(pack::<UrlRow>, pieces.into_iter(), &path, &[])?;
            changed = true;
        }
        if changed {
            week.amend(commit);
            whole.committed = week.clone();
            let staged = self.staged_records(week.week, commit);
            std::fs::create_dir_all(&staged).with_context(|| format!("cannot make {}", staged.display()))?;
            for name in ["job.toml", "summary.json"] {
                let from: PathBuf = records.join(name);
                std::fs::copy(&from, staged.join(name)).with_context(|| format!("cannot copy {}", from.display()))?;
            }
            whole.write(&staged.join(WEEK))?;
        }
        Ok(())
    }
}

/// Writes rows to a file of its own, without those of these documents, which ascend. Returns how
/// many were left out.
fn write_without<T: Table>(from: RowRange, to: &Path, docs: &[DocId]) -> Result<u64> {
    let mut writer: Writer<T> = Writer::create(to)?;
    let counts = copy_rows(from, &mut writer, &["doc"], |batch| {
        let all = field::<Int64Array>(batch, "doc")?.values().iter();
        Ok(all.map(|doc| Some(docs.binary_search(&DocId::from_table(*doc)).is_err())).collect())
    })?;
    writer.finish()?;
    Ok(counts.left_out)
}
