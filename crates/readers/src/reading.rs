//! How pages are read: the `[cluster.read]` table.

use std::borrow::Cow;
use std::path::PathBuf;

use nigh_kernels::kernels::TEXT_BYTES;
use nigh_text::method::Content;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The `[cluster.read]` or `[weekly.read]` table: how pages are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Reading {
    /// The largest body of a page; a larger one is cut there, and counted. Default: 16 MiB; at most
    /// 1 GiB.
    #[serde(deserialize_with = "page_bytes")]
    pub max_page_bytes: Bytes,
    /// Media types that are pages; records with others are passed over, and counted. Default: HTML
    /// and XHTML.
    pub media_types: Vec<String>,
    /// A prefix for relative paths in listings, and for the paths of files in HTML folders.
    /// Default: none.
    pub base_url: Option<String>,
    /// Whether the lines of a listing may name files that do not lie below `base-url`. Default:
    /// false.
    pub listing_anywhere: bool,
    /// How many links of a page are kept, in order of appearance. Default: 10,000.
    pub max_links: usize,
    /// What of a web page is its text: all, or its main content. Default: that of the store, whose
    /// first week has all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// What becomes of two records with one URL or id. Default: the first is the document, if
    /// records of one id have the same text.
    pub same_id: SameId,
    /// The columns of JSONL and Parquet input files.
    pub columns: Columns,
    /// Folders in which inputs with relative names are looked for before the working directory:
    /// those of the runs whose inputs they were. An empty path is the working directory. Not a
    /// field of a job.
    #[serde(skip)]
    pub folders: Vec<PathBuf>,
    /// The most bytes that a page of a column of Parquet may become when it is decoded, and a
    /// quarter of those of a batch of Arrow: more is an error. Not a field of a job: see
    /// [`Reading::within`].
    #[serde(skip, default = "max_decoded_bytes")]
    pub max_decoded_bytes: u64,
}

/// What becomes of two records with one URL or id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SameId {
    /// The first one is the document; the others are counted. Of one URL they may differ, as of a
    /// page that was fetched twice; of one id another text is an error, for ids that begin again in
    /// each file would lose texts.
    #[default]
    Equal,
    /// The first one is the document; the others are counted.
    First,
    /// The first one is the document; the others are bad records.
    Reject,
    /// Each is a document of its own.
    Row,
}

/// The largest `max-page-bytes`.
const MAX_PAGE_BYTES: Bytes = Bytes(1 << 30);

/// The most bytes that are read of a body, slightly below [`MAX_PAGE_BYTES`]: positions in a text
/// have 32 bits, and each byte may become a character of three bytes with a blank beside it.
const MOST_OF_BODY: usize = TEXT_BYTES / 4 - 256;

fn page_bytes<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Bytes, D::Error> {
    let bytes = Bytes::deserialize(value)?;
    if bytes > MAX_PAGE_BYTES || bytes == Bytes(0) {
        let most = MAX_PAGE_BYTES;
        let text = format!("max-page-bytes = {}: allowed is at most {most} ({}), and at least 1", bytes.0, most.0);
        return Err(serde::de::Error::custom(text));
    }
    Ok(bytes)
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            max_page_bytes: Bytes(16 << 20),
            media_types: vec!["text/html".into(), "application/xhtml+xml".into()],
            base_url: None,
            listing_anywhere: false,
            max_links: 10_000,
            content: None,
            same_id: SameId::Equal,
            columns: Columns::default(),
            folders: Vec::new(),
            max_decoded_bytes: max_decoded_bytes(),
        }
    }
}

/// What is decoded at once, if nothing bounds the memory: 1 GiB.
fn max_decoded_bytes() -> u64 {
    1 << 30
}

impl Columns {
    /// The column of the URLs, if the files have it.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or("url")
    }

    /// Whether a column of this name is read, if a file has it.
    pub(crate) fn reads(&self, name: &str) -> bool {
        let Columns { id, url: _, text, html, ip, date, values } = self;
        let mut named = [id, html, ip, date].into_iter().flatten().chain(text.names()).chain(values);
        self.url() == name || named.any(|named| named == name)
    }
}

