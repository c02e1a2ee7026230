//! What tables and columns mean, as every file says it: their descriptions as schema and key-values of the Parquet file.
//!
//! | where | what | read by |
//! |---|---|---|
//! | key-values `nigh.table`, `nigh.description`, `nigh.version` | the table, and the version that wrote the file | `parquet_kv_metadata` of DuckDB, `schema.metadata` of pyarrow |
//! | key-values `nigh.column.NAME` | a column | `parquet_kv_metadata` of DuckDB |
//! | `description` of a field of the arrow schema | a column | `schema.field(NAME).metadata` of pyarrow |
//! | key-value `pandas` | numbers that can be null stay whole numbers | pandas |
//!
//! All key-values except those of columns stand in the arrow schema again, because pyarrow and pandas look only there.
//!
//! The tables of docs/tables.md are made of the same descriptions; a test holds them equal.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::file::metadata::KeyValue;

use super::columns::{Column, Table};

/// The key of the version of the program that wrote a file.
pub(super) const VERSION: &str = "nigh.version";
/// How the keys of columns begin.
const COLUMN: &str = "nigh.column.";

/// What a table and its columns mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The name of the table.
    pub name: &'static str,
    /// What its rows are.
    pub text: &'static str,
    /// Its columns, in order.
    pub columns: Vec<ColumnDescription>,
}

/// What a column means.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDescription {
    /// Its name.
    pub name: &'static str,
    /// What its values mean.
    pub text: &'static str,
    /// The type of its values.
    pub values: DataType,
    /// Whether it can be null.
    pub nullable: bool,
}

/// The description of a table.
pub(super) fn description<T: Table>() -> Description {
    let column = |column: Column| ColumnDescription {
        name: column.name,
        text: column.description,
        values: column.values.data_type().clone(),
        nullable: column.nullable,
    };
    Description { name: T::NAME, text: T::DESCRIPTION, columns: T::columns(&[]).into_iter().map(column).collect() }
}

/// The arrow schema of these columns.
pub(super) fn schema(columns: &[Column]) -> Schema {
    let field = |column: &Column| {
        let field = Field::new(column.name, column.values.data_type().clone(), column.nullable);
        if column.description.is_empty() {
            return field;
        }
        field.with_metadata(HashMap::from([("description".to_owned(), column.description.to_owned())]))
    };
    Schema::new(columns.iter().map(field).collect::<Vec<_>>())
}

/// The key-values of a file of a table.
pub(super) fn key_values<T: Table>() -> Vec<KeyValue> {
    let columns = T::columns(&[]);
    let mut pairs = vec![pair("nigh.table", T::NAME)];
    if !T::DESCRIPTION.is_empty() {
        pairs.push(pair("nigh.description", T::DESCRIPTION));
    }
    pairs.push(pair(VERSION, env!("CARGO_PKG_VERSION")));
    let described = columns.iter().filter(|column| !column.description.is_empty());
    pairs.extend(described.map(|column| pair(&format!("{COLUMN}{}", column.name), column.description)));
    pairs.extend(pandas(&columns).map(|text| pair("pandas", &text)));
    pairs
}

/// Sets a key-value: in its place if the file has the key already, else after the others.
pub(super) fn set(pairs: &mut Vec<KeyValue>, key: &str, value: &str) {
    match pairs.iter_mut().find(|pair| pair.key == key) {
        Some(old) => old.value = Some(value.to_owned()),
        None => pairs.push(pair(key, value)),
    }
}

/// The key-values of a file that its arrow schema has, too.
pub(super) fn of_schema(pairs: &[KeyValue]) -> HashMap<String, String> {
    let of_file = pairs.iter().filter(|pair| !pair.key.starts_with(COLUMN) && pair.key != ARROW_SCHEMA_META_KEY);
    of_file.filter_map(|KeyValue { key, value }| Some((key.clone(), value.clone()?))).collect()
}

fn pair(key: &str, value: &str) -> KeyValue {
    KeyValue::new(key.to_owned(), value.to_owned())
}

