//! The links of own pages, as a closure follows them: in memory where they fit, else by a pass over all of them for each round.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::worker::Worker;

use crate::operators::exchange::{Kept, any};
use crate::operators::scan::{LinkSource, OwnLink};
use crate::records::DocId;
use crate::watch::Watch;

/// A link of an own page, in the direction in which it is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PageLink {
    /// The number of the own page.
    pub page: u32,
    /// Half of the hash of the other page's host, where it is needed.
    pub host: u32,
    /// The other page.
    pub other: DocId,
}

/// Begins to read the links of own pages from the first one.
pub type OpenLinks<'a> = dyn Fn() -> Result<Box<dyn LinkSource + 'a>> + 'a;

/// The links of own pages.
pub(super) enum OutLinks<'a> {
    /// In memory.
    Arrays(LinkArrays),
    /// In the table of the week.
    Table(&'a OpenLinks<'a>),
    /// In a file of this run.
    Kept(Kept<PageLink>),
}

/// Links in memory: 8 bytes a link, and 12 for each page.
pub(super) struct LinkArrays {
    /// By own page: where its links begin, and their number.
    starts: Vec<u64>,
    counts: Vec<u32>,
    others: Vec<DocId>,
}

impl LinkArrays {
    fn new(pages: usize) -> LinkArrays {
        LinkArrays { starts: vec![0; pages], counts: vec![0; pages], others: Vec::new() }
    }

    /// The pages that a page links to.
    #[inline]
    pub fn of(&self, page: u32) -> &[DocId] {
        let start = self.starts[page as usize] as usize;
        &self.others[start..start + self.counts[page as usize] as usize]
    }
}

/// Links that are read at once.
const AT_ONCE: usize = 1 << 16;

impl<'a> OutLinks<'a> {
    /// The links of the table of the week, in memory if all workers have room for theirs in `memory` bytes.
    pub fn of_table(
        worker: &mut Worker,
        open: &'a OpenLinks<'a>,
        pages: usize,
        memory: u64,
        watch: &Watch,
    ) -> Result<OutLinks<'a>> {
        let mut source = open()?;
        if any(worker, !fits(pages, source.count(), memory), watch)? {
            return Ok(OutLinks::Table(open));
        }
        let mut arrays = LinkArrays::new(pages);
        arrays.others.reserve(source.count() as usize);
        loop {
            let links = source.read(AT_ONCE)?;
            if links.is_empty() {
                return Ok(OutLinks::Arrays(arrays));
            }
            // All links of a page follow each other.
            for OwnLink { page, target, .. } in links {
                if arrays.counts[page as usize] == 0 {
                    arrays.starts[page as usize] = arrays.others.len() as u64;
                }
                arrays.counts[page as usize] += 1;
                arrays.others.push(target);
            }
        }
    }

    /// Links in any order, of which each own page has some number.
    pub fn of_kept(
        worker: &mut Worker,
        links: Kept<PageLink>,
        counts: Vec<u32>,
        memory: u64,
        watch: &Watch,
    ) -> Result<OutLinks<'a>> {
        if any(worker, !fits(counts.len(), links.len() as u64, memory), watch)? {
            return Ok(OutLinks::Kept(links));
        }
        let mut arrays = LinkArrays::new(counts.len());
        let mut start = 0u64;
        for (of_page, count) in arrays.starts.iter_mut().zip(&counts) {
            *of_page = start;
            start += u64::from(*count);
        }
        arrays.others.resize(links.len(), DocId::NONE);
        for block in 0..links.blocks() {
            links.block(block, |links| {
                for PageLink { page, other, .. } in links {
                    let page = *page as usize;
                    arrays.others[arrays.starts[page] as usize + arrays.counts[page] as usize] = *other;
                    arrays.counts[page] += 1;
                }
            })?;
        }
        Ok(OutLinks::Arrays(arrays))
    }

    /// Begins to read all links; `None` if they are in memory.
    pub fn pass(&self) -> Result<Option<LinkPass<'a, '_>>> {
        Ok(match self {
            OutLinks::Arrays(_) => None,
            OutLinks::Table(open) => Some(LinkPass::Table(open()?)),
            OutLinks::Kept(links) => Some(LinkPass::Kept(links, 0)),
        })
    }
}

/// Whether so many links of so many pages fit into memory.
fn fits(pages: usize, links: u64, memory: u64) -> bool {
    12 * pages as u64 + 8 * links <= memory
}

/// A pass over the links of own pages.
pub(super) enum LinkPass<'a, 'b> {
    Table(Box<dyn LinkSource + 'a>),
    Kept(&'b Kept<PageLink>, usize),
}

impl LinkPass<'_, '_> {
    /// Calls `take` with some more links: page and other page. Returns `false` after the last ones.
    pub fn read(&mut self, mut take: impl FnMut(u32, DocId)) -> Result<bool> {
        match self {
            LinkPass::Table(source) => {
                let links = source.read(AT_ONCE)?;
                links.iter().for_each(|link| take(link.page, link.target));
                Ok(!links.is_empty())
            }
            LinkPass::Kept(links, next) => {
                let end = (*next + AT_ONCE / 1024).min(links.blocks());
                for block in *next..end {
                    links.block(block, |links| links.iter().for_each(|link| take(link.page, link.other)))?;
                }
                *next = end;
                Ok(end < links.blocks())
            }
        }
    }
}
