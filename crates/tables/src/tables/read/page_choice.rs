//! Which Parquet pages can have one of some values: by the smallest and the largest value of each
//! page, which the index of pages has.

use std::ops::Range;

use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::row_range::{GroupRows, OpenRange};

/// The rows of the pages of a column of 64-bit numbers that can have one of the `wanted` values,
/// which ascend: ranges of rows that ascend, counted from the first of the rows that are read. Row
/// groups without an index of pages are taken whole.
pub(crate) fn rows_of_pages(opened: &OpenRange, column: &str, wanted: &[i64]) -> Vec<Range<u64>> {
    let schema = opened.footer.metadata().file_metadata().schema_descr();
    let place = schema.columns().iter().position(|of| of.name() == column);
    let mut chosen: Vec<Range<u64>> = Vec::new();
    let mut first = 0;
    let firsts = opened.footer.metadata().row_groups().iter().map(|group| {
        first += group.num_rows() as u64;
        first - group.num_rows() as u64
    });
    let firsts: Vec<u64> = firsts.collect();
    for GroupRows { group, rows, .. } in opened.by_group() {
        for page in pages_of(opened, group, place, wanted) {
            let of_file = firsts[group] + page.start..firsts[group].saturating_add(page.end);
            let both = of_file.start.max(rows.start) - opened.rows.start
                ..of_file.end.min(rows.end).max(opened.rows.start) - opened.rows.start;
            match chosen.last_mut() {
                _ if both.is_empty() => {}
                Some(last) if last.end == both.start => last.end = both.end,
                _ => chosen.push(both),
            }
        }
    }
    chosen
}

/// As [`rows_of_pages`], of one row group; counted from its first row.
fn pages_of(opened: &OpenRange, group: usize, place: Option<usize>, wanted: &[i64]) -> Vec<Range<u64>> {
    let rows = opened.footer.metadata().row_group(group).num_rows() as u64;
    let whole = std::iter::once(0..rows).collect();
    let index = opened.footer.metadata().page_index_for_row_group(group);
    let Some(place) = place else { return whole };
    let (Some(ColumnIndexMetaData::INT64(values)), Some(pages)) =
        (index.column_index(place), index.offset_index(place))
    else {
        return whole;
    };
    let starts: Vec<u64> = pages.page_locations().iter().map(|page| page.first_row_index as u64).collect();
    let can_have = |page: usize| match (values.min_value(page), values.max_value(page)) {
        (Some(least), Some(most)) => {
            wanted.get(wanted.partition_point(|value| value < least)).is_some_and(|value| value <= most)
        }
        // A page of nulls only.
        _ => false,
    };
    let end = |page: usize| starts.get(page + 1).copied().unwrap_or(rows);
    (0..starts.len()).filter(|page| can_have(*page)).map(|page| starts[page]..end(page)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;
    use crate::tables::{RowRange, Scan, SplitOffRow, Writer, field};
    use arrow_array::Int64Array;

    #[test]
    fn pages_are_passed_over_and_no_row_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let docs: Vec<i64> = (0..300_000).filter(|doc| !mix(*doc as u64).is_multiple_of(3)).collect();
        let mut writer: Writer<SplitOffRow> = Writer::create(&path).unwrap();
        for doc in &docs {
            writer.push(SplitOffRow { doc: *doc, similar_root: doc / 2, identical_root: -doc }).unwrap();
        }
        writer.finish().unwrap();
        let all = RowRange::file(&path);
        let count = docs.len() as u64;
        for (first, end) in [(0, count), (777, count - 5), (150_001, 150_002), (131_072, 131_500)] {
            let part = all.part(first..end);
            for wanted in
                [vec![], vec![5], vec![-1, 300_001], (0..300_000).step_by(70_001).collect::<Vec<i64>>(), docs.clone()]
            {
                let ranges = rows_of_pages(&part.open_all().unwrap(), "doc", &wanted);
                assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
                let rows: u64 = ranges.iter().map(|rows| rows.end - rows.start).sum();
                assert!(rows <= 2 * 2048 * wanted.len() as u64, "{rows} rows for {} documents", wanted.len());
                let mut found = Vec::new();
                Scan::each_of_docs(&part, &["similar_root", "doc"], &wanted, |batch| {
                    let [docs, roots] = [field::<Int64Array>(batch, "doc")?, field(batch, "similar_root")?];
                    found.extend(docs.values().iter().copied().zip(roots.values().iter().copied()));
                    Ok(())
                })
                .unwrap();
                let of_part = &docs[first as usize..end as usize];
                let expected =
                    of_part.iter().filter(|doc| wanted.binary_search(doc).is_ok()).map(|doc| (*doc, doc / 2));
                assert!(found.into_iter().eq(expected), "{first} to {end}, {} documents", wanted.len());
            }
        }
    }
}
