//! Opens an input with the reader of its format, or checks that it can be opened.

use std::fs::File;
use std::io::Read;

use anyhow::{Context as _, bail};

use super::input::{Format, Input, Location, cannot};
use super::item::{CountedIn, Item, Reader, RejectedFile, Unread};
use super::wacz::EntryReader;
use super::warc::{Dialect, WarcReader};
use super::whole::{Content, WholeReader};
use crate::reading::Reading;

/// Opens one input.
///
/// The reader of a Parquet object copies it to a temporary file first, because Parquet is not read in order.
///
/// ```
/// use nigh_readers::reading::Reading;
/// use nigh_readers::readers::{self, Format, Input, Item, Location};
///
/// let path = std::env::temp_dir().join(format!("nigh-open-{}.html", std::process::id()));
/// std::fs::write(&path, "<p>some words")?;
/// let input = Input {
///     name: "page.html".to_owned(),
///     bytes: 13,
///     format: Format::Html,
///     place: Location::File(path.clone()),
///     page_url: Some("http://a.example/".to_owned()),
///     stamp: String::new(),
/// };
/// let mut reader = readers::open(&input, &Reading::default())?;
/// assert!(matches!(reader.next()?, Some(Item::Page(page)) if page.url.as_deref() == Some("http://a.example/")));
/// assert_eq!(reader.next()?, None);
/// std::fs::remove_file(&path)?;
/// # anyhow::Ok(())
/// ```
///
/// # Errors
/// If the input cannot be opened, or is a Parquet file without a column of the job. A file that is not a whole Parquet file is
/// not an error: its reader returns one [`Item::Reject`](super::Item::Reject).
pub fn open(input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
    let Input { name, bytes, format, place, page_url, .. } = input;
    let failed = || cannot("read", name);
    Ok(match format {
        Format::Warc | Format::Arc => {
            let dialect = if *format == Format::Arc { Dialect::Arc } else { Dialect::Warc };
            let warc = |source, bytes| WarcReader::new(source, dialect, bytes, name, reading).with_context(failed);
            match place {
                Location::Entry { archive, start, packed, unpacked, checksum, packing } => {
                    let content = (*unpacked, *checksum);
                    let (source, state) = super::wacz::entry_source(archive, (*start, *packed), content, *packing)
                        .with_context(|| cannot("open", name))?;
                    Box::new(EntryReader::new(Box::new(warc(source, *unpacked)?), state, *bytes))
                }
                _ => Box::new(warc(source(name, *bytes, place)?, *bytes)?),
            }
        }
        Format::Wacz => {
            let reason = match place {
                Location::File(path) => super::wacz::damage(path, name)?,
                _ => bail!("cannot read {name}: a WACZ is read from a local disk only; copy it there first"),
            };
            Box::new(RejectedFile::new(reason.to_owned(), *bytes))
        }
        Format::Jsonl => {
            Box::new(super::jsonl::JsonlReader::new(source(name, *bytes, place)?, name, reading).with_context(failed)?)
        }
        Format::Parquet => {
            let file = match place {
                Location::File(path) => File::open(path).with_context(|| cannot("open", name))?,
                _ => downloaded(source(name, *bytes, place)?).with_context(failed)?,
            };
            super::parquet::open(file, name, reading)?
        }
        Format::Arrow => match super::arrow::ArrowReader::new(source(name, *bytes, place)?, name, reading)? {
            Some(reader) => Box::new(reader),
            None => Box::new(RejectedFile::new("arrow: no schema at the beginning".to_owned(), *bytes)),
        },
        Format::Failed => {
            Box::new(super::failed::FailedReader::new(source(name, *bytes, place)?, name).with_context(failed)?)
        }
        Format::Csv | Format::Tsv => {
            let delimiter = if *format == Format::Csv { b',' } else { b'\t' };
            Box::new(super::csv::CsvReader::new(source(name, *bytes, place)?, delimiter, name, reading)?)
        }
        Format::Html | Format::Text => {
            let content = if *format == Format::Html { Content::Html } else { Content::Text };
            let (source, url) = (source(name, *bytes, place)?, page_url.as_deref());
            Box::new(WholeReader::new(source, content, name, url, reading.page_limit()).with_context(failed)?)
        }
    })
}

