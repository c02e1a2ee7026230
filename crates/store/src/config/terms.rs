//! The terms of an order by the user's columns: `score desc`, `source in ["a", "b"]`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::policy::DocumentFacts;
use crate::readers::ColumnValue;

/// The most terms of an order.
pub(super) const MOST_TERMS: usize = 8;

/// What documents are compared by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Term {
    /// What of a document.
    pub key: TermKey,
    /// Which values come first.
    way: TermOrder,
}

/// Something of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TermKey {
    /// The value of a column.
    Column(String),
    /// The bytes of its body.
    Length,
    /// Its words.
    Words,
    /// When it was fetched.
    Fetched,
    /// The bytes of its URL.
    UrlLength,
    /// Its place in the inputs: the file, in the order of names, and the place there.
    Place,
    /// Its host: no order, but a group.
    Host,
}

/// Which values come first.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TermOrder {
    Ascending,
    Descending,
    /// These, in this order, before all others.
    In(Vec<String>),
}

impl TermKey {
    /// The names of what is no column.
    const NAMES: [(&str, TermKey); 6] = [
        ("length", TermKey::Length),
        ("words", TermKey::Words),
        ("fetched", TermKey::Fetched),
        ("url-length", TermKey::UrlLength),
        ("place", TermKey::Place),
        ("host", TermKey::Host),
    ];

    /// The name of the column, if it is one.
    pub fn column(&self) -> Option<&String> {
        match self {
            TermKey::Column(name) => Some(name),
            _ => None,
        }
    }
}

impl TryFrom<String> for TermKey {
    type Error = String;

    /// A name between backquotes is that of a column.
    fn try_from(name: String) -> Result<TermKey, String> {
        let name = name.trim();
        let quoted = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
        match (quoted, TermKey::NAMES.into_iter().find(|(known, _)| *known == name)) {
            (Some(""), _) => Err("a term without a name: write `score desc`, say".to_owned()),
            (None, _) if name.is_empty() => Err("a term without a name: write `score desc`, say".to_owned()),
            (Some(name), _) => Ok(TermKey::Column(name.to_owned())),
            (None, Some((_, key))) => Ok(key),
            (None, None) => Ok(TermKey::Column(name.to_owned())),
        }
    }
}

impl From<TermKey> for String {
    fn from(key: TermKey) -> String {
        key.to_string()
    }
}

impl fmt::Display for TermKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermKey::Column(name) => {
                let is_plain = TermKey::NAMES.iter().all(|(known, _)| known != name)
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte) || byte >= 0x80);
                if is_plain { f.write_str(name) } else { write!(f, "`{name}`") }
            }
            key => f.write_str(TermKey::NAMES.iter().find(|(_, known)| known == key).map_or("", |(name, _)| name)),
        }
    }
}

impl Term {
    /// The term with small values first.
    pub fn ascending(key: TermKey) -> Term {
        Term { key, way: TermOrder::Ascending }
    }

    /// Appends the key of a document, with its value in the column if the term is one, to those of
    /// the terms before.
    pub(super) fn write_key(&self, document: &DocumentFacts<'_>, value: Option<&ColumnValue>, to: &mut Vec<u8>) {
        let number = |number: u64| ColumnValue::of(&number.to_string());
        let own = match &self.key {
            TermKey::Column(_) | TermKey::Host => None,
            TermKey::Length => number(document.bytes),
            TermKey::Words => number(document.words),
            TermKey::UrlLength => document.url_bytes.and_then(|bytes| number(bytes.into())),
            TermKey::Fetched => document.fetched.map(ColumnValue::Time),
            TermKey::Place => {
                let place = [u64::from(document.file), document.offset].map(number);
                let descends = self.way == TermOrder::Descending;
                return place.iter().for_each(|part| ColumnValue::write_key(part.as_ref(), descends, to));
            }
        };
        let value = own.as_ref().or(value);
        match &self.way {
            TermOrder::Ascending => ColumnValue::write_key(value, false, to),
            TermOrder::Descending => ColumnValue::write_key(value, true, to),
            TermOrder::In(texts) => {
                let place =
                    |value: &ColumnValue| texts.iter().position(|text| ColumnValue::of(text).as_ref() == Some(value));
                // Those that are not listed are equal, and before those without a value.
                to.push(value.map_or(u8::MAX, |value| place(value).map_or(u8::MAX - 1, |place| place as u8)));
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            TermOrder::Ascending => write!(f, "{}", self.key),
            TermOrder::Descending => write!(f, "{} desc", self.key),
            TermOrder::In(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| serde_json::json!(text).to_string()).collect();
                write!(f, "{} in [{}]", self.key, texts.join(","))
            }
        }
    }
}

