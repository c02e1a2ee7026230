//! A column of distinct, ascending ids, searched by id without reading all of it.
//!
//! Opening the column reads the first id of each Parquet page. If the ids of a page have no gap,
//! its first id gives all of them, and nothing more is read. If g ids are missing in a page, a
//! wanted id is at most g rows before the row where it would be without gaps, and only these rows
//! are read.

use std::ops::Range;

use anyhow::{Result, ensure};

use super::plain::{PlainColumn, WordSlice};
use super::row_range::RowRange;

/// A plain column of ids, one 64-bit number for each row.
pub struct AscendingColumn {
    column: PlainColumn,
    /// The first id of each page; after them, one more than the last id.
    firsts: Vec<u64>,
}

/// The rows and the ids of a Parquet page.
#[derive(Clone, Copy)]
struct IdPage {
    /// The first row.
    start: u64,
    /// The number of rows.
    rows: u64,
    /// The first id.
    first: u64,
    /// How many ids from the first one up to the next page's first one are missing in the page.
    gaps: u64,
}

/// The most ids that one read fetches.
const SPAN: u64 = 32 << 10;
/// Two wanted ids are fetched by one read if at most as many rows lie between them.
const GAP: u64 = 512;

impl AscendingColumn {
    /// Opens the named column of `rows`, a path or some rows of a file, and reads the first id of
    /// each page.
    ///
    /// # Errors
    /// As [`PlainColumn::open`]; and if the ids do not ascend.
    pub fn open(rows: impl Into<RowRange>, name: &'static str) -> Result<AscendingColumn> {
        let of_file = rows.into();
        let column = PlainColumn::open(&of_file, name, 1)?;
        let mut rows: Vec<u64> = column.starts().collect();
        rows.extend(column.rows().checked_sub(1).filter(|last| rows.last() != Some(last)));
        let mut firsts = Vec::with_capacity(rows.len() + 1);
        column.each(&rows, |value| firsts.extend_from_slice(value))?;
        // The last row may be the first of the last page: then its id stands there once only.
        let end = firsts.last().map(|last| last.saturating_add(1));
        firsts.truncate(column.starts().len());
        firsts.extend(end);
        let ascending = AscendingColumn { column, firsts };
        let fits = (0..ascending.column.starts().len()).all(|page| ascending.page(page).is_some());
        ensure!(fits, "{} is damaged: the column does not ascend", of_file.path().display());
        Ok(ascending)
    }

    /// The number of ids.
    pub fn rows(&self) -> u64 {
        self.column.rows()
    }

    /// From the first id to one more than the last one; `0..0` if there are no ids.
    pub fn bounds(&self) -> Range<u64> {
        self.firsts.first().copied().unwrap_or(0)..self.firsts.last().copied().unwrap_or(0)
    }

    /// A page by its number; `None` if it has more rows than there are ids up to the next page.
    fn page(&self, page: usize) -> Option<IdPage> {
        let (start, end) = self.column.bounds(page);
        let (rows, first) = (end - start, self.firsts[page]);
        let gaps = self.firsts[page + 1].checked_sub(first)?.checked_sub(rows)?;
        Some(IdPage { start, rows, first, gaps })
    }

    /// The page with the number `first`, and all after it.
    fn pages(&self, first: usize) -> impl Iterator<Item = IdPage> {
        (first..self.column.starts().len()).filter_map(|page| self.page(page))
    }

    /// The ids of `count` rows, beginning with the row `first`. Nothing is read from the file if
    /// the pages have no gaps.
    ///
    /// # Errors
    /// As [`PlainColumn::read`].
    pub fn read(&self, first: u64, count: usize) -> Result<WordSlice> {
        let end = first.saturating_add(count as u64);
        let mut pages = self.pages(self.column.page_of(first)).take_while(|page| page.start < end).peekable();
        let id = pages.peek().map_or(0, |page| page.first + (first - page.start));
        if end > self.rows() || pages.any(|page| page.gaps > 0) {
            return self.column.read(first, count);
        }
        // `gaps` counts up to the next page: without gaps the ids go on from page to page.
        Ok(WordSlice::counting(id, count))
    }

    /// Finds the rows of the `wanted` ids, which ascend. Returns, for each id that the column has,
    /// its place in `wanted` and its row; both ascend.
    ///
    /// # Errors
    /// Names the file that cannot be read, or whose ids do not ascend.
    pub fn find(&self, wanted: &[u64]) -> Result<Vec<(usize, u64)>> {
        let mut rows = Vec::new();
        let mut from = wanted.partition_point(|id| self.firsts.first().is_some_and(|first| id < first));
        for page in self.pages(0) {
            let next_first = page.first + page.rows + page.gaps;
            let to = from + wanted[from..].partition_point(|id| *id < next_first);
            self.find_in(page, from, &wanted[from..to], &mut rows)?;
            from = to;
        }
        Ok(rows)
    }