/// Opens one input at the place of a page, to read that page again: places of items are those in the whole input. `None` if pages of the input
/// cannot be read without those before them. Some places are not where a record begins ([`Page::offset`](super::Page::offset)): there, the
/// reader finds other things or nothing.
///
/// # Errors
/// If the input cannot be read.
pub fn open_at(input: &Input, reading: &Reading, offset: u64) -> anyhow::Result<Option<Box<dyn Reader>>> {
    use std::io::{Seek as _, SeekFrom};

    let Input { name, bytes, format, place: Location::File(path), .. } = input else { return Ok(None) };
    let failed = || cannot("read", name);
    let mut file = File::open(path).with_context(|| cannot("open", name))?;
    if *format == Format::Jsonl {
        let mut first = Vec::new();
        Read::by_ref(&mut file).take(16).read_to_end(&mut first).with_context(failed)?;
        if super::sniff::is_binary(&first) {
            return Ok(None);
        }
    }
    file.seek(SeekFrom::Start(offset)).with_context(failed)?;
    let inner: Box<dyn Reader> = match format {
        Format::Warc | Format::Arc => {
            let dialect = if *format == Format::Arc { Dialect::Arc } else { Dialect::Warc };
            let left = bytes.saturating_sub(offset);
            let mut reader = WarcReader::new(Box::new(file), dialect, left, name, reading).with_context(failed)?;
            reader.without_waiting();
            Box::new(reader)
        }
        Format::Jsonl => Box::new(super::jsonl::JsonlReader::new(Box::new(file), name, reading).with_context(failed)?),
        _ => return Ok(None),
    };
    Ok(Some(Box::new(FromOffset::new(inner, offset))))
}

/// A reader that began inside its input. Places of items are those in the whole input.
pub(super) struct FromOffset {
    inner: Box<dyn Reader>,
    /// Where it began.
    offset: u64,
}

impl FromOffset {
    /// `inner` begins at `offset`.
    pub(super) fn new(inner: Box<dyn Reader>, offset: u64) -> FromOffset {
        FromOffset { inner, offset }
    }
}

impl Reader for FromOffset {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        let mut item = self.inner.next()?;
        if let Some(item) = &mut item {
            item.shift(self.offset);
        }
        Ok(item)
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }

    fn counted_in(&self) -> CountedIn {
        self.inner.counted_in()
    }

    fn unread(&self) -> Unread {
        self.inner.unread()
    }
}

/// What the records of an input have that a document can be known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysOfInput {
    /// Pages, which have URLs and no ids.
    Pages,
    /// Rows with the id, if the job names a column for it, and with URLs.
    RowsWithUrls,
    /// Rows with the id, if the job names a column for it, and without URLs.
    Rows,
    /// Files that are one document each, without id and URL.
    Files,
    /// The input has no record, or they are seen only when it is read.
    Unknown,
}

impl KeysOfInput {
    fn of_rows(has_url: Option<bool>) -> KeysOfInput {
        match has_url {
            Some(true) => KeysOfInput::RowsWithUrls,
            Some(false) => KeysOfInput::Rows,
            None => KeysOfInput::Unknown,
        }
    }
}