impl From<Term> for String {
    fn from(term: Term) -> String {
        term.to_string()
    }
}

impl TryFrom<String> for Term {
    type Error = String;

    fn try_from(text: String) -> Result<Term, String> {
        let text = text.trim();
        // A name between backquotes may have anything in it.
        let name_ends = text.strip_prefix('`').and_then(|rest| rest.find('`')).map(|end| end + 2);
        let name_ends = name_ends.or_else(|| text.find(char::is_whitespace)).unwrap_or(text.len());
        let (name, way) = text.split_at(name_ends);
        let key = TermKey::try_from(name.to_owned())?;
        if key == TermKey::Host {
            return Err("`host` is for `each`, and no order: `host` in backquotes names a column".to_owned());
        }
        let way = way.trim();
        let way = match way.strip_prefix("in").filter(|values| values.trim_start().starts_with('[')) {
            Some(values) => TermOrder::In(values_of(values).map_err(|what| format!("`{text}`: {what}"))?),
            None => match way {
                "" | "asc" => TermOrder::Ascending,
                "desc" => TermOrder::Descending,
                _ => return Err(format!("`{text}`: allowed are NAME, NAME asc, NAME desc and NAME in [...]")),
            },
        };
        Ok(Term { key, way })
    }
}

/// The values of a list in JSON, as texts.
fn values_of(list: &str) -> Result<Vec<String>, String> {
    /// A place in the list is one byte of a key, and two are for what is not in it.
    const MOST_VALUES: usize = 254;
    let list: Vec<serde_json::Value> =
        serde_json::from_str(list).map_err(|_| "the values stand in brackets as JSON: [\"a\", \"b\"]".to_owned())?;
    if list.len() > MOST_VALUES {
        return Err(format!("it has {} values: allowed are {MOST_VALUES}", list.len()));
    }
    list.into_iter()
        .map(|value| match value {
            serde_json::Value::String(text) => Ok(text),
            serde_json::Value::Number(_) | serde_json::Value::Bool(_) => Ok(value.to_string()),
            _ => Err(format!("{value} is no value: allowed are texts, numbers and booleans")),
        })
        .collect()
}

/// Reads terms with commas between them: not those within brackets, quotes or backquotes.
pub(super) fn read_terms(text: &str) -> Result<Vec<Term>, String> {
    let (mut depth, mut quote, mut is_escaped, mut start) = (0_usize, None, false, 0);
    let mut parts = Vec::new();
    for (place, character) in text.char_indices() {
        match (quote, character) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    if parts.len() > MOST_TERMS {
        return Err(format!("it has {} terms: allowed are {MOST_TERMS}", parts.len()));
    }
    parts.into_iter().map(|part| Term::try_from(part.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_cut_at_commas_that_are_in_nothing() {
        let texts = |text: &str| read_terms(text).map(|terms| terms.iter().map(Term::to_string).collect::<Vec<_>>());
        assert_eq!(texts("a desc,b").unwrap(), ["a desc", "b"]);
        assert_eq!(
            texts(r#"a in ["x, \"]", 2],  `b, c` desc , length"#).unwrap(),
            [r#"a in ["x, \"]","2"]"#, "`b, c` desc", "length"]
        );
        assert_eq!(texts("`length` asc, meta.score desc").unwrap(), ["`length`", "meta.score desc"]);
        assert!(texts("a,,b").is_err() && texts("a b").is_err() && texts("a in [1").is_err());
    }

    #[test]
    fn listed_values_come_first_and_missing_ones_last() {
        let term = Term::try_from(r#"s in ["b", 1, "a"]"#.to_owned()).unwrap();
        let key = |text: &str| {
            let mut key = Vec::new();
            term.write_key(&DocumentFacts::default(), ColumnValue::of(text).as_ref(), &mut key);
            key
        };
        assert_eq!(["b", "1.0", "a", "c", "0", ""].map(key), [0, 1, 2, 254, 254, 255].map(|byte| vec![byte]));
    }
}
