//! Reads a file as one page: HTML, plain text or Markdown, plain or compressed.

use std::io;
use std::io::Read;

use anyhow::Context as _;

use super::item::{ArchiveEntry, Body, Item, Page, Reader, Reject, Unread};
use crate::readers::streams::{MemberStep, Members, Stored};

/// What a file that is one page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// HTML.
    Html,
    /// Text, as it is: markup of Markdown is not read.
    Text,
}

/// Reads one file. The file is the page's body; its charset is found later, from its bytes.
pub struct WholeReader {
    members: Members,
    content: PageKind,
    name: String,
    url: Option<String>,
    limit: usize,
    is_read: bool,
}

impl WholeReader {
    /// Makes the reader of `source`, named `name` in errors, as the page of `url` if it has one,
    /// cut at `limit` bytes.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(
        source: Box<dyn Read + Send>,
        content: PageKind,
        name: &str,
        url: Option<&str>,
        limit: usize,
    ) -> io::Result<Self> {
        let members = Members::new(Stored::new(source), |bytes| !bytes.is_empty())?;
        let (name, url) = (name.to_owned(), url.map(str::to_owned));
        Ok(WholeReader { members, content, name, url, limit, is_read: false })
    }

    fn item(&mut self) -> io::Result<Item> {
        let mut bytes = Vec::new();
        while bytes.len() <= self.limit {
            match self.members.step(&mut bytes)? {
                MemberStep::Bytes | MemberStep::Start(_) => {}
                MemberStep::Damage { reason, .. } => {
                    return Ok(Item::Reject(Reject { offset: 0, url: self.url.clone(), reason: reason.to_owned() }));
                }
                MemberStep::End => break,
            }
        }
        let cut = bytes.len() > self.limit;
        bytes.truncate(self.limit);
        if cut
            && let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            // The limit is within a character.
            bytes.truncate(error.valid_up_to());
        }
        let (media_type, body) = match self.content {
            PageKind::Html => ("text/html", Body::Html(bytes)),
            PageKind::Text => ("text/plain", Body::Plain(bytes)),
        };
        Ok(Item::Page(Page {
            id: None,
            url: self.url.clone(),
            ip: None,
            fetched: None,
            date_unread: false,
            status: None,
            media_type: Some(media_type.to_owned()),
            charset: None,
            body,
            entry: ArchiveEntry::default(),
            offset: 0,
            cut,
            is_of_get: true,
            values: Vec::new(),
        }))
    }
}

impl Reader for WholeReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(None);
        }
        self.item().map(Some).with_context(|| format!("cannot read {}", self.name))
    }

    fn position(&self) -> u64 {
        self.members.position()
    }

    fn unread(&self) -> Unread {
        self.members.unread()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], content: PageKind, url: Option<&str>) -> Vec<Item> {
        let source = Box::new(io::Cursor::new(bytes.to_vec()));
        let mut reader = WholeReader::new(source, content, "x", url, 4).unwrap();
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    #[test]
    fn a_file_is_one_page() {
        let url = Some("http://a/x.html");
        let items = read(b"<p>words", PageKind::Html, url);
        let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((page.url.as_deref(), &page.body, page.cut), (url, &Body::Html(b"<p>w".to_vec()), true));
        let compressed = zstd::bulk::compress(b"text", 1).unwrap();
        for bytes in [&b"text"[..], &compressed] {
            let items = read(bytes, PageKind::Text, None);
            let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
            assert_eq!((&page.url, &page.body, page.cut), (&None, &Body::Plain(b"text".to_vec()), false));
        }
    }

    #[test]
    fn a_damaged_file_is_a_reject_and_an_empty_one_a_page_without_words() {
        let mut compressed = zstd::bulk::compress(b"text", 1).unwrap();
        compressed.truncate(compressed.len() - 2);
        let items = read(&compressed, PageKind::Text, None);
        assert!(matches!(&items[..], [Item::Reject(reject)] if reject.reason.starts_with("zstd")), "{items:?}");
        let items = read(b"", PageKind::Text, None);
        assert!(matches!(&items[..], [Item::Page(page)] if page.body.bytes() == 0), "{items:?}");
    }
}
