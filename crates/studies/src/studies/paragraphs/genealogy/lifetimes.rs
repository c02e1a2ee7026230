//! Lifetimes: when each paragraph was seen first and last.
//!
//! A paragraph that all weeks have, or that was in the first week and is still there, has no
//! lifetime of its own: there is a row only for one that was first seen after the first week, or
//! that is gone. So the rows of a week follow from those of a former week and from what appeared
//! and left since.
//!
//! ```text
//! appears: no row: first = this week, page;  a row: last = none; a row without first falls, for it is as in the first week
//! leaves:  no row: first = none, last = week before, page;  a row: last = week before, page
//! ```
//!
//! Each paragraph belongs to a shard by its hash. Events are sorted by shard and paragraph on disk,
//! beyond the memory for them.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::Result;
use arrow_array::{Array, Date32Array, Int64Array, RecordBatch};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, KeptRecords, all_to_all};
use serde::{Deserialize, Serialize};

use super::holders::ParagraphEvent;
use crate::records::{DocId, Week, mix};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::tables::studies::genealogy::LifetimeRow;
use crate::tables::{RowRange, Scan, field};

/// Events that are exchanged at once, in blocks.
const BLOCKS_AT_ONCE: usize = 1 << 9;

/// The lifetime of a paragraph. Weeks are days since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifetime {
    /// The paragraph.
    pub paragraph: u64,
    /// The week that had it first, and the smallest page of that week that had it; `None` if the
    /// first week of all had it.
    pub first: Option<(i32, DocId)>,
    /// The last week that had it, and the smallest page of that week that had it; `None` if it is
    /// there now.
    pub last: Option<(i32, DocId)>,
}

impl From<Lifetime> for LifetimeRow {
    fn from(lifetime: Lifetime) -> LifetimeRow {
        let Lifetime { paragraph, first, last } = lifetime;
        LifetimeRow {
            paragraph: paragraph as i64,
            first_week: first.map(|(week, _)| Week::from_days(week)),
            first_doc: first.map(|(_, doc)| doc.to_table()),
            last_week: last.map(|(week, _)| Week::from_days(week)),
            last_doc: last.map(|(_, doc)| doc.to_table()),
        }
    }
}

/// A paragraph that appears or leaves, at the owner of its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
struct DatedEvent {
    shard: u64,
    paragraph: u64,
    /// The number of the change, from 0 for that from the first week to the second.
    number: u32,
    appears: u32,
    /// Days of the week before, and of this one.
    days: [i32; 2],
    doc: DocId,
}

impl Sortable for DatedEvent {
    type Key = DatedEvent;

    fn key(&self) -> DatedEvent {
        *self
    }

    fn weight(&self) -> usize {
        size_of::<DatedEvent>()
    }
}

/// What a change of weeks brings, of all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeekTurnover {
    /// Paragraphs that are there for the first time.
    pub first_seen: u64,
    /// Paragraphs that were away, and are there again.
    pub returned: u64,
    /// Paragraphs that no page has any more.
    pub left: u64,
}

/// What one worker counts as it makes lifetimes.
#[derive(Clone, Debug)]
pub struct LifetimeCounts {
    /// Rows of the former run.
    pub former: u64,
    /// Rows.
    pub rows: u64,
    /// What each change of weeks brought.
    pub turnover: Vec<WeekTurnover>,
}

/// Collects what appears and leaves, week after week.
pub struct Lifetimes {
    events: ExternalSort<DatedEvent>,
    shards: u64,
    /// The changes of weeks so far.
    changes: u32,
}

/// The shard of a paragraph.
fn shard_of(paragraph: u64, shards: u64) -> u64 {
    mix(paragraph) % shards
}

impl Lifetimes {
    /// Nothing has appeared or left yet. `prefix` names the files for what does not fit into
    /// `memory` bytes.
    pub fn new(prefix: &Path, shards: u64, memory: u64) -> Lifetimes {
        Lifetimes { events: ExternalSort::new(prefix, memory), shards, changes: 0 }
    }

    /// Adds what appeared and left from one week to the next: `days` are those of both. All workers
    /// call it.
    ///
    /// # Errors
    /// If a file cannot be read or written, or a worker of this process failed.
    pub fn add(&mut self, cx: &mut Context, days: [i32; 2], events: &KeptRecords<ParagraphEvent>) -> Result<()> {
        let peers = cx.peers();
        let rounds = cx.sorted(vec![events.blocks().div_ceil(BLOCKS_AT_ONCE)])?;
        for round in 0..rounds.last().copied().unwrap_or(0) {
            let mut dealer = cx.dealer();
            for block in (round * BLOCKS_AT_ONCE..events.blocks()).take(BLOCKS_AT_ONCE) {
                events.block(block, |events| {
                    for ParagraphEvent { paragraph, appears, doc } in events.iter().copied() {
                        let (shard, number) = (shard_of(paragraph, self.shards), self.changes);
                        let event = DatedEvent { shard, paragraph, number, appears: appears as u32, days, doc };
                        dealer.deal(shard % peers as u64, event);
                    }
                })?;
            }
            for event in all_to_all(cx, dealer)?.iter().flat_map(|block| block.records()) {
                self.events.push(*event)?;
            }
        }
        self.changes += 1;
        Ok(())
    }

