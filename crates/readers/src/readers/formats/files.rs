//! Files that are one page, and lists of failed downloads.

use anyhow::Context as _;

use super::face::{FormatReader, ends_in};
use crate::readers::input::{Input, cannot};
use crate::readers::item::Reader;
use crate::readers::keys::KeysOfInput;
use crate::readers::source::source;
use crate::readers::whole::{Content, WholeReader};
use crate::readers::{failed, sniff};
use crate::reading::Reading;

/// One page.
pub(super) enum Page {
    Html,
    Text,
}

/// One failed download in each line, tab-separated.
pub(super) struct Failed;

impl FormatReader for Page {
    fn name(&self) -> &'static str {
        match self {
            Page::Html => "html",
            Page::Text => "text",
        }
    }

    fn is_named(&self, _name: &str, plain: &str) -> bool {
        match self {
            Page::Html => ends_in(plain, &["html", "htm", "xhtml"]),
            Page::Text => ends_in(plain, &["txt", "md", "markdown"]),
        }
    }

    fn begins(&self, first: &[u8]) -> bool {
        matches!(self, Page::Html) && sniff::is_html(first)
    }

    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        let Input { name, bytes, place, page_url, .. } = input;
        let content = match self {
            Page::Html => Content::Html,
            Page::Text => Content::Text,
        };
        let source = source(name, *bytes, place)?;
        let reader = WholeReader::new(source, content, name, page_url.as_deref(), reading.page_limit());
        Ok(Box::new(reader.with_context(|| cannot("read", name))?))
    }

    fn check(&self, input: &Input, _reading: &Reading) -> anyhow::Result<KeysOfInput> {
        Ok(match self {
            Page::Text if input.page_url.is_none() => KeysOfInput::Files,
            Page::Html | Page::Text => KeysOfInput::Pages,
        })
    }
}

impl FormatReader for Failed {
    fn name(&self) -> &'static str {
        "tsv"
    }

    fn is_named(&self, _name: &str, plain: &str) -> bool {
        plain.starts_with("failed") && ends_in(plain, &["tsv"])
    }

    fn begins(&self, first: &[u8]) -> bool {
        failed::begins(first)
    }

    fn open(&self, input: &Input, _reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        let Input { name, bytes, place, .. } = input;
        let reader = failed::FailedReader::new(source(name, *bytes, place)?, name);
        Ok(Box::new(reader.with_context(|| cannot("read", name))?))
    }

    fn check(&self, _input: &Input, _reading: &Reading) -> anyhow::Result<KeysOfInput> {
        Ok(KeysOfInput::Unknown)
    }
}
