//! Reads JSON Lines files: each line is a page, in the columns that the job names.
//!
//! A column name with a dot (`metadata.url`) means a field of an object inside the line, unless a
//! field has exactly that name. Fields are borrowed from the line; other fields are skipped without
//! being built. Tried, and not faster: strings found by memchr and unescaped by hand (0.9 to 1.2
//! times the speed of serde_json; the check that they are UTF-8 is a quarter of either).

use std::borrow::Cow;
use std::io::Read;
use std::{fmt, io};

use anyhow::{Context as _, bail};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::Date;
use super::item::{Item, Reader, Reject, Unread};
use super::rows::{PageRow, RowId};
use super::value;
use crate::readers::streams::{LineReader, LineStep};
use crate::reading::{Columns, Reading, TextColumns};

/// Bytes that a line may have besides the page.
const SLACK: usize = 1 << 20;
/// Lines that are looked at before the run.
const CHECKED: usize = 20;
/// Lines that are searched first for columns whose values are kept, and the names that are
/// remembered.
const SEARCHED: usize = 1000;
const MOST_NAMES: usize = 100;
/// What a JSON array is, and what to do about it; after the name of the file.
pub const ARRAY: &str = "is a JSON array, and nigh reads JSON Lines: `jq -c '.[]'` makes lines of it";
/// The reason of a reject.
const TOO_LONG: &str = "jsonl: line too long";

/// Reads the pages of one JSON Lines file, plain or compressed.
pub struct JsonlReader {
    lines: LineReader,
    reading: Reading,
    name: String,
}

impl JsonlReader {
    /// Makes the reader of `source`, named `name` in errors.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(source: Box<dyn Read + Send>, name: &str, reading: &Reading) -> io::Result<Self> {
        let lines = LineReader::new(source, longest(reading))?;
        Ok(JsonlReader { lines, reading: reading.clone(), name: name.to_owned() })
    }

    /// The reader of whole lines of a file that is not compressed.
    pub(super) fn of_plain_lines(source: Box<dyn Read + Send>, name: &str, reading: &Reading) -> Self {
        let lines = LineReader::of_plain(source, longest(reading));
        JsonlReader { lines, reading: reading.clone(), name: name.to_owned() }
    }

    fn item(&mut self) -> io::Result<Option<Item>> {
        while let Some(step) = self.lines.advance()? {
            let item = match step {
                LineStep::Line(offset) => page(self.lines.line(), offset, &self.reading),
                LineStep::TooLong(offset) => Some(reject(offset, TOO_LONG)),
                LineStep::Damage(offset, reason) => Some(reject(offset, reason)),
            };
            if item.is_some() {
                return Ok(item);
            }
        }
        Ok(None)
    }
}

/// The bytes of the longest line.
fn longest(reading: &Reading) -> usize {
    // JSON can write one byte as six: \u0001.
    reading.page_limit().saturating_mul(6).saturating_add(SLACK)
}

impl Reader for JsonlReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        self.item().with_context(|| format!("cannot read {}", self.name))
    }

    fn position(&self) -> u64 {
        self.lines.position()
    }

    fn unread(&self) -> Unread {
        self.lines.unread()
    }
}

/// Which lines of a file say what columns it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// The first ones.
    First,
    /// All: a column can begin anywhere.
    All,
}

