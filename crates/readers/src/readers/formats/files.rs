//! Files that are one page, and lists of failed downloads.

use anyhow::Context as _;

use super::face::{FormatReader, ends_in};
use super::records::RecordKind;
use crate::readers::input::{Input, cannot};
use crate::readers::item::Reader;
use crate::readers::opened::{KeysOfInput, source};
use crate::readers::whole::{PageKind, WholeReader};
use crate::readers::{failed, sniff};
use crate::reading::Reading;

/// One page.
pub(super) struct OnePage(pub PageKind);

/// One failed download in each line, tab-separated.
pub(super) struct Failed;

impl FormatReader for OnePage {
    fn name(&self) -> &'static str {
        match self.0 {
            PageKind::Html => "html",
            PageKind::Text => "text",
        }
    }

    fn is_named(&self, _name: &str, plain: &str) -> bool {
        match self.0 {
            PageKind::Html => ends_in(plain, &["html", "htm", "xhtml"]),
            PageKind::Text => ends_in(plain, &["txt", "md", "markdown"]),
        }
    }

    fn begins(&self, first: &[u8]) -> bool {
        self.0 == PageKind::Html && sniff::is_html(first)
    }

    fn records(&self) -> RecordKind {
        RecordKind::WholeFile(self.0)
    }

    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        let Input { name, bytes, place, page_url, .. } = input;
        let source = source(name, *bytes, place)?;
        let reader = WholeReader::new(source, self.0, name, page_url.as_deref(), reading.page_limit());
        Ok(Box::new(reader.with_context(|| cannot("read", name))?))
    }

    fn check(&self, input: &Input, _reading: &Reading) -> anyhow::Result<KeysOfInput> {
        Ok(match self.0 {
            PageKind::Text if input.page_url.is_none() => KeysOfInput::Files,
            PageKind::Html | PageKind::Text => KeysOfInput::Pages,
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

    fn records(&self) -> RecordKind {
        RecordKind::Failures
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