/// What the records of an input have, also of an object, which is read for it.
///
/// # Errors
/// As [`check`].
pub fn keys(input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput> {
    match (input.format, &input.place) {
        (Format::Parquet, Location::Object { .. }) => {
            let source = source(&input.name, input.bytes, &input.place)?;
            let file = downloaded(source).with_context(|| cannot("read", &input.name))?;
            Ok(KeysOfInput::of_rows(super::parquet::check(file, &input.name, reading)?))
        }
        _ => check(input, reading),
    }
}

/// Opens one input and reads its first bytes, so that a run fails before it starts and not in its middle.
///
/// # Errors
/// If the input cannot be read, is a git-lfs pointer or a JSON array, or is a local Parquet file or a file of JSON Lines without a
/// column of the job. The message names the input.
pub fn check(input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput> {
    let mut first = [0; 64];
    let mut source = source(&input.name, input.bytes.min(first.len() as u64), &input.place)?;
    let mut filled = 0;
    while filled < first.len() {
        match source.read(&mut first[filled..]).with_context(|| cannot("read", &input.name))? {
            0 => break,
            count => filled += count,
        }
    }
    drop(source);
    if let Some(advice) = super::sniff::no_input(&first[..filled]) {
        bail!("{} {advice}", input.name);
    }
    if matches!(input.format, Format::Jsonl | Format::Csv | Format::Tsv)
        && let Some(advice) = super::sniff::no_lines(&first[..filled])
    {
        bail!("{} {advice}", input.name);
    }
    match (input.format, &input.place) {
        (Format::Parquet, Location::File(path)) => {
            let file = File::open(path).with_context(|| cannot("open", &input.name))?;
            Ok(KeysOfInput::of_rows(super::parquet::check(file, &input.name, reading)?))
        }
        (Format::Jsonl, place) => {
            let source = self::source(&input.name, input.bytes, place)?;
            Ok(KeysOfInput::of_rows(super::jsonl::check(source, &input.name, reading)?))
        }
        (Format::Arrow, place) => {
            let source = self::source(&input.name, input.bytes, place)?;
            let reader = super::arrow::ArrowReader::new(source, &input.name, reading)?;
            Ok(KeysOfInput::of_rows(reader.map(|reader| reader.has_url())))
        }
        (Format::Csv | Format::Tsv, place) => {
            let source = self::source(&input.name, input.bytes, place)?;
            let delimiter = if input.format == Format::Csv { b',' } else { b'\t' };
            let reader = super::csv::CsvReader::new(source, delimiter, &input.name, reading)?;
            Ok(KeysOfInput::of_rows(reader.has_url()?))
        }
        (Format::Text, _) if input.page_url.is_none() => Ok(KeysOfInput::Files),
        (Format::Text, _) => Ok(KeysOfInput::Pages),
        (Format::Parquet | Format::Failed | Format::Wacz, _) => Ok(KeysOfInput::Unknown),
        (Format::Warc | Format::Arc | Format::Html, _) => Ok(KeysOfInput::Pages),
    }
}

/// The names of the columns of an input, and which of those whose values are kept it has; `None` if
/// it has no columns, or is damaged. Of JSON Lines the first lines say it.
///
/// # Errors
/// As [`check`].
pub fn columns(input: &Input, reading: &Reading) -> anyhow::Result<Option<(Vec<String>, Vec<bool>)>> {
    let source = || source(&input.name, input.bytes, &input.place);
    Ok(match input.format {
        Format::Parquet => {
            let file = match &input.place {
                Location::File(path) => File::open(path).with_context(|| cannot("open", &input.name))?,
                _ => downloaded(source()?).with_context(|| cannot("read", &input.name))?,
            };
            super::parquet::columns(file, &input.name, reading)?
        }
        Format::Arrow => {
            super::arrow::ArrowReader::new(source()?, &input.name, reading)?.map(|reader| reader.columns())
        }
        Format::Csv | Format::Tsv => {
            let delimiter = if input.format == Format::Csv { b',' } else { b'\t' };
            Some(super::csv::CsvReader::new(source()?, delimiter, &input.name, reading)?.columns())
        }
        Format::Jsonl => Some(super::jsonl::columns(source()?, &input.name, reading)?),
        Format::Warc | Format::Arc | Format::Wacz | Format::Html | Format::Text | Format::Failed => None,
    })
}

/// Returns why an input cannot be read from its beginning, for a dry run. Only local Parquet and WACZ files are opened: they are damaged as
/// a whole if their ends are, and not from some record on. Of Parquet one page is decoded for each column and compression.
///
/// # Errors
/// As [`open`].
pub fn damage(input: &Input, reading: &Reading) -> anyhow::Result<Option<String>> {
    let Location::File(path) = &input.place else { return Ok(None) };
    if !matches!(input.format, Format::Parquet | Format::Wacz) {
        return Ok(None);
    }
    if let Some(Item::Reject(reject)) = open(input, reading)?.next()? {
        return Ok(Some(reject.reason));
    }
    if input.format == Format::Wacz {
        return Ok(None);
    }
    super::parquet::damage(File::open(path).with_context(|| cannot("open", &input.name))?, &input.name, reading)
}

/// Opens the first `bytes` stored bytes of an input. A local file may return more.
///
/// # Errors
/// If it cannot be opened.
pub(crate) fn source(name: &str, bytes: u64, place: &Location) -> anyhow::Result<Box<dyn Read + Send>> {
    match place {
        Location::File(path) => Ok(Box::new(File::open(path).with_context(|| cannot("open", name))?)),
        Location::Entry { archive, start, packed, unpacked, checksum, packing } => {
            let (source, _) = super::wacz::entry_source(archive, (*start, *packed), (*unpacked, *checksum), *packing)
                .with_context(|| cannot("open", name))?;
            Ok(source)
        }
        Location::Object { store, key } => crate::readers::find::open(name, store, key, bytes),
    }
}

/// Copies a source to a temporary file without a name, for formats that are not read in order.
///
/// # Errors
/// If the source cannot be read or the file cannot be written.
pub(crate) fn downloaded(mut source: Box<dyn Read + Send>) -> std::io::Result<File> {
    use std::io::{Seek as _, SeekFrom};
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::sync::atomic::{AtomicU64, Ordering};

    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("nigh-{}-{number}.parquet", std::process::id()));
    // The file may be a copy of a private object: other users must not be able to open it before it loses its name.
    let mut file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    // The system frees the space when the file is closed, even if the program is killed.
    std::fs::remove_file(&path)?;
    std::io::copy(&mut source, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_this_user_may_read_a_downloaded_copy() {
        let file = downloaded(Box::new(&b"PAR1 of a private bucket"[..])).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