impl Reading {
    /// The same, for a reader that may take `memory` bytes: what a file claims to become is
    /// believed up to a quarter of it. The writers' usual size is a few MiB, so up to 64 MiB are
    /// always believed.
    #[must_use]
    pub fn within(mut self, memory: u64) -> Reading {
        self.max_decoded_bytes = (memory / 4).clamp(64 << 20, max_decoded_bytes());
        self
    }

    /// The same, for inputs that a user names now: relative names begin in the working directory.
    #[must_use]
    pub fn here(&self) -> Reading {
        Reading { folders: Vec::new(), ..self.clone() }
    }

    /// What this reading says of where pages and their texts are: their columns, media types, URLs
    /// and the limit of a page. All else, such as the values that are wanted, is that of `given`.
    #[must_use]
    pub fn of_pages(&self, given: &Reading) -> Reading {
        let Reading { max_page_bytes, media_types, base_url, columns, .. } = self.clone();
        let columns = Columns { values: given.columns.values.clone(), ..columns };
        Reading { max_page_bytes, media_types, base_url, columns, ..given.clone() }
    }

    /// `max-page-bytes` as a length in memory; of the largest some hundred bytes less, so that any
    /// text of a page can be cut into words.
    pub fn page_limit(&self) -> usize {
        usize::try_from(self.max_page_bytes.0).map_or(MOST_OF_BODY, |limit| limit.min(MOST_OF_BODY))
    }
}

/// The `[cluster.read.columns]` table: the columns of JSONL and Parquet rows, one row for each
/// page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Columns {
    /// The id of the document: text or integers. Default: none; a document is the page of a URL, or
    /// a row if the files have no URLs.
    pub id: Option<String>,
    /// The URL of the page. Default: `url`, if the files have it.
    pub url: Option<String>,
    /// The text of the page, without markup: a column, or a list of them, whose texts are joined by
    /// line breaks. Default: `text`.
    pub text: TextColumns,
    /// The HTML of the page; used instead of `text` if both are named. Default: none.
    pub html: Option<String>,
    /// The IP address of the page's server. Default: none.
    pub ip: Option<String>,
    /// When the page was fetched, as RFC 3339. Default: none.
    pub date: Option<String>,
    /// Columns whose values are kept in the table `values`, for choosing the documents that stay;
    /// those that `canonical` names are kept without this. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl Default for Columns {
    fn default() -> Columns {
        Columns { id: None, url: None, text: "text".into(), html: None, ip: None, date: None, values: Vec::new() }
    }
}

impl Columns {
    /// The columns of a file that have texts, in their order; `None` for one that it does not have.
    /// If it has none of them, all are returned: it is an error that the first one is not there.
    /// But where HTML is named, `text` itself is not asked for.
    pub(crate) fn texts_of_file(&self, has: impl Fn(&str) -> bool) -> Vec<Option<String>> {
        let names = self.text.names();
        let has_none = !names.iter().any(|name| has(name));
        if has_none && self.html.is_some() && self.text == Columns::default().text {
            return Vec::new();
        }
        names.iter().map(|name| Some(name.clone()).filter(|name| has_none || has(name))).collect()
    }
}

/// The columns that have the text of a page. A job names one, or a list.
///
/// ```
/// use nigh_readers::reading::TextColumns;
/// use std::borrow::Cow;
///
/// let texts = [Some("Add."), None, Some("3")].map(|text| text.map(Cow::Borrowed));
/// assert_eq!(TextColumns::joined(texts.into_iter()).as_deref(), Some("Add.\n\n3"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OneOrMore", into = "OneOrMore")]
pub struct TextColumns(Vec<String>);

impl TextColumns {
    /// The names, in the order in which the texts are joined.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Whether none is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The only one, if there is one and no other.
    pub fn only(&self) -> Option<&str> {
        match &self.0[..] {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The text of a row, of the texts of its columns. Between two is a line break, and one that is
    /// not there is empty. `None` if none is there.
    pub fn joined<'a>(mut texts: impl Iterator<Item = Option<Cow<'a, str>>>) -> Option<Cow<'a, str>> {
        let first = texts.next()?;
        let Some(second) = texts.next() else { return first };
        let (mut is_there, mut joined) = (first.is_some(), first.unwrap_or_default().into_owned());
        for text in std::iter::once(second).chain(texts) {
            is_there |= text.is_some();
            joined.push('\n');
            joined.push_str(&text.unwrap_or_default());
        }
        is_there.then_some(Cow::Owned(joined))
    }
}

