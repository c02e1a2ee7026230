//! Streams and files of record batches that writers make, whole, cut and damaged.

use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Decimal128Array, DictionaryArray, Int32Array, Int64Array, LargeStringArray, RecordBatch,
    StringArray, StringViewArray, StructArray, TimestampMillisecondArray, UInt64Array,
};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{Block, CompressionType, root_as_footer};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;

use super::contents::{MARKER, TAIL};
use super::{ArrowReader, begins, ordered_arrow};
use crate::readers::find::STANDARD_INPUT;
use crate::readers::item::{Body, Item, Page, Reader as _, Reject, Unread};
use crate::reading::Reading;

/// A batch with columns of many types, some of them null.
fn batch(rows: i32) -> RecordBatch {
    let some = |row: i32, of: i32| (row % of > 0).then_some(row);
    let texts = || (0..rows).map(|row| some(row, 5).map(|row| format!("text {row} of the batch")));
    let urls: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("http://a/{row}"))));
    let meta = StructArray::from(vec![(Arc::new(arrow_schema::Field::new("url", DataType::Utf8, true)), urls.clone())]);
    let keys = Int32Array::from_iter((0..rows).map(|row| some(row, 7).map(|row| row % 3)));
    let values: ArrayRef = Arc::new(StringArray::from(vec!["zero", "one", "two"]));
    let decimal = |scale| {
        let values = (0..rows).map(|row| some(row, 6).map(|row| i128::from(row - 9) * 1_000_000_000_000_000_000_000));
        Decimal128Array::from_iter(values).with_precision_and_scale(38, scale).unwrap()
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("url", urls),
        ("meta", Arc::new(meta)),
        ("text", Arc::new(StringArray::from_iter(texts()))),
        ("large", Arc::new(LargeStringArray::from_iter(texts()))),
        ("view", Arc::new(StringViewArray::from_iter(texts()))),
        ("binary", Arc::new(BinaryArray::from_iter(texts().map(|text| text.map(String::into_bytes))))),
        ("dictionary", Arc::new(DictionaryArray::new(keys, values))),
        ("number", Arc::new(Int64Array::from_iter((0..rows).map(|row| some(row, 4).map(i64::from))))),
        ("unsigned", Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| u64::MAX - row as u64)))),
        ("decimal", Arc::new(decimal(0))),
        ("scaled", Arc::new(decimal(2))),
        (
            "time",
            Arc::new(TimestampMillisecondArray::from_iter(
                (0..rows).map(|row| some(row, 3).map(|row| i64::from(row) * 86_400_000)),
            )),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn stream(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn file(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn reading(text: &str) -> Reading {
    toml::from_str(&format!("[columns]\n{text}")).unwrap()
}

fn read(bytes: &[u8], reading: &Reading) -> Option<Vec<Item>> {
    let source = Box::new(io::Cursor::new(bytes.to_vec()));
    let mut reader = ArrowReader::new(source, "test.arrow", reading).unwrap()?;
    Some(std::iter::from_fn(|| reader.next().unwrap()).collect())
}

#[test]
fn rows_are_those_of_parquet() {
    let batches = [batch(100), batch(30)];
    let parquet = tempfile::tempfile().unwrap();
    let mut writer = ArrowWriter::try_new(parquet.try_clone().unwrap(), batches[0].schema(), None).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    for columns in [
        "",
        "url = \"meta.url\"\ntext = \"large\"\nid = \"number\"",
        "text = \"view\"\nid = \"unsigned\"\ndate = \"time\"",
        "text = \"dictionary\"\nhtml = \"binary\"\ndate = \"number\"",
        "text = \"text\"\nhtml = \"text\"\nid = \"dictionary\"",
        "id = \"decimal\"",
        "id = \"scaled\"",
    ] {
        let reading = reading(columns);
        let mut reader =
            crate::readers::rows::parquet::open(parquet.try_clone().unwrap(), "test.parquet", &reading).unwrap();
        let wanted: Vec<Item> = std::iter::from_fn(|| reader.next().unwrap())
            .map(|item| match item {
                Item::Reject(reject) => {
                    Item::Reject(Reject { reason: reject.reason.replace("parquet", "arrow"), ..reject })
                }
                item => item,
            })
            .collect();
        assert_eq!(wanted.len(), 130);
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            assert_eq!(read(&file(&batches, compression), &reading).unwrap(), wanted, "{columns}");
            assert_eq!(read(&stream(&batches, compression), &reading).unwrap(), wanted, "{columns}");
        }
        let packed = zstd::bulk::compress(&stream(&batches, None), 1).unwrap();
        assert_eq!(read(&packed, &reading).unwrap(), wanted);
    }
}

#[test]
fn streams_and_files_are_known_by_their_first_bytes() {
    let batches = [batch(3)];
    for compression in [None, Some(CompressionType::LZ4_FRAME)] {
        assert!(begins(&stream(&batches, compression)) && begins(&file(&batches, compression)));
    }
    let schema = Schema::empty();
    assert!(begins(&StreamWriter::try_new(Vec::new(), &schema).unwrap().into_inner().unwrap()));
    for other in [&b""[..], b"\xff\xff\xff\xff", &[0xff; 64], b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0", b"{\"text\": 1}"] {
        assert!(!begins(other), "{other:?}");
    }
}

#[test]
fn a_column_that_is_not_there_is_named_with_those_that_are() {
    let bytes = stream(&[batch(1)], None);
    let error = |columns: &str| {
        let source = Box::new(io::Cursor::new(bytes.clone()));
        ArrowReader::new(source, "test.arrow", &reading(columns)).err().unwrap().to_string()
    };
    assert!(error("text = \"content\"").contains("has no column `content` (its columns: url, meta, text,"));
    assert!(error("text = \"meta\"").contains("the column `meta` of test.arrow is"));
}

#[test]
fn a_column_that_is_read_is_there_once() {
    let column: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let object = |name: &str| -> ArrayRef {
        let field = Arc::new(arrow_schema::Field::new(name, DataType::Utf8, true));
        Arc::new(StructArray::from(vec![(field.clone(), column.clone()), (field, column.clone())]))
    };
    let columns =
        [("text", column.clone()), ("other", column.clone()), ("other", column.clone()), ("meta", object("a"))];
    let bytes = stream(&[RecordBatch::try_from_iter(columns).unwrap()], None);
    let error = |columns: &str| {
        let source = Box::new(io::Cursor::new(bytes.clone()));
        ArrowReader::new(source, "x.arrow", &reading(columns)).err().map(|error| error.to_string())
    };
    assert_eq!(error("text = \"text\""), None);
    let twice = "x.arrow has 2 columns `other`: rename all of them except one".to_owned();
    assert_eq!(error("text = \"other\""), Some(twice.clone()));
    assert_eq!(error("values = [\"other\"]"), Some(twice));
    assert!(error("id = \"meta.a\"").unwrap().contains("2 columns `a`"));
}

#[test]
fn damage_ends_the_rows_with_a_reject() {
    let (batches, reading) = ([batch(20), batch(20)], Reading::default());
    let bytes = stream(&batches, None);
    let cut = read(&bytes[..bytes.len() - 500], &reading).unwrap();
    assert_eq!(cut.len(), 21);
    assert!(matches!(&cut[20], Item::Reject(reject) if reject.reason == "arrow: the file ends inside a message"));
    assert_eq!(read(b"ARROW1", &reading), None);
    assert_eq!(read(b"", &reading), None);
}

fn stored(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    io::Write::write_all(&mut file, bytes).unwrap();
    file
}

/// The ids and texts of the pages, the rejects, and what could not be read.
fn outcome(bytes: &[u8], name: &str) -> (Vec<String>, Vec<Reject>, Unread) {
    let source = Box::new(io::Cursor::new(bytes.to_vec()));
    let reader = ArrowReader::new(source, name, &reading("id = \"id\"")).unwrap().unwrap();
    let mut reader = reader.with_contents(stored(bytes));
    let outcome = outcome_of(&mut reader);
    assert_eq!(reader.position(), bytes.len() as u64);
    outcome
}

/// The same of a file that is read by its table of contents; `None` if it cannot be.
fn ordered_outcome(bytes: &[u8]) -> Option<(Vec<String>, Vec<Reject>, Unread)> {
    let file = ordered_arrow(&stored(bytes)).unwrap()?;
    let mut reader = ArrowReader::ordered(file, "test.arrow", &reading("id = \"id\"")).unwrap().unwrap();
    Some(outcome_of(&mut reader))
}

fn outcome_of(reader: &mut ArrowReader) -> (Vec<String>, Vec<Reject>, Unread) {
    let (mut pages, mut rejects) = (Vec::new(), Vec::new());
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Page(Page { id: Some(id), body: Body::Text(text), .. }) => pages.push(format!("{id} {text}")),
            Item::Reject(reject) => rejects.push(reject),
            item => panic!("{item:?}"),
        }
    }
    (pages, rejects, reader.unread())
}

/// A batch with the rows from one number on, and what `outcome` makes of them.
fn numbered(from: usize, rows: usize) -> (RecordBatch, Vec<String>) {
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values((from..from + rows).map(|row| format!("id{row}"))));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((from..from + rows).map(|row| format!("text of {row}"))));
    let pages = (from..from + rows).map(|row| format!("id{row} text of {row}"));
    (RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap(), pages.collect())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn streams_behind_each_other_are_read_with_their_own_columns() {
    let ((first, some), (second, others)) = (numbered(0, 50), numbered(50, 7));
    // The other order of columns.
    let swapped = second.project(&[1, 0]).unwrap();
    let all = [some.clone(), others].concat();
    for second in [&second, &swapped] {
        let [a, b] = [&first, second].map(|batch| stream(std::slice::from_ref(batch), None));
        for zeros in [&b""[..], &[0; 4], &[0; 512], &[0; 3]] {
            let joined = [&a[..], zeros, &b, zeros].concat();
            // Zeros are a multiple of four between streams.
            if zeros.len() != 3 {
                for name in ["test.arrow", STANDARD_INPUT] {
                    assert_eq!(outcome(&joined, name), (all.clone(), vec![], Unread::default()), "{name}");
                }
            }
        }
        let members = [gzip(&a), gzip(&b)].concat();
        assert_eq!(outcome(&members, "test.arrow"), (all.clone(), vec![], Unread::default()));
        // Without the end marker of the first one.
        let unfinished = [&a[..a.len() - 8], &b].concat();
        assert_eq!(outcome(&unfinished, "test.arrow"), (all.clone(), vec![], Unread::default()));
        let source = Box::new(io::Cursor::new(unfinished));
        let mut piped = ArrowReader::new(source, STANDARD_INPUT, &reading("id = \"id\"")).unwrap().unwrap();
        let error = (0..60).find_map(|_| piped.next().err()).unwrap();
        assert!(format!("{error:#}").contains("ended early"), "{error:#}");
    }
    let a = stream(&[first], None);
    let other = stream(&[batch(9)], None);
    for behind in [&other[..], b"no stream at all", b"\n", &[a.as_slice(), b"x"].concat()[1..]] {
        let (pages, rejects, unread) = outcome(&[&a[..], behind].concat(), "test.arrow");
        assert_eq!((pages, rejects.len()), (some.clone(), 1), "{behind:?}");
        // The end marker of a stream without the columns is read.
        let bytes = behind.len() as u64;
        assert!((bytes - bytes.min(8)..=bytes).contains(&unread.bytes) && unread.bytes > 0, "{unread:?} of {bytes}");
    }
}

