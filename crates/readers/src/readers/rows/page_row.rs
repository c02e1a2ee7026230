//! A row of a Parquet file, or a line of JSON, as a page. Both formats reject and cut by the same
//! rules: a row needs a body, HTML is used instead of text if both are there, and the body is cut
//! at the limit.

use std::borrow::Cow;

use anyhow::ensure;

use crate::readers::fields::{self, Date};
use crate::readers::item::{ArchiveEntry, Body, Item, Page, Reject};

/// One `T` (a column, say) for each field of a page that the job names.
pub struct PageFields<T> {
    pub id: Option<T>,
    pub url: Option<T>,
    /// The fields whose texts are joined, in order; `None` for one that the file does not have.
    pub text: Vec<Option<T>>,
    pub html: Option<T>,
    pub ip: Option<T>,
    pub date: Option<T>,
    /// The fields whose values are kept, in the order of their names; `None` for one that the file
    /// does not have.
    pub values: Vec<Option<T>>,
}

impl<T> PageFields<T> {
    /// The fields that are present.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        let PageFields { id, url, text, html, ip, date, values } = self;
        [id, url, html, ip, date].into_iter().chain(text).chain(values).flatten()
    }

    /// The fields that are present, to change them.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let PageFields { id, url, text, html, ip, date, values } = self;
        [id, url, html, ip, date].into_iter().chain(text).chain(values).flatten()
    }

    /// Which fields are present.
    pub fn has(&self) -> Vec<bool> {
        let PageFields { id, url, text, html, ip, date, values } = self;
        [id, url, html, ip, date].into_iter().chain(text).chain(values).map(Option::is_some).collect()
    }

    /// The same fields with something made of each.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn map<U, E>(&self, make: impl Fn(&T) -> Result<U, E>) -> Result<PageFields<U>, E> {
        let make = |field: &Option<T>| field.as_ref().map(&make).transpose();
        Ok(PageFields {
            id: make(&self.id)?,
            url: make(&self.url)?,
            text: self.text.iter().map(make).collect::<Result<_, E>>()?,
            html: make(&self.html)?,
            ip: make(&self.ip)?,
            date: make(&self.date)?,
            values: self.values.iter().map(make).collect::<Result<_, E>>()?,
        })
    }
}

/// Checks that a file has a column once. Programs differ in which of several with one name they
/// read.
///
/// # Errors
/// If it has `count` columns of this name, and these are more than one.
pub fn check_once(file: &str, column: &str, count: usize) -> anyhow::Result<()> {
    ensure!(count < 2, "{file} has {count} columns `{column}`: rename all of them except one");
    Ok(())
}

/// The id of a row.
#[derive(Debug, Default, PartialEq)]
pub enum RowId<'a> {
    /// There is none.
    #[default]
    None,
    /// Text, or all digits of a whole number.
    Text(Cow<'a, str>),
    /// A value that two rows could share although it is not the same in both: a fraction, bytes
    /// that are no text.
    Unusable,
}

impl<'a> RowId<'a> {
    /// The id that some bytes are.
    pub fn of_bytes(bytes: &'a [u8]) -> RowId<'a> {
        std::str::from_utf8(bytes).map_or(RowId::Unusable, |text| RowId::Text(Cow::Borrowed(text)))
    }
}

impl<T: ToString> From<T> for RowId<'_> {
    fn from(number: T) -> Self {
        RowId::Text(Cow::Owned(number.to_string()))
    }
}

/// The values of a row in the columns that the job names.
pub struct PageRow<'a> {
    /// The id.
    pub id: RowId<'a>,
    /// The URL as written.
    pub url: Option<Cow<'a, str>>,
    /// HTML; used instead of the text.
    pub html: Option<Cow<'a, [u8]>>,
    /// Whether the HTML is UTF-8, whatever charset it declares.
    pub html_is_text: bool,
    /// Text without markup.
    pub text: Option<Cow<'a, str>>,
    /// The address of the server, as written.
    pub ip: Option<Cow<'a, str>>,
    /// The time of the fetch.
    pub fetched: Date,
    /// The values of the columns whose values are kept.
    pub values: Vec<Option<String>>,
}

impl PageRow<'_> {
    /// Makes the page, its body cut at `limit` bytes, or a reject whose reason begins with
    /// `format`.
    pub fn item(self, offset: u64, limit: usize, format: &str) -> Item {
        let reject = |url: Option<Cow<'_, str>>, missing: &str| {
            Item::Reject(Reject { offset, url: url.map(Cow::into_owned), reason: format!("{format}: {missing}") })
        };
        let url = self.url.filter(|url| !url.is_empty());
        let id = match self.id {
            RowId::None => None,
            RowId::Text(id) => Some(id.into_owned()).filter(|id| !id.is_empty()),
            RowId::Unusable => return reject(url, "an id that is neither text nor a whole number"),
        };
        let (body, charset, cut) = match (self.html, self.text) {
            (Some(html), _) => {
                let cut = html.len() > limit;
                let bytes = match html {
                    Cow::Borrowed(bytes) => bytes[..bytes.len().min(limit)].to_vec(),
                    Cow::Owned(mut bytes) => {
                        bytes.truncate(limit);
                        bytes
                    }
                };
                (Body::Html(bytes), self.html_is_text.then(|| "utf-8".to_owned()), cut)
            }
            (None, Some(text)) => {
                let (text, cut) = crate::readers::fields::cut(text, limit);
                (Body::Text(text), None, cut)
            }
            (None, None) => return reject(url, "no text"),
        };
        Item::Page(Page {
            id,
            url: url.map(Cow::into_owned),
            ip: self.ip.and_then(|ip| fields::address(&ip)),
            fetched: self.fetched.microseconds(),
            date_unread: self.fetched == Date::Unreadable,
            status: None,
            media_type: None,
            charset,
            body,
            entry: ArchiveEntry::default(),
            offset,
            cut,
            is_of_get: true,
            values: self.values,
        })
    }
}
