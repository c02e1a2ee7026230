//! A table's file again, without some rows.

use std::path::Path;

use anyhow::{Context, Result};
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;

use super::read::Scan;
use super::rows::Table;
use super::write::Writer;

/// What became of a file's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// Those that are in the new file.
    pub kept: u64,
    /// Those that are not.
    pub left_out: u64,
}

/// Makes the file `to` of the rows of the file `from` that `keep` keeps, which sees the named columns: one bool a row.
/// Where that is all of them, `to` is another name of the same file, or a copy where the file system knows no such thing.
/// Where it is none of them, no file is made, unless the old one has no row either.
///
/// Cost: one pass over the named columns; over all columns of what changes.
///
/// # Errors
/// Names the file that cannot be read or written; or the first error of `keep`.
pub fn sift<T: Table>(
    from: &Path,
    to: &Path,
    columns: &[&str],
    mut keep: impl FnMut(&RecordBatch) -> Result<BooleanArray>,
) -> Result<Sifted> {
    let mut kept: Vec<BooleanArray> = Vec::new();
    Scan::open(from, columns)?.for_each(|batch| {
        kept.push(keep(batch)?);
        Ok(())
    })?;
    let rows: u64 = kept.iter().map(|kept| kept.len() as u64).sum();
    let sifted: u64 = kept.iter().map(|kept| kept.true_count() as u64).sum();
    let sifted = Sifted { kept: sifted, left_out: rows - sifted };
    if sifted.left_out == 0 {
        share(from, to)?;
    } else if sifted.kept > 0 {
        let all: Vec<&str> = T::columns(&[]).iter().map(|column| column.name).collect();
        let mut writer: Writer<T> = Writer::create(to)?;
        let mut kept = kept.iter();
        // Batches are cut the same whatever the columns.
        Scan::open(from, &all)?.for_each(|batch| {
            let kept = kept.next().context("as many batches as before")?;
            let rows = filter_record_batch(batch, kept).with_context(|| format!("{} changed", from.display()))?;
            writer.push_rows(&rows)
        })?;
        writer.finish()?;
    }
    Ok(sifted)
}

/// Gives a file another name, or copies it where that cannot be.
///
/// # Errors
/// Names the file that cannot be made.
pub fn share(from: &Path, to: &Path) -> Result<()> {
    let failed = || format!("cannot copy {} to {}", from.display(), to.display());
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    if to.exists() {
        std::fs::remove_file(to).with_context(failed)?;
    }
    if std::fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    let temporary = to.with_extension("parquet.tmp");
    std::fs::copy(from, &temporary).and_then(|_| std::fs::rename(&temporary, to)).with_context(failed)
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;
    use crate::tables::{UrlRow, field};

    #[test]
    fn rows_that_are_kept_keep_their_order_and_all_columns() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from.parquet"), folder.path().join("other/to.parquet"));
        let rows = 10_000;
        let mut writer: Writer<UrlRow> = Writer::create(&from).unwrap();
        for doc in 0..rows {
            writer.push(UrlRow { doc, hash: [doc as u8; 16], url: format!("u{doc}") }).unwrap();
        }
        writer.finish().unwrap();
        let sifted = |keep: fn(i64) -> bool| {
            let kept = |batch: &RecordBatch| {
                let docs: &Int64Array = field(batch, "doc")?;
                Ok(docs.values().iter().map(|doc| Some(keep(*doc))).collect())
            };
            let sifted = sift::<UrlRow>(&from, &to, &["doc"], kept).unwrap();
            (sifted.kept, sifted.left_out)
        };
        assert_eq!(sifted(|_| false), (0, 10_000));
        assert!(!to.exists());
        assert_eq!(sifted(|_| true), (10_000, 0));
        assert_eq!(std::fs::read(&to).unwrap(), std::fs::read(&from).unwrap());
        assert_eq!(sifted(|doc| doc % 5000 == 7), (2, 9_998));
        let mut writer: Writer<UrlRow> = Writer::create(&from).unwrap();
        for doc in [7, 5007] {
            writer.push(UrlRow { doc, hash: [doc as u8; 16], url: format!("u{doc}") }).unwrap();
        }
        writer.finish().unwrap();
        assert!(std::fs::read(&to).unwrap() == std::fs::read(&from).unwrap(), "as if only these had been written");
    }
}
