//! Parquet of other programs, exported as Parquet and as lines.

use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
    Int96, Int96Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use serde_json::Value;

use crate::exports::conversions::{export, values};
use crate::exports::whole::record;
use crate::program::{job, run_well};

const DATE: &str = "2024-01-08";

/// The schema of a file as other programs write it, with types for which Arrow has others.
const SCHEMA: &str = "message own {
    required binary id (UTF8);
    required binary text (UTF8);
    optional int96 old;
    optional fixed_len_byte_array(16) uuid (UUID);
    optional binary json (JSON);
    optional int32 day (DATE);
    optional int64 unsigned (INTEGER(64,false));
    optional group list (LIST) { repeated group list { optional double element; } }
}";

type RowGroupWriter<'a> = SerializedRowGroupWriter<'a, std::fs::File>;

/// Writes the next column: its values, and its levels of definition and repetition.
fn put<T: DataType>(
    group: &mut RowGroupWriter<'_>,
    values: &[T::T],
    defined: Option<&[i16]>,
    repeated: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, defined, repeated).unwrap();
    column.close().unwrap();
}

/// Writes 40 rows in three row groups; the old times are days of the years 1 and 9999, too.
fn write_as_others(path: &Path) {
    let schema = Arc::new(parquet::schema::parser::parse_message_type(SCHEMA).unwrap());
    let pairs = vec![
        KeyValue::new("huggingface".to_owned(), "{\"info\":{}}".to_owned()),
        KeyValue::new("own".to_owned(), None),
    ];
    let properties = Arc::new(WriterProperties::builder().set_key_value_metadata(Some(pairs)).build());
    let mut writer = SerializedFileWriter::new(std::fs::File::create(path).unwrap(), schema, properties).unwrap();
    for rows in [0..15_usize, 15..16, 16..40] {
        let mut of_rows = writer.next_row_group().unwrap();
        let group = &mut of_rows;
        let bytes = |text: String| ByteArray::from(text.into_bytes());
        // Two of three rows have values.
        let some = || rows.clone().filter(|row| row % 3 > 0);
        let levels: Vec<i16> = rows.clone().map(|row| i16::from(row % 3 > 0)).collect();
        let levels = Some(&levels[..]);
        let text = |row: usize| record(row % 30)["text"].as_str().unwrap().to_owned();
        put::<ByteArrayType>(group, &rows.clone().map(|row| bytes(format!("i{row}"))).collect::<Vec<_>>(), None, None);
        put::<ByteArrayType>(group, &rows.clone().map(|row| bytes(text(row))).collect::<Vec<_>>(), None, None);
        let old = |row: usize| {
            let mut value = Int96::new();
            value.set_data(row as u32 * 1000, 0, [1_721_426, 5_373_484, 2_460_311][row % 3]);
            value
        };
        put::<Int96Type>(group, &some().map(old).collect::<Vec<_>>(), levels, None);
        let uuid = |row| FixedLenByteArray::from(vec![row as u8; 16]);
        put::<FixedLenByteArrayType>(group, &some().map(uuid).collect::<Vec<_>>(), levels, None);
        let json = |row| bytes(format!("{{\"a\":{row}}}"));
        put::<ByteArrayType>(group, &some().map(json).collect::<Vec<_>>(), levels, None);
        put::<Int32Type>(group, &some().map(|row| row as i32 * 7000).collect::<Vec<_>>(), levels, None);
        put::<Int64Type>(group, &some().map(|row| -(row as i64)).collect::<Vec<_>>(), levels, None);
        // No list, an empty one, one with a null and two values.
        let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows.clone() {
            let of_row: &[(i16, i16)] = [&[(0, 0)][..], &[(1, 0)], &[(2, 0), (3, 1), (3, 1)]][row % 3];
            defined.extend(of_row.iter().map(|(level, _)| level));
            repeated.extend(of_row.iter().map(|(_, level)| level));
            if row % 3 == 2 {
                values.extend([row as f64, f64::INFINITY]);
            }
        }
        put::<DoubleType>(group, &values, Some(&defined), Some(&repeated));
        of_rows.close().unwrap();
    }
    writer.close().unwrap();
}

/// A file as text.
#[derive(Debug, PartialEq)]
struct FileAsText {
    schema: String,
    pairs: Vec<(String, Option<String>)>,
    rows: Vec<String>,
}

fn as_text(path: &Path) -> FileAsText {
    let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let metadata = file.metadata().file_metadata();
    let mut schema = Vec::new();
    parquet::schema::printer::print_schema(&mut schema, metadata.schema());
    let pairs = metadata.key_value_metadata().into_iter().flatten();
    let pairs = pairs.map(|pair| (pair.key.clone(), pair.value.clone())).collect();
    let rows = file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    FileAsText { schema: String::from_utf8(schema).unwrap(), pairs, rows }
}

#[test]
fn parquet_keeps_its_schema_its_metadata_and_every_value() {
    let folder = tempfile::tempdir().unwrap();
    let (input, store) = (folder.path().join("own.parquet"), folder.path().join("store"));
    write_as_others(&input);
    let job = job(folder.path(), "[cluster.read.columns]\nid = \"id\"\n");
    let arguments =
        ["run", job.to_str().unwrap(), "-q", "--no-accuracy", "--week", DATE, "--store", store.to_str().unwrap()];
    run_well(&[&arguments[..], &["--input", input.to_str().unwrap()]].concat());
    let FileAsText { schema, pairs, rows: all } = as_text(&input);
    let wanted = |is_kept: bool| {
        all.iter()
            .enumerate()
            .filter(|(row, _)| (*row < 30) == is_kept)
            .map(|(_, text)| text.clone())
            .collect::<Vec<_>>()
    };
    for (what, rows) in [("kept", wanted(true)), ("removed", wanted(false))] {
        let out = export(&store, what, &["--what", what, "--level", "exact"]);
        assert_eq!(
            as_text(&out.join("own.parquet")),
            FileAsText { schema: schema.clone(), pairs: pairs.clone(), rows },
            "{what}"
        );
    }
    let FileAsText { schema: of_annotated, rows, .. } =
        as_text(&export(&store, "annotated", &["--what", "annotated"]).join("own.parquet"));
    assert!(of_annotated.starts_with(schema.trim_end_matches("}\n")), "{of_annotated}");
    assert!(of_annotated.contains("REQUIRED BOOLEAN nigh_stays;"), "{of_annotated}");
    assert!(
        rows.len() == 40 && rows.iter().zip(&all).all(|(row, before)| row.starts_with(before.trim_end_matches('}'))),
        "{rows:?}"
    );
    // As lines, times are those of the file in every century.
    let lines = values(&export(&store, "lines", &["--what", "annotated", "--format", "jsonl"]).join("own.jsonl"));
    let old: Vec<&Value> = lines.iter().map(|line| &line["old"]).collect();
    assert_eq!(
        (old[0], old[1], old[2]),
        (&Value::Null, &"9999-12-31T00:00:00.000001".into(), &"2024-01-01T00:00:00.000002".into())
    );
    assert_eq!(lines[2]["unsigned"], serde_json::json!(u64::MAX - 1));
}