/// Checks that the first lines have the columns of the job, as a Parquet file must have them.
/// Returns whether one has a URL; `None` if there is no line with an object.
///
/// # Errors
/// If the file cannot be read or is an array, or all of its first lines are objects and none has an
/// id, or a URL, that the job names, or none has a body. The message names the fields that the
/// first one has.
pub fn check(source: Box<dyn Read + Send>, name: &str, reading: &Reading) -> anyhow::Result<Option<bool>> {
    let failed = || format!("cannot read {name}");
    let mut lines = JsonlReader::new(source, name, reading).with_context(failed)?.lines;
    let columns = &reading.columns;
    let bodies: Vec<&str> = columns.text.names().iter().chain(&columns.html).map(String::as_str).collect();
    let mut fields: Option<Vec<String>> = None;
    let (mut has_id, mut has_url, mut has_body) = (columns.id.is_none(), false, false);
    for _ in 0..CHECKED {
        match lines.advance().with_context(failed)? {
            Some(LineStep::Line(_)) => {}
            Some(_) => return Ok(None),
            None => break,
        }
        let line = lines.line().trim_ascii();
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        if fields.is_none() && line.starts_with(b"[") {
            bail!("{name} {ARRAY}");
        }
        let Ok(object) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(line) else {
            return Ok(None);
        };
        let names = field_names(&object);
        has_id |= columns.id.as_ref().is_some_and(|id| names.contains(id));
        has_url |= names.iter().any(|name| name == columns.url());
        has_body |= bodies.iter().any(|body| names.iter().any(|name| name == body));
        if has_id && has_url && has_body {
            return Ok(Some(true));
        }
        fields.get_or_insert(names);
    }
    let Some(fields) = fields else { return Ok(None) };
    let missing = match (&columns.id, &columns.url) {
        (Some(id), _) if !has_id => id.clone(),
        (_, Some(url)) if !has_url => url.clone(),
        _ if !has_body => bodies.join("` and no field `"),
        _ => return Ok(Some(has_url)),
    };
    bail!(
        "{name} has no field `{missing}`: it has {}; set the names in [cluster.read.columns], or by --id, --url and --text",
        fields.join(", ")
    )
}

/// The names of the fields that these lines have, and which of the columns whose values are kept
/// are among them. No further line is read once all of these are found.
///
/// # Errors
/// If the file cannot be read.
pub fn columns(
    source: Box<dyn Read + Send>,
    name: &str,
    reading: &Reading,
    searched: Searched,
) -> anyhow::Result<(Vec<String>, Vec<bool>)> {
    let failed = || format!("cannot read {name}");
    let mut lines = JsonlReader::new(source, name, reading).with_context(failed)?.lines;
    let values = &reading.columns.values;
    let (mut names, mut has) = (Vec::new(), vec![false; values.len()]);
    let most = match searched {
        Searched::First => SEARCHED,
        Searched::All => usize::MAX,
    };
    for _ in 0..most {
        match lines.advance().with_context(failed)? {
            Some(LineStep::Line(_)) => {}
            Some(_) => continue,
            None => break,
        }
        let line = lines.line().trim_ascii();
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let Ok(object) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(line) else { continue };
        let of_line = field_names(&object);
        has.iter_mut().zip(values).for_each(|(has, value)| *has |= of_line.contains(value));
        if has.iter().all(|has| *has) {
            return Ok((of_line, has));
        }
        // A file of lines with fields of their own has more names than a message can show.
        names.extend(
            of_line
                .into_iter()
                .filter(|name| !names.contains(name))
                .take(MOST_NAMES - names.len().min(MOST_NAMES))
                .collect::<Vec<_>>(),
        );
    }
    Ok((names, has))
}

/// The names of the fields of an object, with those of the objects inside it after a dot.
fn field_names(object: &serde_json::Map<String, serde_json::Value>) -> Vec<String> {
    fn add(prefix: &str, object: &serde_json::Map<String, serde_json::Value>, names: &mut Vec<String>) {
        for (name, value) in object {
            let name = format!("{prefix}{name}");
            names.push(name.clone());
            if let Some(inner) = value.as_object() {
                add(&format!("{name}."), inner, names);
            }
        }
    }
    let mut names = Vec::new();
    add("", object, &mut names);
    names
}

fn reject(offset: u64, reason: &str) -> Item {
    Item::Reject(Reject { offset, url: None, reason: reason.to_owned() })
}