#[test]
fn what_is_behind_the_end_of_a_file_is_unread() {
    let ((first, pages), (second, _)) = (numbered(0, 50), numbered(50, 50));
    let [a, b] = [first, second].map(|batch| file(&[batch], None));
    assert_eq!(outcome(&a, "test.arrow"), (pages.clone(), vec![], Unread::default()));
    for behind in [&b"x"[..], &[0; 8], &b] {
        for name in ["test.arrow", STANDARD_INPUT] {
            let (read, rejects, unread) = outcome(&[&a[..], behind].concat(), name);
            assert_eq!((&read, &rejects[..]), (&pages, &[of_contents(50)][..]));
            assert!(unread.bytes > behind.len() as u64, "{unread:?}");
        }
    }
    let (read, rejects, unread) = outcome(&[gzip(&a), gzip(&b)].concat(), "test.arrow");
    assert_eq!((read, rejects), (pages.clone(), vec![of_contents(50)]));
    assert!(unread.bytes > b.len() as u64 / 20, "{unread:?}");
    // The table of contents is cut: all rows are there.
    let (read, rejects, unread) = outcome(&a[..a.len() - 20], "test.arrow");
    assert_eq!((read, rejects), (pages, vec![of_contents(50)]));
    assert!(unread.bytes > 0);
}

