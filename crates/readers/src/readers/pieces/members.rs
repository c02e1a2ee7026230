//! The members of a piece of a WARC or ARC file, or the records of one of a plain file.

use std::fs::File;
use std::io;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;

use anyhow::ensure;

use super::cuts::{Cuts, FindStart};
use crate::readers::item::{CountedIn, Item, Nothing, Reader, Unread};
use crate::readers::opened::FromOffset;
use crate::readers::streams::{MemberPacking, Members, Stored, member_start, read_at};
use crate::readers::warc::{Dialect, REACH, Records, WarcReader, record_start};
use crate::reading::Reading;

/// The first bytes of a file that say what it has.
const FIRST: usize = 64;
/// The stored bytes that are looked at to know whether a file is one stream, at most: a member that
/// is not large has fewer.
const LOOKED_AT: u64 = 16 << 20;
/// What to do about a file whose records cannot be found from its middle on.
const NOT_SPLIT: &str = "split-files = false in the config lets one worker read each file";

/// The members of a piece, or the records of one of a plain file; `None` if the file begins with
/// something else.
///
/// The records of a piece are read up to the first that begins where the next piece does, not up to
/// there: what follows a record decides whether it is good.
pub(super) fn members_of(
    cuts: Cuts,
    dialect: Dialect,
    name: &str,
    reading: &Reading,
) -> anyhow::Result<Option<Box<dyn Reader>>> {
    let search: FindStart = match (dialect, &cuts.packing) {
        (Dialect::Warc, MemberPacking::Plain) if dialect.acceptable()(&first_bytes(&cuts.file)?) => {
            |cuts, range| record_start(&cuts.file, cuts.bytes, range)
        }
        (_, MemberPacking::Plain) => return Ok(None),
        (Dialect::Warc, _) => |cuts, range| packed_start(cuts, range, Dialect::Warc),
        (Dialect::Arc, _) => |cuts, range| packed_start(cuts, range, Dialect::Arc),
    };
    let number = cuts.piece.number;
    let is_one_stream =
        cuts.piece.of > 1 && !matches!(cuts.packing, MemberPacking::Plain) && is_one_stream(&cuts, dialect)?;
    let start = if number > 0 && is_one_stream { None } else { cuts.begin(number, search)? };
    let Some(start) = start else { return Ok(Some(Box::new(Nothing))) };
    let reader_at = |place: u64| -> io::Result<FromOffset> {
        let mut source = cuts.file.try_clone()?;
        source.seek(SeekFrom::Start(place))?;
        // What is appended meanwhile is in no piece.
        let (source, left) = (source.take(cuts.bytes - place), cuts.bytes - place);
        let reader = if number == 0 {
            WarcReader::new(Box::new(source), dialect, left, name, reading)?
        } else {
            WarcReader::from_member(Box::new(source), &cuts.packing, dialect, left, name, reading)?
        };
        Ok(FromOffset::new(Box::new(reader), place))
    };
    // A request before the first page of the piece is in the piece before.
    let before = match dialect {
        Dialect::Warc if number > 0 => search(&cuts, start.saturating_sub(REACH)..start)?,
        _ => None,
    };
    let led =
        before.map(|place| -> anyhow::Result<_> { Led::to(reader_at(place)?, place, start) }).transpose()?.flatten();
    let led = match led {
        Some(led) => led,
        None => Led::at(reader_at(start)?),
    };
    Ok(Some(Box::new(UpToNext::new(cuts, search, led, start, is_one_stream))))
}

/// The first place of a range where a member begins with a record.
pub(super) fn packed_start(cuts: &Cuts, range: Range<u64>, dialect: Dialect) -> io::Result<Option<u64>> {
    member_start(&cuts.file, &cuts.packing, cuts.bytes, range, dialect.acceptable())
}

/// Whether places in a file are those in its decoded bytes. Then the first piece is all of it.
fn is_one_stream(cuts: &Cuts, dialect: Dialect) -> io::Result<bool> {
    let mut source = cuts.file.try_clone()?;
    source.rewind()?;
    let members = Members::new(Stored::new(Box::new(source.take(cuts.bytes.min(LOOKED_AT)))), dialect.acceptable())?;
    Records::new(members, dialect, cuts.bytes, 0, false).is_one_stream()
}

