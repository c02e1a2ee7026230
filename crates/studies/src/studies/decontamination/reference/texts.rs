//! Columns of Parquet with texts where they have bytes.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, GenericListArray, LargeStringArray, MapArray, OffsetSizeTrait,
    StructArray,
};
use arrow_schema::{DataType, FieldRef};

/// A column with texts where it has bytes, which a file can have without saying that they are
/// texts; also within lists, maps, dictionaries and objects. Bytes that are not UTF-8 are U+FFFD,
/// as in a page.
pub fn with_texts(column: &ArrayRef) -> ArrayRef {
    fn texts<'a>(bytes: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
        Arc::new(bytes.map(|bytes| bytes.map(String::from_utf8_lossy)).collect::<LargeStringArray>())
    }
    match column.data_type() {
        DataType::Binary => texts(column.as_binary::<i32>().iter()),
        DataType::LargeBinary => texts(column.as_binary::<i64>().iter()),
        DataType::BinaryView => texts(column.as_binary_view().iter()),
        DataType::List(_) => Arc::new(with_texts_in(column.as_list::<i32>())),
        DataType::LargeList(_) => Arc::new(with_texts_in(column.as_list::<i64>())),
        DataType::FixedSizeList(field, size) => {
            let list = column.as_fixed_size_list();
            let values = with_texts(list.values());
            let list = FixedSizeListArray::try_new_with_length(
                of_type(field, &values),
                *size,
                values,
                list.nulls().cloned(),
                list.len(),
            );
            Arc::new(list.expect("as many values as before"))
        }
        DataType::Map(field, ordered) => {
            let map = column.as_map();
            let entries = with_texts_of(map.entries());
            let of_entries = Arc::new(field.as_ref().clone().with_data_type(entries.data_type().clone()));
            Arc::new(MapArray::new(of_entries, map.offsets().clone(), entries, map.nulls().cloned(), *ordered))
        }
        DataType::Struct(fields) if !fields.is_empty() => Arc::new(with_texts_of(column.as_struct())),
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            dictionary.with_values(with_texts(dictionary.values()))
        }
        _ => column.clone(),
    }
}

/// A list of texts where it is one of bytes.
fn with_texts_in<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> GenericListArray<O> {
    let (field, offsets, values, nulls) = list.clone().into_parts();
    let values = with_texts(&values);
    GenericListArray::new(of_type(&field, &values), offsets, values, nulls)
}

/// Objects with texts where they have bytes.
fn with_texts_of(objects: &StructArray) -> StructArray {
    let (fields, columns, nulls) = objects.clone().into_parts();
    let columns: Vec<ArrayRef> = columns.iter().map(with_texts).collect();
    let fields = fields.iter().zip(&columns).map(|(field, column)| of_type(field, column));
    StructArray::new(fields.collect(), columns, nulls)
}

/// A field as it is, for these values.
fn of_type(field: &FieldRef, values: &ArrayRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(values.data_type().clone()))
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use arrow_json::writer::{LineDelimited, WriterBuilder};
    use serde_json::Value;

    use super::*;

    #[test]
    fn bytes_are_texts_wherever_they_are() {
        use arrow_array::builder::{BinaryBuilder, BinaryDictionaryBuilder, FixedSizeListBuilder, MapBuilder};
        use arrow_array::builder::{LargeBinaryBuilder, LargeListBuilder, ListBuilder, StringBuilder};
        use arrow_array::types::Int32Type;

        let binary = |texts: &[&str]| {
            let mut builder = BinaryBuilder::new();
            texts.iter().for_each(|text| builder.append_value(text));
            builder
        };
        let mut list = ListBuilder::new(binary(&["one", "two"]));
        list.append(true);
        let mut large = LargeListBuilder::new(LargeBinaryBuilder::new());
        large.values().append_value([b'a', 0xff]);
        large.append(true);
        let mut fixed = FixedSizeListBuilder::new(binary(&["one", "two"]), 2);
        fixed.append(true);
        let mut map = MapBuilder::new(None, StringBuilder::new(), BinaryBuilder::new());
        map.keys().append_value("k");
        map.values().append_value("one");
        map.append(true).unwrap();
        let mut dictionary = BinaryDictionaryBuilder::<Int32Type>::new();
        dictionary.append_value("one");
        let inner: ArrayRef = Arc::new(large.finish_cloned());
        let objects = StructArray::try_from(vec![("inner", inner)]).unwrap();
        let columns: [(&str, ArrayRef); 6] = [
            ("list", Arc::new(list.finish())),
            ("large", Arc::new(large.finish())),
            ("fixed", Arc::new(fixed.finish())),
            ("map", Arc::new(map.finish())),
            ("dictionary", Arc::new(dictionary.finish())),
            ("objects", Arc::new(objects)),
        ];
        let columns = columns.iter().map(|(name, column)| (*name, with_texts(column), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut writer = WriterBuilder::new().build::<_, LineDelimited>(Vec::new());
        writer.write(&batch).unwrap();
        let line: Value = serde_json::from_slice(&writer.into_inner()).unwrap();
        let expected = serde_json::json!({
            "list": ["one", "two"], "large": ["a\u{fffd}"], "fixed": ["one", "two"], "map": {"k": "one"},
            "dictionary": "one", "objects": {"inner": ["a\u{fffd}"]},
        });
        assert_eq!(line, expected);
    }
}
