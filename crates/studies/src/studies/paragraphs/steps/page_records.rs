//! Records that are made of the paragraphs of pages while they are dealt: once for each range of
//! keys, so that they are never kept.

use std::cell::RefCell;

use anyhow::{Context, Result};
use nigh_exchange::RecordBlocks;

use super::source::{ParagraphPass, ParagraphSource};
use crate::records::DocId;

/// Records of a block, about.
const BLOCK: usize = 1 << 12;

/// The records of the own pages of a source.
pub struct PageRecords<S: ParagraphSource, R, F> {
    source: S,
    /// Records of all pages, about.
    count: usize,
    reading: RefCell<RepeatedReading<S, F>>,
    /// The records of the block that is read.
    block: RefCell<Vec<R>>,
}

struct RepeatedReading<S: ParagraphSource, F> {
    make: F,
    pass: Option<S::Pass>,
    /// Whether pages were read to the end before.
    is_again: bool,
    paragraphs: Vec<u64>,
}

impl<S: ParagraphSource, R, F> PageRecords<S, R, F>
where
    F: FnMut(DocId, &[u64], bool, &mut Vec<R>) -> Result<()>,
{
    /// About `count` records; `make` adds those of a page. It is told whether it has seen all pages
    /// before, for another range of keys.
    pub fn new(source: &S, count: u64, make: F) -> PageRecords<S, R, F> {
        let reading = RepeatedReading { make, pass: None, is_again: false, paragraphs: Vec::new() };
        PageRecords {
            source: source.clone(),
            count: count as usize,
            reading: RefCell::new(reading),
            block: RefCell::default(),
        }
    }
}

impl<S: ParagraphSource, R, F> RecordBlocks<R> for PageRecords<S, R, F>
where
    F: FnMut(DocId, &[u64], bool, &mut Vec<R>) -> Result<()>,
{
    fn count(&self) -> usize {
        self.count
    }

    fn read(&self, number: usize, take: impl FnOnce(&[R])) -> Result<bool> {
        let RepeatedReading { make, pass, is_again, paragraphs } = &mut *self.reading.borrow_mut();
        if number == 0 {
            *pass = Some(self.source.pass()?);
        }
        let reading = pass.as_mut().context("blocks are read from the first one")?;
        let block = &mut *self.block.borrow_mut();
        block.clear();
        while block.len() < BLOCK {
            let Some(doc) = reading.next(paragraphs)? else {
                (*pass, *is_again) = (None, true);
                take(block);
                return Ok(false);
            };
            make(doc, paragraphs, *is_again, block)?;
        }
        take(block);
        Ok(true)
    }
}