/// Makes the page of a line, or a reject; `None` if the line is blank.
fn page(line: &[u8], offset: u64, reading: &Reading) -> Option<Item> {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    let columns = &reading.columns;
    let mut fields = JsonFields::of(columns);
    // A line that is UTF-8 is checked at once. In another one the fields that are read may still
    // be.
    let read = match simdutf8::basic::from_utf8(line) {
        Ok(line) => {
            let seed = JsonObject { columns, prefix: "", fields: &mut fields };
            read_fields(serde_json::Deserializer::from_str(line), seed)
        }
        Err(_) => {
            let without = Columns { values: Vec::new(), ..columns.clone() };
            let seed = JsonObject { columns: &without, prefix: "", fields: &mut fields };
            read_fields(serde_json::Deserializer::from_slice(line), seed)
                .and_then(|()| lossy_values(line, columns))
                .map(|values| fields.values = values)
        }
    };
    if read.is_err() {
        let url = fields.url.text().map(Cow::into_owned);
        return Some(Item::Reject(Reject { offset, url, reason: "jsonl: no JSON object".to_owned() }));
    }
    let row = PageRow {
        id: fields.id,
        url: fields.url.text(),
        html: fields.html.text().map(|html| match html {
            Cow::Borrowed(html) => Cow::Borrowed(html.as_bytes()),
            Cow::Owned(html) => Cow::Owned(html.into_bytes()),
        }),
        html_is_text: true,
        text: TextColumns::joined(fields.text.into_iter().map(JsonScalar::text)),
        ip: fields.ip.text(),
        fetched: match fields.date {
            JsonScalar::Null => Date::None,
            JsonScalar::Text(date) => super::fields::date(&date),
            JsonScalar::Integer(number) => super::fields::epoch(number as f64),
            JsonScalar::Float(number) => super::fields::epoch(number),
            JsonScalar::Other => Date::Unreadable,
        },
        values: fields.values,
    };
    Some(row.item(offset, reading.page_limit(), "jsonl"))
}

/// The values of a line that is not UTF-8: bytes that are no text become U+FFFD, as in CSV. So it
/// does not matter for a record whether its values are kept.
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

/// The fields of a line that the job names as columns.
#[derive(Default)]
struct JsonFields<'a> {
    id: RowId<'a>,
    url: JsonScalar<'a>,
    text: Vec<JsonScalar<'a>>,
    html: JsonScalar<'a>,
    ip: JsonScalar<'a>,
    date: JsonScalar<'a>,
    values: Vec<Option<String>>,
}