/// What pandas must know of columns of whole numbers that can be null: their type there is `Int64`, which has nulls. Without
/// this, pandas reads them as floating-point numbers, and ids above 2^53 are no longer exact. Where some column is described,
/// fastparquet wants to know of dates and times, too.
fn pandas(columns: &[Column]) -> Option<String> {
    let is_number = |column: &Column| column.nullable && *column.values.data_type() == DataType::Int64;
    let described: Vec<serde_json::Value> = columns
        .iter()
        .filter_map(|column| {
            let (kind, stored, metadata) = match column.values.data_type() {
                _ if is_number(column) => ("int64", "Int64", None),
                DataType::Date32 => ("date", "datetime64[s]", None),
                DataType::Timestamp(_, zone) => (
                    "datetimetz",
                    "datetime64[us]",
                    zone.as_ref().map(|zone| serde_json::json!({ "timezone": &**zone })),
                ),
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

    use arrow_schema::TimeUnit;

    use super::*;
    use crate::tables::{
        AccuracyRow, AmountRow, AvoidRow, BirthRow, BoilerplateRow, BornPageRow, CandidateRow, ChangeClassRow,
        ChangeRow, ChunkRow, ClusterRow, ClusterSizeRow, CollectionClusterRow, CollectionPageRow, CollectionReplicaRow,
        CollectionRow, CollectionSavingRow, CollectionSizeRow, ComparedRow, ComponentRow, CoverageRow, DeathRow,
        DeletedRow, DocumentRow, EstimateRow, EvidenceRow, FailedUrlRow, FailureRow, FamilyChunkRow, FamilyRow,
        FeatureRow, FoundLinkRow, GrowthRow, HostChangeRow, HostFailureRow, HostOverlapRow, JudgedRow, LargestRow,
        LifetimeRow, LinkRow, MirrorChangeRow, MirrorClassRow, MirrorGroupRow, MirrorLagRow, MirrorPairRow,
        MirrorSizeRow, MirrorSpanRow, MirroredRow, MissingRow, MostRow, NearPageRow, OverlapRow, ParagraphPageRow,
        ParagraphTurnoverRow, ParentRow, PathTestRow, ProbeRow, RankingRow, ReasonRow, RedirectRow, RegionRow,
        RejectRow, ReplicaRow, RetentionRow, SamplerErrorRow, SamplerRow, SavingRow, SeedRow, SizeRow, SplitOffRow,
        SummaryRow, UrlDomainRow, UrlGroupRow, UrlLevelRow, UrlRow,
    };

    /// The name of a type in DuckDB.
    fn duckdb_type(column: &Column) -> String {
        let name = match column.values.data_type() {
            DataType::Boolean => "BOOLEAN",
            DataType::Int32 => "INTEGER",
            DataType::Int64 => "BIGINT",
            DataType::Float32 => "FLOAT",
            DataType::Float64 => "DOUBLE",
            DataType::Utf8 => "VARCHAR",
            DataType::Date32 => "DATE",
            DataType::Binary | DataType::FixedSizeBinary(_) => "BLOB",
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "TIMESTAMP WITH TIME ZONE",
            other => panic!("docs/tables.md has no name for the type {other}"),
        };
        format!("{name}{}", if column.nullable { ", null" } else { "" })
    }

    /// A table of docs/tables.md: what its rows are, and its columns.
    fn markdown<T: Table>() -> (String, String) {
        markdown_in::<T>("")
    }

    /// The same for a table in a folder of results.
    fn markdown_in<T: Table>(folder: &str) -> (String, String) {
        let mut text = format!("{}\n\n| column | type | meaning |\n|---|---|---|\n", T::DESCRIPTION);
        for column in T::columns(&[]) {
            text += &format!("| `{}` | {} | {} |\n", column.name, duckdb_type(&column), column.description);
        }
        (format!("{folder}{}", T::NAME), text)
    }

    /// Every table that a store keeps.
    fn kept() -> [(String, String); 71] {
        [
            markdown::<ClusterRow>(),
            markdown::<DocumentRow>(),
            markdown::<FeatureRow>(),
            markdown::<EvidenceRow>(),
            markdown::<SplitOffRow>(),
            markdown::<AccuracyRow>(),
            markdown::<ChunkRow>(),
            markdown::<LinkRow>(),
            markdown::<LargestRow>(),
            markdown::<SizeRow>(),
            markdown::<SummaryRow>(),
            markdown::<ChangeRow>(),
            markdown::<MissingRow>(),
            markdown::<RedirectRow>(),
            markdown::<HostFailureRow>(),
            markdown::<RejectRow>(),
            markdown::<UrlRow>(),
            markdown_in::<RetentionRow>("evolution/"),
            markdown_in::<HostChangeRow>("evolution/"),
            markdown_in::<AmountRow>("evolution/"),
            markdown_in::<ChangeClassRow>("evolution/"),
            markdown_in::<BirthRow>("evolution/"),
            markdown_in::<DeathRow>("evolution/"),
            markdown_in::<MirrorPairRow>("mirrors/"),
            markdown_in::<MirrorClassRow>("mirrors/"),
            markdown_in::<MirrorGroupRow>("mirrors/"),
            markdown_in::<MirroredRow>("mirrors/"),
            markdown_in::<MirrorSizeRow>("mirrors/"),
            markdown_in::<MirrorChangeRow>("mirrors/"),
            markdown_in::<MirrorSpanRow>("mirrors/"),
            markdown_in::<MirrorLagRow>("mirrors/"),
            markdown_in::<CandidateRow>("mirrors-by-url/"),
            markdown_in::<PathTestRow>("mirrors-by-url/"),
            markdown_in::<UrlLevelRow>("mirrors-by-url/"),
            markdown_in::<RankingRow>("mirrors-by-url/"),
            markdown_in::<UrlDomainRow>("mirrors-by-url/"),
            markdown_in::<UrlGroupRow>("mirrors-by-url/"),
            markdown_in::<ProbeRow>("mirrors-by-url/"),
            markdown_in::<ComparedRow>("mirrors-by-url/"),
            markdown_in::<CollectionClusterRow>("collections/"),
            markdown_in::<CollectionRow>("collections/"),
            markdown_in::<CollectionPageRow>("collections/"),
            markdown_in::<CollectionReplicaRow>("collections/"),
            markdown_in::<CollectionSizeRow>("collections/"),
            markdown_in::<AvoidRow>("collections/"),
            markdown_in::<JudgedRow>("collections/"),
            markdown_in::<CollectionSavingRow>("collections/"),
            markdown_in::<OverlapRow>("overlap/"),
            markdown_in::<FamilyRow>("overlap/"),
            markdown_in::<FamilyChunkRow>("overlap/"),
            markdown_in::<ComponentRow>("overlap/"),
            markdown_in::<HostOverlapRow>("overlap/"),
            markdown_in::<ReplicaRow>("overlap/"),
            markdown_in::<SavingRow>("overlap/"),
            markdown_in::<MostRow>("overlap/"),
            markdown_in::<ReasonRow>("overlap/"),
            markdown_in::<RegionRow>("paragraphs/"),
            markdown_in::<CoverageRow>("paragraphs/"),
            markdown_in::<ClusterSizeRow>("paragraphs/"),
            markdown_in::<GrowthRow>("paragraphs/"),
            markdown_in::<EstimateRow>("paragraphs/"),
            markdown_in::<ParagraphPageRow>("paragraphs/"),
            markdown_in::<NearPageRow>("paragraphs/"),
            markdown_in::<SeedRow>("paragraphs/"),
            markdown_in::<BoilerplateRow>("paragraphs/"),
            markdown_in::<BornPageRow>("paragraphs/"),
            markdown_in::<ParentRow>("paragraphs/"),
            markdown_in::<LifetimeRow>("paragraphs/"),
            markdown_in::<ParagraphTurnoverRow>("paragraphs/"),
            markdown_in::<SamplerRow>("samplers/"),
            markdown_in::<SamplerErrorRow>("samplers/"),
        ]
    }

    /// docs/tables.md has each table between two comments. `NIGH_DOCS=write cargo test --lib describe` writes them.
    #[test]
    fn the_documentation_has_the_descriptions_of_the_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tables.md");
        let old = std::fs::read_to_string(&path).unwrap();
        let mut new = old.clone();
        for (name, columns) in kept() {
            let [begin, end] = [format!("<!-- {name}: made from the code -->\n"), format!("<!-- end of {name} -->")];
            let from = new.find(&begin).unwrap_or_else(|| panic!("docs/tables.md has no line {begin}")) + begin.len();
            let to = from + new[from..].find(&end).unwrap_or_else(|| panic!("docs/tables.md has no line {end}"));
            new.replace_range(from..to, &format!("\n{columns}\n"));
        }
        if std::env::var_os("NIGH_DOCS").is_some_and(|value| value == "write") {
            std::fs::write(&path, new).unwrap();
        } else {
            assert!(old == new, "docs/tables.md differs from the code: NIGH_DOCS=write cargo test --lib describe");
        }
    }

    fn undescribed<T: Table>() -> Vec<&'static str> {
        let table = T::DESCRIPTION.is_empty().then_some(T::NAME);
        let columns = T::columns(&[]).into_iter().filter(|column| column.description.is_empty());
        table.into_iter().chain(columns.map(|column| column.name)).collect()
    }

    #[test]
    fn every_table_and_column_is_described() {
        assert!(kept().iter().all(|(_, text)| !text.contains("|  |")));
        let working = [
            undescribed::<FoundLinkRow>(),
            undescribed::<FailureRow>(),
            undescribed::<FailedUrlRow>(),
            undescribed::<DeletedRow>(),
        ];
        assert_eq!(working.concat(), [""; 0]);
    }

    #[test]
    fn only_numbers_that_can_be_null_are_described_to_pandas() {
        let keys =
            |pairs: Vec<KeyValue>| pairs.into_iter().find(|pair| pair.key == "pandas").and_then(|pair| pair.value);
        assert_eq!(keys(key_values::<UrlRow>()), None);
        let text = keys(key_values::<ClusterRow>()).unwrap();
        assert!(text.contains(r#""name":"cluster_id""#) && !text.contains("similar_root"), "{text}");
        let text = keys(key_values::<DocumentRow>()).unwrap();
        assert!(text.contains(r#""name":"fetched""#) && text.contains(r#"{"timezone":"UTC"}"#), "{text}");
    }
}
