//! Files of many types and codecs, and damaged ones.

use std::fs::File;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{
    ArrayRef, BinaryArray, DictionaryArray, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    StructArray, TimestampMillisecondArray, UInt64Array,
};

use super::{check, damage, open};
use crate::readers::item::{Body, Item};
use crate::reading::{Columns, Reading, TextColumns};

/// Writes a file with `group` rows in each row group.
fn written(columns: Vec<(&str, ArrayRef)>, group: usize) -> File {
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
    let file = tempfile::tempfile().unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file
}

fn read(file: File, reading: &Reading) -> Vec<Item> {
    let mut reader = open(file, "test.parquet", reading).unwrap();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

fn text(array: &[Option<&str>]) -> ArrayRef {
    Arc::new(array.iter().copied().collect::<StringArray>())
}

#[test]
fn rows_are_pages_over_all_row_groups() {
    let urls: Vec<String> = (0..1000).map(|row| format!("http://a/{row}")).collect();
    let url = Arc::new(LargeStringArray::from(urls.clone()));
    let body = Arc::new(BinaryArray::from_iter_values(urls.iter().map(|url| url.as_bytes())));
    let items = read(written(vec![("url", url), ("other", body.clone()), ("text", body)], 300), &Reading::default());
    assert_eq!(items.len(), 1000);
    for (row, item) in items.iter().enumerate() {
        let Item::Page(page) = item else { panic!("{item:?}") };
        assert_eq!(
            (page.offset, page.url.as_ref(), &page.body),
            (row as u64, Some(&urls[row]), &Body::Text(urls[row].clone()))
        );
    }
}

#[test]
fn a_long_dictionary_value_in_many_rows_is_cut_in_each() {
    let urls: Vec<String> = (0..1000).map(|row| format!("http://a/{row}")).collect();
    let long = "w ".repeat(3 << 20);
    let keys = Int32Array::from_iter_values((0..1000).map(|row| i32::from(row % 3 > 0)));
    let values = Arc::new(StringArray::from(vec!["short", long.as_str()]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("url", Arc::new(StringArray::from(urls.clone()))),
        ("text", Arc::new(DictionaryArray::new(keys, values))),
    ];
    let reading = Reading { max_page_bytes: crate::units::Bytes(1 << 20), ..Reading::default() };
    // As Arrow strings, a batch of these rows would be 2 GiB or more.
    let mut reader = open(written(columns, 1000), "test.parquet", &reading).unwrap();
    for (row, url) in urls.iter().enumerate() {
        let Some(Item::Page(page)) = reader.next().unwrap() else { panic!("no page at {row}") };
        assert_eq!((page.url.as_ref(), page.cut), (Some(url), row % 3 > 0));
        assert_eq!(page.body.bytes(), if row % 3 > 0 { 1 << 20 } else { 5 });
    }
    assert_eq!(reader.next().unwrap(), None);
}

#[test]
fn values_far_above_the_mean_are_read() {
    let url: Vec<String> = (0..2000).map(|row| format!("http://a/{row}")).collect();
    let body: Vec<String> =
        (0..2000_usize).map(|row| format!("{row} ").repeat(if row % 500 == 7 { 500_000 } else { 3 })).collect();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("url", Arc::new(StringArray::from(url))), ("text", Arc::new(StringArray::from(body.clone())))];
    let items = read(written(columns, 1500), &Reading::default());
    assert_eq!(items.len(), 2000);
    for (row, item) in items.iter().enumerate() {
        let Item::Page(page) = item else { panic!("{item:?}") };
        assert!(page.offset == row as u64 && page.body == Body::Text(body[row].clone()), "{row}");
    }
}

#[test]
fn damage_in_a_column_that_the_job_names_is_rejects() {
    // The Arrow readers of the crate panicked on these.
    for (file, rows) in [("bounds", 50), ("divide", 5)] {
        let open = || File::open(format!("../../tests/data/dirty/parquet-{file}.parquet")).unwrap();
        let pages = read(open(), &Reading::default());
        // Some rows of the files have no text.
        let is_whole = |item: &Item| match item {
            Item::Reject(reject) => reject.reason == "parquet: no text",
            item => matches!(item, Item::Page(_)),
        };
        assert!(pages.len() == rows && pages.iter().all(is_whole), "{pages:?}");
        let columns = Columns { ip: Some("ip".into()), ..Columns::default() };
        let items = read(open(), &Reading { columns, ..Reading::default() });
        let is_reject = |item: &Item| matches!(item, Item::Reject(reject) if reject.reason.starts_with("parquet: damaged row group"));
        assert!(items.len() == rows && items.iter().all(is_reject), "{items:?}");
    }
}

#[test]
fn no_changed_byte_ends_the_program_and_a_panic_is_a_reason() {
    use std::os::unix::fs::FileExt as _;
    let url = text(&[Some("http://a/"), Some("http://b/"), Some("http://c/")]);
    let mut whole = Vec::new();
    let file = written(vec![("url", url.clone()), ("text", url)], 2);
    whole.resize(file.metadata().unwrap().len() as usize, 0);
    file.read_exact_at(&mut whole, 0).unwrap();
    let file = tempfile::tempfile().unwrap();
    let mut reasons = std::collections::BTreeSet::new();
    for (place, byte) in whole.iter().enumerate() {
        for change in [1, 0x80] {
            file.write_all_at(&whole, 0).unwrap();
            file.write_all_at(&[byte ^ change], place as u64).unwrap();
            let Ok(mut reader) = open(file.try_clone().unwrap(), "test.parquet", &Reading::default()) else {
                continue;
            };
            while let Some(item) = reader.next().unwrap() {
                if let Item::Reject(reject) = item {
                    reasons.insert(reject.reason);
                }
            }
        }
    }
    // The lowest bit of a number is its sign.
    let negative = "parquet: damaged row group: column start and length should not be negative";
    assert!(reasons.contains(negative), "{reasons:#?}");
    assert!(reasons.contains("parquet: not a whole file") && reasons.contains("parquet: damaged row group"));
    assert!(reasons.len() < 20, "{reasons:#?}");
}

#[test]
fn invalid_utf8_is_replaced_and_pages_are_cut_at_the_end_of_a_character() {
    let url = text(&[Some("http://a/"), Some("http://b/"), Some("http://c/")]);
    let body = Arc::new(BinaryArray::from_iter_values([&b"a\xffb"[..], "\u{e4}\u{e4}\u{e4}".as_bytes(), b"words"]));
    let reading = Reading { max_page_bytes: crate::units::Bytes(5), ..Reading::default() };
    let items = read(written(vec![("url", url), ("text", body)], 100), &reading);
    let texts: Vec<(Body, bool)> = items
        .into_iter()
        .map(|item| match item {
            Item::Page(page) => (page.body, page.cut),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [("a\u{fffd}b", false), ("\u{e4}\u{e4}", true), ("words", false)];
    assert_eq!(texts, expected.map(|(text, cut)| (Body::Text(text.to_owned()), cut)));
}

#[test]
fn rows_without_a_body_in_the_columns_of_the_job_are_rejects() {
    let times = TimestampMillisecondArray::from(vec![Some(1500), None, None]).with_timezone("UTC");
    let inside =
        RecordBatch::try_from_iter(vec![("url", text(&[Some("http://a/"), Some("http://b/"), None]))]).unwrap();
    let columns = vec![
        ("meta", Arc::new(StructArray::from(inside)) as ArrayRef),
        ("raw", text(&[Some("<p>"), None, Some("x")])),
        ("ip", text(&[Some("192.0.2.7"), None, None])),
        ("date", Arc::new(times) as ArrayRef),
    ];
    let reading = Reading {
        columns: Columns {
            id: None,
            url: Some("meta.url".into()),
            text: TextColumns::default(),
            html: Some("raw".into()),
            ip: Some("ip".into()),
            date: Some("date".into()),
            ..Columns::default()
        },
        ..Reading::default()
    };
    let items = read(written(columns, 100), &reading);
    let [Item::Page(page), Item::Reject(no_text), Item::Page(no_url)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((page.body.clone(), page.charset.as_deref()), (Body::Html(b"<p>".to_vec()), Some("utf-8")));
    assert_eq!((page.fetched, page.ip), (Some(1_500_000), Some("192.0.2.7".parse().unwrap())));
    assert_eq!((no_text.reason.as_str(), no_text.url.as_deref()), ("parquet: no text", Some("http://b/")));
    assert_eq!((no_url.url.as_deref(), no_url.offset), (None, 2));
}

#[test]
fn every_codec_is_read_and_a_checksum_is_verified() {
    use std::os::unix::fs::FileExt as _;

    use ::parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};

    let urls: Vec<String> = (0..300).map(|row| format!("http://a/{row}")).collect();
    let column: ArrayRef = Arc::new(StringArray::from(urls));
    let batch = RecordBatch::try_from_iter([("url", column.clone()), ("text", column)]).unwrap();
    let written = |properties: WriterProperties| {
        let file = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    };
    let reading = Reading::default();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        let file = written(WriterProperties::builder().set_compression(codec).build());
        assert_eq!(damage(file.try_clone().unwrap(), "x", &reading).unwrap(), None, "{codec}");
        let items = read(file, &reading);
        assert!(items.len() == 300 && items.iter().all(|item| matches!(item, Item::Page(_))), "{codec}");
    }
    // One byte of a value, which would otherwise be another value, in a file of a program that
    // writes checksums.
    let bytes = std::fs::read("../../tests/data/checksums.parquet").unwrap();
    let changed = |place: usize, new: &[u8]| {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        file.write_all_at(new, place as u64).unwrap();
        file
    };
    let place = bytes.windows(12).position(|window| window == b"http://a/210").unwrap();
    let file = changed(place, b"j");
    let reason = "parquet: damaged row group: the checksum of a page is another";
    let items = read(file.try_clone().unwrap(), &reading);
    assert!(items.iter().all(|item| matches!(item, Item::Reject(reject) if reject.reason == reason)), "{:?}", items[0]);
    let found = damage(file, "x", &reading).unwrap().unwrap();
    assert_eq!(found, format!("{reason} (column `url`, UNCOMPRESSED)"));
    // A page that becomes more than there is memory for.
    let file = written(WriterProperties::builder().set_dictionary_enabled(false).build());
    let small = Reading { max_decoded_bytes: 1000, ..Reading::default() };
    let error = format!("{:#}", open(file, "x", &small).unwrap().next().unwrap_err());
    assert!(error.starts_with("cannot read x: a page of ") && error.contains("raise `memory`"), "{error}");
    let file = changed(bytes.len() - 4, b"PARE");
    assert!(
        matches!(&read(file, &reading)[..], [Item::Reject(reject)] if reject.reason == "parquet: an encrypted file")
    );
}

#[test]
fn rows_that_are_passed_over_leave_the_others_as_they_are() {
    let urls: Vec<String> = (0..5000).map(|row| format!("http://a/{}", row * 7919 % 997)).collect();
    let bodies: Vec<Option<String>> =
        (0..5000).map(|row| (row % 7 > 0).then(|| format!("{row} ").repeat(row % 50))).collect();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("url", Arc::new(StringArray::from(urls))), ("text", Arc::new(StringArray::from(bodies)))];
    let file = written(columns, 700);
    let all = read(file.try_clone().unwrap(), &Reading::default());
    for step in [1, 3, 11, 698, 701, 2500] {
        let mut reader = open(file.try_clone().unwrap(), "test.parquet", &Reading::default()).unwrap();
        for place in (0..5000).step_by(step) {
            reader.skip_to(place as u64).unwrap();
            assert_eq!(reader.next().unwrap().as_ref(), Some(&all[place]), "{step}");
            // A place that was read changes nothing.
            reader.skip_to(place as u64 / 2).unwrap();
        }
        reader.skip_to(1 << 40).unwrap();
        assert_eq!(reader.next().unwrap(), None);
    }
}

#[test]
fn a_missing_column_is_an_error_that_names_the_columns_of_the_file() {
    let file = written(vec![("url", text(&[Some("http://a/")])), ("content", text(&[Some("x")]))], 100);
    let error = open(file, "test.parquet", &Reading::default()).err().unwrap().to_string();
    assert_eq!(
        error,
        "test.parquet has no column `text` (its columns: url, content); set the names in [cluster.read.columns], or by --id, --url and --text"
    );
}

#[test]
fn a_column_that_is_read_is_there_once() {
    let names = |names: [&'static str; 3]| written(names.map(|name| (name, text(&[Some("x")]))).to_vec(), 100);
    let error = open(names(["url", "text", "text"]), "x.parquet", &Reading::default()).err().unwrap().to_string();
    assert_eq!(error, "x.parquet has 2 columns `text`: rename all of them except one");
    assert_eq!(read(names(["other", "text", "other"]), &Reading::default()).len(), 1);
    let values = Columns { values: vec!["other".into()], ..Columns::default() };
    let reading = Reading { columns: values, ..Reading::default() };
    let error = open(names(["other", "text", "other"]), "x.parquet", &reading).err().unwrap().to_string();
    assert!(error.contains("2 columns `other`"), "{error}");
}

#[test]
fn ids_are_integers_or_text_and_urls_may_be_missing() {
    let ids = Int64Array::from(vec![Some(i64::MAX), None, Some(-3)]);
    let unsigned = UInt64Array::from(vec![u64::MAX, 1, 2]);
    let names = text(&[Some("a"), Some(""), Some("c")]);
    let body = text(&[Some("x"), Some("y"), Some("z")]);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("n", Arc::new(ids)), ("u", Arc::new(unsigned)), ("s", names), ("text", body)];
    for (id, expected) in [
        ("n", [Some("9223372036854775807"), None, Some("-3")]),
        ("u", [Some("18446744073709551615"), Some("1"), Some("2")]),
        ("s", [Some("a"), None, Some("c")]),
    ] {
        let columns_of_job = Columns { id: Some(id.into()), ..Columns::default() };
        let reading = Reading { columns: columns_of_job, ..Reading::default() };
        let items = read(written(columns.clone(), 100), &reading);
        let found: Vec<_> = items
            .iter()
            .map(|item| match item {
                Item::Page(page) => (page.id.as_deref(), page.url.as_deref()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(found, expected.map(|id| (id, None)), "{id}");
        assert_eq!(check(written(columns.clone(), 100), "test.parquet", &reading).unwrap(), Some(false));
    }
}

#[test]
fn ids_are_whole_in_every_type_or_a_reject() {
    use arrow_array::{BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float64Array};

    let decimal = |scale| {
        let values = Decimal128Array::from(vec![Some(18_446_744_073_709_551_616), None, Some(-5)]);
        Arc::new(values.with_precision_and_scale(38, scale).unwrap()) as ArrayRef
    };
    let bytes = Arc::new(BinaryArray::from(vec![Some(&b"a\xff"[..]), None, Some(b"b")])) as ArrayRef;
    let uuid = FixedSizeBinaryArray::try_from_iter([[0x12; 16], [0; 16], [0xff; 16]].iter()).unwrap();
    let no_id = "parquet: an id that is neither text nor a whole number";
    let cases: [(ArrayRef, [Option<&str>; 3]); 5] = [
        (decimal(0), [Some("18446744073709551616"), None, Some("-5")]),
        (decimal(2), [Some(no_id), None, Some(no_id)]),
        (bytes, [Some(no_id), None, Some("b")]),
        (Arc::new(Float64Array::from(vec![Some(1.0), None, Some(f64::NAN)])), [Some(no_id), None, Some(no_id)]),
        (Arc::new(BooleanArray::from(vec![true, false, true])), [Some(no_id); 3]),
    ];
    let reading = Reading { columns: Columns { id: Some("id".into()), ..Columns::default() }, ..Reading::default() };
    for (ids, wanted) in cases {
        let items = read(written(vec![("id", ids.clone()), ("text", text(&[Some("x"); 3]))], 100), &reading);
        let found: Vec<Option<&str>> = items
            .iter()
            .map(|item| match item {
                Item::Page(page) => page.id.as_deref(),
                Item::Reject(reject) => Some(reject.reason.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(found, wanted, "{}", ids.data_type());
    }
    // Without the type, the bytes of UUIDs are no text.
    let items = read(written(vec![("id", Arc::new(uuid)), ("text", text(&[Some("x"); 3]))], 100), &reading);
    assert!(matches!(&items[2], Item::Reject(reject) if reject.reason == no_id), "{items:?}");
}

#[test]
fn every_row_of_a_damaged_row_group_is_a_reject() {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let urls: Vec<String> = (0..20_000).map(|row| format!("http://a/{}", row * 7919 % 99_991)).collect();
    let column: ArrayRef = Arc::new(StringArray::from(urls));
    let mut file = written(vec![("url", column.clone()), ("text", column)], 5000);
    let length = file.metadata().unwrap().len();
    file.seek(SeekFrom::Start(length * 3 / 8)).unwrap();
    file.write_all(&[0xff; 3000]).unwrap();
    let items = read(file, &Reading::default());
    let rejects: Vec<_> = items.iter().filter(|item| matches!(item, Item::Reject(_))).collect();
    // Rows of a group that were read before the damage are pages; up to 5,000 remain.
    assert!((1..=5000).contains(&rejects.len()), "{}", rejects.len());
    assert!(items.len() == 20_000 && matches!(items.last(), Some(Item::Page(page)) if page.offset == 19_999));
}
