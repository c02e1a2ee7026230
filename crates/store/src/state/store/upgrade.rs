//! Brings a store of an older format up to date. Tables, ids and the numbers of commits stay as
//! they are.
//!
//! | format | of nigh | what the one after it does otherwise |
//! |---|---|---|
//! | 9 | 0.1.0 | `week.json` counts the row groups of each piece; format 10 counts its rows |
//! | 10 | 0.2.0 | its weeks have the features of all their pages; later ones refer to those of pages that stay |
//! | 11 | this one | |
//!
//! A store of format 10 needs no upgrade: the next week makes it of format 11, so that programs
//! that do not know of such weeks say so.
//!
//! The new `week.json` of every week is staged, and replaces the old one while the commit is
//! completed (`publication.rs`). A kill leaves the store as it was, or a complete commit in
//! preparation: then the next `nigh upgrade`, or the next run, completes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::folders::{Store, WEEK};
use crate::records::Week;
use crate::state::weeks::{FORMAT, Manifest, OLDEST_FORMAT, Piece, TablePart, WholeWeek};
use crate::tables::RowRange;

/// What [`Store::upgrade`] has done.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Upgraded {
    /// The format that the store had.
    pub from: u32,
    /// The format that it has.
    pub to: u32,
    /// Its weeks.
    pub weeks: Vec<Week>,
}

impl Store {
    /// Brings the store to the format of this program. Nothing is written if it has that format.
    /// The caller holds the lock and has called [`Store::recover`].
    ///
    /// # Errors
    /// If the folder has no store, or one of a format that is newer or too old; if a
    /// `week.json` or the footer of a table's file is missing or damaged, or they disagree; if a
    /// file cannot be written. Then the store is as it was.
    pub fn upgrade(&self) -> Result<Upgraded> {
        let manifest = self.manifest_of_any_format()?;
        let manifest = manifest.with_context(|| format!("{} is not a nigh store", self.root().display()))?;
        let weeks = manifest.weeks.iter().map(|week| week.week).collect();
        let upgraded = Upgraded { from: manifest.format, to: FORMAT, weeks };
        if manifest.format == FORMAT {
            return Ok(upgraded);
        }
        // Pages that stayed have rows in files of earlier weeks: each footer is read once.
        let mut groups_of = RowsOfGroups::default();
        let in_groups: &[_] = if manifest.format == OLDEST_FORMAT { &manifest.weeks } else { &[] };
        for week in in_groups {
            let whole = self.in_rows(self.whole(week)?, &mut groups_of)?;
            let folder = self.staged_records(week.week, week.commit);
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            whole.write(&folder.join(WEEK))?;
        }
        self.publish(&Manifest { format: FORMAT, ..manifest.next()? })?;
        Ok(upgraded)
    }

    /// A week of format 9, whose pieces are counted in row groups, with pieces that are counted in
    /// rows.
    fn in_rows(&self, mut whole: WholeWeek, groups_of: &mut RowsOfGroups) -> Result<WholeWeek> {
        let own = (&whole.committed.week, &mut whole.files);
        for (week, files) in whole.kept.iter_mut().chain([own]) {
            for (table, parts) in files {
                let folder = self.table(table, *week);
                for part in parts {
                    count_rows(part, groups_of.get(folder.join(&part.file))?)
                        .with_context(|| format!("the store {} is damaged", self.root().display()))?;
                }
            }
        }
        Ok(whole)
    }
}

/// The rows of each row group, by file.
#[derive(Default)]
struct RowsOfGroups(BTreeMap<PathBuf, Vec<u64>>);

impl RowsOfGroups {
    fn get(&mut self, path: PathBuf) -> Result<&[u64]> {
        if !self.0.contains_key(&path) {
            let rows = RowRange::file(&path).rows_of_groups()?;
            self.0.insert(path.clone(), rows);
        }
        Ok(&self.0[&path])
    }
}

/// Makes the numbers of the pieces, of row groups, into numbers of rows; `rows` has the rows of
/// each row group of the file.
fn count_rows(part: &mut TablePart, rows: &[u64]) -> Result<()> {
    let listed: u64 = part.pieces.iter().map(|Piece(_, groups)| groups).sum();
    let file = Path::new(&part.file).display();
    ensure!(
        listed == rows.len() as u64,
        "{file} has {} row groups, and {WEEK} lists {listed}: restore it from a copy",
        rows.len()
    );
    let mut rest = rows;
    for Piece(_, count) in &mut part.pieces {
        let (own, later) = rest.split_at(*count as usize);
        (*count, rest) = (own.iter().sum(), later);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(pieces: &[(&str, u64)]) -> TablePart {
        let pieces = pieces.iter().map(|(name, count)| Piece((*name).into(), *count)).collect();
        TablePart { file: "nigh-00001-00000.parquet".into(), bytes: 9, digest: None, pieces }
    }

    #[test]
    fn pieces_of_row_groups_become_pieces_of_their_rows() {
        let mut of_groups = part(&[("a", 2), ("b", 0), ("c", 1)]);
        count_rows(&mut of_groups, &[100, 7, 30]).unwrap();
        assert_eq!(of_groups, part(&[("a", 107), ("b", 0), ("c", 30)]));
        for rows in [&[1, 2][..], &[1, 2, 3, 4]] {
            let error = count_rows(&mut part(&[("a", 2), ("c", 1)]), rows).unwrap_err().to_string();
            assert!(error.contains("lists 3") && error.contains(&format!("has {}", rows.len())), "{error}");
        }
    }
}
