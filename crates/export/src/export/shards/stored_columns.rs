//! The columns of Parquet files that are joined: they must have the same types, and the same
//! meaning.
//!
//! The types of Parquet do not say all: seconds and durations are numbers of 64 bits there, and the
//! schema of Arrow in the metadata says of what. Numbers of labels have their names in what the
//! `datasets` library of Hugging Face adds to the metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use arrow_schema::{DataType, Field, FieldRef};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::FileMetaData;
use parquet::schema::types::TypePtr;
use serde_json::Value;

use crate::export::renamed::HUGGING_FACE;
use crate::readers::Input;

/// Compares the columns of files with those of the first one.
#[derive(Default)]
pub(super) struct SameColumns {
    first: Option<(String, Vec<StoredColumn>)>,
}

/// A column, as far as files must have the same.
#[derive(PartialEq)]
struct StoredColumn {
    stored: TypePtr,
    /// The type of Arrow, without differences in how it is in memory.
    kind: DataType,
    /// What Hugging Face says of it, if that is more than the type.
    meaning: Option<Value>,
}

impl SameColumns {
    /// Compares the columns of a file with those of the first.
    ///
    /// # Errors
    /// If they are others; the message names one.
    pub(super) fn check(&mut self, metadata: &FileMetaData, input: &Input) -> Result<()> {
        let columns = columns(metadata).with_context(|| format!("cannot read {}", input.name))?;
        let Some((name, first)) = &self.first else {
            self.first = Some((input.name.clone(), columns));
            return Ok(());
        };
        if *first == columns {
            return Ok(());
        }
        let has = |all: &[StoredColumn], name: &str| all.iter().any(|column| column.stored.name() == name);
        // One that a file lacks moves those after it.
        let lacking = columns.iter().find(|column| !has(first, column.stored.name()));
        let lacking = lacking.or_else(|| first.iter().find(|column| !has(&columns, column.stored.name())));
        let other = columns.iter().zip(first).find(|(a, b)| a != b).map(|(column, _)| column);
        let column = lacking.or(other).or(columns.get(first.len())).or(first.get(columns.len()));
        bail!(
            "{name} and {} differ in the column `{}`, and shards have the same columns: give --format jsonl, or leave out --shards and \
             --shard-bytes",
            input.name,
            column.map_or("", |column| column.stored.name())
        );
    }
}

/// The columns of a file.
fn columns(metadata: &FileMetaData) -> Result<Vec<StoredColumn>> {
    let (descriptor, pairs) = (metadata.schema_descr(), metadata.key_value_metadata());
    // What cannot be read in the metadata, readers of Arrow pass over.
    let schema = parquet_to_arrow_schema(descriptor, pairs).or_else(|_| parquet_to_arrow_schema(descriptor, None))?;
    let of_hub = pairs.into_iter().flatten().find(|pair| pair.key == HUGGING_FACE);
    let of_hub = of_hub.and_then(|pair| serde_json::from_str::<Value>(pair.value.as_deref()?).ok());
    let features = of_hub.as_ref().and_then(|of_hub| of_hub.get("info")?.get("features"));
    let kinds: BTreeMap<&str, DataType> =
        schema.fields().iter().map(|field| (field.name().as_str(), plain(field.data_type()))).collect();
    let column = |stored: &TypePtr| StoredColumn {
        stored: stored.clone(),
        kind: kinds.get(stored.name()).cloned().unwrap_or(DataType::Null),
        meaning: features.and_then(|features| features.get(stored.name())).filter(|feature| has_more(feature)).cloned(),
    };
    Ok(metadata.schema().get_fields().iter().map(column).collect())
}

/// Whether a feature of Hugging Face, or one within it, says more than a type.
fn has_more(feature: &Value) -> bool {
    match feature {
        Value::Object(fields) => match fields.get("_type").and_then(Value::as_str) {
            Some("Value") => false,
            Some("Sequence" | "List" | "LargeList") => fields.get("feature").is_none_or(has_more),
            Some(_) => true,
            None => fields.values().any(has_more),
        },
        Value::Array(items) => items.iter().any(has_more),
        _ => true,
    }
}

