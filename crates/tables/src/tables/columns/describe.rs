//! What tables and columns mean, as every file says it: their descriptions as schema and key-values
//! of the Parquet file.
//!
//! | where | what | read by |
//! |---|---|---|
//! | key-values `nigh.table`, `nigh.description`, `nigh.version` | the table, and the version that wrote the file | `parquet_kv_metadata` of DuckDB, `schema.metadata` of pyarrow |
//! | key-values `nigh.column.NAME` | a column | `parquet_kv_metadata` of DuckDB |
//! | `description` of a field of the arrow schema | a column | `schema.field(NAME).metadata` of pyarrow |
//! | key-value `pandas` | numbers that can be null stay whole numbers | pandas |
//!
//! All key-values except those of columns stand in the arrow schema again, because pyarrow and
//! pandas look only there.
//!
//! The tables of docs/tables.md are made of the same descriptions; a test holds them equal.

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{Field, Schema};
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::file::metadata::KeyValue;

use super::values::ValueType;
use super::{ColumnSpec, TableSpec};

/// The key of the version of the program that wrote a file.
pub(crate) const VERSION: &str = "nigh.version";
/// How the keys of columns begin.
const COLUMN: &str = "nigh.column.";

/// The arrow schema of these columns, with the types of their values.
pub(crate) fn schema(columns: &[ColumnSpec], values: &[ArrayRef]) -> Schema {
    let field = |(column, values): (&ColumnSpec, &ArrayRef)| {
        let field = Field::new(column.name, values.data_type().clone(), column.nullable);
        if column.description.is_empty() {
            return field;
        }
        field.with_metadata(HashMap::from([("description".to_owned(), column.description.to_owned())]))
    };
    Schema::new(columns.iter().zip(values).map(field).collect::<Vec<_>>())
}

/// The key-values of a file of a table.
pub(crate) fn key_values(table: &TableSpec) -> Vec<KeyValue> {
    let mut pairs = vec![pair("nigh.table", table.name)];
    if !table.description.is_empty() {
        pairs.push(pair("nigh.description", table.description));
    }
    pairs.push(pair(VERSION, env!("CARGO_PKG_VERSION")));
    let described = table.columns.iter().filter(|column| !column.description.is_empty());
    pairs.extend(described.map(|column| pair(&format!("{COLUMN}{}", column.name), column.description)));
    pairs.extend(pandas(table.columns).map(|text| pair("pandas", &text)));
    pairs
}

/// Sets a key-value: in its place if the file has the key already, else after the others.
pub(crate) fn set(pairs: &mut Vec<KeyValue>, key: &str, value: &str) {
    match pairs.iter_mut().find(|pair| pair.key == key) {
        Some(old) => old.value = Some(value.to_owned()),
        None => pairs.push(pair(key, value)),
    }
}

/// The key-values of a file that its arrow schema has, too.
pub(crate) fn of_schema(pairs: &[KeyValue]) -> HashMap<String, String> {
    let of_file = pairs.iter().filter(|pair| !pair.key.starts_with(COLUMN) && pair.key != ARROW_SCHEMA_META_KEY);
    of_file.filter_map(|KeyValue { key, value }| Some((key.clone(), value.clone()?))).collect()
}

fn pair(key: &str, value: &str) -> KeyValue {
    KeyValue::new(key.to_owned(), value.to_owned())
}

