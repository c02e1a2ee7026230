//! A batch of records, as lines of JSON.
//!
//! ```text
//! {"url": "http://a.example/", "html": "<p>One two three"}
//! {"id": "17", "text": "One two three"}
//! {"id": "17", "delete": true}
//! {"id": "17", "supershingles": "base64", "features": "base64", "checksum": "32 hexadecimal digits"}
//! ```
//!
//! The last one has what the tables have of a page: the bytes of both columns of `features`, and
//! the checksum of `documents`. A line is read as the reader of JSON Lines reads it for `nigh add`;
//! but a batch with a bad line is refused as a whole.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::refusal::Refusal;
use crate::config::Method;
use crate::features::{Fingerprinter, PageFacts, Sketch};
use crate::operators::ingest::{PageKey, page_facts};
use crate::readers::{ArchiveEntry, Body, Page};
use crate::records::{DocumentKey, FeatureBits, KeyHash, checksum};

/// What a line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The hash of the key of the document.
    pub(super) key: KeyHash,
    /// The canonical URL, or the id.
    pub(super) name: String,
    /// What the document is from now on; `None` if it is deleted.
    pub(super) body: Option<LineContent>,
    /// Where its line begins in the batch, and its bytes.
    pub(super) line: (usize, usize),
}

/// What a record has of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LineContent {
    /// Its page.
    Page(Body),
    /// What its page would be read for.
    Ready(Box<Features>),
}

/// What is kept of the page of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Features {
    pub(super) checksum: u128,
    pub(super) facts: PageFacts,
}

/// The limits of batches.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes of a batch.
    pub batch_bytes: usize,
    /// The most bytes of a line.
    pub line_bytes: usize,
    /// The most records of a batch.
    pub records: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { batch_bytes: 16 << 20, line_bytes: 4 << 20, records: 10_000 }
    }
}

impl Limits {
    /// Without limits: for lines that have been looked at one by one.
    pub(super) fn none() -> Limits {
        Limits { batch_bytes: usize::MAX, line_bytes: usize::MAX, records: usize::MAX }
    }
}

/// The fields of a line. Others are passed over.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    html: Option<Cow<'a, str>>,
    #[serde(borrow)]
    supershingles: Option<Cow<'a, str>>,
    #[serde(borrow)]
    features: Option<Cow<'a, str>>,
    #[serde(borrow)]
    checksum: Option<Cow<'a, str>>,
    #[serde(default)]
    delete: bool,
}

impl Line<'_> {
    /// The features that the line has; `None` if it has none.
    fn ready(&self, method: &Method) -> Result<Option<Features>, String> {
        let (supershingles, features) = match (&self.supershingles, &self.features) {
            (None, None) => return Ok(None),
            (Some(supershingles), Some(features)) => (supershingles, features),
            _ => return Err("`supershingles` and `features` need each other".to_owned()),
        };
        if self.text.is_some() || self.html.is_some() {
            return Err("both a text and `features`: give one of them".to_owned());
        }
        let is_right = |digits: &&str| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let checksum = self.checksum.as_deref().filter(is_right);
        let checksum = checksum.and_then(|digits| u128::from_str_radix(digits, 16).ok());
        let checksum = checksum.ok_or("`features` needs `checksum`, of 32 hexadecimal digits")?;
        let bytes = |name: &str, text: &str, wanted: usize| {
            let bytes = BASE64_STANDARD.decode(text).map_err(|error| format!("`{name}` is not base64: {error}"))?;
            let is_right = bytes.is_empty() || bytes.len() == wanted;
            let text =
                || format!("`{name}` has {} bytes: in this store it has {wanted}, or none without words", bytes.len());
            is_right.then_some(()).ok_or_else(text)?;
            Ok::<_, String>(bytes)
        };
        let supershingles = bytes("supershingles", supershingles, size_of::<u64>() * method.supershingles)?;
        let features = bytes("features", features, size_of::<FeatureBits>() * method.features)?;
        if supershingles.is_empty() != features.is_empty() {
            return Err("`supershingles` and `features` need each other".to_owned());
        }
        let (supershingles, features) = (supershingles.as_chunks().0, features.as_chunks().0);
        let sketch = Sketch {
            supershingles: supershingles.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
            features: features.iter().map(|bytes| FeatureBits::from_le_bytes(*bytes)).collect(),
        };
        Ok(Some(Features { checksum, facts: PageFacts { sketch, ..PageFacts::default() } }))
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads the records of a batch.
///
/// # Errors
/// If the batch exceeds a limit, or a line is not a record: the refusal names the line and what is
/// wrong with it.
pub fn read_batch(bytes: &[u8], method: &Method, limits: &Limits) -> Result<Vec<Record>, Refusal> {
    read_lines(bytes, method, limits, LineForm::Object)
}

/// Reads the records of a batch of the journal: an earlier version may have taken lines that are
/// refused now.
///
/// # Errors
/// If a line is not a record.
pub(super) fn read_taken(bytes: &[u8], method: &Method) -> Result<Vec<Record>, Refusal> {
    read_lines(bytes, method, &Limits::none(), LineForm::Any)
}

/// What a line may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineForm {
    /// An object, with an id of at most [`LONGEST_ID`] bytes.
    Object,
    /// Also an array of the values of all fields, and with a longer number as its id: these were
    /// taken once.
    Any,
}

