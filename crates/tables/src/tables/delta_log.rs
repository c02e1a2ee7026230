//! A table as Delta Lake knows it: a log beside its files, which says for each commit which files
//! were added and removed.
//!
//! ```text
//! STORE/clusters/
//!   week=2024-01-08/nigh-00001-00000.parquet    the files, as they are
//!   _delta_log/00000000000000000000.json        what the table is, and its first files
//!   _delta_log/00000000000000000001.json        the files of the next commit
//! ```
//!
//! Each file of the log is one version of the table, an *action* a line, in JSON: `commitInfo`,
//! then `protocol` and `metaData` in the first version and where they change, then `remove` and
//! `add` for files. Readers of the lowest protocol (reader 1, writer 2) can read it. The log has no
//! statistics and no checkpoints. The source is the protocol of Delta Lake ("Delta Transaction Log
//! Protocol", sections "Delta Table Specification" and "Actions").
//!
//! It is written here and not by `delta_kernel`, the crate for it that shares our arrow: that one
//! brings some sixty crates with it, a second TLS among them, and its log is the same lines of
//! JSON.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::columns::TableSpec;
use super::columns::values::ValueType;

/// The folder of the log, in the folder of the table.
pub const LOG_FOLDER: &str = "_delta_log";
/// The program that writes the log, in `commitInfo`.
const ENGINE: &str = concat!("nigh/", env!("CARGO_PKG_VERSION"));

/// A file of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataFile {
    /// Its path in the folder of the table, with `/` between names:
    /// `week=2024-01-08/nigh-00001-00000.parquet`.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// The state of a table after the last version of its log.
#[derive(Clone, Debug, Default)]
pub struct DeltaLog {
    /// The number of versions.
    versions: u64,
    /// Whether nigh made the first of them.
    is_ours: bool,
    /// The files of the table.
    files: BTreeSet<String>,
    /// The id and the schema of the table, from the last `metaData`.
    table: Option<(String, String)>,
}

impl DeltaLog {
    /// Reads a log: the versions by the names of their files, in any order. Other files of the
    /// folder may be among them.
    ///
    /// # Errors
    /// If a version is missing or is not JSON; the message begins with its name.
    pub fn read(files: &BTreeMap<String, Vec<u8>>) -> Result<DeltaLog> {
        let mut log = DeltaLog::default();
        for (name, text) in files.iter().filter(|(name, _)| version_of(name).is_some()) {
            ensure!(version_of(name) == Some(log.versions), "{}: this version is missing", file_name(log.versions));
            for line in text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
                let action: Value = serde_json::from_slice(line).with_context(|| format!("{name}: not JSON"))?;
                log.apply(&action);
            }
            log.versions += 1;
        }
        Ok(log)
    }

    fn apply(&mut self, action: &Value) {
        let text = |action: &Value, key: &str| action[key].as_str().unwrap_or_default().to_owned();
        if self.versions == 0 {
            self.is_ours |=
                action["commitInfo"]["engineInfo"].as_str().is_some_and(|engine| engine.starts_with("nigh/"));
        }
        if let Some(table) = action.get("metaData") {
            self.table = Some((text(table, "id"), text(table, "schemaString")));
        }
        if let Some(add) = action.get("add") {
            self.files.insert(text(add, "path"));
        }
        if let Some(remove) = action.get("remove") {
            self.files.remove(&text(remove, "path"));
        }
    }

    /// Whether the log was begun by another program.
    pub fn is_foreign(&self) -> bool {
        self.versions > 0 && !self.is_ours
    }

    /// The version of the table that has exactly these files: its file's name and text; `None` if
    /// the last version has them.
    ///
    /// `is_by_week` says that the folders of the files are named by the week, which is then a
    /// column of the table. `seed` makes the id of a new table, and `now` is the time in
    /// milliseconds since 1970.
    pub fn next(
        &self,
        table: &TableSpec,
        is_by_week: bool,
        files: &[DataFile],
        seed: &str,
        now: i64,
    ) -> Option<(String, Vec<u8>)> {
        let partition = is_by_week.then_some("week");
        let schema = schema(table, partition).to_string();
        let mut actions = Vec::new();
        if self.versions == 0 {
            actions.push(json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } }));
        }
        if self.table.as_ref().is_none_or(|(_, old)| *old != schema) {
            let id =
                self.table.as_ref().map_or_else(|| uuid(&format!("{} {seed} {now}", table.name)), |(id, _)| id.clone());
            actions.push(json!({ "metaData": {
                "id": id, "name": table.name, "description": table.description,
                "format": { "provider": "parquet", "options": {} },
                "schemaString": schema, "partitionColumns": partition.as_slice(), "configuration": {}, "createdTime": now,
            }}));
        }
        let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let removed = self.files.iter().filter(|path| !paths.contains(path.as_str()));
        actions.extend(
            removed.map(|path| json!({ "remove": { "path": path, "deletionTimestamp": now, "dataChange": true } })),
        );
        let added = files.iter().filter(|file| !self.files.contains(&file.path));
        actions.extend(added.map(|file| {
            let week = file.path.strip_prefix("week=").and_then(|path| path.split('/').next());
            let values = week.filter(|_| is_by_week).map_or(json!({}), |week| json!({ "week": week }));
            json!({ "add": {
                "path": file.path, "partitionValues": values, "size": file.bytes, "modificationTime": now, "dataChange": true
            }})
        }));
        if actions.is_empty() {
            return None;
        }
        let operation = if self.versions == 0 { "CREATE TABLE AS SELECT" } else { "WRITE" };
        let head = json!({ "commitInfo": {
            "timestamp": now, "operation": operation, "operationParameters": {}, "engineInfo": ENGINE
        }});
        let lines = std::iter::once(head).chain(actions).map(|action| format!("{action}\n"));
        Some((file_name(self.versions), lines.collect::<String>().into_bytes()))
    }
}

