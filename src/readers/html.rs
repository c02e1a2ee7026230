//! Reads an HTML file as one page.

use std::io::Read;

use anyhow::Context as _;

use super::item::{Body, Item, Page, Reader};

/// Reads one HTML file. The file is the page's body; its charset is found later, from its bytes.
pub struct HtmlReader {
    source: Option<Box<dyn Read + Send>>,
    name: String,
    url: String,
    limit: usize,
    position: u64,
}

impl HtmlReader {
    /// Makes the reader of `source`, named `name` in errors, as the page of `url`, cut at `limit` bytes.
    pub fn new(source: Box<dyn Read + Send>, name: &str, url: &str, limit: usize) -> Self {
        HtmlReader { source: Some(source), name: name.to_owned(), url: url.to_owned(), limit, position: 0 }
    }
}

impl Reader for HtmlReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        let Some(source) = self.source.take() else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        source
            .take(self.limit as u64 + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {}", self.name))?;
        self.position = bytes.len() as u64;
        let cut = bytes.len() > self.limit;
        bytes.truncate(self.limit);
        Ok(Some(Item::Page(Page {
            url: self.url.clone(),
            ip: None,
            fetched: None,
            date_unread: false,
            status: 200,
            media_type: "text/html".to_owned(),
            charset: None,
            body: Body::Html(bytes),
            offset: 0,
            cut,
        })))
    }

    fn position(&self) -> u64 {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_one_page() {
        let mut reader = HtmlReader::new(Box::new(&b"<p>words"[..]), "x.html", "http://a/x.html", 4);
        let Some(Item::Page(page)) = reader.next().unwrap() else { panic!("no page") };
        assert_eq!((page.url.as_str(), page.body, page.cut), ("http://a/x.html", Body::Html(b"<p>w".to_vec()), true));
        assert_eq!(reader.next().unwrap(), None);
    }
}
