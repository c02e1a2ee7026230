//! Items that a reader holds back, in the order of the file, until later records say more of them:
//! a page until its request comes, a first segment until the others do (WARC 1.1, section 8).
//!
//! How long an item waits depends on nothing but the records after it, so a piece of a file gives
//! the items of the whole.
//!
//! Memory: of what waits for a request, what follows it up to 1 MiB or 16 items; of segments, 64
//! MiB or 4,096 items, and the joined block up to the cap of one record. What waits longer is a
//! page whose method is not known, or one that is cut.

use std::collections::{BTreeMap, VecDeque};

use super::methods::{RequestMethod, Ties};
use super::record::{RecordHead, RecordSegment};
use crate::readers::item::{CountedIn, Item, Skip, Skipped, Unread};

/// How much follows an item at most while it waits.
#[derive(Clone, Copy)]
struct Wait {
    items: usize,
    bytes: usize,
}

/// The items within which the request of a response follows it.
pub const WITHIN: usize = 16;

const FOR_REQUEST: Wait = Wait { items: WITHIN, bytes: 1 << 20 };
const FOR_SEGMENTS: Wait = Wait { items: 4096, bytes: 64 << 20 };

impl Wait {
    fn is_over(self, behind: Wait) -> bool {
        behind.items >= self.items || behind.bytes >= self.bytes
    }
}

/// What a reader says of the item that it returned last.
#[derive(Default)]
pub struct ItemNotes {
    pub counted_in: Option<CountedIn>,
    pub unread: Unread,
    /// The head of its record.
    pub head: Vec<u8>,
}

/// What is held back.
#[expect(clippy::large_enum_variant, reason = "nearly all are items, and a box would be an allocation for each")]
pub enum HeldContent {
    /// An item, with what ties it to a request that may come, if it waits for one.
    Item(Item, Option<Ties>),
    /// The segments of a record so far.
    Segments(Box<Segments>),
}

/// A record whose segments are joined.
pub struct Segments {
    /// The head of the first one.
    pub record: RecordHead,
    /// The method by which it was asked for, if that is known.
    pub method: Option<RequestMethod>,
    parts: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    /// The number of the last one, and the length of all.
    last: Option<(u64, u64)>,
    /// The most bytes that are kept.
    cap: usize,
    is_cut: bool,
}

impl Segments {
    /// The first segment.
    pub fn new(record: RecordHead, method: Option<RequestMethod>, block: &[u8], cap: usize) -> Segments {
        let is_cut = record.cut;
        let parts = BTreeMap::from([(1, block.to_vec())]);
        Segments { record, method, parts, bytes: block.len(), last: None, cap, is_cut }
    }

    /// Adds a later one.
    fn add(&mut self, head: &RecordHead, segment: &RecordSegment, block: &[u8]) {
        if self.parts.contains_key(&segment.number) {
            return;
        }
        let room = self.cap.saturating_sub(self.bytes).min(block.len());
        self.is_cut |= head.cut || room < block.len();
        self.bytes += room;
        self.parts.insert(segment.number, block[..room].to_vec());
        if let Some(total) = segment.total {
            self.last = Some((segment.number, total));
        }
    }

    fn is_whole(&self) -> bool {
        self.bytes >= self.cap || self.last.is_some_and(|(number, _)| self.parts.len() as u64 == number)
    }

    /// The record and its block, as far as its segments follow each other. It is cut if one of them
    /// is missing or the length is another.
    pub fn joined(mut self) -> (RecordHead, Vec<u8>) {
        let mut block = Vec::with_capacity(self.bytes);
        let count = self.parts.len();
        let following = self.parts.into_iter().zip(1..).take_while(|((number, _), place)| number == place);
        let joined = following.map(|((_, part), _)| block.extend(part)).count();
        let is_whole = joined == count && self.last == Some((count as u64, block.len() as u64));
        self.record.cut = self.is_cut || !is_whole;
        (self.record, block)
    }
}

/// An item that is held back.
struct HeldItem {
    content: HeldContent,
    said: ItemNotes,
}