fn read_lines(bytes: &[u8], method: &Method, limits: &Limits, form: LineForm) -> Result<Vec<Record>, Refusal> {
    if bytes.len() > limits.batch_bytes {
        return Err(Refusal::too_large(format!(
            "the batch has {} bytes, of at most {}: send it in parts",
            bytes.len(),
            limits.batch_bytes
        )));
    }
    let mut records = Vec::new();
    let mut next = 0;
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        let text = line.trim_ascii_start();
        // A file begins with it, or several that became one.
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).trim_ascii_start();
        let at = next + line.len() - text.len();
        next += line.len() + 1;
        let line = text.trim_ascii_end();
        if line.is_empty() {
            continue;
        }
        if line.len() > limits.line_bytes {
            let text = format!("line {number} has {} bytes, of at most {}", line.len(), limits.line_bytes);
            return Err(Refusal::too_large(text));
        }
        if records.len() == limits.records {
            let text = format!("the batch has more than {} records: send it in parts", limits.records);
            return Err(Refusal::too_large(text));
        }
        let read = record(line, method, form).map_err(|reason| Refusal::bad(format!("line {number}: {reason}")))?;
        records.push(Record { line: (at, line.len()), ..read });
    }
    Ok(records)
}

/// Reads a JSON object. An array of its values is none, though it could be read as one: `nigh add`
/// takes objects only.
fn object<'a, T: Deserialize<'a>>(text: &'a [u8], fields: &str, form: LineForm) -> Result<T, String> {
    let text = std::str::from_utf8(text).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))?;
    let failed = |reason: String| format!("not a JSON object with {fields}: {reason}");
    if form == LineForm::Object && !text.trim_ascii_start().starts_with('{') {
        return Err(failed("it does not begin with `{`".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| failed(error.to_string()))
}

fn record(line: &[u8], method: &Method, form: LineForm) -> Result<Record, String> {
    let documents = method.documents;
    let line: Line<'_> = object(line, "the fields of a record", form)?;
    let ready = line.ready(method)?;
    let Line { id, url, text, html, delete, .. } = line;
    let id = id.map(|id| id_of(id.get(), form)).transpose()?.flatten();
    let body = match (html, text) {
        (Some(html), _) => Body::Html(html.into_owned().into_bytes()),
        (None, Some(text)) => Body::Text(text.into_owned()),
        (None, None) if delete || ready.is_some() => Body::Text(String::new()),
        (None, None) => return Err("neither `text` nor `html`, and not `\"delete\": true`".to_owned()),
    };
    let page = page(id, url.map(Cow::into_owned).filter(|url| !url.is_empty()), body);
    let PageKey { hash, url } = PageKey::of(documents, &page, "").map_err(|reason| match documents {
        DocumentKey::Id => "no `id`: this store knows documents by their ids".to_owned(),
        _ if page.url.is_none() => "no `url`: this store knows documents by their URLs".to_owned(),
        _ => reason.to_owned(),
    })?;
    let name = match documents {
        DocumentKey::Id => page.id.unwrap_or_default(),
        _ => url.map(String::from).unwrap_or_default(),
    };
    let content = ready.map_or(LineContent::Page(page.body), |features| LineContent::Ready(Box::new(features)));
    Ok(Record { key: hash, name, body: (!delete).then_some(content), line: (0, 0) })
}

/// The fields of a record without a name. Others are passed over.
#[derive(Deserialize)]
struct Compared<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    html: Option<Cow<'a, str>>,
}