fn of_contents(offset: u64) -> Reject {
    Reject { offset, url: None, reason: "arrow: the file does not end with its table of contents".to_owned() }
}

#[test]
fn a_file_that_is_cut_counts_as_unread() {
    let batches: Vec<RecordBatch> = (0..6).map(|number| numbered(number * 10, 10).0).collect();
    for bytes in [stream(&batches, None), file(&batches, None)] {
        let cut = &bytes[..bytes.len() / 2];
        let (pages, rejects, unread) = outcome(cut, "test.arrow");
        assert!((10..40).contains(&pages.len()) && rejects.len() == 1, "{rejects:?}");
        assert_eq!(unread, Unread { bytes: cut.len() as u64, ends_early: true });
        let packed = gzip(&bytes);
        let (_, rejects, unread) = outcome(&packed[..packed.len() / 2], "test.arrow");
        assert_eq!((rejects.len(), unread), (1, Unread { bytes: packed.len() as u64 / 2, ends_early: true }));
    }
}

#[test]
fn batches_behind_a_damaged_one_are_read() {
    let batches: Vec<RecordBatch> = (0..6).map(|number| numbered(number * 10, 10).0).collect();
    let place = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).position(|found| found == text).unwrap();
    let without = |from: usize, to: usize| {
        let rows = (0..60).filter(|row| !(from..to).contains(row));
        rows.map(|row| format!("id{row} text of {row}")).collect::<Vec<_>>()
    };
    for (bytes, is_file) in [(stream(&batches, None), false), (file(&batches, None), true)] {
        // The offsets of the ids stand before these.
        let mut offsets = bytes.clone();
        let at = place(&bytes, b"id20id21") - 40;
        offsets[at..at + 12].fill(0xff);
        let (pages, rejects, unread) = outcome(&offsets, "test.arrow");
        assert_eq!((pages, rejects.len(), rejects[0].offset), (without(20, 30), 1, 20));
        assert!(unread.bytes * 3 > bytes.len() as u64 / 6 && unread.bytes < bytes.len() as u64 / 3, "{unread:?}");
        // Damage in a head: a stream is read no further, a file says where the next one begins.
        let message = bytes[..place(&bytes, b"id20id21")].windows(4).rposition(|word| word == [0xff; 4]).unwrap();
        let mut head = bytes.clone();
        head[message + 8..message + 16].fill(0xff);
        let (pages, rejects, unread) = outcome(&head, "test.arrow");
        assert_eq!((pages, rejects.len()), (without(20, if is_file { 30 } else { 60 }), 1));
        let rest = if is_file { bytes.len() / 3 } else { bytes.len() - message };
        assert!(unread.bytes > 0 && unread.bytes <= rest as u64, "{unread:?}");
        assert!(is_file || unread.bytes == rest as u64, "{unread:?}");
        // A head that claims more bytes than follow: of a stream it may as well have been cut.
        let mut long = bytes.clone();
        long[message + 4..message + 8].copy_from_slice(&(1_u32 << 25).to_le_bytes());
        let (pages, rejects, unread) = outcome(&long, "test.arrow");
        assert_eq!((pages, rejects.len()), (without(20, if is_file { 30 } else { 60 }), 1));
        assert!(unread.ends_early != is_file && (is_file || unread.bytes == bytes.len() as u64), "{unread:?}");
        // An end that was never written.
        if !is_file {
            let lost = [&bytes[..message], &[0; 9000]].concat();
            let (pages, rejects, unread) = outcome(&lost, "test.arrow");
            assert_eq!((pages, rejects.len()), (without(20, 60), 1));
            assert!(unread.ends_early && (8900..=9000).contains(&unread.bytes), "{unread:?}");
        }
    }
}

