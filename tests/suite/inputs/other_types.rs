//! Columns of rare types in exports: written with their values, or refused with the name of the
//! column.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{MapBuilder, StringBuilder, TimestampSecondBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, DictionaryArray, DurationSecondArray, FixedSizeBinaryArray, FixedSizeListArray,
    Int32Array, RecordBatch, StringArray, StructArray, Time32SecondArray, TimestampSecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::properties::WriterProperties;

use crate::exports::conversions::values;
use crate::program::{Ran, job, run, run_well};

const ROWS: usize = 4;

/// A store of one file with the columns `id`, `text`, and `x`, in a folder of its own.
struct OneFile {
    folder: tempfile::TempDir,
}

impl OneFile {
    fn new(name: &str, batches: &[RecordBatch]) -> OneFile {
        let file = OneFile { folder: tempfile::tempdir().unwrap() };
        let out = std::fs::File::create(file.folder.path().join(name)).unwrap();
        if name.ends_with("parquet") {
            let mut writer = ArrowWriter::try_new(out, batches[0].schema(), None).unwrap();
            for batch in batches {
                writer.write(batch).unwrap();
                writer.flush().unwrap();
            }
            writer.close().unwrap();
        } else {
            let mut writer = arrow_ipc::writer::StreamWriter::try_new(out, &batches[0].schema()).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        let ran = file.cluster(name);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        file
    }

    fn cluster(&self, name: &str) -> Ran {
        let job = job(self.folder.path(), "[cluster.read.columns]\nid = \"id\"\n");
        let [job, store, input] = [job, self.folder.path().join("store"), self.folder.path().join(name)];
        let [job, store, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
        run(&["run", job, "-q", "--no-accuracy", "--week", "2024-01-08", "--store", store, "--input", input])
    }

    fn export(&self, out: &str, flags: &[&str]) -> Ran {
        let [store, out] = ["store", out].map(|name| self.folder.path().join(name).to_str().unwrap().to_owned());
        run(&[&["export", &store, "--out", &out][..], flags].concat())
    }

    /// The rows of an export as Parquet.
    fn parquet(&self, flags: &[&str]) -> (RecordBatch, Vec<(String, Option<String>)>) {
        let ran = self.export("parquet", flags);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let file = std::fs::File::open(self.folder.path().join("parquet/a.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata().into_iter().flatten();
        let pairs = pairs.map(|pair| (pair.key.clone(), pair.value.clone())).collect();
        (reader.build().unwrap().next().unwrap().unwrap(), pairs)
    }

    fn lines(&self) -> Vec<serde_json::Value> {
        let ran = self.export("lines", &["--format", "jsonl"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        values(&self.folder.path().join("lines/a.jsonl"))
    }
}

#[test]
fn two_columns_of_one_name_are_not_read_and_not_converted() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one text", "another text"]));
    let batch = RecordBatch::try_from_iter(["id", "text", "x", "x"].map(|name| (name, texts.clone()))).unwrap();
    let csv = OneFile { folder: tempfile::tempdir().unwrap() };
    let cluster = |names: &str| {
        std::fs::write(csv.folder.path().join("a.csv"), format!("{names}\n1,some words,b,c\n")).unwrap();
        csv.cluster("a.csv")
    };
    let refused = cluster("id,text,text,x");
    let wanted = "a.csv has 2 columns `text`: rename all of them except one";
    assert!(refused.code == Some(1) && refused.stderr.contains(wanted), "{}", refused.stderr);
    let ran = cluster("id,text,x,x");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let [of_parquet, of_arrow] = ["a.parquet", "a.arrow"].map(|name| OneFile::new(name, std::slice::from_ref(&batch)));
    let (lines, parquet) = (["--format", "jsonl"], ["--format", "parquet"]);
    let rename = |format| ["--rename", "text=body", "--format", format];
    for (number, (file, name, flags)) in [
        (&csv, "a.csv", &lines[..]),
        (&csv, "a.csv", &parquet),
        (&csv, "a.csv", &rename("same")),
        (&of_parquet, "a.parquet", &lines),
        (&of_parquet, "a.parquet", &rename("same")),
        (&of_arrow, "a.arrow", &parquet),
        (&of_arrow, "a.arrow", &rename("jsonl")),
    ]
    .into_iter()
    .enumerate()
    {
        let ran = file.export(&format!("out-{number}"), flags);
        let wanted = format!("{name} has 2 columns `x`: rename all of them except one");
        assert!(ran.code == Some(1) && ran.stderr.contains(&wanted), "{name} {flags:?}: {}", ran.stderr);
    }
    for file in [&csv, &of_parquet] {
        let ran = file.export("same", &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
}

/// Rows with this column, which all stay: the first one of a batch has the number `first`.
fn rows_from(first: usize, x: ArrayRef, is_nullable: bool) -> RecordBatch {
    let count = x.len();
    let numbers = || first..first + count;
    let id: ArrayRef = Arc::new(StringArray::from_iter_values(numbers().map(|row| format!("i{row}"))));
    let text = |row: usize| (0..20).map(|place| format!("r{row}w{place}")).collect::<Vec<_>>().join(" ");
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(numbers().map(text)));
    let field = |name: &str, kind: &DataType, is_nullable| Field::new(name, kind.clone(), is_nullable);
    let fields = vec![
        field("id", &DataType::Utf8, false),
        field("text", &DataType::Utf8, false),
        field("x", x.data_type(), is_nullable),
    ];
    let schema = Schema::new(fields)
        .with_metadata(std::collections::HashMap::from([("huggingface".to_owned(), "{}".to_owned())]));
    RecordBatch::try_new(Arc::new(schema), vec![id, text, x]).unwrap()
}

fn rows(x: ArrayRef) -> RecordBatch {
    rows_from(0, x, false)
}

#[test]
fn times_are_those_of_the_input_or_refused() {
    // An offset with seconds: Paris, before 1911. The instant is what counts.
    let seconds = [-62_135_596_800, -2_000_000_000, 0, 1];
    for file in ["a.arrow", "a.parquet"] {
        let x = TimestampSecondArray::from(seconds.to_vec()).with_timezone("Europe/Paris");
        let one = OneFile::new(file, &[rows(Arc::new(x))]);
        let lines: Vec<_> = one.lines().iter().map(|line| line["x"].as_str().unwrap().to_owned()).collect();
        let wanted = ["0001-01-01T00:00:00Z", "1906-08-16T20:26:40Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"];
        assert_eq!(lines.iter().map(|time| time.replace(".000", "")).collect::<Vec<_>>(), wanted, "{file}");
    }
    let far: [ArrayRef; 4] = [
        Arc::new(Time32SecondArray::from(vec![0, 90_000, 1, 2])),
        Arc::new(Date32Array::from(vec![0, i32::MAX, i32::MIN, 1])),
        Arc::new(TimestampSecondArray::from(vec![0, i64::MAX, 1, 2])),
        Arc::new(DurationSecondArray::from(vec![0, i64::MAX, 1, 2])),
    ];
    for x in far {
        let one = OneFile::new("a.arrow", &[rows(x.clone())]);
        let ran = one.export("lines", &["--format", "jsonl"]);
        assert!(
            ran.code == Some(1) && ran.stderr.contains("the column `x` has a"),
            "{:?}: {}",
            x.data_type(),
            ran.stderr
        );
    }
}

#[test]
fn what_stands_under_a_null_is_no_value() {
    let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, i64::MAX, 3, 4]));
    let field = Arc::new(Field::new("t", far.data_type().clone(), true));
    let nulls = || Some(NullBuffer::from(vec![true, false, true, true]));
    let of_struct = StructArray::new(vec![field.clone()].into(), vec![far.clone()], nulls());
    let of_lists = FixedSizeListArray::new(field, 1, far, nulls());
    for x in [Arc::new(of_struct) as ArrayRef, Arc::new(of_lists)] {
        let one = OneFile::new("a.arrow", &[rows_from(0, x, true)]);
        let lines = one.lines();
        assert!(lines[1]["x"].is_null() && !lines[2]["x"].is_null(), "{lines:?}");
    }
}

#[test]
fn arrow_becomes_parquet_with_its_metadata_and_required_columns() {
    let times = || TimestampSecondArray::from(vec![1, 2, 3, 4]);
    let one = OneFile::new("a.arrow", &[rows(Arc::new(times()))]);
    let (found, pairs) = one.parquet(&["--format", "parquet"]);
    assert!(pairs.contains(&("huggingface".to_owned(), Some("{}".to_owned()))), "{pairs:?}");
    let field = found.schema().field(2).clone();
    assert_eq!((field.is_nullable(), field.data_type()), (false, &DataType::Timestamp(TimeUnit::Millisecond, None)));

    // A map whose values become another type.
    let mut map = MapBuilder::new(None, StringBuilder::new(), TimestampSecondBuilder::new());
    for (key, value) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        map.keys().append_value(key);
        map.values().append_value(value);
        map.append(true).unwrap();
    }
    let map = map.finish();
    let one = OneFile::new("a.arrow", &[rows(Arc::new(map))]);
    assert_eq!(one.parquet(&["--format", "parquet"]).0.num_rows(), ROWS);
    assert_eq!(one.lines()[1]["x"], serde_json::json!({"b": "1970-01-01T00:00:02"}));
}

#[test]
fn an_annotated_file_has_the_zone_that_it_had() {
    let x = TimestampSecondArray::from(vec![1, 2, 3, 4]).with_timezone("Europe/Paris");
    let one = OneFile::new("a.parquet", &[rows(Arc::new(x))]);
    let before =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(one.folder.path().join("a.parquet")).unwrap());
    let before = before.unwrap().schema().field(2).clone();
    let (found, _) = one.parquet(&["--what", "annotated"]);
    assert_eq!(found.schema().field(2), &before);
    assert_eq!(found.num_columns(), 7);
}

#[test]
fn dictionaries_of_several_row_groups_become_lines() {
    // Each has 100 values; keys of 8 bits count 128.
    let of_group = |group: i32| {
        let keys = arrow_array::Int8Array::from_iter_values(0..100);
        let texts = StringArray::from_iter_values((0..100).map(|value| format!("v{}", group * 100 + value)));
        let x = DictionaryArray::<Int8Type>::new(keys, Arc::new(texts));
        rows_from(group as usize * 100, Arc::new(x), true)
    };
    let one = OneFile::new("a.parquet", &[of_group(0), of_group(1)]);
    let lines = one.lines();
    assert!(lines.len() == 200 && (0..200).all(|row| lines[row]["x"] == format!("v{row}")));
    // Numbers.
    let keys = Int32Array::from_iter_values(0..4);
    let x = DictionaryArray::<Int32Type>::new(keys, Arc::new(Int32Array::from(vec![7, 8, 9, 10])));
    let one = OneFile::new("a.parquet", &[rows(Arc::new(x))]);
    assert_eq!(one.lines().iter().map(|line| line["x"].as_i64().unwrap()).collect::<Vec<_>>(), [7, 8, 9, 10]);
}

#[test]
fn types_without_a_place_are_named() {
    let x = FixedSizeBinaryArray::try_from_iter(std::iter::repeat_n([0_u8; 0], ROWS)).unwrap();
    let one = OneFile::new("a.arrow", &[rows(Arc::new(x))]);
    let ran = one.export("parquet", &["--format", "parquet"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("the column `x` is FixedSizeBinary(0)"), "{}", ran.stderr);
}

fn write_encrypted(path: &Path, column: &str) {
    let encryption = FileEncryptionProperties::builder(vec![1; 16]).with_plaintext_footer(true);
    let encryption = encryption.with_column_key(column, vec![2; 16]).build().unwrap();
    let properties = WriterProperties::builder().with_file_encryption_properties(encryption).build();
    let batch = rows(Arc::new(Int32Array::from(vec![1, 2, 3, 4])));
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn encrypted_columns_are_named() {
    for column in ["text", "id", "x"] {
        let one = OneFile { folder: tempfile::tempdir().unwrap() };
        let path = one.folder.path().join("a.parquet");
        write_encrypted(&path, column);
        let ran = one.cluster("a.parquet");
        if column == "x" {
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            for flags in [&["--format", "jsonl"][..], &["--what", "annotated"], &[]] {
                let ran = one.export("out", flags);
                assert!(ran.code == Some(1) && ran.stderr.contains("the column `x` of"), "{}", ran.stderr);
                assert!(ran.stderr.contains("is encrypted"), "{}", ran.stderr);
            }
        } else {
            assert!(
                ran.code == Some(3) && ran.stderr.contains(&format!("the column `{column}` is encrypted")),
                "{}",
                ran.stderr
            );
            let [job, input, store] = ["job.toml", "a.parquet", "s2"].map(|name| one.folder.path().join(name));
            let [job, input, store] = [&job, &input, &store].map(|path| path.to_str().unwrap());
            let dry = run_well(&["run", job, "--dry-run", "--week", "2024-01-08", "--store", store, "--input", input]);
            assert!(dry.stdout.contains(&format!("the column `{column}` is encrypted")), "{}", dry.stdout);
        }
    }
}
