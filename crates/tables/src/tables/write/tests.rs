//! What the files of tables have: encodings, filters, key-values, types and statistics.

use std::fs::File;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::SortingColumn;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::*;
use crate::tables::{FeatureRow, MissingRow, Scan, UrlRow, field};

fn urls(path: &Path, count: i64) {
    let mut writer: Writer<UrlRow> = Writer::create(path).unwrap();
    for doc in 0..count {
        let url = format!("http://h/{doc}");
        writer.push(UrlRow { doc, hash: [doc as u8; 16], url: Some(&url), id: None }).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_bloom_filter_fits_the_rows_and_finds_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("urls.parquet");
    for (count, most) in [(1000, 2100), (5000, 9000), (150_000, 140_000)] {
        urls(&path, count);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let column = reader.metadata().row_group(0).column(2).clone();
        assert!((32..most).contains(&column.bloom_filter_length().unwrap()), "{:?}", column.bloom_filter_length());
        let filter = Sbbf::read_from_column_chunk(&column, &File::open(&path).unwrap()).unwrap().unwrap();
        assert!((0..count.min(100_000)).all(|doc| filter.check(format!("http://h/{doc}").as_str())));
        let wrong = (0..10_000).filter(|doc| filter.check(format!("http://other/{doc}").as_str())).count();
        assert!(wrong < 500, "{wrong} of 10,000 for {count} rows");
        assert!(reader.metadata().row_group(0).column(1).bloom_filter_length().is_none());
    }
}

#[test]
fn a_small_row_group_has_nothing_that_must_be_set_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("urls.parquet");
    let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
    // Two row groups of few rows, and one of many between them.
    for (group, rows) in [999, 1000, 1].into_iter().enumerate() {
        for doc in 0..rows {
            let url = format!("http://h{group}/{doc}");
            writer.push(UrlRow { doc, hash: [doc as u8; 16], url: Some(&url), id: None }).unwrap();
        }
        writer.file.flush_rows().unwrap();
        writer.file.end_group().unwrap();
    }
    assert_eq!(writer.finish().unwrap(), 2000);
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let described: Vec<_> = reader
        .metadata()
        .row_groups()
        .iter()
        .map(|group| {
            let url = group.column(2);
            (group.num_rows(), url.compression(), url.statistics().is_some(), url.bloom_filter_length().is_some())
        })
        .collect();
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
    let (small, full) = ((Compression::LZ4_RAW, false, false), (zstd, true, true));
    for ((rows, compression, ..), (expected, of)) in described.iter().zip([(999, small), (1000, full), (1, small)]) {
        assert_eq!((*rows, std::mem::discriminant(compression)), (expected, std::mem::discriminant(&of.0)));
    }
    assert_eq!(
        described.iter().map(|of| (of.2, of.3)).collect::<Vec<_>>(),
        [(false, false), (true, true), (false, false)]
    );
    let mut urls = Vec::new();
    Scan::open(&path, &["url"])
        .unwrap()
        .for_each(|batch| {
            let column: &arrow_array::StringArray = field(batch, "url")?;
            urls.extend(column.iter().map(|url| url.unwrap().to_owned()));
            Ok(())
        })
        .unwrap();
    let expected = [999, 1000, 1].into_iter().enumerate();
    let expected = expected.flat_map(|(group, rows)| (0..rows).map(move |doc| format!("http://h{group}/{doc}")));
    assert!(urls.into_iter().eq(expected));
}

#[test]
fn a_file_names_its_table_its_order_and_its_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing.parquet");
    let writer: Writer<MissingRow> = Writer::create(&path).unwrap();
    let mut writer = writer.labelled(&[("nigh.week", "2024-01-01"), ("nigh.week", "2024-01-08")]);
    writer.push(MissingRow { doc: 1, url: Some("http://h/".into()), id: None, reason: "not seen".into() }).unwrap();
    writer.finish().unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let metadata = reader.metadata();
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| {
        let of_key = pairs.iter().filter(|pair| pair.key == key);
        of_key.map(|pair| pair.value.clone().unwrap()).collect::<Vec<_>>().join(" and ")
    };
    assert_eq!(value("nigh.table"), "missing");
    assert_eq!(value("nigh.week"), "2024-01-08");
    assert_eq!(value("nigh.version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(value("nigh.column.url"), "canonical URL, as in `urls`");
    assert!(value("nigh.description").starts_with("One row for each URL"));
    let sorted = metadata.row_group(0).sorting_columns().unwrap();
    assert_eq!(sorted, &vec![SortingColumn { column_idx: 0, descending: false, nulls_first: false }]);
}

#[test]
fn a_file_without_rows_has_the_types_of_one_with_rows() {
    let folder = tempfile::tempdir().unwrap();
    let schema = |path: &Path| {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        builder.schema().clone()
    };
    for (supershingles, features) in [(48, 168), (32, 16)] {
        let [full, empty] = ["full.parquet", "empty.parquet"].map(|name| folder.path().join(name));
        let (supershingles, features) = (vec![1; supershingles], vec![2; features]);
        let row = || FeatureRow::new(1, &supershingles, &features);
        let mut writer: Writer<FeatureRow> = Writer::create(&full).unwrap();
        writer.push(row()).unwrap();
        writer.finish().unwrap();
        assert_eq!(Writer::<FeatureRow>::create(&empty).unwrap().like(row()).finish().unwrap(), 0);
        assert_eq!(schema(&empty), schema(&full));
    }
    // Without an example they are those of the study.
    let [full, empty] = ["full.parquet", "empty.parquet"].map(|name| folder.path().join(name));
    let mut writer: Writer<FeatureRow> = Writer::create(&full).unwrap();
    writer.push(FeatureRow::new(1, &[1; 48], &[2; 168])).unwrap();
    writer.finish().unwrap();
    Writer::<FeatureRow>::create(&empty).unwrap().finish().unwrap();
    assert_eq!(schema(&empty), schema(&full));
}

#[test]
fn hashes_of_a_page_have_no_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("features.parquet");
    let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
    for doc in 0..1000 {
        writer.push(FeatureRow::new(doc, &[1; 48], &[2; 168])).unwrap();
    }
    writer.finish().unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let columns = reader.metadata().row_group(0).columns();
    let with: Vec<&str> =
        columns.iter().filter(|c| c.statistics().is_some()).map(|c| c.column_descr().name()).collect();
    assert_eq!(with, ["doc"]);
}