/// A file with its schema in the table of contents only, as Polars 2 writes it: the head of the
/// schema lacks its marker and its length.
fn without_schema(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.windows(4).position(|word| word == MARKER).unwrap();
    let length = u32::from_le_bytes(*bytes[at + 4..].first_chunk().unwrap()) as usize;
    bytes.copy_within(at + 8..at + 8 + length, at);
    bytes[at + length..at + length + 8].fill(0);
    bytes
}

/// A file of one dictionary and one batch, with the dictionary behind the batch.
fn with_dictionary_behind(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - TAIL;
    let start = end - u32::from_le_bytes(*bytes[end..].first_chunk().unwrap()) as usize;
    let table = &bytes[start..end];
    let footer = root_as_footer(table).unwrap();
    // Where a message begins and how long it is, and where the table has that.
    let place = |block: &Block| {
        let length = i64::from(block.metaDataLength()) + block.bodyLength();
        (block.offset() as usize, length as usize, start + block.0.as_ptr().addr() - table.as_ptr().addr())
    };
    let (dictionary, of_dictionary, in_table) = place(footer.dictionaries().unwrap().get(0));
    let (batch, of_batch, behind) = place(footer.recordBatches().unwrap().get(0));
    assert_eq!(dictionary + of_dictionary, batch);
    bytes[dictionary..batch + of_batch].rotate_left(of_dictionary);
    bytes[in_table..in_table + 8].copy_from_slice(&((dictionary + of_batch) as u64).to_le_bytes());
    bytes[behind..behind + 8].copy_from_slice(&(dictionary as u64).to_le_bytes());
    bytes
}

