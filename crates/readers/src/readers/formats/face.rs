//! The face of a format.

use std::fs::File;

use super::records::RecordKind;
use crate::readers::input::Input;
use crate::readers::item::Reader;
use crate::readers::opened::KeysOfInput;
use crate::readers::rows::jsonl::Searched;
use crate::readers::warc::Dialect;
use crate::reading::Reading;

/// The names of the columns of an input, and which of those whose values are kept it has.
pub(crate) type InputColumns = (Vec<String>, Vec<bool>);

/// How inputs of a format are cut into pieces that several workers read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cutting {
    /// Not at all.
    Whole,
    /// At the ends of lines.
    Lines,
    /// At the beginnings of members or records.
    Members(Dialect),
    /// At row groups.
    RowGroups,
}

/// What nigh does with the inputs of one format.
pub(crate) trait FormatReader: Sync {
    /// Its name, as it begins the reasons of rejects.
    fn name(&self) -> &'static str;

    /// Whether a file of this name has it: `name` is the last part of a path in small letters,
    /// `plain` the same without the ending of a compression.
    fn is_named(&self, name: &str, plain: &str) -> bool;

    /// Whether a file that begins with these bytes, as they are stored, has it.
    fn begins_stored(&self, _first: &[u8]) -> bool {
        false
    }

    /// Whether a file that begins with these bytes, not compressed, has it.
    fn begins(&self, _first: &[u8]) -> bool {
        false
    }

    /// What its records are: see [`Format`](crate::readers::Format) for what follows from it.
    fn records(&self) -> RecordKind;

    /// Whether records are passed over without decoding them.
    fn can_skip(&self) -> bool {
        false
    }

    /// Whether a file is read from its end on, so that damage there is damage of all of it.
    fn is_read_from_end(&self) -> bool {
        false
    }

    /// The test whether a member of a compressed file that begins with some bytes can be one of it.
    fn acceptable(&self) -> fn(&[u8]) -> bool {
        |bytes| !bytes.is_empty()
    }

    /// Opens an input: see [`open`](crate::readers::open()).
    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>>;

    /// Opens `file`, which is that of an input and stands at the place `offset`: see
    /// [`open_at`](crate::readers::open_at()). Places of items count from there.
    fn open_at(
        &self,
        _file: File,
        _input: &Input,
        _offset: u64,
        _reading: &Reading,
    ) -> anyhow::Result<Option<Box<dyn Reader>>> {
        Ok(None)
    }

    /// Checks that an input fits the job, as far as that is quick: see
    /// [`check`](crate::readers::check()).
    fn check(&self, input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput>;

    /// What the records have, where `check` does not say it because that takes long; `None` where
    /// it does: see [`keys`](crate::readers::keys()).
    fn slow_keys(&self, _input: &Input, _reading: &Reading) -> anyhow::Result<Option<KeysOfInput>> {
        Ok(None)
    }

    /// The columns; `None` if it has none, or is damaged: see
    /// [`columns`](crate::readers::columns()).
    fn columns(&self, _input: &Input, _reading: &Reading, _searched: Searched) -> anyhow::Result<Option<InputColumns>> {
        Ok(None)
    }

    /// Why a local file that is read from its end on cannot be read from its beginning: see
    /// [`damage`](crate::readers::damage()).
    fn damage(&self, _file: File, _input: &Input, _reading: &Reading) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    /// How a local file of this name, in small letters, is cut.
    fn cutting(&self, _name: &str) -> Cutting {
        Cutting::Whole
    }
}

/// Whether a name has one of these endings after its last dot.
pub(super) fn ends_in(name: &str, endings: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

/// Whether a name, in small letters, has the ending of a compression.
pub(crate) fn is_packed(name: &str) -> bool {
    ends_in(name, &["gz", "zst", "zstd", "bz2", "xz", "lz4"])
}
