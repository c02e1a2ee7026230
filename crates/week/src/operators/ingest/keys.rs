//! What makes two records the same document: the URL of the page, the user's id, or nothing but
//! their place.

use crate::readers::Page;
use crate::records::{DocumentKey, KeyHash};
use crate::text::urls::{CanonicalUrl, URL_BYTES, canonical};

/// The key of a page's document, and the page's canonical URL, if it has one.
#[derive(Clone, Debug)]
pub struct PageKey {
    /// The hash of the key.
    pub hash: KeyHash,
    /// The canonical URL.
    pub url: Option<CanonicalUrl>,
}

impl PageKey {
    /// The key of a page that was read from the input named `file`.
    ///
    /// ```
    /// use nigh_week::operators::ingest::PageKey;
    /// use nigh_readers::readers::{Body, Page};
    /// use nigh_kernels::records::{DocumentKey, KeyHash};
    ///
    /// let page = Page {
    ///     id: Some("17".to_owned()),
    ///     url: Some("HTTP://a.example".to_owned()),
    ///     ip: None,
    ///     fetched: None,
    ///     date_unread: false,
    ///     status: None,
    ///     media_type: None,
    ///     charset: None,
    ///     body: Body::Text("one two".to_owned()),
    ///     entry: Default::default(),
    ///     offset: 40,
    ///     cut: false,
    ///     is_of_get: true,
    ///     values: Vec::new(),
    /// };
    /// let hash = |documents| PageKey::of(documents, &page, "x.jsonl").unwrap().hash;
    /// assert_eq!(hash(DocumentKey::Url), KeyHash::of("http://a.example/"));
    /// assert_eq!(hash(DocumentKey::Id), KeyHash::of("17"));
    /// assert_eq!(hash(DocumentKey::Row), KeyHash::of_place("x.jsonl", 40));
    /// let page = Page { url: Some(format!("http://a.example/{}", "x".repeat(8192))), ..page };
    /// let refused = PageKey::of(DocumentKey::Url, &page, "x.jsonl").unwrap_err();
    /// assert_eq!(refused, "url: longer than 8,192 bytes");
    /// ```
    ///
    /// # Errors
    /// If the page has no key: a phrase for the table `rejects`.
    pub fn of(documents: DocumentKey, page: &Page, file: &str) -> Result<PageKey, &'static str> {
        let url = page.url.as_deref().and_then(canonical);
        let hash = match (documents, &url, &page.id) {
            (DocumentKey::Url, Some(url), _) => KeyHash::of(url.as_str()),
            (DocumentKey::Url, None, _) if page.url.as_ref().is_some_and(|url| url.len() > URL_BYTES) => {
                return Err("url: longer than 8,192 bytes");
            }
            (DocumentKey::Url, None, _) if page.url.is_some() => return Err("url: not an http or https address"),
            (DocumentKey::Url, ..) => return Err("no url"),
            (DocumentKey::Id, _, Some(id)) => KeyHash::of(id),
            (DocumentKey::Id, _, None) => return Err("no id"),
            (DocumentKey::Row, ..) => KeyHash::of_place(file, page.offset),
        };
        Ok(PageKey { hash, url })
    }
}