impl From<&str> for TextColumns {
    fn from(name: &str) -> TextColumns {
        TextColumns(vec![name.to_owned()])
    }
}

impl FromIterator<String> for TextColumns {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> TextColumns {
        TextColumns(names.into_iter().collect())
    }
}

/// How a job writes columns: a name, or a list of names.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected the name of a column, or a list of names")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl TryFrom<OneOrMore> for TextColumns {
    type Error = String;

    fn try_from(columns: OneOrMore) -> Result<TextColumns, String> {
        let names = match columns {
            OneOrMore::One(name) => vec![name],
            OneOrMore::More(names) => names,
        };
        match names.iter().enumerate().find(|(number, name)| names[..*number].contains(name)) {
            Some((_, twice)) => {
                Err(format!("the column `{twice}` is named twice: a text is joined from different ones"))
            }
            None => Ok(TextColumns(names)),
        }
    }
}

impl From<TextColumns> for OneOrMore {
    fn from(TextColumns(mut names): TextColumns) -> OneOrMore {
        match names.len() {
            1 => OneOrMore::One(names.remove(0)),
            _ => OneOrMore::More(names),
        }
    }
}

#[cfg(test)]
mod tests {
    use nigh_kernels::kernels::chosen;
    use nigh_text::text::decode;

    use super::*;

    #[test]
    fn the_text_of_the_largest_page_can_be_cut_into_words() {
        let reading: Reading = toml::from_str("max-page-bytes = \"1GiB\"").unwrap();
        let limit = reading.page_limit();
        assert!(limit <= 1 << 30 && limit > (1 << 30) - 1024, "{limit}");
        // Katakana of half width: nothing becomes longer.
        let (body, mut spaced) = ([0xB1; 4096], Vec::new());
        let (text, _) = decode(&body, Some("shift_jis"));
        chosen().unwrap().put_blanks(text.as_bytes(), &mut spaced);
        let times = spaced.len().div_ceil(body.len());
        assert!(times == 4 && limit * times < TEXT_BYTES, "{times} {limit}");
    }

    #[test]
    fn a_job_names_one_column_or_several() {
        let columns = |text: &str| toml::from_str::<Columns>(text).map_err(|error| error.message().to_owned());
        let text = |text: &str| columns(text).map(|columns| columns.text.names().join("+"));
        for (written, names) in [
            ("", "text"),
            ("text = \"a\"", "a"),
            ("text = [\"a\"]", "a"),
            ("text = [\"b\", \"a.c\"]", "b+a.c"),
            ("text = []", ""),
        ] {
            assert_eq!(text(written).as_deref(), Ok(names), "{written}");
            // What is written again is the same; a name alone is no list.
            let again = toml::to_string(&columns(written).unwrap()).unwrap();
            assert_eq!(text(&again).as_deref(), Ok(names), "{again}");
            assert_eq!(again.contains("text = \""), names == "text" || names == "a", "{again}");
        }
        assert!(text("text = [\"a\", \"b\", \"a\"]").unwrap_err().contains("`a` is named twice"));
        assert!(text("text = 1").unwrap_err().contains("the name of a column, or a list of names"));
    }

    #[test]
    fn a_file_may_lack_some_columns() {
        let of = |columns: &Columns, has: &[&str]| -> Vec<String> {
            columns.texts_of_file(|name| has.contains(&name)).into_iter().map(Option::unwrap_or_default).collect()
        };
        let several: TextColumns = ["a", "b", "c"].map(str::to_owned).into_iter().collect();
        let mut columns = Columns { text: several, ..Columns::default() };
        assert_eq!(of(&columns, &["b", "x"]), ["", "b", ""]);
        assert_eq!(of(&columns, &["x"]), ["a", "b", "c"], "it is an error that they are not there");
        columns.html = Some("x".to_owned());
        assert_eq!(of(&columns, &["x"]), ["a", "b", "c"]);
        columns.text = "text".into();
        assert_eq!(of(&columns, &["x"]), [""; 0]);
        assert_eq!(of(&columns, &["text", "x"]), ["text"]);
    }
}
