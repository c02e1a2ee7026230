//! Keeps a damaged file of a table from ending the program: what decodes a file runs in
//! [`decoded`], so that a panic of the decoder is an error that names the file.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use nigh_text::contained::contained;
use parquet::file::metadata::ParquetMetaData;

/// What is said of a damaged file, with what to do.
pub(crate) fn damaged(path: &Path) -> String {
    format!("{} is damaged: restore it, or make its tables again (a last week with --replace)", path.display())
}

/// Runs `work`, which decodes the file at `path`.
///
/// What `work` changed is to be dropped if this fails: see [`contained`].
///
/// # Errors
/// Names the file if `work` panics; or returns the error of `work`.
pub(crate) fn decoded<T>(path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    contained(work).map_err(|cause| anyhow!(cause)).with_context(|| damaged(path))?
}

/// Checks what readers take for granted: no count or place of a row group or column is negative,
/// and each row group has all columns.
///
/// # Errors
/// If the numbers contradict each other.
pub(crate) fn check_footer(footer: &ParquetMetaData) -> Result<()> {
    let columns = footer.file_metadata().schema_descr().num_columns();
    let mut rows = 0_i64;
    for group in footer.row_groups() {
        let counted = (group.num_rows() >= 0).then(|| rows.checked_add(group.num_rows())).flatten();
        rows = counted.context("the rows of row groups have no sum")?;
        let is_whole = group.num_columns() == columns && group.total_byte_size() >= 0;
        let has_places = group.columns().iter().all(|column| {
            let first = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            first >= 0 && column.compressed_size() >= 0 && first.checked_add(column.compressed_size()).is_some()
        });
        ensure!(is_whole && has_places, "a row group has no columns, or no places of them");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use arrow_array::RecordBatch;
    use arrow_select::filter::filter_record_batch;

    use super::*;
    use crate::records::mix;
    use crate::tables::{
        AscendingColumn, DocumentRow, FeatureRow, PlainColumn, RowRange, Scan, SizeRow, Table, UrlRow, UtcMicros,
        Writer, pack,
    };

    fn write<T: Table>(path: PathBuf, rows: impl Iterator<Item = T>) -> PathBuf {
        let mut writer: Writer<T> = Writer::create(&path).unwrap();
        rows.for_each(|row| writer.push(row).unwrap());
        writer.finish().unwrap();
        path
    }

    fn document(doc: i64) -> DocumentRow<'static> {
        DocumentRow {
            doc,
            id: (doc % 3 == 0).then_some("an id"),
            url: (doc % 5 > 0).then(|| &*format!("http://h{}/{doc}", doc % 7).leak()),
            given_url: None,
            host: Some("h"),
            domain: Some("h"),
            ip: (doc % 4 == 0).then_some("10.0.0.1"),
            fetched: (doc % 2 == 0).then_some(UtcMicros(doc)),
            status: (doc % 9 > 0).then_some(200),
            media_type: Some("text/html"),
            bytes: mix(doc as u64) as i64,
            checksum: u128::from(mix(doc as u64)).to_be_bytes(),
            words: 7,
            title: "a title",
            file: "a.warc",
            offset: doc,
            crawled: "2024-01-08".parse().unwrap(),
            stored: "2024-01-08".parse().unwrap(),
            charset: None,
            digest: None,
            record_id: None,
            length: None,
            record_url: None,
        }
    }

    /// Uses each value of a batch, as commands do.
    fn used(batch: &RecordBatch) -> Result<()> {
        let some = (0..batch.num_rows()).map(|row| Some(row % 3 > 0)).collect();
        filter_record_batch(batch, &some)?;
        for column in batch.columns() {
            column.to_data().validate_full()?;
        }
        Ok(())
    }

    /// Reads a file in each way. Errors are well.
    fn read_all<T: Table>(path: &Path, scratch: &Path) {
        let names: Vec<&str> = T::COLUMNS.iter().map(|column| column.name).collect();
        let rows = RowRange::file(path);
        let _ = Scan::open(&rows, &names).and_then(|scan| scan.for_each(used));
        let _ = rows.rows_of_groups();
        if names.contains(&"doc") {
            let _ = Scan::each_of_docs(&rows, &names, &[3, 40, 250], used);
            let _ = AscendingColumn::open(&rows, "doc").and_then(|docs| docs.find(&[3, 40, 250]).map(|_| ()));
        }
        let _ = Scan::columns_of_rows(&rows, &names, &[1, 2, 99]).and_then(|scan| scan.for_each(used));
        if names.contains(&"supershingles") {
            let column = PlainColumn::open(&rows, "supershingles", 6);
            let _ = column.and_then(|column| column.read(0, 200).map(|_| ()).and(column.each(&[5, 150], |_| ())));
        }
        let _ = pack::<T>(&[rows.part(5..90), rows], &scratch.join("packed.parquet"), &[]);
    }

    /// Reads a table with one bit the other way, at some places of the whole file, and of the end,
    /// where the descriptions are.
    fn flip<T: Table>(path: &Path, seed: u64, times: u64) {
        let folder = tempfile::tempdir().unwrap();
        let (whole, damaged) = (std::fs::read(path).unwrap(), folder.path().join("damaged.parquet"));
        for time in 0..times {
            let mut bytes = whole.clone();
            let span = if time % 2 == 0 { bytes.len() } else { bytes.len().min(6000) };
            let at = bytes.len() - 1 - mix(seed + 2 * time) as usize % span;
            bytes[at] ^= 1 << (mix(seed + 2 * time + 1) % 8);
            std::fs::write(&damaged, &bytes).unwrap();
            println!("{}, seed {seed}, time {time}, byte {at}", T::NAME);
            read_all::<T>(&damaged, folder.path());
        }
    }

    #[test]
    fn no_flipped_bit_of_a_table_ends_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let documents = write(path("documents"), (0..300).map(document));
        flip::<DocumentRow>(&documents, 1, 700);
        // Rows of several row groups, of which some are copied as they are.
        let large = write(path("large"), (0..20_000).map(|doc| FeatureRow::new(doc, &[7; 48], &[3; 8])));
        flip::<FeatureRow>(&large, 2, 60);
        let urls = |doc| UrlRow { doc, hash: [doc as u8; 16], url: (doc % 2 == 0).then_some("http://a/"), id: None };
        flip::<UrlRow>(&write(path("urls"), (0..300).map(urls)), 3, 500);
        let sizes = |size| SizeRow { level: "similar", size, clusters: 40 };
        flip::<SizeRow>(&write(path("sizes"), (0..100).map(sizes)), 4, 500);
    }

    #[test]
    fn a_panic_of_a_decoder_is_an_error_that_names_the_file() {
        let error = decoded(Path::new("t.parquet"), || -> Result<()> { panic!("offset out of bounds: {}", 7) });
        let text = format!("{:#}", error.unwrap_err());
        assert!(
            text.starts_with("t.parquet is damaged: restore it") && text.ends_with("offset out of bounds"),
            "{text}"
        );
    }
}
