//! The fields of a line that the job names as columns.
//!
//! They are borrowed from the line; other fields are skipped without being built. Tried, and not
//! faster: strings found by memchr and unescaped by hand (0.9 to 1.2 times the speed of serde_json;
//! the check that they are UTF-8 is a quarter of either).

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::readers::rows::page_row::RowId;
use crate::readers::rows::value;
use crate::reading::Columns;

/// The fields of a line that the job names as columns.
#[derive(Default)]
pub(super) struct JsonFields<'a> {
    pub(super) id: RowId<'a>,
    pub(super) url: JsonScalar<'a>,
    pub(super) text: Vec<JsonScalar<'a>>,
    pub(super) html: JsonScalar<'a>,
    pub(super) ip: JsonScalar<'a>,
    pub(super) date: JsonScalar<'a>,
    pub(super) values: Vec<Option<String>>,
    /// Columns that a name with dots is (`"meta.url"`), and the length of the path of its object: a
    /// field of this path that lies in further objects does not count, wherever it stands.
    dotted: Vec<(String, usize)>,
}

impl<'a> JsonFields<'a> {
    /// Fields for the columns of a job, of which none is read yet.
    pub(super) fn of(columns: &Columns) -> JsonFields<'a> {
        let text = columns.text.names().iter().map(|_| JsonScalar::Null).collect();
        JsonFields { text, values: vec![None; columns.values.len()], ..JsonFields::default() }
    }

    /// Reads the fields of a line, as far as it is a JSON object.
    pub(super) fn read(&mut self, line: &'a [u8], columns: &Columns) -> serde_json::Result<()> {
        // A line that is UTF-8 is checked at once. In another one the fields that are read may
        // still be.
        match simdutf8::basic::from_utf8(line) {
            Ok(line) => {
                let seed = JsonObject { columns, prefix: "", fields: self };
                read_fields(serde_json::Deserializer::from_str(line), seed)
            }
            Err(_) => {
                let without = Columns { values: Vec::new(), ..columns.clone() };
                let seed = JsonObject { columns: &without, prefix: "", fields: self };
                read_fields(serde_json::Deserializer::from_slice(line), seed)
                    .and_then(|()| lossy_values(line, columns))
                    .map(|values| self.values = values)
            }
        }
    }

    /// Returns the field to fill if `name` is a column of the job.
    fn slot(&mut self, name: &str, columns: &Columns) -> Option<&mut JsonScalar<'a>> {
        let is = |column: &Option<String>| column.as_deref() == Some(name);
        if columns.url() == name {
            Some(&mut self.url)
        } else if let Some(number) = columns.text.names().iter().position(|column| column == name) {
            self.text.get_mut(number)
        } else if is(&columns.html) {
            Some(&mut self.html)
        } else if is(&columns.ip) {
            Some(&mut self.ip)
        } else if is(&columns.date) {
            Some(&mut self.date)
        } else {
            None
        }
    }
}

/// A value, as far as a field of a page can use it.
#[derive(Default)]
pub(super) enum JsonScalar<'a> {
    #[default]
    Null,
    Text(Cow<'a, str>),
    Integer(i128),
    Float(f64),
    /// A value of another type.
    Other,
}

impl<'a> JsonScalar<'a> {
    /// Returns a string; `None` for a value of any other type.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            JsonScalar::Text(text) => Some(text),
            JsonScalar::Null | JsonScalar::Integer(_) | JsonScalar::Float(_) | JsonScalar::Other => None,
        }
    }
}

/// The values of a line that is not UTF-8: bytes that are no text become U+FFFD. So it does not
/// matter for a record whether its values are kept.
fn lossy_values(line: &[u8], columns: &Columns) -> serde_json::Result<Vec<Option<String>>> {
    if columns.values.is_empty() {
        return Ok(Vec::new());
    }
    let line = String::from_utf8_lossy(line);
    let mut fields = JsonFields::of(columns);
    let seed = JsonObject { columns, prefix: "", fields: &mut fields };
    read_fields(serde_json::Deserializer::from_str(&line), seed)?;
    Ok(fields.values)
}

/// Reads the fields of a line, which has an object and nothing else.
fn read_fields<'a, R: serde_json::de::Read<'a>>(
    mut json: serde_json::Deserializer<R>,
    seed: JsonObject<'_, 'a>,
) -> serde_json::Result<()> {
    seed.deserialize(&mut json)?;
    json.end()
}

/// Deserializes an object, and the objects inside it that hold columns, into `fields`.
struct JsonObject<'r, 'a> {
    columns: &'r Columns,
    /// The path of this object with a dot after it (`metadata.`); empty for the line itself.
    prefix: &'r str,
    fields: &'r mut JsonFields<'a>,
}

impl<'a> DeserializeSeed<'a> for JsonObject<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.prefix.is_empty() { deserializer.deserialize_map(self) } else { deserializer.deserialize_any(self) }
    }
}

