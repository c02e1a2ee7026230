//! Records that go, replaced by revisit records: these say that a page has the payload of another
//! record, which stays.
//!
//! A replayer sends the HTTP head of the revisit with the payload of the other record. So a revisit
//! is written only where the payload digests are equal, and both records are of one type and say
//! the same encodings. Of an exact cluster, whose records are equal once they are decoded, the
//! first record of each payload stays, if no week before has it.
//!
//! ```text
//! pages of this week and of those before, by content ─▶ records that are read        `earlier`
//! archives, read once ─▶ payloads of these records           `originals`, `payload`, `digest`
//! by content, week and rank: the first of each payload ─▶ what the others refer to, by place
//! a record that goes, and what it refers to ─▶ a revisit record                     `record`
//! ```
//!
//! In reading order: `digest` (digests as archives write them), `original` (what a revisit says of
//! the record that it refers to), `arc_line` (the line of a record of ARC), `payload` (what is
//! compared of a record), `earlier` (pages of the weeks before), `originals` (which record another
//! one refers to), `record` (the revisit record), `arc` (records of ARC as WARC), `readdressed`
//! (records as those of other documents).

mod arc;
mod arc_line;
mod digest;
mod earlier;
mod original;
mod originals;
mod payload;
mod readdressed;
mod record;

pub(super) use self::arc::{as_warc, warc_name};
pub(super) use self::arc_line::ArcLine;
pub(super) use self::digest::{base32, hexadecimal};
pub use self::earlier::EarlierWeeks;
pub(super) use self::original::{Reference, RevisitedRecord};
pub use self::originals::Originals;
pub(super) use self::payload::http_head;
pub(super) use self::readdressed::{readdressed, readdressed_id};
pub(super) use self::record::{arc_record_id, record_id, revisit, revisit_id};
