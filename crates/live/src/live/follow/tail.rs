//! What a followed file has from a place on: lines, or pages of an archive.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use super::Follower;
use super::parts::{Parts, TakePart};
use super::place::{Place, Seen};
use crate::config::Reading;
use crate::readers::{self, CountedIn, Format, Input, Item, Location, Reader};
use crate::records::DocumentKey;

/// Bad records at the end of a file that may still grow to good ones, at most.
const MAY_GROW: usize = 1000;

/// What a file has from a place on.
pub(super) struct Tail {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) place: Place,
    pub(super) size: u64,
    pub(super) is_quiet: bool,
    /// What the file has now.
    pub(super) seen: Seen,
}

impl Tail {
    /// A place in the file as it is now.
    fn at(&self, at: u64, items: u64) -> Place {
        Place { at, items, seen: self.seen }
    }

    /// Reads lines.
    pub(super) fn lines(&self, follower: &Follower, take: &mut TakePart<'_>) -> Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.place.at))?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let (mut parts, mut at) = (Parts::new(follower, &self.name, self.place), self.place.at);
        loop {
            let mut line = Vec::new();
            let most = follower.limits.line_bytes as u64 + 1;
            let read = (&mut file).take(most).read_until(b'\n', &mut line)? as u64;
            let mut end = at + read;
            let mut is_whole = line.last() == Some(&b'\n');
            let is_long = !is_whole && read == most;
            if is_long {
                // Its end may not be there yet.
                let skipped = skip_line(&mut file)?;
                (end, is_whole) = (end + skipped.bytes, skipped.has_end);
            }
            if read == 0 || (!is_whole && (is_long || !self.is_quiet)) {
                break;
            }
            let next = self.at(end, 0);
            if is_long {
                parts.bad(at, next, &format!("the line has more than {} bytes", follower.limits.line_bytes));
            } else if let Err(reason) = parts.check(&line) {
                if !is_whole {
                    break;
                }
                parts.bad(at, next, &reason);
            } else {
                parts.add(&line, next);
            }
            at = end;
            parts.give_if_full(take)?;
        }
        Ok(parts.give(take)?)
    }

    /// Reads the pages of a WARC file.
    ///
    /// An item counts when another one follows. Bad ones at the end may be parts of good ones:
    /// these count when a good one follows.
    pub(super) fn pages(&self, follower: &Follower, take: &mut TakePart<'_>) -> Result<()> {
        ensure!(
            follower.method.documents == DocumentKey::Url,
            "pages of WARC files have no ids: this store knows documents by ids"
        );
        let mut items = PlacedItems::open(self)?;
        let mut parts = Parts::new(follower, &self.name, self.place);
        let mut waiting: VecDeque<(Item, [u64; 2])> = VecDeque::new();
        while let Some((item, [at, number])) = items.next()? {
            let is_good = !matches!(item, Item::Reject(_));
            waiting.push_back((item, [at, number]));
            // A good item is whole if anything follows it.
            let is_counted = |waiting: &VecDeque<(Item, [u64; 2])>| {
                let first_is_good = waiting.front().is_some_and(|(first, _)| !matches!(first, Item::Reject(_)));
                waiting.len() > 1 && (first_is_good || is_good || waiting.len() > MAY_GROW)
            };
            while is_counted(&waiting) {
                let next = waiting.get(1).map_or([at, number], |(_, next)| *next);
                let Some((item, _)) = waiting.pop_front() else { break };
                parts.item(item, self.at(next[0], next[1]));
                parts.give_if_full(take)?;
            }
        }
        // The last record may not be whole yet.
        if let Some((Item::Page(page), [at, number])) = waiting.pop_front() {
            // Of a member that is not whole the last bytes are still to come.
            let length = page.entry.length.filter(|_| !items.reader.unread().ends_early);
            let end = length.map(|length| page.offset + length);
            // If a page is cut, segments of it may still come.
            if self.is_quiet || (!page.cut && end == Some(self.size)) {
                let next = end.map_or(self.at(at, number + 1), |end| self.at(end, 0));
                parts.item(Item::Page(page), next);
            }
        }
        Ok(parts.give(take)?)
    }
}

/// The items of a WARC file from a place on, each with its place: the byte of the last one that can
/// be read without those before it, and its number from there on.
struct PlacedItems {
    reader: Box<dyn Reader>,
    begin: u64,
    /// Items that were taken.
    taken: u64,
    last: Option<[u64; 2]>,
}

impl PlacedItems {
    fn open(tail: &Tail) -> Result<PlacedItems> {
        let input = Input {
            name: tail.path.display().to_string(),
            bytes: tail.size,
            format: Format::Warc,
            place: Location::File(tail.path.clone()),
            page_url: None,
            stamp: String::new(),
            reading: None,
        };
        let (reading, Place { at, items, .. }) = (Reading::default(), tail.place);
        let mut reader = match at {
            0 => readers::open(&input, &reading)?,
            _ => readers::open_at(&input, &reading, at)?.context("archives are read from a record on")?,
        };
        // The place was checked with the file that is open here, and the reader has opened its path
        // again.
        let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
        ensure!(
            id(tail.path.metadata()?) == id(tail.file.metadata()?),
            "another file was given this name while the file was opened: it is read at the next look"
        );
        // So that the same items come wherever reading begins.
        reader.without_waiting();
        Ok(PlacedItems { reader, begin: at, taken: items, last: None })
    }

    /// The next item that was not taken.
    fn next(&mut self) -> Result<Option<(Item, [u64; 2])>> {
        while let Some(item) = self.reader.next()? {
            let can_begin = self.reader.counted_in() == CountedIn::Stored;
            let place = match self.last {
                None => [self.begin, 0],
                Some([at, _]) if can_begin && item.offset() > at => [item.offset(), 0],
                Some([at, number]) => [at, number + 1],
            };
            self.last = Some(place);
            if place[0] > self.begin || place[1] >= self.taken {
                return Ok(Some((item, place)));
            }
        }
        Ok(None)
    }
}

/// What is skipped of a line.
struct SkippedLine {
    bytes: u64,
    has_end: bool,
}

/// Skips the rest of a line.
fn skip_line(file: &mut impl BufRead) -> std::io::Result<SkippedLine> {
    let mut skipped = SkippedLine { bytes: 0, has_end: false };
    loop {
        let buffer = file.fill_buf()?;
        let end = memchr::memchr(b'\n', buffer);
        let bytes = end.map_or(buffer.len(), |end| end + 1);
        file.consume(bytes);
        skipped.bytes += bytes as u64;
        if bytes == 0 || end.is_some() {
            skipped.has_end = end.is_some();
            return Ok(skipped);
        }
    }
}
