//! The links of own pages, as a closure follows them: in memory where they fit, else by a pass over
//! all of them for each round.

use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, KeptRecords};

use crate::kernels::memory::{SIDE_BY_SIDE, advise_huge_pages, preload};
use crate::operators::scan::{LinkSource, OwnLink};
use crate::records::DocId;

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
    Arrays(Rc<LinkArrays>),
    /// In the table of the week.
    Table(&'a OpenLinks<'a>),
    /// In a file of this run.
    Kept(KeptRecords<PageLink>),
}

/// Links in memory: 8 bytes a link, and 16 for each page.
pub(super) struct LinkArrays {
    /// By own page: where its links begin, and their number.
    spans: Vec<(u64, u32)>,
    others: Vec<DocId>,
}

impl LinkArrays {
    /// No links yet of so many pages; there is room for `links`.
    fn new(pages: usize, links: u64) -> LinkArrays {
        let mut others = Vec::with_capacity(links as usize);
        advise_huge_pages(others.spare_capacity_mut());
        LinkArrays { spans: vec![(0, 0); pages], others }
    }

    /// Adds links as a table has them: all links of a page follow each other.
    pub fn extend(&mut self, links: &[OwnLink]) {
        for OwnLink { page, target, .. } in links {
            let (start, count) = &mut self.spans[*page as usize];
            if *count == 0 {
                *start = self.others.len() as u64;
            }
            *count += 1;
            self.others.push(*target);
        }
    }

    /// No links yet, if all workers have room for theirs in `memory` bytes.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn if_fits(cx: &mut Context, pages: usize, links: u64, memory: u64) -> Result<Option<LinkArrays>> {
        let fits = 16 * pages as u64 + 8 * links <= memory;
        Ok(if cx.any(!fits)? { None } else { Some(LinkArrays::new(pages, links)) })
    }

    /// The pages that a page links to.
    #[inline]
    pub fn of(&self, page: u32) -> &[DocId] {
        let (start, count) = self.spans[page as usize];
        &self.others[start as usize..start as usize + count as usize]
    }

    /// Loads the links of some pages into the cache: as many as fit into one line, of each.
    #[inline]
    pub fn preload(&self, pages: &[u32]) {
        preload(pages.iter().map(|page| self.spans[*page as usize].0));
        let first = |page: &u32| self.others.get(self.spans[*page as usize].0 as usize);
        preload(pages.iter().map(|page| first(page).map_or(0, |doc| doc.to_table() as u64)));
    }
}

/// Links that are read at once.
const AT_ONCE: usize = 1 << 16;

impl<'a> OutLinks<'a> {
    /// The links of the table of the week, in memory if all workers have room for theirs in
    /// `memory` bytes.
    pub fn of_table(cx: &mut Context, open: &'a OpenLinks<'a>, pages: usize, memory: u64) -> Result<OutLinks<'a>> {
        let mut source = open()?;
        let Some(mut arrays) = LinkArrays::if_fits(cx, pages, source.count(), memory)? else {
            return Ok(OutLinks::Table(open));
        };
        loop {
            let links = source.read(AT_ONCE)?;
            if links.is_empty() {
                return Ok(OutLinks::Arrays(Rc::new(arrays)));
            }
            arrays.extend(&links);
        }
    }

    /// Links in any order, of which each own page has some number.
    pub fn of_kept(
        cx: &mut Context,
        links: KeptRecords<PageLink>,
        counts: Vec<u32>,
        memory: u64,
    ) -> Result<OutLinks<'a>> {
        let Some(mut arrays) = LinkArrays::if_fits(cx, counts.len(), links.len() as u64, memory)? else {
            return Ok(OutLinks::Kept(links));
        };
        let mut start = 0u64;
        for (span, count) in arrays.spans.iter_mut().zip(&counts) {
            span.0 = start;
            start += u64::from(*count);
        }
        arrays.others.resize(links.len(), DocId::NONE);
        for block in 0..links.blocks() {
            links.block(block, |links| {
                for links in links.chunks(SIDE_BY_SIDE) {
                    preload(links.iter().map(|link| arrays.spans[link.page as usize].0));
                    for PageLink { page, other, .. } in links {
                        let (start, count) = &mut arrays.spans[*page as usize];
                        arrays.others[*start as usize + *count as usize] = *other;
                        *count += 1;
                    }
                }
            })?;
        }
        Ok(OutLinks::Arrays(Rc::new(arrays)))
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

/// A pass over the links of own pages.
pub(super) enum LinkPass<'a, 'b> {
    Table(Box<dyn LinkSource + 'a>),
    Kept(&'b KeptRecords<PageLink>, usize),
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
