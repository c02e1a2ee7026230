//! A row of a table or a line of JSON as a page: one rule for what it must have and where it is cut.

use std::borrow::Cow;
use std::net::IpAddr;

use super::item::{Body, Item, Page, Reject};

/// What a row has in the columns of the job.
pub struct PageRow<'a> {
    /// The URL as found.
    pub url: Option<Cow<'a, str>>,
    /// HTML, taken before text.
    pub html: Option<Cow<'a, [u8]>>,
    /// Whether the HTML is UTF-8, whatever it says of itself.
    pub html_is_text: bool,
    /// Text.
    pub text: Option<Cow<'a, str>>,
    /// The address it came from, as written.
    pub ip: Option<Cow<'a, str>>,
    /// When it was fetched: microseconds since 1970.
    pub fetched: Option<i64>,
}

impl PageRow<'_> {
    /// Makes the page, at most `limit` bytes of it; or a reject, in the words of this format.
    pub fn item(self, offset: u64, limit: usize, format: &str) -> Item {
        let reject = |url: Option<Cow<'_, str>>, lack: &str| {
            Item::Reject(Reject { offset, url: url.map(Cow::into_owned), reason: format!("{format}: {lack}") })
        };
        let Some(url) = self.url.filter(|url| !url.is_empty()) else {
            return reject(None, "no url");
        };
        let (body, charset, media_type, cut) = match (self.html, self.text) {
            (Some(html), _) => {
                let cut = html.len() > limit;
                let bytes = match html {
                    Cow::Borrowed(bytes) => bytes[..bytes.len().min(limit)].to_vec(),
                    Cow::Owned(mut bytes) => {
                        bytes.truncate(limit);
                        bytes
                    }
                };
                (Body::Html(bytes), self.html_is_text.then(|| "utf-8".to_owned()), "text/html", cut)
            }
            (None, Some(text)) => {
                let (text, cut) = super::fields::cut(text, limit);
                (Body::Text(text), None, "text/plain", cut)
            }
            (None, None) => return reject(Some(url), "no text"),
        };
        Item::Page(Page {
            url: url.into_owned(),
            ip: self.ip.and_then(|ip| ip.parse::<IpAddr>().ok()),
            fetched: self.fetched,
            status: 200,
            media_type: media_type.to_owned(),
            charset,
            body,
            offset,
            cut,
        })
    }
}