#[test]
fn a_file_with_its_schema_in_the_table_of_contents_is_read_by_that() {
    let batches: Vec<RecordBatch> = (0..6).map(|number| numbered(number * 10, 10).0).collect();
    let rows = |of: &dyn Fn(&usize) -> bool| -> Vec<String> {
        (0..60).filter(of).map(|row| format!("id{row} text of {row}")).collect()
    };
    let all = rows(&|_| true);
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let usual = file(&batches, compression);
        assert_eq!(ordered_outcome(&usual), None);
        let bytes = without_schema(usual);
        assert_eq!(ordered_outcome(&bytes), Some((all.clone(), vec![], Unread::default())));
        // Without its table of contents nothing of it can be read.
        assert_eq!(ordered_outcome(&bytes[..bytes.len() - 20]), None);
        let source = Box::new(io::Cursor::new(bytes));
        assert!(ArrowReader::new(source, "test.arrow", &Reading::default()).unwrap().is_none());
    }
    // A head that is damaged: the table says where the next message begins.
    let mut bytes = without_schema(file(&batches, None));
    let text = bytes.windows(8).position(|found| found == b"id20id21").unwrap();
    let message = bytes[..text].windows(4).rposition(|word| word == MARKER).unwrap();
    bytes[message + 8..message + 16].fill(0xff);
    let (pages, rejects, unread) = ordered_outcome(&bytes).unwrap();
    assert_eq!((pages, rejects.len()), (rows(&|row| !(20..30).contains(row)), 1));
    assert!(unread.bytes > 0 && unread.bytes < bytes.len() as u64 / 3, "{unread:?}");
}

#[test]
fn a_dictionary_behind_its_batch_is_found_by_the_table_of_contents() {
    let words: ArrayRef = Arc::new(StringArray::from(vec!["zero", "one"]));
    let texts: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![1, 0, 1]), words));
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let bytes = without_schema(with_dictionary_behind(file(&[batch], None)));
    let pages = ["a one", "b zero", "c one"].map(str::to_owned).to_vec();
    assert_eq!(ordered_outcome(&bytes), Some((pages, vec![], Unread::default())));
}

#[test]
fn a_text_that_is_not_utf8_concerns_its_row() {
    let batches: Vec<RecordBatch> = (0..4).map(|number| numbered(number * 10, 10).0).collect();
    for mut bytes in [stream(&batches, None), file(&batches, None)] {
        let texts = bytes.windows(10).position(|found| found == b"text of 25").unwrap();
        bytes[texts + 3] = 0xe9;
        let ids = bytes.windows(4).position(|found| found == b"id12").unwrap();
        bytes[ids] = 0xff;
        let (pages, rejects, unread) = outcome(&bytes, "test.arrow");
        assert_eq!((pages.len(), unread), (39, Unread::default()));
        assert!(pages.contains(&"id25 tex\u{fffd} of 25".to_owned()), "{pages:?}");
        let reason = "arrow: an id that is neither text nor a whole number".to_owned();
        assert_eq!(rejects, [Reject { offset: 12, url: None, reason }]);
    }
}

