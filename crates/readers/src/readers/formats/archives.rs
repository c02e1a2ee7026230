//! Web archives: WARC, ARC, and the zip files that hold them.

use std::fs::File;

use anyhow::{Context as _, bail};

use super::face::{Cutting, FormatReader, ends_in, is_packed};
use super::records::RecordKind;
use crate::readers::input::{Input, Location, cannot};
use crate::readers::item::{Reader, RejectedFile};
use crate::readers::opened::{KeysOfInput, source};
use crate::readers::wacz::{self, EntryReader, entry_source};
use crate::readers::warc::{Dialect, WarcReader};
use crate::reading::Reading;

/// WARC, of which WET is a part, or ARC.
pub(super) struct ArchiveFormat(pub Dialect);

/// A WACZ that cannot be read: of one that can, each WARC file is an input.
pub(super) struct UnreadableWacz;

impl FormatReader for ArchiveFormat {
    fn name(&self) -> &'static str {
        match self.0 {
            Dialect::Warc => "warc",
            Dialect::Arc => "arc",
        }
    }

    fn is_named(&self, _name: &str, plain: &str) -> bool {
        match self.0 {
            Dialect::Warc => ends_in(plain, &["warc", "wet"]),
            Dialect::Arc => ends_in(plain, &["arc"]),
        }
    }

    fn begins(&self, first: &[u8]) -> bool {
        match self.0 {
            Dialect::Warc => first.starts_with(b"WARC/"),
            Dialect::Arc => first.starts_with(b"filedesc://"),
        }
    }

    fn records(&self) -> RecordKind {
        RecordKind::Captures(self.0)
    }

    fn acceptable(&self) -> fn(&[u8]) -> bool {
        self.0.acceptable()
    }

    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        let Input { name, bytes, place, .. } = input;
        let warc =
            |source, bytes| WarcReader::new(source, self.0, bytes, name, reading).with_context(|| cannot("read", name));
        let Location::Entry { archive, start, packed, unpacked, checksum, packing } = place else {
            return Ok(Box::new(warc(source(name, *bytes, place)?, *bytes)?));
        };
        let (source, state) = entry_source(archive, (*start, *packed), (*unpacked, *checksum), *packing)
            .with_context(|| cannot("open", name))?;
        Ok(Box::new(EntryReader::new(Box::new(warc(source, *unpacked)?), state, *bytes, *unpacked)))
    }

    fn open_at(
        &self,
        file: File,
        input: &Input,
        offset: u64,
        reading: &Reading,
    ) -> anyhow::Result<Option<Box<dyn Reader>>> {
        let (name, left) = (&input.name, input.bytes.saturating_sub(offset));
        let mut reader =
            WarcReader::new(Box::new(file), self.0, left, name, reading).with_context(|| cannot("read", name))?;
        if offset > 0 {
            reader.begins_inside();
        }
        Ok(Some(Box::new(reader)))
    }

    fn check(&self, _input: &Input, _reading: &Reading) -> anyhow::Result<KeysOfInput> {
        Ok(KeysOfInput::Pages)
    }

    fn cutting(&self, name: &str) -> Cutting {
        let is_cut = match self.0 {
            Dialect::Warc => !is_packed(name) || ends_in(name, &["gz", "zst", "zstd"]),
            Dialect::Arc => ends_in(name, &["gz"]),
        };
        if is_cut { Cutting::Members(self.0) } else { Cutting::Whole }
    }
}

impl FormatReader for UnreadableWacz {
    fn name(&self) -> &'static str {
        "wacz"
    }

    fn is_named(&self, name: &str, _plain: &str) -> bool {
        ends_in(name, &["wacz"])
    }

    fn begins_stored(&self, first: &[u8]) -> bool {
        first.starts_with(b"PK\x03\x04")
    }

    fn records(&self) -> RecordKind {
        RecordKind::UnreadableArchive
    }

    fn is_read_from_end(&self) -> bool {
        true
    }

    fn open(&self, input: &Input, _reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        let Input { name, bytes, place: Location::File(path), .. } = input else {
            bail!("cannot read {}: a WACZ is read from a local disk only; copy it there first", input.name)
        };
        Ok(Box::new(RejectedFile::new(wacz::damage(path, name)?.to_owned(), *bytes)))
    }

    fn check(&self, _input: &Input, _reading: &Reading) -> anyhow::Result<KeysOfInput> {
        Ok(KeysOfInput::Unknown)
    }
}
