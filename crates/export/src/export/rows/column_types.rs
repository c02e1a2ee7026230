//! The columns of Parquet for lines of JSON: types that hold every value of all lines, digit by
//! digit.
//!
//! A number is exact in the type of its column: whole numbers are 64 bits with or without a sign,
//! or decimals of 38 digits; fractions are floats if each of them is the shortest text of its
//! float, else decimals; what no type holds is text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use anyhow::{Result, bail};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::config::Reading;
use crate::readers::{Input, JsonLines};

/// The most levels of the schema, with its root and the values: pyarrow refuses a file with more.
/// An object is one level. A list is two: itself, and the group that is repeated.
const DEEPEST: usize = 100;
/// The digits of a decimal.
const DIGITS: i64 = 38;

/// The columns of lines of JSON.
#[derive(Clone, Debug)]
pub struct JsonColumns(pub(crate) SchemaRef);

impl JsonColumns {
    /// The columns that the lines of all these inputs have, in the order of their first lines. A
    /// field whose values are of several simple types is text; one that is null or empty everywhere
    /// is left out, for programs differ in how they read it.
    ///
    /// Cost: all lines are parsed once.
    ///
    /// # Errors
    /// If an input cannot be read; or a field has objects or lists in one line and other values in
    /// another, or too many levels of them: the message names the field, the file and the line.
    pub fn of(inputs: &[Input], reading: &Reading) -> Result<JsonColumns> {
        let mut all = FieldShapes::default();
        for input in inputs.iter().filter(|input| input.format.has_json_lines()) {
            let mut lines = JsonLines::of_documents(input, reading)?;
            while let Some(line) = lines.line()? {
                // What is not an object is not a document, nor is a line that is too long.
                let Some(line) = line.ok().and_then(|line| std::str::from_utf8(line).ok()) else { continue };
                if !line.trim_start().starts_with('{') {
                    continue;
                }
                if let Err(unheld) = all.add(line, 1) {
                    bail!("{}, line {}: {unheld}", input.name, lines.number());
                }
            }
        }
        Ok(JsonColumns(Arc::new(Schema::new(all.fields()))))
    }

    /// Whether there are none: no line has a field with a value, and so none is a document.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.fields().is_empty()
    }
}

/// What the values of a field are.
#[derive(Debug, Default)]
enum ValueShape {
    /// Null everywhere so far.
    #[default]
    Null,
    Bool,
    Text,
    Number(NumberShape),
    List(Box<ValueShape>),
    Object(FieldShapes),
}

/// The fields of objects, in the order in which they came.
#[derive(Debug, Default)]
struct FieldShapes {
    shapes: Vec<FieldShape>,
    numbers: HashMap<String, usize>,
    /// The number of the last object.
    object: u64,
}

/// A field of objects.
#[derive(Debug)]
struct FieldShape {
    name: String,
    shape: ValueShape,
    /// The last object that has it, and its place there.
    last: (u64, usize),
}

/// A field has values that no column holds.
struct Unheld {
    /// The names that lead to the field.
    path: Vec<String>,
    why: UnheldCause,
}

/// Why no column holds some values.
enum UnheldCause {
    /// They are of several kinds.
    Mixed { before: &'static str, now: &'static str },
    /// They are within too many lists and objects.
    TooDeep,
}

impl fmt::Display for Unheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            UnheldCause::Mixed { before, now } => write!(
                f,
                "the field `{}` has {now}, and {before} before: Parquet has one type for a column. Give --format same, or \
                 write these values in one way",
                self.path.join(".")
            ),
            UnheldCause::TooDeep => write!(
                f,
                "the field `{}` needs more than {DEEPEST} levels of Parquet (an object is one, a list is two), which readers \
                 such as pyarrow refuse. Give --format same, or write this field as text",
                self.path.first().map_or("", String::as_str)
            ),
        }
    }
}

impl ValueShape {
    /// Adds a value, which is valid JSON, at a level of the schema, whose root is level 1.
    fn add(&mut self, value: &str, level: usize) -> Result<(), Unheld> {
        let value = value.trim_ascii();
        // What is null everywhere has no column.
        if level > DEEPEST && !value.starts_with('n') {
            return Err(Unheld { path: Vec::new(), why: UnheldCause::TooDeep });
        }
        let found = match value.as_bytes().first() {
            None | Some(b'n') => return Ok(()),
            Some(b'"') => ValueShape::Text,
            Some(b't' | b'f') => ValueShape::Bool,
            Some(b'[') => {
                self.become_kind(ValueShape::List(Box::default()))?;
                let ValueShape::List(items) = self else { return Ok(()) };
                return each_item(value, &mut |item| items.add(item, level + 2));
            }
            Some(b'{') => {
                self.become_kind(ValueShape::Object(FieldShapes::default()))?;
                let ValueShape::Object(fields) = self else { return Ok(()) };
                return fields.add(value, level);
            }
            Some(_) => {
                let number = NumberShape::of(value);
                match self {
                    ValueShape::Number(before) => before.merge(number),
                    _ => self.become_kind(ValueShape::Number(number))?,
                }
                return Ok(());
            }
        };
        self.become_kind(found)
    }

