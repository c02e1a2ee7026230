//! The heads of records: where each ends, and what its block is.

use std::io;

use memchr::memchr;

use super::records::{ENDS_IN_HEAD, HeadAndBlock, LONGER_THAN_FILE, Records};
use crate::readers::item::Reject;
use crate::readers::warc::arc;
use crate::readers::warc::decoded::{Dialect, Reach};
use crate::readers::warc::record::{VERSION, parse};

/// The longest head of a record, in bytes.
const HEAD: u64 = 1 << 20;

/// This line begins the next record, which is read. So of a file of such lines without the end of a
/// head, no line is read twice.
const VERSION_IN_HEAD: &str = "warc: a version line inside a head";

/// Why a head does not end.
struct BrokenHead {
    reason: &'static str,
    /// The position at which to continue; `None`: search for the next record.
    resume: Option<u64>,
}

impl Records {
    /// Reads the head that begins at `begin`; if it is bad, searches for the next record.
    pub(super) fn head(&mut self, begin: u64, offset: u64) -> io::Result<Result<HeadAndBlock, Reject>> {
        let reject = |url: Option<String>, reason: &str| Ok(Err(Reject { offset, url, reason: reason.to_owned() }));

        if !self.stream.begins_record(begin)? {
            self.resume_after(begin)?;
            return reject(None, "warc: no version line where a record should begin");
        }
        let start = match self.head_end(begin)? {
            Ok(start) => start,
            Err(BrokenHead { reason, resume }) => {
                match resume {
                    Some(position) => self.stream.cursor = position,
                    None => self.resume_after(begin)?,
                }
                return reject(None, reason);
            }
        };
        let bytes = self.stream.bytes(begin..start);
        let parsed = match self.stream.dialect {
            Dialect::Warc => parse(bytes, offset),
            Dialect::Arc => arc::parse(bytes, offset),
        };
        let head = match parsed {
            Ok(head) => head,
            Err((url, reason)) => {
                self.resume_after(start - 1)?;
                return reject(url, reason);
            }
        };
        let Some(length) = head.length else {
            self.resume_after(start - 1)?;
            return reject(head.url, "warc: no Content-Length");
        };
        if self.plain_size.is_some_and(|size| length > size.saturating_sub(start)) {
            self.resume_after(start - 1)?;
            return reject(head.url, LONGER_THAN_FILE);
        }
        Ok(Ok(HeadAndBlock { head, block: start..start.saturating_add(length) }))
    }

    /// Returns the position after the head that begins at `begin`.
    fn head_end(&mut self, begin: u64) -> io::Result<Result<u64, BrokenHead>> {
        let mut line = begin;
        let mut searched = begin;
        loop {
            if searched - begin > HEAD {
                return Ok(Err(BrokenHead { reason: "warc: head too long", resume: None }));
            }
            let end = self.stream.end();
            let newline = memchr(b'\n', self.stream.bytes(searched..end)).map(|index| searched + index as u64);
            let is_there = match self.reach_in_head(newline.unwrap_or(end) + 1)? {
                Ok(is_there) => is_there,
                Err(broken) => return Ok(Err(broken)),
            };
            match newline {
                Some(newline) => {
                    let is_empty = matches!(self.stream.bytes(line..newline), b"" | b"\r");
                    let is_record = line > begin && self.stream.bytes(line..newline).starts_with(VERSION);
                    if is_record && self.stream.dialect == Dialect::Warc {
                        return Ok(Err(BrokenHead { reason: VERSION_IN_HEAD, resume: Some(line) }));
                    }
                    (line, searched) = (newline + 1, newline + 1);
                    if is_empty || self.stream.dialect == Dialect::Arc {
                        return Ok(Ok(line));
                    }
                }
                None if is_there => searched = end,
                None => return Ok(Err(BrokenHead { reason: ENDS_IN_HEAD, resume: None })),
            }
        }
    }

    /// Decodes the bytes before `target`, which is in a head; returns `false` if the file ends
    /// before.
    fn reach_in_head(&mut self, target: u64) -> io::Result<Result<bool, BrokenHead>> {
        Ok(match self.stream.reach(target)? {
            Reach::There => Ok(true),
            Reach::End => Ok(false),
            Reach::NextRecord(position) => {
                Err(BrokenHead { reason: "warc: the member ends inside a head", resume: Some(position) })
            }
            Reach::Damage(position, reason) => {
                self.stream.pass_boundary();
                Err(BrokenHead { reason, resume: Some(position) })
            }
        })
    }
}