#[test]
fn no_batch_is_read_with_an_older_dictionary_than_its_own() {
    let batch = |from: usize| {
        let keys = Int32Array::from_iter_values(0..3);
        let words: ArrayRef =
            Arc::new(StringArray::from_iter_values((from..from + 3).map(|word| format!("word{word}"))));
        let ids: ArrayRef = Arc::new(StringArray::from_iter_values((from..from + 3).map(|id| format!("id{id}"))));
        let texts: ArrayRef = Arc::new(DictionaryArray::new(keys, words));
        RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap()
    };
    let mut bytes = stream(&[batch(0), batch(3), batch(6)], None);
    let all = outcome(&bytes, "test.arrow").0;
    assert_eq!((all.len(), all[3].as_str()), (9, "id3 word3"));
    let words = bytes.windows(10).position(|found| found == b"word3word4").unwrap();
    bytes[words - 60..words - 40].fill(0xff);
    let (pages, rejects, unread) = outcome(&bytes, "test.arrow");
    assert!(pages.iter().all(|page| all.contains(page)), "{pages:?}");
    assert!(pages.len() < 9 && !rejects.is_empty() && unread.bytes > 0, "{pages:?}");
}

#[test]
fn a_stream_on_standard_input_must_have_its_end() {
    // As writers end it today, and as they did before version 0.15.
    let legacy = IpcWriteOptions::try_new(8, true, arrow_ipc::MetadataVersion::V4).unwrap();
    for (options, marker) in [(IpcWriteOptions::default(), 8), (legacy, 4)] {
        let batches = [batch(3), batch(2)];
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        let bytes = writer.into_inner().unwrap();
        let read = |length: usize, name: &str| -> anyhow::Result<usize> {
            let source = Box::new(io::Cursor::new(bytes[..length].to_vec()));
            let Some(mut reader) = ArrowReader::new(source, name, &Reading::default())? else { return Ok(0) };
            let mut items = 0;
            while reader.next()?.is_some() {
                items += 1;
            }
            Ok(items)
        };
        assert_eq!(read(bytes.len(), STANDARD_INPUT).unwrap(), 5);
        let mut said = Vec::new();
        for length in 0..bytes.len() {
            let error = format!("{:#}", read(length, STANDARD_INPUT).unwrap_err());
            assert!(error.contains("on standard input ended early"), "{length}: {error}");
            said.push(error);
            // Elsewhere it is a reject, or the end.
            assert!(read(length, "test.arrow").unwrap() <= 5 + 1, "{length}");
        }
        assert!(said[bytes.len() - marker].contains("after 5 rows (2 batches)"), "{said:?}");
        assert!(said[bytes.len() - marker - 1].contains("after 3 rows (1 batches)"), "{said:?}");
        assert!(said[20].contains("after 0 rows (0 batches)"), "{said:?}");
    }
    // A file has the marker before its table of contents.
    let bytes = file(&[batch(3)], None);
    let open = |bytes: &[u8]| {
        let source = Box::new(io::Cursor::new(bytes.to_vec()));
        ArrowReader::new(source, STANDARD_INPUT, &Reading::default()).unwrap().unwrap()
    };
    let mut whole = open(&bytes);
    assert_eq!(std::iter::from_fn(|| whole.next().unwrap()).count(), 3);
    assert!(open(&bytes[..bytes.len() / 2]).next().is_err());
}

#[test]
fn hostile_bytes_are_rejects() {
    let reading = reading("text = \"dictionary\"\nid = \"view\"");
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let bytes = stream(&[batch(3), batch(3)], compression);
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xFF] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                let source = Box::new(io::Cursor::new(bytes));
                // Another schema can lack the columns of the job.
                let Ok(Some(mut reader)) = ArrowReader::new(source, "test.arrow", &reading) else { continue };
                let items = std::iter::from_fn(|| reader.next().unwrap()).take(20).count();
                assert!(items < 20, "{at}: {items} items");
            }
        }
    }
}