    /// Makes this the shape that holds a value of another one, too.
    fn become_kind(&mut self, found: ValueShape) -> Result<(), Unheld> {
        use ValueShape::{Bool, List, Null, Number, Object, Text};
        match (&*self, &found) {
            (Null, _) => *self = found,
            (Bool, Bool) | (Text, Text) | (Number(_), Number(_)) | (List(_), List(_)) | (Object(_), Object(_)) => {}
            (Bool | Text | Number(_), Bool | Text | Number(_)) => *self = Text,
            (before, now) => {
                let why = UnheldCause::Mixed { before: before.words(), now: now.words() };
                return Err(Unheld { path: Vec::new(), why });
            }
        }
        Ok(())
    }

    fn words(&self) -> &'static str {
        match self {
            ValueShape::Null => "nothing",
            ValueShape::Bool | ValueShape::Text | ValueShape::Number(_) => "a simple value",
            ValueShape::List(_) => "a list",
            ValueShape::Object(_) => "an object",
        }
    }

    /// The type of a column; `None` if it never has a value.
    fn kind(&self) -> Option<DataType> {
        Some(match self {
            ValueShape::Null => return None,
            ValueShape::Bool => DataType::Boolean,
            ValueShape::Text => DataType::Utf8,
            ValueShape::Number(number) => number.kind(),
            ValueShape::List(items) => DataType::List(Arc::new(Field::new("item", items.kind()?, true))),
            ValueShape::Object(fields) => {
                let fields = fields.fields();
                if fields.is_empty() {
                    return None;
                }
                DataType::Struct(fields)
            }
        })
    }
}

impl FieldShapes {
    /// Adds an object, at a level of the schema; nothing of one that is not valid JSON. Of a name
    /// that it has twice the last value counts.
    fn add(&mut self, object: &str, level: usize) -> Result<(), Unheld> {
        let mut values: Vec<(usize, &RawValue)> = Vec::new();
        self.object += 1;
        let is_valid = each_field(object, &mut |name, value| {
            let place = values.len();
            let number = match self.shapes.get(place) {
                // Most objects have their fields in the same order.
                Some(expected) if expected.name == name => place,
                _ => self.number(name),
            };
            let last = &mut self.shapes[number].last;
            match last.0 == self.object {
                true => values[last.1].1 = value,
                false => {
                    *last = (self.object, place);
                    values.push((number, value));
                }
            }
        });
        for (number, value) in values.into_iter().filter(|_| is_valid) {
            let FieldShape { name, shape, .. } = &mut self.shapes[number];
            shape.add(value.get(), level + 1).map_err(|mut unheld| {
                unheld.path.insert(0, name.clone());
                unheld
            })?;
        }
        Ok(())
    }

    fn number(&mut self, name: Cow<'_, str>) -> usize {
        if let Some(number) = self.numbers.get(&*name) {
            return *number;
        }
        let name = name.into_owned();
        self.numbers.insert(name.clone(), self.shapes.len());
        self.shapes.push(FieldShape { name, shape: ValueShape::Null, last: (0, 0) });
        self.shapes.len() - 1
    }

    fn fields(&self) -> Fields {
        let field = |FieldShape { name, shape, .. }: &FieldShape| Some(Field::new(name, shape.kind()?, true));
        self.shapes.iter().filter_map(field).collect()
    }
}

/// What holds the numbers of a field.
#[derive(Clone, Copy, Debug)]
struct NumberShape {
    /// Whether all are written without a fraction or an exponent.
    is_whole: bool,
    is_signed: bool,
    is_unsigned: bool,
    is_float: bool,
    /// The most digits before and after the point.
    before: i64,
    after: i64,
}