/// Reads a record without a name: a text or a page to compare with.
///
/// # Errors
/// As [`read_batch`].
pub(super) fn read_body(bytes: &[u8], limits: &Limits) -> Result<Body, Refusal> {
    if bytes.len() > limits.line_bytes {
        return Err(Refusal::too_large(format!(
            "the record has {} bytes, of at most {}",
            bytes.len(),
            limits.line_bytes
        )));
    }
    let Compared { text, html } = object(bytes, "`text` or `html`", LineForm::Object).map_err(Refusal::bad)?;
    match (html, text) {
        (Some(html), _) => Ok(Body::Html(html.into_owned().into_bytes())),
        (None, Some(text)) => Ok(Body::Text(text.into_owned())),
        (None, None) => Err(Refusal::bad("neither `text` nor `html`")),
    }
}

/// The page of a line.
fn page(id: Option<String>, url: Option<String>, body: Body) -> Page {
    Page {
        id,
        url,
        ip: None,
        fetched: None,
        date_unread: false,
        status: None,
        media_type: None,
        charset: None,
        body,
        entry: ArchiveEntry::default(),
        offset: 0,
        cut: false,
        is_of_get: true,
        values: Vec::new(),
    }
}

/// The most bytes of an id.
const LONGEST_ID: usize = 8192;

/// The id that a value is: a string, or the digits of a whole number; `None` if it is null or
/// empty.
fn id_of(value: &str, form: LineForm) -> Result<Option<String>, String> {
    let is_whole = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // Answers repeat it for each document that is like this one.
    let too_long = |id: &str| Err(format!("`id` has {} bytes: at most {LONGEST_ID} are allowed", id.len()));
    match value {
        "null" | "\"\"" => Ok(None),
        "-0" => Ok(Some("0".to_owned())),
        _ if value.starts_with('"') => {
            let id: String = serde_json::from_str(value).map_err(|error| format!("`id`: {error}"))?;
            let has_line_break = id.contains(['\n', '\r']);
            if has_line_break {
                Err("`id` has a line break".to_owned())
            } else if id.len() > LONGEST_ID {
                too_long(&id)
            } else {
                Ok(Some(id))
            }
        }
        _ if is_whole(value.strip_prefix('-').unwrap_or(value)) => {
            if form == LineForm::Object && value.len() > LONGEST_ID {
                too_long(value)
            } else {
                Ok(Some(value.to_owned()))
            }
        }
        _ => Err(format!("`id` is {}, neither text nor a whole number", value.chars().take(100).collect::<String>())),
    }
}

/// As if a parser had a fault: what finds the features of this text panics.
#[cfg(test)]
pub(super) const POISON: &str = "poison of a test";

