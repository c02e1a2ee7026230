//! Columns that are written under other names.
//!
//! Only columns of the records themselves have other names, not those within objects. All are
//! renamed at once, so two can change their names with each other. Lines of JSON are copied, except
//! for the names; `csv` does the same for CSV.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Result, bail};
use arrow_schema::{Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::readers::{Input, check_once};

/// The key of the metadata in which the `datasets` library of Hugging Face says what columns mean.
pub(in crate::export) const HUGGING_FACE: &str = "huggingface";
/// The key of the metadata in which pandas says which columns are its index.
const PANDAS: &str = "pandas";
/// The key of the metadata in which GeoParquet describes geometries.
const GEO: &str = "geo";

/// A column, and the name that it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewName {
    /// Its name in the inputs, or the name of a field that records get.
    pub old: String,
    /// Its name in what is written.
    pub new: String,
}

impl FromStr for NewName {
    type Err = String;

    fn from_str(text: &str) -> Result<NewName, String> {
        match text.split_once('=') {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => {
                Ok(NewName { old: old.to_owned(), new: new.to_owned() })
            }
            _ => Err(format!("`{text}` is not OLD=NEW, the name of a column and the name that it gets")),
        }
    }
}

/// The columns that are written under other names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NewNames(Vec<NewName>);

impl NewNames {
    /// These columns.
    ///
    /// # Errors
    /// If one has two new names, or two get the same.
    pub fn new(names: Vec<NewName>) -> Result<NewNames, String> {
        for (number, NewName { old, new }) in names.iter().enumerate() {
            if names[..number].iter().any(|other| other.old == *old) {
                return Err(format!("the column `{old}` would have two new names: give it one"));
            }
            if names[..number].iter().any(|other| other.new == *new) {
                return Err(format!("two columns would have the name `{new}`: give each another one"));
            }
        }
        Ok(NewNames(names))
    }

    /// Whether all columns keep their names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The columns.
    pub fn iter(&self) -> impl Iterator<Item = &NewName> {
        self.0.iter()
    }