impl NumberShape {
    fn of(text: &str) -> NumberShape {
        if text.len() < 16 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let before = text.len() as i64;
            return NumberShape {
                is_whole: true,
                is_signed: true,
                is_unsigned: true,
                is_float: true,
                before,
                after: 0,
            };
        }
        let Decimal { digits, exponent, .. } = decimal(text);
        let float = text.parse::<f64>().ok().filter(|float| float.is_finite());
        let is_float = float.is_some_and(|float| decimal(&format!("{float:e}")) == decimal(text));
        NumberShape {
            is_whole: text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'),
            is_signed: text.parse::<i64>().is_ok(),
            is_unsigned: text.parse::<u64>().is_ok(),
            is_float,
            before: digits.len() as i64 + exponent,
            after: -exponent,
        }
    }

    fn merge(&mut self, other: NumberShape) {
        self.is_whole &= other.is_whole;
        self.is_signed &= other.is_signed;
        self.is_unsigned &= other.is_unsigned;
        self.is_float &= other.is_float;
        self.before = self.before.max(other.before);
        self.after = self.after.max(other.after);
    }

    fn kind(&self) -> DataType {
        let (before, after) = (self.before.max(1), self.after.max(0));
        match self {
            NumberShape { is_whole: true, is_signed: true, .. } => DataType::Int64,
            NumberShape { is_whole: true, is_unsigned: true, .. } => DataType::UInt64,
            NumberShape { is_whole: false, is_float: true, .. } => DataType::Float64,
            _ if before + after <= DIGITS => DataType::Decimal128(DIGITS as u8, after as i8),
            _ => DataType::Utf8,
        }
    }
}

/// A number as its digits, without zeros around them, and the power of ten of the last one.
#[derive(Debug, PartialEq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

/// The value of a number of JSON.
fn decimal(text: &str) -> Decimal {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    // An exponent of more digits than 64 bits have is as good as infinite.
    let exponent = exponent.trim_start_matches('+').parse::<i64>().unwrap_or(i64::MAX / 4).clamp(-(1 << 40), 1 << 40);
    let (is_negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    let zeros = all.len() - all.trim_end_matches('0').len();
    let exponent = exponent - fraction.len() as i64 + zeros as i64;
    let is_zero = digits.is_empty();
    Decimal { is_negative, digits: digits.to_owned(), exponent: if is_zero { 0 } else { exponent } }
}

/// Calls `each` with the fields of an object. Returns whether it is valid JSON to its end.
fn each_field<'a>(object: &'a str, each: &mut dyn FnMut(Cow<'a, str>, &'a RawValue)) -> bool {
    struct Each<'e, 'a>(&'e mut dyn FnMut(Cow<'a, str>, &'a RawValue));
    impl<'a> Visitor<'a> for Each<'_, 'a> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some((FieldName(name), value)) = map.next_entry::<FieldName<'a>, &'a RawValue>()? {
                (self.0)(name, value);
            }
            Ok(())
        }
    }
    let mut object = serde_json::Deserializer::from_str(object);
    (&mut object).deserialize_map(Each(each)).and_then(|()| object.end()).is_ok()
}

/// The name of a field.
#[derive(serde::Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

/// Calls `each` with the items of a list, which is valid JSON, up to the first error.
fn each_item<'a>(list: &'a str, each: &mut dyn FnMut(&'a str) -> Result<(), Unheld>) -> Result<(), Unheld> {
    struct Each<'e, 'a>(&'e mut dyn FnMut(&'a str) -> Result<(), Unheld>, &'e mut Result<(), Unheld>);
    impl<'a> Visitor<'a> for Each<'_, 'a> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
            while let Some(item) = list.next_element::<&'a RawValue>()? {
                if self.1.is_ok() {
                    *self.1 = (self.0)(item.get());
                }
            }
            Ok(())
        }
    }
    let mut result = Ok(());
    let _ = serde_json::Deserializer::from_str(list).deserialize_seq(Each(each, &mut result));
    result
}

#[cfg(test)]
mod tests {
    use parquet::arrow::ArrowSchemaConverter;

    use super::*;

    /// The level of a column.
    const COLUMN: usize = 2;

    fn kind(values: &[&str]) -> String {
        let mut shape = ValueShape::Null;
        for value in values {
            match shape.add(value, COLUMN).map_err(|unheld| unheld.why) {
                Ok(()) => {}
                Err(UnheldCause::Mixed { before, now }) => return format!("{now} after {before}"),
                Err(UnheldCause::TooDeep) => return "too deep".to_owned(),
            }
        }
        shape.kind().map_or("none".to_owned(), |kind| kind.to_string())
    }