/// The name of the file of a version.
fn file_name(version: u64) -> String {
    format!("{version:020}.json")
}

/// The version that a file of this name has; `None` for other files.
fn version_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json").filter(|digits| digits.len() == 20)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The schema of a table as Delta has it, with the column of its partitions.
fn schema(table: &TableSpec, partition: Option<&str>) -> Value {
    let field = |name: &str, kind: &str, nullable: bool, comment: &str| {
        let metadata = if comment.is_empty() { json!({}) } else { json!({ "comment": comment }) };
        json!({ "name": name, "type": kind, "nullable": nullable, "metadata": metadata })
    };
    let columns = table.columns.iter();
    let mut fields: Vec<Value> = columns
        .map(|column| field(column.name, delta_type(column.values), column.nullable, column.description))
        .collect();
    fields.extend(partition.map(|name| field(name, "date", true, "the week of the row")));
    json!({ "type": "struct", "fields": fields })
}

/// The name of a type in Delta.
fn delta_type(values: ValueType) -> &'static str {
    match values {
        ValueType::Boolean => "boolean",
        ValueType::Int => "integer",
        ValueType::Long => "long",
        ValueType::Float => "float",
        ValueType::Double => "double",
        ValueType::Text => "string",
        ValueType::Bytes | ValueType::FixedBytes(_) => "binary",
        ValueType::Date => "date",
        ValueType::Timestamp => "timestamp",
    }
}

/// A UUID (version 8, of RFC 9562: bits of our own) made from a text.
fn uuid(text: &str) -> String {
    let bits = xxh3_128(text.as_bytes());
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 8 << 76 | 2 << 62;
    let digits = format!("{bits:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::WEEK_TABLES;

    fn file(path: &str) -> DataFile {
        DataFile { path: path.into(), bytes: 9 }
    }

    fn lines(text: &[u8]) -> Vec<Value> {
        text.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    #[test]
    fn a_log_follows_the_files_of_a_table() {
        let table = WEEK_TABLES[1].spec;
        let [first, second] =
            ["week=2024-01-08/nigh-00001-00000.parquet", "week=2024-01-15/nigh-00002-00000.parquet"].map(file);
        let mut files = BTreeMap::from([("00000000000000000000.crc".to_owned(), b"no version".to_vec())]);
        let empty = DeltaLog::read(&files).unwrap();
        assert!(!empty.is_foreign());
        let (name, text) = empty.next(table, true, std::slice::from_ref(&first), "seed", 1_700_000_000_000).unwrap();
        assert_eq!(name, "00000000000000000000.json");
        let actions = lines(&text);
        assert_eq!(actions.len(), 4);
        assert_eq!(actions[1]["protocol"], json!({ "minReaderVersion": 1, "minWriterVersion": 2 }));
        assert_eq!(actions[2]["metaData"]["partitionColumns"], json!(["week"]));
        assert_eq!(actions[3]["add"]["partitionValues"], json!({ "week": "2024-01-08" }));
        files.insert(name, text);
        let log = DeltaLog::read(&files).unwrap();
        assert!(log.next(table, true, std::slice::from_ref(&first), "seed", 1).is_none(), "nothing changed");
        let (name, text) = log.next(table, true, std::slice::from_ref(&second), "seed", 1).unwrap();
        assert_eq!(name, "00000000000000000001.json");
        let actions = lines(&text);
        assert_eq!(actions.len(), 3, "the table is the same: {actions:?}");
        assert_eq!(
            (&actions[1]["remove"]["path"], &actions[2]["add"]["path"]),
            (&json!(first.path), &json!(second.path))
        );
        files.insert(name, text);
        assert_eq!(DeltaLog::read(&files).unwrap().files, BTreeSet::from([second.path]));
    }

    #[test]
    fn a_changed_schema_is_written_with_the_same_id() {
        let old = WEEK_TABLES[1].spec;
        let new = TableSpec { columns: &old.columns[1..], ..*old };
        let (name, text) = DeltaLog::default().next(old, true, &[], "seed", 1).unwrap();
        let log = DeltaLog::read(&BTreeMap::from([(name, text.clone())])).unwrap();
        let (_, next) = log.next(&new, true, &[], "other", 2).unwrap();
        let id =
            |text: &[u8]| lines(text).iter().find_map(|action| action["metaData"]["id"].as_str().map(str::to_owned));
        assert_eq!(id(&text), id(&next));
        assert_eq!(id(&text).unwrap().len(), 36);
    }

    #[test]
    fn logs_of_others_and_damaged_logs_are_known() {
        fn read(files: &[(u64, &str)]) -> Result<DeltaLog> {
            let files = files.iter().map(|(version, text)| (file_name(*version), text.as_bytes().to_vec()));
            DeltaLog::read(&files.collect())
        }
        let spark = r#"{"commitInfo":{"engineInfo":"Apache-Spark/3.5.0"}}"#;
        assert!(read(&[(0, spark)]).unwrap().is_foreign());
        let gap = format!("{:#}", read(&[(0, spark), (2, spark)]).unwrap_err());
        assert!(gap.contains("00001.json: this version is missing"), "{gap}");
        let cut = format!("{:#}", read(&[(0, "{\"add")]).unwrap_err());
        assert!(cut.contains("00000.json: not JSON"), "{cut}");
    }
}
