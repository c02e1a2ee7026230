//! Opens an input with the reader of its format, or checks that it can be opened.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use anyhow::{Context as _, bail};

use super::keys::KeysOfInput;
use super::source::source;
use crate::readers::formats::{InputColumns, is_packed};
use crate::readers::input::{Format, Input, Location, cannot};
use crate::readers::item::{CountedIn, Item, Reader, RejectedFile, Unread};
use crate::readers::rows::jsonl::Searched;
use crate::readers::sniff;
use crate::readers::streams::{MemberStep, Members, Stored};
use crate::reading::Reading;

/// The bytes that show whether a file is text.
const BEGINNING: usize = 1024;

/// Opens one input.
///
/// The reader of a Parquet object copies it to a temporary file first, because Parquet is not read
/// in order.
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
///     reading: None,
/// };
/// let mut reader = readers::open(&input, &Reading::default())?;
/// assert!(matches!(reader.next()?, Some(Item::Page(page)) if page.url.as_deref() == Some("http://a.example/")));
/// assert_eq!(reader.next()?, None);
/// std::fs::remove_file(&path)?;
/// # anyhow::Ok(())
/// ```
///
/// # Errors
/// If the input cannot be opened, or is a Parquet file without a column of the job. A file that is
/// not a whole Parquet file is not an error: its reader returns one
/// [`Item::Reject`].
pub fn open(input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
    if has_lost_its_beginning(input).with_context(|| cannot("read", &input.name))? {
        let reason = format!("{}: the name says that the file is compressed, and its first bytes do not", input.format);
        return Ok(Box::new(RejectedFile::new(reason, input.bytes)));
    }
    input.format.reader().open(input, &input.reading(reading))
}

/// Whether a local file of lines, or of one page, that is compressed by its name begins neither as
/// a compressed file nor as text: then its beginning is damaged. One that is text is read,
/// whatever its name says. Readers of other formats find that out themselves.
fn has_lost_its_beginning(input: &Input) -> anyhow::Result<bool> {
    let is_text = matches!(input.format, Format::Jsonl | Format::Csv | Format::Tsv | Format::Html | Format::Text);
    let is_object = matches!(input.place, Location::Object { .. });
    if !is_text || is_object || !is_packed(&input.name.to_ascii_lowercase()) {
        return Ok(false);
    }
    let source = source(&input.name, input.bytes, &input.place)?;
    let mut members = Members::new(Stored::new(source), |bytes| !bytes.is_empty())?;
    if !members.plain() {
        return Ok(false);
    }
    let mut first = Vec::new();
    while first.len() < BEGINNING && matches!(members.step(&mut first)?, MemberStep::Start(_) | MemberStep::Bytes) {}
    let is_wide = first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff");
    Ok(!is_wide && !sniff::has_few_controls(&first))
}

/// Opens one input at `offset`, to read the page there again; the offsets of items are those in the
/// whole input. `offset` must be where a record begins ([`Page::offset`](crate::readers::Page::offset)):
/// elsewhere, the items are arbitrary, or there are none. `None` if pages of the input cannot be
/// read without those before them.
///
/// # Errors
/// If the input cannot be read.
pub fn open_at(input: &Input, reading: &Reading, offset: u64) -> anyhow::Result<Option<Box<dyn Reader>>> {
    let Input { name, format, place: Location::File(path), .. } = input else { return Ok(None) };
    let mut file = File::open(path).with_context(|| cannot("open", name))?;
    file.seek(SeekFrom::Start(offset)).with_context(|| cannot("read", name))?;
    let inner = format.reader().open_at(file, input, offset, &input.reading(reading))?;
    Ok(inner.map(|inner| Box::new(FromOffset::new(inner, offset)) as Box<dyn Reader>))
}

/// A reader that began inside its input. Places of items are those in the whole input.
pub(in crate::readers) struct FromOffset {
    inner: Box<dyn Reader>,
    /// Where it began.
    offset: u64,
}

impl FromOffset {
    /// `inner` begins at `offset`.
    pub(in crate::readers) fn new(inner: Box<dyn Reader>, offset: u64) -> FromOffset {
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

    fn without_waiting(&mut self) {
        self.inner.without_waiting();
    }

    fn without_joining(&mut self) {
        self.inner.without_joining();
    }
}

/// What the records of an input have, also of an object, which is read for it.
///
/// # Errors
/// As [`check`].
pub fn keys(input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput> {
    input.format.reader().slow_keys(input, &input.reading(reading))?.map_or_else(|| check(input, reading), Ok)
}

/// Opens one input and reads its first bytes, so that a run fails before it starts and not in its
/// middle.
///
/// # Errors
/// If the input cannot be read, is a git-lfs pointer or a JSON array, or is a local Parquet file or
/// a file of JSON Lines without a column of the job. The message names the input.
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
    if let Some(advice) = crate::readers::sniff::no_input(&first[..filled]) {
        bail!("{} {advice}", input.name);
    }
    if input.format.lines().is_some()
        && let Some(advice) = crate::readers::sniff::no_lines(&first[..filled])
    {
        bail!("{} {advice}", input.name);
    }
    if has_lost_its_beginning(input).with_context(|| cannot("read", &input.name))? {
        return Ok(KeysOfInput::Unknown);
    }
    input.format.reader().check(input, &input.reading(reading))
}

/// The names of the columns of an input, and which of those whose values are kept it has; `None` if
/// it has no columns, or is damaged. Of JSON Lines the lines that are searched say it.
///
/// # Errors
/// As [`check`].
pub fn columns(input: &Input, reading: &Reading, searched: Searched) -> anyhow::Result<Option<InputColumns>> {
    if has_lost_its_beginning(input).with_context(|| cannot("read", &input.name))? {
        return Ok(None);
    }
    input.format.reader().columns(input, &input.reading(reading), searched)
}

/// Returns why an input cannot be read from its beginning, for a dry run. Only local Parquet and
/// WACZ files are opened: they are damaged as a whole if their ends are, and not from some record
/// on. Of Parquet one page is decoded for each column and compression.
///
/// # Errors
/// As [`open`].
pub fn damage(input: &Input, reading: &Reading) -> anyhow::Result<Option<String>> {
    let Location::File(path) = &input.place else { return Ok(None) };
    if !input.format.reader().is_read_from_end() {
        return Ok(None);
    }
    if let Some(Item::Reject(reject)) = open(input, reading)?.next()? {
        return Ok(Some(reject.reason));
    }
    let file = File::open(path).with_context(|| cannot("open", &input.name))?;
    input.format.reader().damage(file, input, &input.reading(reading))
}