/// The first bytes of a file.
fn first_bytes(file: &File) -> io::Result<Vec<u8>> {
    let mut first = vec![0; FIRST];
    let count = read_at(file, &mut first, 0)?;
    first.truncate(count);
    Ok(first)
}

/// A reader that began before a piece, and has come to it.
pub(super) struct Led {
    inner: FromOffset,
    /// The first item of the piece, until it is returned.
    first: Option<Item>,
    /// The stored bytes before the piece, and those of them that could not be read.
    passed: u64,
    unread: u64,
}

impl Led {
    /// A reader that begins with the piece.
    pub(super) fn at(inner: FromOffset) -> Led {
        Led { inner, first: None, passed: 0, unread: 0 }
    }

    /// Reads from `place` up to the first item at `start`; `None` if none is there.
    fn to(mut inner: FromOffset, place: u64, start: u64) -> anyhow::Result<Option<Led>> {
        loop {
            let unread = inner.unread().bytes;
            match inner.next()? {
                Some(item) if item.offset() < start => {}
                Some(item) if item.offset() == start => {
                    return Ok(Some(Led { inner, first: Some(item), passed: start - place, unread }));
                }
                _ => return Ok(None),
            }
        }
    }

    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        match self.first.take() {
            Some(item) => Ok(Some(item)),
            None => self.inner.next(),
        }
    }

    fn unread(&self) -> Unread {
        let Unread { bytes, ends_early } = self.inner.unread();
        Unread { bytes: bytes - self.unread, ends_early }
    }
}

/// A reader of the records before the next piece, whose beginning is searched when records come
/// from beyond this one's part of the bytes.
pub(super) struct UpToNext {
    cuts: Cuts,
    search: FindStart,
    led: Led,
    start: u64,
    /// The number of the piece from which on the next one is searched.
    next: u64,
    /// Where the next piece begins, once that is known.
    end: Option<u64>,
    /// What could not be read before the end.
    unread: Unread,
    ended: bool,
}

impl UpToNext {
    /// The records of a piece, which begins at `start`, and which is all of the file if that is one
    /// stream.
    pub(super) fn new(cuts: Cuts, search: FindStart, led: Led, start: u64, is_one_stream: bool) -> UpToNext {
        let next = if is_one_stream { cuts.piece.of } else { cuts.piece.number + 1 };
        UpToNext { cuts, search, led, start, next, end: None, unread: Unread::default(), ended: false }
    }

    /// Whether a place is before the next piece.
    fn is_before_next(&mut self, place: u64) -> anyhow::Result<bool> {
        while self.end.is_none() && self.next < self.cuts.piece.of && place >= self.cuts.cut(self.next) {
            self.end = self.cuts.begin(self.next, self.search)?;
            self.next += 1;
        }
        let Some(end) = self.end else { return Ok(true) };
        // Another worker began there, and rightly only if a record does.
        ensure!(
            place <= end,
            "what is at byte {end} looks like the beginning of a record, and reading from the records before does not come to it: {NOT_SPLIT}"
        );
        Ok(place < end)
    }

    /// The next item of this piece.
    fn advance(&mut self) -> anyhow::Result<Option<Item>> {
        let item = self.led.next()?;
        let place = match &item {
            Some(item) if self.counted_in() != CountedIn::Decoded => item.offset(),
            Some(_) => {
                ensure!(
                    self.next == self.cuts.piece.of,
                    "the first member has several records, and the other pieces do not see it: {NOT_SPLIT}"
                );
                return Ok(item);
            }
            None => self.cuts.bytes,
        };
        Ok(if self.is_before_next(place)? { item } else { None })
    }
}

impl Reader for UpToNext {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        if self.ended {
            return Ok(None);
        }
        let item = self.advance()?;
        self.ended = item.is_none();
        if item.is_some() || self.end.is_none() {
            self.unread = self.led.unread();
        }
        Ok(item)
    }

    fn position(&self) -> u64 {
        // The next record is read, to see where it begins.
        let end = self.end.unwrap_or_else(|| self.cuts.cut(self.next.min(self.cuts.piece.of)));
        self.led.inner.position().saturating_sub(self.led.passed).min(end - self.start)
    }

    fn counted_in(&self) -> CountedIn {
        self.led.inner.counted_in()
    }

    fn unread(&self) -> Unread {
        self.unread
    }
}