    /// The new name of a column, if it has one.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|of| of.old == name).map(|of| of.new.as_str())
    }

    /// The name that a column is written with.
    pub fn of<'a>(&'a self, name: &'a str) -> &'a str {
        self.get(name).unwrap_or(name)
    }

    /// Checks that no column gets the name of one that keeps its own. `place` is what has the
    /// columns, for the message.
    ///
    /// # Errors
    /// If one does.
    pub fn check<'a>(&self, mut names: impl Iterator<Item = &'a str>, place: &str) -> Result<()> {
        let taken = |name: &'a str| self.0.iter().find(|of| of.new == name && self.get(name).is_none());
        match names.find_map(taken) {
            None => Ok(()),
            Some(NewName { old, new }) => bail!(
                "{place} has a column `{new}`, and `{old}` would be called so: give `{old}` another name, or `{new}`, too"
            ),
        }
    }

    /// The columns of a file under their new names.
    ///
    /// # Errors
    /// As [`check`](NewNames::check); or if the file has two columns of one name.
    pub(in crate::export) fn schema(&self, schema: &SchemaRef, input: &Input) -> Result<SchemaRef> {
        check_distinct(schema.fields().iter().map(|field| field.name().as_str()), input)?;
        if self.is_empty() {
            return Ok(schema.clone());
        }
        self.check(schema.fields().iter().map(|field| field.name().as_str()), &input.name)?;
        Ok(Arc::new(self.arrow_schema(schema)))
    }

    /// The same, of columns that were checked.
    pub(in crate::export) fn arrow_schema(&self, schema: &Schema) -> Schema {
        let renamed = |field: &Arc<Field>| match self.get(field.name()) {
            Some(new) => Arc::new(field.as_ref().clone().with_name(new)),
            None => field.clone(),
        };
        let fields: Vec<_> = schema.fields().iter().map(renamed).collect();
        let mut metadata = schema.metadata().clone();
        for (key, value) in schema.metadata().iter() {
            if let Some(new) = self.metadata(key, value) {
                metadata.insert(key, new);
            }
        }
        Schema::new_with_metadata(fields, metadata)
    }

    /// A value of the metadata of a file with the new names, if programs look columns up in it by
    /// their names: Hugging Face their features, pandas its columns and its index, and GeoParquet
    /// its geometries.
    pub(in crate::export) fn metadata(&self, key: &str, value: &str) -> Option<String> {
        if self.is_empty() || !matches!(key, HUGGING_FACE | PANDAS | GEO) {
            return None;
        }
        let mut value: Value = serde_json::from_str(value).ok()?;
        let rename = |name: &mut Value| {
            if let Some(new) = name.as_str().and_then(|name| self.get(name)) {
                *name = Value::from(new);
            }
        };
        let rename_fields = |object: &mut Map<String, Value>| {
            let before = std::mem::take(object);
            *object = before.into_iter().map(|(name, field)| (self.of(&name).to_owned(), field)).collect();
        };
        match key {
            HUGGING_FACE => rename_fields(value.get_mut("info")?.get_mut("features")?.as_object_mut()?),
            GEO => {
                rename_fields(value.get_mut("columns")?.as_object_mut()?);
                rename(value.get_mut("primary_column")?);
            }
            _ => {
                value.get_mut("index_columns")?.as_array_mut()?.iter_mut().for_each(rename);
                for column in value.get_mut("columns")?.as_array_mut()? {
                    column.get_mut("name").into_iter().for_each(rename);
                    // Older versions do not write it.
                    column.get_mut("field_name").into_iter().for_each(rename);
                }
            }
        }
        Some(value.to_string())
    }

    /// Writes a line that is one object to `out`, with the new names. What is not an object stays
    /// as it is. `place` says where the line is.
    ///
    /// # Errors
    /// As [`check`](NewNames::check).
    pub(in crate::export) fn line(&self, line: &[u8], place: &dyn Fn() -> String, out: &mut Vec<u8>) -> Result<()> {
        let places = field_names(line);
        let name = |place: &Range<usize>| serde_json::from_slice::<Cow<'_, str>>(&line[place.clone()]).ok();
        let names: Vec<Option<Cow<'_, str>>> = places.iter().map(name).collect();
        if let Err(taken) = self.check(names.iter().flatten().map(AsRef::as_ref), "it") {
            bail!("{}: {taken}", place());
        }
        let mut at = 0;
        for (place, name) in places.iter().zip(&names) {
            if let Some(new) = name.as_deref().and_then(|name| self.get(name)) {
                out.extend_from_slice(&line[at..place.start]);
                serde_json::to_writer(&mut *out, new)?;
                at = place.end;
            }
        }
        out.extend_from_slice(&line[at..]);
        Ok(())
    }
}

/// Checks that an input has no two columns of one name: readers of what is written would differ in
/// which one they take.
///
/// # Errors
/// If it has; the message names them.
pub(in crate::export) fn check_distinct<'a>(names: impl Iterator<Item = &'a str>, input: &Input) -> Result<()> {
    let mut counts = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_insert(0) += 1);
    counts.into_iter().try_for_each(|(name, count)| check_once(&input.name, name, count))
}

/// The places of the names of an object's own fields in its text, with their quotes; none of what
/// is not an object.
fn field_names(text: &[u8]) -> Vec<Range<usize>> {
    let (mut names, mut depth, mut at, mut is_name) = (Vec::new(), 0_u64, 0, false);
    let unmarked = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    if unmarked.trim_ascii_start().first() != Some(&b'{') {
        return names;
    }
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = string_end(text, at);
                if std::mem::take(&mut is_name) {
                    names.push(at..end);
                }
                at = end;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                is_name = depth == 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => is_name = depth == 1,
            _ => {}
        }
        at += 1;
    }
    names
}