/// What pandas must know of columns of whole numbers that can be null: their type there is `Int64`,
/// which has nulls. Without this, pandas reads them as floating-point numbers, and ids above 2^53
/// are no longer exact. Where some column is described, fastparquet wants to know of dates and
/// times, too.
fn pandas(columns: &[ColumnSpec]) -> Option<String> {
    let is_number = |column: &ColumnSpec| column.nullable && column.values == ValueType::Long;
    let described: Vec<serde_json::Value> = columns
        .iter()
        .filter_map(|column| {
            let (kind, stored, metadata) = match column.values {
                _ if is_number(column) => ("int64", "Int64", None),
                ValueType::Date => ("date", "datetime64[s]", None),
                ValueType::Timestamp => {
                    ("datetimetz", "datetime64[us]", Some(serde_json::json!({ "timezone": "UTC" })))
                }
                _ => return None,
            };
            let name = column.name;
            Some(serde_json::json!({
                "name": name, "field_name": name, "pandas_type": kind, "numpy_type": stored, "metadata": metadata
            }))
        })
        .collect();
    let text = || serde_json::json!({ "index_columns": [], "column_indexes": [], "columns": described }).to_string();
    columns.iter().any(is_number).then(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tables::studies::RESULTS;
    use crate::tables::{
        ClusterRow, DeletedRow, DocumentRow, FailedUrlRow, FailureRow, FoundLinkRow, RevisitRow, Row, UrlRow,
        tables_of_weeks,
    };

    /// The name of a type in DuckDB.
    fn duckdb_type(column: &ColumnSpec) -> String {
        let name = match column.values {
            ValueType::Boolean => "BOOLEAN",
            ValueType::Int => "INTEGER",
            ValueType::Long => "BIGINT",
            ValueType::Float => "FLOAT",
            ValueType::Double => "DOUBLE",
            ValueType::Text => "VARCHAR",
            ValueType::Date => "DATE",
            ValueType::Bytes | ValueType::FixedBytes(_) => "BLOB",
            ValueType::Timestamp => "TIMESTAMP WITH TIME ZONE",
        };
        format!("{name}{}", if column.nullable { ", null" } else { "" })
    }

    /// A table of docs/tables.md: what its rows are, and its columns.
    fn markdown(table: &TableSpec) -> String {
        let mut text = format!("{}\n\n| column | type | meaning |\n|---|---|---|\n", table.description);
        for column in table.columns {
            text += &format!("| `{}` | {} | {} |\n", column.name, duckdb_type(column), column.description);
        }
        text
    }

    /// Every table that a store keeps, with its folder.
    fn kept() -> impl Iterator<Item = (String, &'static TableSpec)> {
        let of_weeks = tables_of_weeks().map(|table| (table.spec.name.to_owned(), table.spec));
        let of_jobs = RESULTS.iter().flat_map(|results| {
            results.tables.iter().map(|table| (format!("{}/{}", results.folder, table.spec.name), table.spec))
        });
        of_weeks.chain(of_jobs)
    }

    /// docs/tables.md has each table between two comments.
    /// `NIGH_DOCS=write cargo test --package nigh-tables describe` writes them.
    #[test]
    fn the_documentation_has_the_descriptions_of_the_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
        let old = std::fs::read_to_string(&path).unwrap();
        let mut new = old.clone();
        for (name, table) in kept() {
            let [begin, end] = [format!("<!-- {name}: made from the code -->\n"), format!("<!-- end of {name} -->")];
            let from = new.find(&begin).unwrap_or_else(|| panic!("docs/tables.md has no line {begin}")) + begin.len();
            let to = from + new[from..].find(&end).unwrap_or_else(|| panic!("docs/tables.md has no line {end}"));
            new.replace_range(from..to, &format!("\n{}\n", markdown(table)));
        }
        if std::env::var_os("NIGH_DOCS").is_some_and(|value| value == "write") {
            std::fs::write(&path, new).unwrap();
        } else {
            assert!(
                old == new,
                "docs/tables.md differs from the code: NIGH_DOCS=write cargo test --package nigh-tables describe"
            );
        }
    }

    #[test]
    fn every_table_and_column_is_described() {
        let working = [FoundLinkRow::SPEC, FailureRow::SPEC, FailedUrlRow::SPEC, DeletedRow::SPEC, RevisitRow::SPEC];
        for table in kept().map(|(_, table)| table).chain(working) {
            assert!(!table.description.is_empty(), "{}", table.name);
            for column in table.columns {
                assert!(!column.description.is_empty(), "{}.{}", table.name, column.name);
            }
        }
    }

    #[test]
    fn only_numbers_that_can_be_null_are_described_to_pandas() {
        let keys = |table: &TableSpec| {
            key_values(table).into_iter().find(|pair| pair.key == "pandas").and_then(|pair| pair.value)
        };
        assert_eq!(keys(UrlRow::SPEC), None);
        let text = keys(ClusterRow::SPEC).unwrap();
        assert!(text.contains(r#""name":"cluster_id""#) && !text.contains("similar_root"), "{text}");
        let text = keys(DocumentRow::SPEC).unwrap();
        assert!(text.contains(r#""name":"fetched""#) && text.contains(r#"{"timezone":"UTC"}"#), "{text}");
    }
}