impl HeldItem {
    fn bytes(&self) -> usize {
        let of_content = match &self.content {
            HeldContent::Item(Item::Page(page), _) => page.body.bytes() as usize,
            HeldContent::Item(..) => 0,
            HeldContent::Segments(segments) => segments.bytes,
        };
        of_content + self.said.head.len()
    }
}

/// The items that are held back.
#[derive(Default)]
pub struct Held {
    items: VecDeque<HeldItem>,
    /// The bytes of all.
    bytes: usize,
    /// Buffers for heads.
    spare: Vec<Vec<u8>>,
}

impl Held {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds the next item of the file.
    pub fn push(&mut self, content: HeldContent, counted_in: CountedIn, unread: Unread, head: &[u8]) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(head);
        let said = ItemNotes { counted_in: Some(counted_in), unread, head: buffer };
        let item = HeldItem { content, said };
        self.bytes += item.bytes();
        self.items.push_back(item);
    }

    /// The first item, if it waits no longer, and what is said of it in the place of `said`.
    pub fn pop(&mut self, is_end: bool, said: &mut Option<ItemNotes>) -> Option<HeldContent> {
        let front = self.items.front()?;
        let behind = Wait { items: self.items.len() - 1, bytes: self.bytes - front.bytes() };
        let waits = match &front.content {
            HeldContent::Item(_, ties) => ties.is_some() && !FOR_REQUEST.is_over(behind),
            HeldContent::Segments(segments) => !segments.is_whole() && !FOR_SEGMENTS.is_over(behind),
        };
        if waits && !is_end {
            return None;
        }
        self.bytes = behind.bytes;
        let item = self.items.pop_front()?;
        if let Some(last) = said.replace(item.said) {
            self.recycle(last);
        }
        Some(item.content)
    }

    /// Keeps the buffer of what is said no longer.
    pub fn recycle(&mut self, said: ItemNotes) {
        let mut head = said.head;
        head.clear();
        self.spare.push(head);
    }

    /// Calls `settle` with each of the last items that still wait, from the last one on, until it
    /// returns true.
    fn settle(&mut self, wait: Wait, mut settle: impl FnMut(&mut HeldContent) -> bool) -> bool {
        let mut behind = Wait { items: 0, bytes: 0 };
        for item in self.items.iter_mut().rev() {
            if wait.is_over(behind) {
                return false;
            }
            let before = item.bytes();
            if settle(&mut item.content) {
                self.bytes = self.bytes - before + item.bytes();
                return true;
            }
            behind = Wait { items: behind.items + 1, bytes: behind.bytes + before };
        }
        false
    }

    /// Tells the response that `is_it` finds by which method it was asked for; returns false if
    /// none of those that wait is it.
    pub fn asked(&mut self, method: RequestMethod, is_it: impl Fn(&Ties) -> bool) -> bool {
        self.settle(FOR_REQUEST, |content| match content {
            HeldContent::Item(item, ties) if ties.as_ref().is_some_and(&is_it) => {
                *ties = None;
                set_method(item, method);
                true
            }
            HeldContent::Segments(segments) if segments.method.is_none() && is_it(&Ties::of(&segments.record)) => {
                segments.method = Some(method);
                true
            }
            _ => false,
        })
    }

    /// Adds a later segment to the first one, if that still waits.
    pub fn continued(&mut self, head: &RecordHead, block: &[u8]) {
        let Some((segment, origin)) =
            head.segment.as_deref().and_then(|segment| Some((segment, segment.origin.as_ref()?)))
        else {
            return;
        };
        self.settle(FOR_SEGMENTS, |content| match content {
            HeldContent::Segments(segments) if segments.record.entry.id.as_ref() == Some(origin) => {
                segments.add(head, segment, block);
                true
            }
            _ => false,
        });
    }
}

/// Says in a page by which method it was asked for. An answer to HEAD is not a page.
pub fn set_method(item: &mut Item, method: RequestMethod) {
    let Item::Page(page) = item else { return };
    match method {
        RequestMethod::Head => *item = Item::Skip(Skipped { offset: page.offset, why: Skip::Head }),
        method => page.is_of_get = method == RequestMethod::Get,
    }
}
