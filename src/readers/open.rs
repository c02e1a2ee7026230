//! Opens an input with the reader of its format.

use std::fs::File;
use std::io::Read;

use anyhow::Context as _;

use super::input::{Format, Input, Location};
use super::item::Reader;
use crate::config::Reading;

/// Opens one input.
///
/// # Errors
/// When it cannot be opened; for Parquet also when it is damaged as a whole or lacks a column of the job.
pub fn open(input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
    let Input { name, bytes, format, place, page_url } = input;
    let first = || cannot("read", name);
    Ok(match format {
        Format::Warc => {
            let source = source(name, *bytes, place)?;
            Box::new(crate::readers::warc::WarcReader::new(source, *bytes, name, reading).with_context(first)?)
        }
        Format::Jsonl => {
            Box::new(super::jsonl::JsonlReader::new(source(name, *bytes, place)?, name, reading).with_context(first)?)
        }
        Format::Parquet => {
            let file = match place {
                Location::File(path) => File::open(path).with_context(|| cannot("open", name))?,
                Location::Object { .. } => fetched(source(name, *bytes, place)?).with_context(first)?,
            };
            super::parquet::open(file, name, reading)?
        }
        Format::Failed => {
            Box::new(super::failed::FailedReader::new(source(name, *bytes, place)?, name).with_context(first)?)
        }
        Format::Html => {
            let url = page_url.as_deref().with_context(|| format!("the HTML file {name} has no URL"))?;
            Box::new(super::html::HtmlReader::new(source(name, *bytes, place)?, name, url, reading.page_limit()))
        }
    })
}

/// Opens one input and reads its first bytes, to find out before a run what would fail in it.
///
/// # Errors
/// When it cannot be read, or is a local Parquet file without a column of the job; the message names it.
pub fn check(input: &Input, reading: &Reading) -> anyhow::Result<()> {
    if let (Format::Parquet, Location::File(_)) = (input.format, &input.place) {
        return open(input, reading).map(drop);
    }
    let mut first = [0; 4];
    let mut source = source(&input.name, input.bytes.min(first.len() as u64), &input.place)?;
    let mut got = 0;
    while got < first.len() {
        match source.read(&mut first[got..]).with_context(|| cannot("read", &input.name))? {
            0 => break,
            more => got += more,
        }
    }
    Ok(())
}

/// Opens the stored bytes of an input, of which the first `bytes` are wanted.
pub(crate) fn source(name: &str, bytes: u64, place: &Location) -> anyhow::Result<Box<dyn Read + Send>> {
    match place {
        Location::File(path) => Ok(Box::new(File::open(path).with_context(|| cannot("open", name))?)),
        Location::Object { store, key } => crate::readers::find::open(name, store, key, bytes),
    }
}

/// Fetches a source to a temporary file without a name, for formats that are not read in order.
pub(crate) fn fetched(mut source: Box<dyn Read + Send>) -> std::io::Result<File> {
    use std::io::{Seek as _, SeekFrom};
    use std::sync::atomic::{AtomicU64, Ordering};

    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("nigh-{}-{number}.parquet", std::process::id()));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
    // The space is free again when the file is closed, however the program ends.
    std::fs::remove_file(&path)?;
    std::io::copy(&mut source, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Says what failed and what to do about it, before the system's own words.
pub(crate) fn cannot(verb: &str, name: &str) -> String {
    format!("cannot {verb} {name} (check that it is there and readable for this user)")
}
