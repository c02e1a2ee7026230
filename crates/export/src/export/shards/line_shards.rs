//! Shards of lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::read::MultiGzDecoder;

use super::{CutFile, Filling, Shards};
use crate::export::copied::Compressed;
use crate::export::rows::BYTE_ORDER_MARK;

/// Cuts files of lines. The name says how the shards are compressed, and those files that are
/// copies of lines.
///
/// # Errors
/// If a file cannot be read or written.
pub(super) fn cut(parts: &[CutFile<'_>], name: &str, filling: &mut Filling, shards: &mut Shards<'_>) -> Result<()> {
    let mut shard = LineShard::begin(name, shards)?;
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
            let is_blank = is_blank(text);
            let text = text.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(text);
            is_first = false;
            // Blank lines of an input are copied with the records before them.
            if is_blank {
                continue;
            }
            let bytes = text.len() as u64 + 1;
            while filling.ends_before(bytes) {
                shard = shard.next(name, filling, shards)?;
            }
            shard.write(text, shards)?;
            filling.add(bytes);
        }
        part.remove()?;
    }
    while filling.is_short() {
        shard = shard.next(name, filling, shards)?;
    }
    shard.end(filling.records, shards)
}

/// Whether readers take a line for a blank one.
fn is_blank(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).is_empty()
}

fn open(part: &CutFile<'_>, name: &str) -> Result<Box<dyn BufRead>> {
    const BUFFER: usize = 1 << 18;
    let file = File::open(&part.path)?;
    // What was converted is not compressed.
    let ending = name.rsplit('.').next().filter(|_| !part.is_converted);
    Ok(match ending {
        Some("gz") => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))),
        Some("zst") => Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::new(file)?)),
        _ => Box::new(BufReader::with_capacity(BUFFER, file)),
    })
}

/// The shard that is written.
struct LineShard(Compressed);

impl LineShard {
    fn begin(name: &str, shards: &Shards<'_>) -> Result<LineShard> {
        Ok(LineShard(Compressed::named(shards.create()?, Path::new(name)).with_context(|| shards.failed())?))
    }

    fn write(&mut self, line: &[u8], shards: &Shards<'_>) -> Result<()> {
        self.0.write_all(line).and_then(|()| self.0.write_all(b"\n")).with_context(|| shards.failed())
    }

    /// Ends the shard, and begins another one.
    fn next(self, name: &str, filling: &mut Filling, shards: &mut Shards<'_>) -> Result<LineShard> {
        self.end(filling.records, shards)?;
        filling.begin()?;
        LineShard::begin(name, shards)
    }

    fn end(self, records: u64, shards: &mut Shards<'_>) -> Result<()> {
        let file = self.0.finish().with_context(|| shards.failed())?;
        shards.end(file, records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_blank_as_readers_say() {
        let blank = ["", " \r", "\u{feff}", " \u{feff} ", "\u{feff}\r"];
        assert!(blank.iter().all(|line| is_blank(line.as_bytes())));
        let others = ["x", "\u{feff}{}", "\u{feff}\u{feff}"];
        assert!(others.iter().all(|line| !is_blank(line.as_bytes())));
    }
}
