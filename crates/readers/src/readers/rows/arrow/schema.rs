//! The columns of the job in a schema, found by their names, and the types that are read.

use std::sync::Arc;

use anyhow::bail;
use arrow_schema::{DataType, FieldRef, Schema};

use crate::readers::rows::page_row::{PageFields, check_once};
use crate::reading::Columns;

/// The names that lead to a column: of a field, and of fields within structures.
pub type ColumnPath = Vec<String>;

/// Finds the columns of the job in a schema.
pub fn columns(schema: &Schema, name: &str, columns: &Columns) -> anyhow::Result<PageFields<ColumnPath>> {
    if columns.text.is_empty() && columns.html.is_none() {
        bail!("cannot read pages from {name}: set `text` or `html` in [cluster.read.columns]");
    }
    let find = |path: &String| {
        let Some((found, kind)) = find_column(schema, path) else {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            bail!(
                "{name} has no column `{path}` (its columns: {}); set the names in [cluster.read.columns], or by --id, --url and --text",
                names.join(", ")
            );
        };
        check_path(schema, &found, name)?;
        if !is_read(kind) {
            bail!("the column `{path}` of {name} is {kind}: name a column with one value in each row");
        }
        Ok(found)
    };
    let Columns { id, url, html, ip, date, values, .. } = columns.clone();
    let url = url.or_else(|| find_column(schema, columns.url()).map(|_| columns.url().to_owned()));
    let text = columns.texts_of_file(|name| find_column(schema, name).is_some());
    let columns = PageFields { id, url, text, html, ip, date, values: Vec::new() }.map(find)?;
    let find_value = |path: String| match find_column(schema, &path) {
        Some((_, kind)) if !is_ordered(kind) => bail!(
            "the column `{path}` of {name} is {kind}, whose values are not kept: name a column of numbers, texts, times or booleans"
        ),
        Some((found, _)) => check_path(schema, &found, name).map(|()| Some(found)),
        None => Ok(None),
    };
    Ok(PageFields { values: values.into_iter().map(find_value).collect::<anyhow::Result<_>>()?, ..columns })
}

/// The names that lead to the column of a path such as `meta.url`, and its type.
fn find_column<'a>(schema: &'a Schema, path: &str) -> Option<(ColumnPath, &'a DataType)> {
    if let Ok(field) = schema.field_with_name(path) {
        return Some((vec![path.to_owned()], field.data_type()));
    }
    let names: ColumnPath = path.split('.').map(str::to_owned).collect();
    let mut kind = schema.field_with_name(&names[0]).ok()?.data_type();
    for name in &names[1..] {
        let DataType::Struct(fields) = kind else { return None };
        kind = fields.find(name)?.1.data_type();
    }
    Some((names, kind))
}

/// Checks that these names lead to one column only.
fn check_path(schema: &Schema, path: &[String], file: &str) -> anyhow::Result<()> {
    let mut fields = schema.fields();
    for name in path {
        check_once(file, name, fields.iter().filter(|field| field.name() == name).count())?;
        let Some(DataType::Struct(inner)) = fields.find(name).map(|(_, field)| field.data_type()) else { break };
        fields = inner;
    }
    Ok(())
}

/// Whether a column of this type has one value in each row, which takes bytes of the file.
fn is_read(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_bytes(values),
        kind => {
            is_bytes(kind)
                || kind.is_integer()
                || kind.is_temporal()
                || kind.is_decimal()
                || matches!(kind, DataType::Float32 | DataType::Float64)
        }
    }
}

/// Whether a column of this type has values that are [texts](crate::readers::ColumnValue).
fn is_ordered(kind: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Dictionary, Float16, Timestamp};
    match kind {
        Date32 | Date64 | Timestamp(..) | Boolean | Float16 => true,
        Dictionary(_, values) => is_ordered(values),
        kind => is_read(kind) && !kind.is_temporal(),
    }
}

fn is_bytes(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// A field with bytes where it has texts, which are stored in the same way: the decoder then does
/// not refuse a batch for a text that is not UTF-8.
pub fn with_bytes(field: &FieldRef) -> FieldRef {
    use DataType::{
        Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeList, LargeUtf8, List, Map, Struct, Utf8,
        Utf8View,
    };
    fn bytes(kind: &DataType) -> DataType {
        match kind {
            Utf8 => Binary,
            LargeUtf8 => LargeBinary,
            Utf8View => BinaryView,
            Dictionary(keys, values) => Dictionary(keys.clone(), Box::new(bytes(values))),
            Struct(fields) => Struct(fields.iter().map(with_bytes).collect()),
            List(field) => List(with_bytes(field)),
            LargeList(field) => LargeList(with_bytes(field)),
            FixedSizeList(field, length) => FixedSizeList(with_bytes(field), *length),
            Map(field, is_sorted) => Map(with_bytes(field), *is_sorted),
            kind => kind.clone(),
        }
    }
    Arc::new(field.as_ref().clone().with_data_type(bytes(field.data_type())))
}

/// The type of the column to which some names lead.
pub fn type_of<'a>(schema: &'a Schema, path: &ColumnPath) -> Option<&'a DataType> {
    let (first, inner) = path.split_first()?;
    inner.iter().try_fold(schema.field_with_name(first).ok()?.data_type(), |kind, name| match kind {
        DataType::Struct(fields) => Some(fields.find(name)?.1.data_type()),
        _ => None,
    })
}

/// Whether values of this type are texts.
pub fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        kind => matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}
