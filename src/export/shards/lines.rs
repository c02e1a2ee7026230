//! Shards of lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::read::MultiGzDecoder;

use super::{Filling, Part, Shards};
use crate::export::copied::Compressed;
use crate::export::rows::BYTE_ORDER_MARK;

/// Cuts files of lines, whose name says how they and the shards are compressed.
///
/// # Errors
/// If a file cannot be read or written.
pub(super) fn cut(parts: &[Part<'_>], name: &str, filling: &mut Filling, shards: &mut Shards<'_>) -> Result<()> {
    let mut shard = Shard::begin(name, shards)?;
    let mut line = Vec::new();
    for part in parts {
        let failed = || format!("cannot read {}", part.path.display());
        let mut file = open(part, name).with_context(failed)?;
        let mut is_first = true;
        loop {
            line.clear();
            if file.read_until(b'\n', &mut line).with_context(failed)? == 0 {
                break;
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let text = text.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(text);
            is_first = false;
            // Blank lines of an input are copied with the records before them.
            if text.trim_ascii().is_empty() {
                continue;
            }
            let bytes = text.len() as u64 + 1;
            while filling.ends_before(bytes) {
                shard = shard.next(name, filling, shards)?;
            }
            shard.write(text)?;
            filling.add(bytes);
        }
        part.remove()?;
    }
    while filling.is_short() {
        shard = shard.next(name, filling, shards)?;
    }
    shard.end(filling.records, shards)
}

fn open(part: &Part<'_>, name: &str) -> Result<Box<dyn BufRead>> {
    const BUFFER: usize = 1 << 18;
    let file = File::open(&part.path)?;
    Ok(match name.rsplit('.').next() {
        Some("gz") => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))),
        Some("zst") => Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::new(file)?)),
        _ => Box::new(BufReader::with_capacity(BUFFER, file)),
    })
}

/// The shard that is written.
struct Shard(Compressed);

impl Shard {
    fn begin(name: &str, shards: &Shards<'_>) -> Result<Shard> {
        Ok(Shard(Compressed::named(shards.create()?, Path::new(name))?))
    }

    fn write(&mut self, line: &[u8]) -> Result<()> {
        self.0.write_all(line).and_then(|()| self.0.write_all(b"\n")).context("cannot write a shard")
    }

    /// Ends the shard, and begins another one.
    fn next(self, name: &str, filling: &mut Filling, shards: &mut Shards<'_>) -> Result<Shard> {
        self.end(filling.records, shards)?;
        filling.begin()?;
        Shard::begin(name, shards)
    }

    fn end(self, records: u64, shards: &mut Shards<'_>) -> Result<()> {
        shards.end(self.0.finish().context("cannot write a shard")?, records)
    }
}