    #[test]
    fn a_line_that_is_too_long_for_a_run_has_no_columns() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines = |last: &str| format!("{{\"a\":1}}\n\n{{\"b\":\"{}\"}}\n{last}\n", "x".repeat(2 << 20));
        let reading = Reading { max_page_bytes: crate::config::Bytes(1), ..Reading::default() };
        let columns = |last: &str| {
            std::fs::write(file.path(), lines(last)).unwrap();
            let input = Input {
                name: "f.jsonl".to_owned(),
                bytes: lines(last).len() as u64,
                format: crate::readers::Format::Jsonl,
                place: crate::readers::Location::File(file.path().to_owned()),
                page_url: None,
                stamp: String::new(),
                reading: None,
            };
            JsonColumns::of(&[input], &reading)
        };
        let found = columns("{\"c\":2}").unwrap().0;
        assert_eq!(found.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["a", "c"]);
        let refused = columns("{\"a\":[2]}").unwrap_err().to_string();
        assert!(refused.starts_with("f.jsonl, line 4: "), "{refused}");
    }

    #[test]
    fn every_digit_has_a_place_in_the_type() {
        for (values, wanted) in [
            (&["1", "-9223372036854775808", "9223372036854775807"][..], "Int64"),
            (&["0", "18446744073709551615"], "UInt64"),
            (&["-0", "18446744073709551615"], "Decimal128(38, 0)"),
            (&["-1", "18446744073709551615"], "Decimal128(38, 0)"),
            (&["18446744073709551616"], "Decimal128(38, 0)"),
            (&["99999999999999999999999999999999999999"], "Decimal128(38, 0)"),
            (&["999999999999999999999999999999999999999"], "Utf8"),
            (&["0.1", "2", "-0.0", "1e300", "5e-324"], "Float64"),
            (&["9007199254740993", "0.5"], "Decimal128(38, 1)"),
            (&["9007199254740992", "0.5"], "Float64"),
            (&["0.10000000000000000555"], "Decimal128(38, 20)"),
            (&["1e400"], "Utf8"),
            (&["1e400", "1"], "Utf8"),
            (&["123456789.123456789012345678901234567891"], "Utf8"),
            (&["1e2", "3"], "Float64"),
            (&["1", "true"], "Utf8"),
            (&["null"], "none"),
            (&["[]", "[{}]"], "none"),
        ] {
            assert_eq!(kind(values), wanted, "{values:?}");
        }
        assert_eq!(kind(&["[1]", "3"]), "a simple value after a list");
        assert_eq!(kind(&["\"x\"", "{\"a\":1}"]), "an object after a simple value");
    }

    #[test]
    fn nothing_is_too_deep_or_too_wide() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(kind(&[&deep]), "too deep");
        let wide: Vec<String> = (0..50_000).map(|field| format!("\"f{field}\":{field}")).collect();
        let wide = format!("{{{}}}", wide.join(","));
        assert!(kind(&[&wide, &wide]).starts_with("Struct"));
    }

    #[test]
    fn levels_are_those_of_the_schema_that_is_written() {
        let line = |objects: usize, lists: usize, value: &str| {
            let [before, after] = [("{\"a\":", "["), ("}", "]")].map(|(a, b)| [a.repeat(objects), b.repeat(lists)]);
            format!("{{\"m\":{}{value}{}{}}}", before.concat(), after[1], after[0])
        };
        for (objects, lists) in [(98, 0), (0, 49), (50, 24)] {
            let mut all = FieldShapes::default();
            assert!(all.add(&line(objects, lists, "1"), 1).is_ok(), "{objects} {lists}");
            // Nulls have no columns.
            assert!(FieldShapes::default().add(&line(objects + 1, lists, "null"), 1).is_ok());
            let written = ArrowSchemaConverter::new().convert(&Schema::new(all.fields())).unwrap();
            assert_eq!(written.column(0).path().parts().len() + 1, DEEPEST, "{objects} {lists}");
        }
        for (objects, lists) in [(99, 0), (1, 49), (51, 24)] {
            let refused = FieldShapes::default().add(&line(objects, lists, "1"), 1).err().unwrap().to_string();
            let wanted = "the field `m` needs more than 100 levels of Parquet (an object is one, a list is two)";
            assert!(refused.starts_with(wanted), "{refused}");
        }
    }

    #[test]
    fn lists_and_objects_have_the_types_of_all_their_values() {
        for values in [&["[null,[1]]", "[[3]]"][..], &["[[1],null]", "[[3]]"], &["null", "[[null],[],[2]]"]] {
            let list = |kind| DataType::List(Arc::new(Field::new("item", kind, true)));
            assert_eq!(kind(values), list(list(DataType::Int64)).to_string(), "{values:?}");
        }
        let mut shape = ValueShape::Null;
        for value in [r#"{"b":1,"a":null}"#, r#"{"a":[{"c":true}],"a":{"c":"x","b":null}}"#, r#"{"a":{"d":0.5}}"#] {
            assert!(shape.add(value, COLUMN).is_ok());
        }
        let fields = |fields: Vec<(&str, DataType)>| {
            DataType::Struct(fields.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect())
        };
        let inner = fields(vec![("c", DataType::Utf8), ("d", DataType::Float64)]);
        assert_eq!(shape.kind(), Some(fields(vec![("b", DataType::Int64), ("a", inner)])));
    }
}