/// A line is an object. A value inside it that is none has no columns: each of them is missing.
impl<'a> Visitor<'a> for JsonObject<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let JsonObject { columns, prefix, fields } = self;
        while let Some(key) = map.next_key_seed(JsonValue)? {
            let key = key.text().unwrap_or_default();
            let is_dotted = key.contains('.');
            let name = if prefix.is_empty() { key } else { Cow::Owned(format!("{prefix}{key}")) };
            if fields.dotted.iter().any(|(column, outer)| *outer < prefix.len() && *column == name) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if is_dotted && any_column(columns, |column| column == name) {
                fields.dotted.push((name.to_string(), prefix.len()));
            }
            let (is_id, is_url) = (columns.id.as_deref() == Some(&*name), columns.url() == name);
            let is_key = is_id || is_url;
            let of_text = columns.text.names().iter().position(|column| is_key && *column == name);
            let of_values = columns.values.iter().position(|value| *value == name);
            if of_values.is_some() || of_text.is_some() || is_id && is_url {
                // One value for several fields of the page.
                let value: &RawValue = map.next_value()?;
                let scalar = || {
                    let mut json = serde_json::Deserializer::from_str(value.get());
                    JsonValue.deserialize(&mut json).map_err(serde::de::Error::custom)
                };
                if let Some(number) = of_values {
                    fields.values[number] = value_of(value);
                }
                if let Some(number) = of_text {
                    fields.text[number] = scalar()?;
                }
                if is_id {
                    fields.id = id_of(value);
                }
                if (is_url || !is_id)
                    && let Some(slot) = fields.slot(&name, columns)
                {
                    *slot = scalar()?;
                }
            } else if is_id {
                fields.id = id_of(map.next_value()?);
            } else if let Some(slot) = fields.slot(&name, columns) {
                *slot = map.next_value_seed(JsonValue)?;
            } else if holds_column(&name, columns) {
                let prefix = format!("{name}.");
                map.next_value_seed(JsonObject { columns, prefix: &prefix, fields })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The id that a value is: a string, or the digits of a whole number, however many these are.
fn id_of(value: &RawValue) -> RowId<'_> {
    let value = value.get();
    match value.as_bytes() {
        b"null" => RowId::None,
        b"-0" => RowId::Text(Cow::Borrowed("0")),
        [b'"', text @ .., b'"'] if memchr::memchr(b'\\', text).is_none() => RowId::of_bytes(text),
        [b'"', ..] => serde_json::from_str(value).map_or(RowId::Unusable, |text| RowId::Text(Cow::Owned(text))),
        [b'-', digits @ ..] | digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            RowId::Text(Cow::Borrowed(value))
        }
        _ => RowId::Unusable,
    }
}

/// The value, if it is no object and no list: a string as it is, a number as it is written.
fn value_of(value: &RawValue) -> Option<String> {
    match value.get().as_bytes() {
        b"null" | [b'{' | b'[', ..] => None,
        [b'"', text @ .., b'"'] if memchr::memchr(b'\\', text).is_none() => value::of_bytes(text),
        [b'"', ..] => value::of_text(serde_json::from_str::<String>(value.get()).ok()?.into()),
        // As many digits as a float has.
        number if number.len() > value::LONGEST => value::of_double(value.get().parse().ok()?),
        _ => Some(value.get().to_owned()),
    }
}

/// Whether a column is inside the object of this name.
fn holds_column(name: &str, columns: &Columns) -> bool {
    any_column(columns, |column| column.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// Whether one of the columns of the job is so.
fn any_column(columns: &Columns, is: impl Fn(&str) -> bool) -> bool {
    let optional = [&columns.id, &columns.html, &columns.ip, &columns.date];
    let mut all = optional.into_iter().flatten().chain(columns.text.names()).chain(&columns.values);
    is(columns.url()) || all.any(|column| is(column))
}

/// Deserializes any value; only a string or a number is kept.
struct JsonValue;

impl<'a> DeserializeSeed<'a> for JsonValue {
    type Value = JsonScalar<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<JsonScalar<'a>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for JsonValue {
    type Value = JsonScalar<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<JsonScalar<'a>, E> {
        Ok(JsonScalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonScalar<'a>, E> {
        Ok(JsonScalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<JsonScalar<'a>, E> {
        Ok(JsonScalar::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonScalar<'a>, E> {
        Ok(JsonScalar::Other)
    }

    fn visit_i64<E>(self, number: i64) -> Result<JsonScalar<'a>, E> {
        Ok(JsonScalar::Integer(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<JsonScalar<'a>, E> {
        Ok(JsonScalar::Integer(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<JsonScalar<'a>, E> {
        Ok(JsonScalar::Float(number))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<JsonScalar<'a>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(JsonScalar::Other)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<JsonScalar<'a>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(JsonScalar::Other)
    }
}