    /// Calls `each` with the lifetimes of own shards, by shard and paragraph: those of `former`,
    /// changed by what appeared and left.
    ///
    /// # Errors
    /// If a file cannot be read, or the first error of `each`.
    pub fn finish(
        self,
        mut former: LifetimeReader,
        mut each: impl FnMut(u32, Lifetime) -> Result<()>,
    ) -> Result<LifetimeCounts> {
        let turnover = vec![WeekTurnover::default(); self.changes as usize];
        let mut counts = LifetimeCounts { former: 0, rows: 0, turnover };
        let mut events: Sorted<DatedEvent> = self.events.sorted()?;
        let (mut event, mut row) = (events.record()?, former.next()?);
        loop {
            let key_of_event = event.map(|event| (event.shard, event.paragraph));
            let key_of_row = row.map(|(shard, row)| (u64::from(shard), row.paragraph));
            let key = match (key_of_event, key_of_row) {
                (Some(event), Some(row)) => event.min(row),
                (Some(key), None) | (None, Some(key)) => key,
                (None, None) => return Ok(counts),
            };
            let mut lifetime = None;
            if key_of_row == Some(key) {
                lifetime = row.map(|(_, row)| row);
                counts.former += 1;
                row = former.next()?;
            }
            while let Some(next) = event.filter(|event| (event.shard, event.paragraph) == key) {
                lifetime = changed(lifetime, &next, &mut counts.turnover[next.number as usize]);
                event = events.record()?;
            }
            if let Some(lifetime) = lifetime {
                counts.rows += 1;
                each(key.0 as u32, lifetime)?;
            }
        }
    }
}

/// The lifetime of a paragraph after it appeared or left.
fn changed(lifetime: Option<Lifetime>, event: &DatedEvent, turnover: &mut WeekTurnover) -> Option<Lifetime> {
    let DatedEvent { paragraph, appears, days: [before, now], doc, .. } = *event;
    match (lifetime, appears) {
        (None, 1) => {
            turnover.first_seen += 1;
            Some(Lifetime { paragraph, first: Some((now, doc)), last: None })
        }
        (Some(row), 1) => {
            turnover.returned += 1;
            row.first.map(|_| Lifetime { last: None, ..row })
        }
        (row, _) => {
            turnover.left += 1;
            Some(Lifetime { paragraph, first: row.and_then(|row| row.first), last: Some((before, doc)) })
        }
    }
}

/// Reads the lifetimes of own shards from the tables of a former run.
#[derive(Default)]
pub struct LifetimeReader {
    /// The rows that are left, with their shards, ascending.
    rows: VecDeque<(u32, RowRange)>,
    scan: Option<Scan>,
    batch: Option<RecordBatch>,
    row: usize,
    shard: u32,
}

impl LifetimeReader {
    /// Reads these rows, each of one shard; shards ascend.
    pub fn of(rows: Vec<(u32, RowRange)>) -> LifetimeReader {
        LifetimeReader { rows: rows.into(), ..LifetimeReader::default() }
    }

    /// The next lifetime and its shard.
    fn next(&mut self) -> Result<Option<(u32, Lifetime)>> {
        loop {
            if let Some(batch) = &self.batch {
                if self.row < batch.num_rows() {
                    let lifetime = lifetime_of(batch, self.row)?;
                    self.row += 1;
                    return Ok(Some((self.shard, lifetime)));
                }
                self.batch = None;
            }
            if let Some(scan) = &mut self.scan {
                (self.batch, self.row) = (scan.batch()?, 0);
                if self.batch.is_some() {
                    continue;
                }
            }
            let Some((shard, rows)) = self.rows.pop_front() else { return Ok(None) };
            let columns = ["paragraph", "first_week", "first_doc", "last_week", "last_doc"];
            (self.scan, self.shard) = (Some(Scan::open(&rows, &columns)?), shard);
        }
    }
}

fn lifetime_of(batch: &RecordBatch, row: usize) -> Result<Lifetime> {
    let paragraphs: &Int64Array = field(batch, "paragraph")?;
    let of = |week: &str, doc: &str| -> Result<Option<(i32, DocId)>> {
        let (weeks, docs): (&Date32Array, &Int64Array) = (field(batch, week)?, field(batch, doc)?);
        Ok(weeks.is_valid(row).then(|| (weeks.value(row), DocId::from_table(docs.value(row)))))
    };
    let paragraph = paragraphs.value(row) as u64;
    Ok(Lifetime { paragraph, first: of("first_week", "first_doc")?, last: of("last_week", "last_doc")? })
}
