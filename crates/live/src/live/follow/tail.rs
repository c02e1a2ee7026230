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
use crate::readers::{self, CountedIn, Format, Input, Item, Location, REQUEST_REACH, REQUEST_WITHIN, Reader};
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
        Place { at, items, back: 0, seen: self.seen }
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
    /// An item counts when so many others follow that the request of a page is known as in a run,
    /// or when the file is quiet. Bad ones at the end may be parts of good ones: these count when a
    /// good one follows.
    pub(super) fn pages(&self, follower: &Follower, take: &mut TakePart<'_>) -> Result<()> {
        ensure!(
            follower.method.documents == DocumentKey::Url,
            "pages of WARC files have no ids: this store knows documents by ids"
        );
        let mut items = PlacedItems::open(self)?;
        let mut parts = Parts::new(follower, &self.name, self.place);
        let mut waiting: VecDeque<(Item, Place)> = VecDeque::new();
        // Those up to the last good one.
        let mut good = 0;
        while let Some((item, place)) = items.next()? {
            let is_good = is_good(&item);
            waiting.push_back((item, place));
            good = if is_good { waiting.len() } else { good };
            while good > REQUEST_WITHIN || waiting.len() > MAY_GROW {
                add_first(&mut waiting, &mut parts);
                good = good.saturating_sub(1);
                parts.give_if_full(take)?;
            }
        }
        while self.is_quiet && good > 0 {
            add_first(&mut waiting, &mut parts);
            good -= 1;
            parts.give_if_full(take)?;
        }
        Ok(parts.give(take)?)
    }
}

fn is_good(item: &Item) -> bool {
    !matches!(item, Item::Reject(_))
}

/// Adds the first of the items that wait; the next part begins with the one after it.
fn add_first(waiting: &mut VecDeque<(Item, Place)>, parts: &mut Parts<'_>) {
    let Some((item, place)) = waiting.pop_front() else { return };
    let behind = Place { items: place.items + 1, ..place };
    parts.item(item, waiting.front().map_or(behind, |(_, next)| *next));
}

/// The items of a WARC file from a place on, each with its place: the byte of the last one that can
/// be read without those before it, and its number from there on.
struct PlacedItems {
    reader: Box<dyn Reader>,
    /// The place of the first item that was not taken.
    from: Place,
    last: Option<Place>,
    /// Bytes from which on items can be read, ascending: from the first one on all requests are
    /// read that may say something of the next item.
    begins: VecDeque<u64>,
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
        let (reading, from) = (Reading::default(), Place { seen: tail.seen, ..tail.place });
        let begin = from.at.saturating_sub(from.back);
        let reader = match begin {
            0 => readers::open(&input, &reading)?,
            _ => readers::open_at(&input, &reading, begin)?.context("archives are read from a record on")?,
        };
        // The place was checked with the file that is open here, and the reader has opened its path
        // again.
        let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
        ensure!(
            id(tail.path.metadata()?) == id(tail.file.metadata()?),
            "another file was given this name while the file was opened: it is read at the next look"
        );
        Ok(PlacedItems { reader, from, last: None, begins: VecDeque::from([begin]) })
    }

    /// The next item that was not taken.
    fn next(&mut self) -> Result<Option<(Item, Place)>> {
        while let Some(item) = self.reader.next()? {
            let can_begin = self.reader.counted_in() == CountedIn::Stored;
            let place = match self.last {
                None => Place { at: self.begins[0], items: 0, back: 0, ..self.from },
                // From damage on an archive may not be known as one.
                Some(last) if can_begin && is_good(&item) && item.offset() > last.at => self.begin(item.offset()),
                Some(last) => Place { items: last.items + 1, ..last },
            };
            self.last = Some(place);
            if [place.at, place.items] >= [self.from.at, self.from.items] {
                return Ok(Some((item, place)));
            }
        }
        Ok(None)
    }

    /// The place of an item that can be read without those before it.
    fn begin(&mut self, at: u64) -> Place {
        self.begins.push_back(at);
        while self.begins.get(1).is_some_and(|begin| begin + REQUEST_REACH <= at) {
            self.begins.pop_front();
        }
        Place { at, items: 0, back: at - self.begins[0], ..self.from }
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