/// Computes the features of the pages of records, on some threads, in the order of the records.
pub(super) fn features(fingerprinters: &mut [Fingerprinter], records: &[Record]) -> Vec<Option<Features>> {
    let share = records.len().div_ceil(fingerprinters.len()).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = fingerprinters
            .iter_mut()
            .zip(records.chunks(share))
            .map(|(fingerprinter, records)| {
                let each = move || {
                    records.iter().map(|record| features_of_content(fingerprinter, record.body.as_ref()?)).collect()
                };
                scope.spawn(each)
            })
            .collect();
        let parts = threads.into_iter().map(|thread| thread.join());
        parts
            .flat_map(|part: Result<Vec<_>, _>| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn features_of_content(fingerprinter: &mut Fingerprinter, content: &LineContent) -> Option<Features> {
    #[cfg(test)]
    assert!(*content != LineContent::Page(Body::Text(POISON.to_owned())), "a text that a parser fails at");
    match content {
        LineContent::Page(body) => features_of(fingerprinter, body),
        LineContent::Ready(features) => Some((**features).clone()),
    }
}

/// Computes the features of a page.
pub(super) fn features_of(fingerprinter: &mut Fingerprinter, body: &Body) -> Option<Features> {
    let (bytes, facts) = page_facts(fingerprinter, body, label_of(body), None);
    Some(Features { checksum: checksum(bytes), facts })
}

/// The charset of a body: a string of JSON is UTF-8, whatever charset its HTML names.
pub(super) fn label_of(body: &Body) -> Option<&'static str> {
    matches!(body, Body::Html(_)).then_some("utf-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(documents: DocumentKey) -> Method {
        Method { documents, ..Method::default() }
    }

    fn read(text: &str, documents: DocumentKey) -> Result<Vec<Record>, String> {
        read_batch(text.as_bytes(), &method(documents), &Limits::default()).map_err(|refusal| refusal.text)
    }

    #[test]
    fn lines_are_records() {
        let text = "{\"id\": 17, \"text\": \"a b\"}\n\n {\"id\":\"x\\u0041\",\"html\":\"<p>\",\"text\":\"c\",\"more\":[1]} \r\n\
                    {\"id\":\"17\",\"delete\":true}";
        let records = read(text, DocumentKey::Id).unwrap();
        assert_eq!(records.iter().map(|record| record.name.as_str()).collect::<Vec<_>>(), ["17", "xA", "17"]);
        assert_eq!(records[0].body, Some(LineContent::Page(Body::Text("a b".to_owned()))));
        let lines: Vec<&str> = records.iter().map(|record| &text[record.line.0..][..record.line.1]).collect();
        assert_eq!(lines, text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>());
        assert_eq!(records[1].body, Some(LineContent::Page(Body::Html(b"<p>".to_vec()))));
        assert_eq!((records[2].key, &records[2].body), (records[0].key, &None));
        let records = read("{\"url\":\"HTTP://a.example\",\"text\":\"\"}", DocumentKey::Url).unwrap();
        assert_eq!((records[0].name.as_str(), records[0].key), ("http://a.example/", KeyHash::of("http://a.example/")));
    }

    /// A line with ready features, and more fields.
    fn ready(supershingles: &str, features: &str, more: &str) -> String {
        let checksum = "0123456789abcdef0123456789abcdef";
        format!(
            "{{\"id\":1,\"supershingles\":\"{supershingles}\",\"features\":\"{features}\",\"checksum\":\"{checksum}\"{more}}}"
        )
    }

    #[test]
    fn ready_features_are_taken_as_they_are() {
        let method = Method::default();
        let features: Vec<FeatureBits> = (0..method.features as u16).map(|number| number * 257).collect();
        let supershingles: Vec<u64> = (0..method.supershingles as u64).map(|number| number << 60 | 7).collect();
        let [of_supershingles, of_features] = [
            supershingles.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>(),
            features.iter().flat_map(|word| word.to_le_bytes()).collect(),
        ]
        .map(|bytes| BASE64_STANDARD.encode(bytes));
        let records = read(&ready(&of_supershingles, &of_features, ""), DocumentKey::Id).unwrap();
        let Some(LineContent::Ready(read)) = &records[0].body else { panic!("{records:?}") };
        assert_eq!(read.checksum, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(read.facts.sketch, Sketch { supershingles, features });
        let records = self::read(&ready("", "", ""), DocumentKey::Id).unwrap();
        assert!(matches!(&records[0].body, Some(LineContent::Ready(read)) if read.facts.sketch == Sketch::default()));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (line, reason) in [
            ("[1]", "not a JSON object"),
            // An array with the values of the fields, in their order.
            ("[17,null,\"a\",null,null,null,null]", "does not begin with `{`"),
            (&format!("{{\"id\": {}, \"text\": \"\"}}", "7".repeat(8193)), "`id` has 8193 bytes: at most 8192"),
            (&format!("{{\"id\": \"{}\", \"text\": \"\"}}", "7".repeat(8193)), "`id` has 8193 bytes: at most 8192"),
            ("{\"id\": 1, \"text\": 3}", "not a JSON object with the fields"),
            ("{\"id\": 1}", "neither `text` nor `html`"),
            ("{\"id\": 1.5, \"text\": \"\"}", "`id` is 1.5"),
            ("{\"id\": \"\", \"text\": \"\"}", "no `id`"),
            ("{\"id\": \"a\\nb\", \"text\": \"\"}", "line break"),
            ("{\"url\": \"http://a.example\", \"text\": \"\"}", "no `id`"),
            ("{\"id\": 1, \"text\": \"a\"", "not a JSON object"),
            ("{\"id\": 1, \"features\": \"\"}", "need each other"),
            ("{\"id\": 1, \"features\": \"\", \"supershingles\": \"\"}", "needs `checksum`"),
            (&ready("!", "", ""), "`supershingles` is not base64"),
            (&ready("AAAA", "", ""), "`supershingles` has 3 bytes: in this store it has 48"),
            (&ready("", &"A".repeat(224), ""), "need each other"),
            (&ready("", "", ",\"text\":\"a\""), "both a text and `features`"),
        ] {
            let error = read(&format!("{{\"id\":1,\"text\":\"\"}}\n{line}\n"), DocumentKey::Id).unwrap_err();
            assert!(error.starts_with("line 2: ") && error.contains(reason), "{line}: {error}");
        }
        let error = read("{\"url\": \"mailto:a\", \"text\": \"\"}", DocumentKey::Url).unwrap_err();
        assert!(error.contains("not an http or https address"), "{error}");
        let error =
            read_batch(b"{\"id\":1,\"text\":\"\xff\"}", &method(DocumentKey::Id), &Limits::default()).unwrap_err();
        assert!(error.text.contains("line 1: not UTF-8 at byte 16"), "{}", error.text);
    }

    #[test]
    fn what_an_earlier_version_took_is_read_again() {
        let long = "7".repeat(10_000);
        let lines = format!("[17,null,\"a b\",null,null,null,null]\n{{\"id\":{long},\"text\":\"c\"}}");
        let records = read_taken(lines.as_bytes(), &method(DocumentKey::Id)).unwrap();
        let of: Vec<_> = records.iter().map(|record| (record.name.as_str(), record.body.clone())).collect();
        let text = |text: &str| Some(LineContent::Page(Body::Text(text.to_owned())));
        assert_eq!(of, [("17", text("a b")), (&*long, text("c"))]);
    }

    #[test]
    fn what_is_compared_is_an_object() {
        let read = |text: &str| read_body(text.as_bytes(), &Limits::default()).map_err(|refusal| refusal.text);
        assert_eq!(read(" {\"text\": \"a\"}\n").unwrap(), Body::Text("a".to_owned()));
        for bad in ["[\"a\", null]", "", "7", "{\"text\": \"a\""] {
            let error = read(bad).unwrap_err();
            assert!(error.contains("not a JSON object with `text` or `html`"), "{bad}: {error}");
        }
    }

    #[test]
    fn limits_are_kept() {
        let limits = Limits { batch_bytes: 100, line_bytes: 40, records: 2 };
        let line = "{\"id\":1,\"text\":\"\"}\n";
        let read = |text: &str| {
            read_batch(text.as_bytes(), &method(DocumentKey::Id), &limits)
                .map_err(|refusal| (refusal.status, refusal.text))
        };
        assert_eq!(read(&line.repeat(2)).unwrap().len(), 2);
        let (status, text) = read(&line.repeat(3)).unwrap_err();
        assert!(status == 413 && text.contains("more than 2 records"), "{text}");
        let (status, text) = read(&format!("{{\"id\":1,\"text\":\"{}\"}}", "a".repeat(30))).unwrap_err();
        assert!(status == 413 && text.contains("line 1 has 48 bytes, of at most 40"), "{text}");
        assert_eq!(read(&line.repeat(8)).unwrap_err().0, 413);
    }
}