    /// As [`AscendingColumn::find`], within one page and for ids of its range; `place` is that of
    /// the first wanted id.
    ///
    /// Morally it does this; the code reads the row ranges of near ids together:
    ///
    /// ```text
    /// for id in wanted:
    ///     row = id - page.first                     where id would be without gaps
    ///     read the rows row - page.gaps ..= row     at most as many ids are missing before it
    ///     binary search for id among them
    /// ```
    fn find_in(&self, page: IdPage, mut place: usize, mut wanted: &[u64], rows: &mut Vec<(usize, u64)>) -> Result<()> {
        let possible_rows = |id: u64| {
            let row = id - page.first;
            (row.saturating_sub(page.gaps), row.min(page.rows - 1))
        };
        while let Some(id) = wanted.first() {
            let (from, mut to) = possible_rows(*id);
            let mut joins_read = |id: &u64| {
                let (next, last) = possible_rows(*id);
                let near = next <= to + GAP && last < from + SPAN;
                to = to.max(if near { last } else { to });
                near
            };
            // The first id is always read, even if its range is longer than `SPAN`.
            let together = 1 + wanted[1..].iter().take_while(|id| joins_read(id)).count();
            let (these, others) = wanted.split_at(together);
            if page.gaps == 0 {
                rows.extend((place..).zip(these).map(|(place, id)| (place, page.start + id - page.first)));
            } else {
                let ids = self.column.read(page.start + from, (to - from + 1) as usize)?;
                self.column.check(ids.is_sorted())?;
                let mut at = 0;
                for (place, id) in (place..).zip(these) {
                    at += ids[at..].partition_point(|other| other < id);
                    if ids.get(at) == Some(id) {
                        rows.push((place, page.start + from + at as u64));
                    }
                }
            }
            (place, wanted) = (place + together, others);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::records::mix;
    use crate::tables::{FeatureRow, Writer};

    fn write(folder: &Path, ids: impl Iterator<Item = u64>) -> AscendingColumn {
        let path = folder.join("features.parquet");
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        for id in ids {
            writer.push(FeatureRow::new(id as i64, &[0; 48], &[0; 4])).unwrap();
        }
        writer.finish().unwrap();
        AscendingColumn::open(&path, "doc").unwrap()
    }

    #[test]
    fn ids_are_found_with_gaps_and_without() {
        let folder = tempfile::tempdir().unwrap();
        let count = 300_000u64;
        let missing: [fn(u64) -> bool; 5] = [
            |_| false,
            |id| id % 2 == 1,
            |id| mix(id).is_multiple_of(40),
            // Whole pages without gaps, and some with many.
            |id| (100_000..117_000).contains(&id) || (id > 200_000 && id % 5 != 0),
            |id| id < 299_990,
        ];
        for (number, missing) in missing.into_iter().enumerate() {
            let ids: Vec<u64> = (10..count).filter(|id| !missing(*id)).collect();
            let column = write(folder.path(), ids.iter().copied());
            assert_eq!(column.rows(), ids.len() as u64);
            assert_eq!(column.bounds(), ids[0]..ids[ids.len() - 1] + 1);
            for (first, step) in [(0, 1), (0, 7), (3, 1001), (10, 65_536), (299_000, 1), (310_000, 1), (9, 1 << 40)] {
                let wanted: Vec<u64> = (first..320_000).step_by(step).collect();
                let places = wanted.iter().enumerate();
                let expected = places.filter_map(|(place, id)| Some((place, ids.binary_search(id).ok()? as u64)));
                assert!(column.find(&wanted).unwrap().into_iter().eq(expected), "{number}, from {first}, every {step}");
            }
            assert_eq!(column.find(&[]).unwrap(), []);
            for (first, size) in [(0, ids.len()), (0, 5), (ids.len() / 2, ids.len() / 3), (ids.len() - 1, 1)] {
                assert_eq!(*column.read(first as u64, size).unwrap(), ids[first..first + size], "{number}");
            }
            for size in [777, 20_000, 90_000] {
                for (first, ids) in (0..).step_by(size).zip(ids.chunks(size)) {
                    assert_eq!(*column.read(first, ids.len()).unwrap(), *ids, "{number}: {size} from {first}");
                }
            }
            assert!(column.read(ids.len() as u64, 1).is_err() && column.read(0, ids.len() + 1).is_err());
        }
    }

    #[test]
    fn a_column_without_ids_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let column = write(folder.path(), [].into_iter());
        assert_eq!((column.rows(), column.bounds(), column.find(&[1, 2]).unwrap()), (0, 0..0, vec![]));
        assert!(column.read(0, 0).unwrap().is_empty() && column.read(0, 1).is_err());
    }

    #[test]
    fn ids_that_do_not_ascend_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.parquet");
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        for id in (0..50_000).rev() {
            writer.push(FeatureRow::new(id, &[0; 48], &[0; 4])).unwrap();
        }
        writer.finish().unwrap();
        let error = AscendingColumn::open(&path, "doc").err().unwrap().to_string();
        assert!(error.contains("features.parquet") && error.contains("does not ascend"), "{error}");
    }
}