impl<'a> JsonFields<'a> {
    /// Fields for the columns of a job, of which none is read yet.
    fn of(columns: &Columns) -> JsonFields<'a> {
        let text = columns.text.names().iter().map(|_| JsonScalar::Null).collect();
        JsonFields { text, values: vec![None; columns.values.len()], ..JsonFields::default() }
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
enum JsonScalar<'a> {
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
    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            JsonScalar::Text(text) => Some(text),
            JsonScalar::Null | JsonScalar::Integer(_) | JsonScalar::Float(_) | JsonScalar::Other => None,
        }
    }
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
            let name = if prefix.is_empty() { key } else { Cow::Owned(format!("{prefix}{key}")) };
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
    let inside = |column: &str| column.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    let optional = [&columns.id, &columns.html, &columns.ip, &columns.date];
    let mut all = optional.into_iter().flatten().chain(columns.text.names()).chain(&columns.values);
    inside(columns.url()) || all.any(|column| inside(column))
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::readers::item::{Body, Page};
    use crate::units::Bytes;

    fn read(bytes: &[u8], reading: &Reading) -> Vec<Item> {
        let mut reader = JsonlReader::new(Box::new(io::Cursor::new(bytes.to_vec())), "test", reading).unwrap();
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    /// Writes each item as one line.
    fn short(items: &[Item]) -> Vec<String> {
        let line = |item: &Item| match item {
            Item::Page(Page { url, body: Body::Text(text), offset, .. }) => {
                format!("{offset} {} {text}", url.as_deref().unwrap_or("none"))
            }
            Item::Page(Page { url, body: Body::Html(html), offset, .. }) => {
                format!("{offset} {} html {}", url.as_deref().unwrap_or("none"), String::from_utf8_lossy(html))
            }
            Item::Reject(reject) => format!("{} {}", reject.offset, reject.reason),
            other => format!("{other:?}"),
        };
        items.iter().map(line).collect()
    }

    const LINES: &str = "{\"url\":\"http://a/\",\"text\":\"one\\ntwo\",\"more\":{\"x\":[1,2.5,null]}}\n\
        \n{\"url\":\"http://b/\"}\nno json\n{\"text\":\"x\"}\n[1]\n{\"text\":\"last\",\"url\":\"http://c/\"}";

    #[test]
    fn a_line_is_a_page_or_a_reject_with_its_place() {
        let expected = [
            "0 http://a/ one\ntwo",
            "65 jsonl: no text",
            "85 jsonl: no JSON object",
            "93 none x",
            "106 jsonl: no JSON object",
            "110 http://c/ last",
        ];
        assert_eq!(short(&read(LINES.as_bytes(), &Reading::default())), expected);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(LINES.as_bytes()).unwrap();
        assert_eq!(short(&read(&gzip.finish().unwrap(), &Reading::default())), expected);
        assert_eq!(short(&read(&zstd::bulk::compress(LINES.as_bytes(), 1).unwrap(), &Reading::default())), expected);
    }

    #[test]
    fn ids_have_all_their_digits_or_are_rejects() {
        let columns = Columns { id: Some("id".into()), ..Columns::default() };
        let reading = Reading { columns, ..Reading::default() };
        let reject = "jsonl: an id that is neither text nor a whole number";
        for (id, wanted) in [
            ("18446744073709551615", Some("18446744073709551615")),
            ("123456789012345678901234567890", Some("123456789012345678901234567890")),
            ("-7", Some("-7")),
            ("-0", Some("0")),
            ("\"007\"", Some("007")),
            ("\" 7\"", Some(" 7")),
            ("\"\\u00e9\\n\"", Some("\u{e9}\n")),
            ("\"\"", None),
            ("null", None),
            ("1e3", Some(reject)),
            ("1.0", Some(reject)),
            ("true", Some(reject)),
            ("[1]", Some(reject)),
            ("007", Some("jsonl: no JSON object")),
            ("NaN", Some("jsonl: no JSON object")),
        ] {
            let items = read(format!("{{\"text\":\"x\",\"id\":{id}}}").as_bytes(), &reading);
            let found = match &items[..] {
                [Item::Page(page)] => page.id.as_deref(),
                [Item::Reject(reject)] => Some(reject.reason.as_str()),
                other => panic!("{other:?}"),
            };
            assert_eq!(found, wanted, "{id}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_count_only_in_a_field_that_is_read() {
        let reading = Reading::default();
        let line = |field: &str| {
            [b"{\"url\":\"http://h/\",\"".as_slice(), field.as_bytes(), b"\":\"a\xff\",\"text\":\"b\"}\n"].concat()
        };
        let items = read(&[line("other"), line("text"), line("url")].concat(), &reading);
        assert!(matches!(&items[0], Item::Page(page) if page.body.as_bytes() == b"b"), "{items:?}");
        assert_eq!(items.iter().filter(|item| matches!(item, Item::Page(_))).count(), 1, "{items:?}");
        assert_eq!(items.len(), 3);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_in_values() {
        let line =
            b"{\"url\":\"http://h/\",\"text\":\"b\",\"a\":\"x\xff\xc3\",\"m\":{\"n\":1.50},\"other\":\"\xff\"}\n";
        let values = vec!["a".to_owned(), "m.n".to_owned(), "none".to_owned()];
        let reading = Reading { columns: Columns { values, ..Columns::default() }, ..Reading::default() };
        let items = read(line, &reading);
        let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
        assert_eq!(page.values, [Some("x\u{fffd}\u{fffd}".to_owned()), Some("1.50".to_owned()), None]);
        // A field of the page is read as without values.
        let values = vec!["url".to_owned(), "text".to_owned()];
        let reading = Reading { columns: Columns { values, ..Columns::default() }, ..Reading::default() };
        let items = read(b"{\"url\":\"http://h/\",\"text\":\"b\xff\"}\n", &reading);
        assert!(matches!(items[..], [Item::Reject(_)]), "{items:?}");
    }

    #[test]
    fn a_column_that_begins_late_is_found_in_all_lines() {
        let mut lines = "{\"url\":\"http://h/\",\"text\":\"b\"}\n".repeat(SEARCHED);
        lines.push_str("{\"late\":{\"in\":1}}\n");
        let values = vec!["text".to_owned(), "late.in".to_owned()];
        let reading = Reading { columns: Columns { values, ..Columns::default() }, ..Reading::default() };
        let columns = |searched| {
            let source = Box::new(io::Cursor::new(lines.as_bytes().to_vec()));
            columns(source, "test", &reading, searched).unwrap()
        };
        assert_eq!(columns(Searched::First), (vec!["text".to_owned(), "url".to_owned()], vec![true, false]));
        assert_eq!(columns(Searched::All).1, [true, true]);
    }

    #[test]
    fn fields_are_read_from_the_columns_of_the_job() {
        let columns = Columns {
            id: Some("metadata.key".into()),
            url: Some("metadata.url".into()),
            text: "content".into(),
            html: Some("raw".into()),
            ip: Some("ip".into()),
            date: Some("metadata.date".into()),
            ..Columns::default()
        };
        let reading = Reading { columns, ..Reading::default() };
        let line = r#"{"raw":"<p>","content":"p","ip":"192.0.2.1","metadata":{"date":"2024-01-08T12:00:00.5Z","url":"http://a/","key":9007199254740993,"x":1}}"#;
        let items = read(line.as_bytes(), &reading);
        let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((page.url.as_deref(), &page.body), (Some("http://a/"), &Body::Html(b"<p>".to_vec())));
        assert_eq!(page.id.as_deref(), Some("9007199254740993"));
        assert_eq!((page.ip, page.fetched), (Some("192.0.2.1".parse().unwrap()), Some(1_704_715_200_500_000)));
        assert_eq!(page.charset.as_deref(), Some("utf-8"));
    }

    #[test]
    fn a_column_may_be_a_text_and_the_id_or_the_url() {
        let names = ["key", "url", "text"].map(str::to_owned);
        for values in [vec![], vec!["key".to_owned(), "url".to_owned()]] {
            let columns =
                Columns { id: Some("key".into()), text: names.iter().cloned().collect(), ..Columns::default() };
            let reading = Reading { columns: Columns { values, ..columns }, ..Reading::default() };
            let items = read(br#"{"key":"a","url":"http://h/","text":"b"}"#, &reading);
            let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
            assert_eq!((page.id.as_deref(), page.url.as_deref()), (Some("a"), Some("http://h/")));
            assert_eq!(page.body.as_bytes(), b"a\nhttp://h/\nb");
        }
    }

    #[test]
    fn a_column_may_be_the_id_and_the_url() {
        for (url, has_url) in [(None, true), (Some("url".to_owned()), true), (Some("key".to_owned()), false)] {
            let reading = Reading {
                columns: Columns { id: Some("url".into()), url, ..Columns::default() },
                ..Reading::default()
            };
            let items = read(br#"{"text":"b","url":"http://h/"}"#, &reading);
            let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
            let wanted = Some("http://h/");
            assert_eq!((page.id.as_deref(), page.url.as_deref()), (wanted, wanted.filter(|_| has_url)));
        }
    }

    #[test]
    fn a_column_inside_what_is_no_object_is_missing() {
        let columns = Columns { text: ["a", "m.n.o"].map(str::to_owned).into_iter().collect(), ..Columns::default() };
        let reading = Reading { columns, ..Reading::default() };
        for inner in
            ["null", "\"x\"", "1", "-1", "1.5", "true", "[{\"n\":{\"o\":\"c\"}}]", "{\"n\":null}", "{\"n\":[1]}"]
        {
            let line = format!("{{\"url\":\"http://h/\",\"m\":{inner},\"a\":\"b\"}}");
            let items = read(line.as_bytes(), &reading);
            let [Item::Page(page)] = &items[..] else { panic!("{inner}: {items:?}") };
            assert_eq!(page.body.as_bytes(), b"b\n", "{inner}");
        }
    }

    #[test]
    fn a_file_without_the_columns_of_the_job_is_found_before_the_run() {
        let check_for = |columns: Columns, lines: &str| {
            let source = Box::new(io::Cursor::new(lines.as_bytes().to_vec()));
            check(source, "x.jsonl", &Reading { columns, ..Reading::default() }).map_err(|error| format!("{error:#}"))
        };
        let check = |lines: &str| check_for(Columns::default(), lines);
        let error = |lines: &str| check(lines).unwrap_err();
        let line = r#"{"id":1,"meta":{"url":"http://a/"},"text":"x"}"#;
        for columns in [
            Columns { id: Some("key".into()), ..Columns::default() },
            Columns { url: Some("key".into()), ..Columns::default() },
        ] {
            let named = "x.jsonl has no field `key`: it has id, meta, meta.url, text; set the names in [cluster.read.columns], or by --id, --url and --text";
            assert_eq!(check_for(columns, line).unwrap_err(), named);
        }
        assert_eq!(check(line), Ok(Some(false)));
        assert_eq!(check_for(Columns { url: Some("meta.url".into()), ..Columns::default() }, line), Ok(Some(true)));
        assert!(
            error("{\"url\":\"http://a/\",\"content\":\"x\"}\n")
                .starts_with("x.jsonl has no field `text`: it has content, url")
        );
        assert!(error("\n[\n{\"url\":1}]").contains("jq -c '.[]'"));
        // A line of another kind is bad data, and no reason to refuse the file; nor is a null.
        for lines in ["", "\n", "no JSON", "{\"id\":1}\n[1]"] {
            assert_eq!(check(lines), Ok(None), "{lines}");
        }
        assert_eq!(check("{\"id\":1}\n{\"url\":null,\"text\":null}"), Ok(Some(true)));
    }

    #[test]
    fn lines_that_are_too_long_are_rejects() {
        let reading = Reading { max_page_bytes: Bytes(4), ..Reading::default() };
        let mut lines = format!("{{\"url\":\"http://long/\",\"text\":\"{}\"}}\n", "x".repeat(3 << 20)).into_bytes();
        let after = lines.len();
        lines.extend_from_slice(b"{\"url\":\"http://a/\",\"text\":\"words\"}\n");
        let items = read(&lines, &reading);
        let wanted = ["0 jsonl: line too long".to_owned(), format!("{after} http://a/ word")];
        assert_eq!(short(&items), wanted);
        // A gzip member that is inflated at once appends the whole line, more than is allowed.
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&lines).unwrap();
        assert_eq!(short(&read(&gzip.finish().unwrap(), &reading)), wanted);
    }

    #[test]
    fn damage_loses_only_the_line_it_is_in() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(b"{\"url\":\"http://a/\",\"text\":\"a\"}\n{\"url\":\"http://b/\",\"te").unwrap();
        let mut bytes = gzip.finish().unwrap();
        bytes.truncate(bytes.len() - 8);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(b"{\"url\":\"http://c/\",\"text\":\"c\"}\n").unwrap();
        bytes.extend_from_slice(&gzip.finish().unwrap());
        let items = short(&read(&bytes, &Reading::default()));
        assert_eq!(items, ["0 http://a/ a", "31 gzip: damaged member", "53 http://c/ c"]);
    }
}