/// The end of the string of JSON that begins at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        match text[at] {
            b'"' => return at + 1,
            // What stands after it is of the string.
            _ => at += 2,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn names(names: &[&str]) -> Result<NewNames, String> {
        NewNames::new(names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?)
    }

    fn line(new: &[&str], line: &str) -> Result<String, String> {
        let mut out = Vec::new();
        let written = names(new).unwrap().line(line.as_bytes(), &|| "x.jsonl, line 7".to_owned(), &mut out);
        written.map(|()| String::from_utf8(out).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_keep_all_but_the_names_of_their_own_fields() {
        let text = r#" { "a" : "a", "b":{"a":[1,{"a":2}]},"\u0063":"\"a\\","d":["a",","] } "#;
        let renamed = r#" { "x\"" : "a", "b":{"a":[1,{"a":2}]},"y":"\"a\\","e":["a",","] } "#;
        assert_eq!(line(&["a=x\"", "c=y", "d=e", "none=z"], text).as_deref(), Ok(renamed));
        assert_eq!(line(&["a=b", "b=a"], r#"{"a":1,"b":2}"#).as_deref(), Ok(r#"{"b":1,"a":2}"#));
        let taken = line(&["a=b"], r#"{"a":1,"b":2}"#).unwrap_err();
        let wanted = "it has a column `b`, and `a` would be called so: give `a` another name, or `b`, too";
        assert_eq!(taken, format!("x.jsonl, line 7: {wanted}"));
        // The name is taken in the file, though not by this line.
        assert_eq!(line(&["a=b"], r#"{"b":2}"#).unwrap_err(), taken);
        assert_eq!(line(&["a=b"], r#"{"a":1,"a":2}"#).as_deref(), Ok(r#"{"b":1,"b":2}"#));
        for text in ["", "{}", "[\"a\"]", " [1,\"a\"]", "\"a", "{\"b\":1}"] {
            assert_eq!(line(&["a=x"], text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn new_names_do_not_contradict_each_other() {
        assert_eq!(names(&["a=b", "a=c"]).unwrap_err(), "the column `a` would have two new names: give it one");
        assert_eq!(names(&["a=b", "c=b"]).unwrap_err(), "two columns would have the name `b`: give each another one");
        for text in ["a", "=b", "a=", ""] {
            assert!(names(&[text]).unwrap_err().contains("is not OLD=NEW"));
        }
        assert_eq!(names(&["a=b=c"]).unwrap().of("a"), "b=c");
    }

    #[test]
    fn metadata_that_names_columns_has_the_new_names() {
        let names = names(&["label=kind", "kind=label", "id=key"]).unwrap();
        let metadata = |key: &str, value: Value| -> Option<Value> {
            Some(serde_json::from_str(&names.metadata(key, &value.to_string())?).unwrap())
        };
        let of_hub =
            json!({"info": {"features": {"kind": {"names": ["cat"]}, "label": {"names": ["neg"]}, "text": 1}}});
        let swapped =
            json!({"info": {"features": {"label": {"names": ["cat"]}, "kind": {"names": ["neg"]}, "text": 1}}});
        assert_eq!(metadata(HUGGING_FACE, of_hub.clone()), Some(swapped));
        let column = |name: Value, field: &str| json!({"name": name, "field_name": field});
        let of_pandas = |id: &str, label: &str| {
            let columns = [column(id.into(), id), column(Value::Null, label)];
            json!({"index_columns": [id, {"kind": "range"}], "columns": columns, "creator": "label"})
        };
        assert_eq!(metadata(PANDAS, of_pandas("id", "label")), Some(of_pandas("key", "kind")));
        let of_geo = |name: &str| json!({"primary_column": name, "columns": {name: {"encoding": "WKB"}}});
        assert_eq!(metadata(GEO, of_geo("label")), Some(of_geo("kind")));
        assert_eq!(metadata("other", of_hub), None);
        assert_eq!(names.metadata(HUGGING_FACE, "no JSON"), None);
        assert_eq!(NewNames::default().metadata(HUGGING_FACE, "{}"), None);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            r#"[a-c"\\,:{}\[\]é]{0,6}"#.prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(r#"[a-c"\\]{0,2}"#, inner, 0..3)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_renamed_line_is_the_renamed_object(fields in prop::collection::btree_map(r#"[a-c"\\]{0,2}"#, value(), 0..5), is_wide in any::<bool>()) {
            let object: Map<String, Value> = fields.into_iter().collect();
            let text = if is_wide { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
            let renamed = |name: &str| if name == "a" { "new \"a\"".to_owned() } else { name.to_owned() };
            let expected: Map<String, Value> = object.iter().map(|(name, value)| (renamed(name), value.clone())).collect();
            let found: Value = serde_json::from_str(&line(&["a=new \"a\""], &text).unwrap()).unwrap();
            prop_assert_eq!(found, json!(expected));
        }
    }
}