/// A type of which Parquet stores the same values in the same way: without dictionaries, views, and
/// sizes of offsets.
fn plain(kind: &DataType) -> DataType {
    let named = |field: &FieldRef, name: &str| -> FieldRef {
        Arc::new(Field::new(name, plain(field.data_type()), field.is_nullable()))
    };
    let inner = |field: &FieldRef| named(field, field.name());
    // Items have different names in files, which the types of Parquet compare.
    let item = |field: &FieldRef| named(field, "item");
    match kind {
        DataType::Dictionary(_, values) => plain(values),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => DataType::List(item(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(item(field), *size),
        DataType::Map(entries, _) => DataType::Map(item(entries), false),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        kind => kind.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{Schema, TimeUnit};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::KeyValue;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    use super::*;
    use crate::readers::{Format, Location};

    fn metadata(kind: DataType, of_hub: Option<&str>) -> FileMetaData {
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("x", kind, true)]));
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
        if let Some(of_hub) = of_hub {
            writer.append_key_value_metadata(KeyValue::new(HUGGING_FACE.to_owned(), of_hub.to_owned()));
        }
        let file = SerializedFileReader::new(Bytes::from(writer.into_inner().unwrap())).unwrap();
        file.metadata().file_metadata().clone()
    }

    fn compared(first: FileMetaData, second: FileMetaData) -> Result<(), String> {
        let place = Location::File("x.parquet".into());
        let input = |name: &str| Input {
            name: name.to_owned(),
            bytes: 0,
            format: Format::Parquet,
            place: place.clone(),
            page_url: None,
            stamp: String::new(),
            reading: None,
        };
        let mut columns = SameColumns::default();
        columns.check(&first, &input("a")).unwrap();
        columns.check(&second, &input("b")).map_err(|error| error.to_string())
    }

    #[test]
    fn types_that_parquet_does_not_tell_apart_are_others() {
        let durations = [TimeUnit::Second, TimeUnit::Millisecond].map(DataType::Duration);
        let list = |kind: &DataType| DataType::List(Arc::new(Field::new("item", kind.clone(), true)));
        let lists = durations.each_ref().map(list);
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        for [one, other] in [
            durations.clone(),
            lists,
            [durations[0].clone(), DataType::Int64],
            [seconds.clone(), DataType::Int64],
            [seconds, durations[0].clone()],
        ] {
            let said = compared(metadata(one.clone(), None), metadata(other.clone(), None));
            assert!(said.as_ref().is_err_and(|said| said.starts_with("a and b differ in the column `x`")), "{said:?}");
            assert_eq!(compared(metadata(one.clone(), None), metadata(one, None)), Ok(()), "{other}");
        }
        let texts = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        for kind in [texts, DataType::LargeUtf8, DataType::Utf8View] {
            assert_eq!(compared(metadata(DataType::Utf8, None), metadata(kind, None)), Ok(()));
        }
        let large = DataType::LargeList(Arc::new(Field::new("item", DataType::LargeUtf8, true)));
        assert_eq!(compared(metadata(list(&DataType::Utf8), None), metadata(large, None)), Ok(()));
    }

    #[test]
    fn a_column_that_a_file_lacks_is_named() {
        let file = |names: &[&str]| {
            let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
            let writer = ArrowWriter::try_new(Vec::new(), Arc::new(Schema::new(fields)), None).unwrap();
            let file = SerializedFileReader::new(Bytes::from(writer.into_inner().unwrap())).unwrap();
            file.metadata().file_metadata().clone()
        };
        for (a, b) in [(&["id", "extra", "size"][..], &["id", "size"][..]), (&["id", "x"], &["extra", "id", "x"])] {
            for (a, b) in [(a, b), (b, a)] {
                let said = compared(file(a), file(b)).unwrap_err();
                assert!(said.contains("differ in the column `extra`"), "{said}");
            }
        }
    }

    #[test]
    fn labels_have_the_same_names() {
        let of_hub = |names: &str| {
            format!(
                r#"{{"info":{{"features":{{"id":{{"dtype":"int64","_type":"Value"}},"x":{{"names":[{names}],"_type":"ClassLabel"}}}}}},"fingerprint":{names:?}}}"#
            )
        };
        let (one, other) = (of_hub(r#""cat","dog""#), of_hub(r#""dog","cat""#));
        let values = r#"{"info":{"features":{"x":{"feature":{"dtype":"int64","_type":"Value"},"_type":"Sequence"}}}}"#;
        let file = |of_hub| metadata(DataType::Int64, of_hub);
        for (a, b) in
            [(Some(&*one), Some(&*other)), (Some(&*one), None), (None, Some(&*one)), (Some(values), Some(&*one))]
        {
            assert!(compared(file(a), file(b)).unwrap_err().contains("differ in the column `x`"), "{a:?} {b:?}");
        }
        for (a, b) in [(Some(&*one), Some(&*one)), (Some(values), None), (None, Some("no JSON"))] {
            assert_eq!(compared(file(a), file(b)), Ok(()));
        }
    }
}
