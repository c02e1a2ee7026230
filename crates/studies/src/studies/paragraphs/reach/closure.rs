//! Closures: the pages that links lead to from some seeds, for up to 32 seeds at once, each with a
//! bit of its own.
//!
//! ```text
//! add(page, bits): new = bits that the page lacks; if there are some, the page is pending with them
//! while a page is pending:
//!     bits = take(pending, page)
//!     for each link page → q:  add(q, bits) at the owner of q
//! ```
//!
//! With links in memory this is one dataflow with a feedback loop and without rounds. Otherwise
//! each round is a pass over all links.
//!
//! Memory: 2 bits for every known URL and seed, rounded up to a power of two: for one seed 2 bits.
//! And 4 bytes for each pending page.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Block, Context, Dealer, SLICE, all_to_all, hold, install, run_to_end, source, unary};
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Capability, Concat, ConnectLoop, Enter, LoopVariable, Probe};
use timely::order::Product;

use super::out_links::{LinkArrays, OutLinks};
use super::page_marks::PageMarks;
use crate::kernels::memory::{SIDE_BY_SIDE, preload};
use crate::records::DocId;
use crate::structures::Ownership;

/// Pages whose links are followed between two checks of the clock.
const PAGES_AT_ONCE: usize = 1 << 10;
/// Marks that are sent in one part of a round, about.
const SENT_AT_ONCE: usize = 1 << 20;

/// Marks for a page, at its owner.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct MarkedPage {
    /// The number of the page at its owner.
    page: u32,
    bits: u32,
}

/// The marks of own pages, and the pages whose links are to be followed.
struct Spread {
    owned: Ownership,
    marks: PageMarks,
    queue: VecDeque<u32>,
    /// Marks of own pages that are added soon, so that their places in memory are loaded together.
    soon: Vec<MarkedPage>,
}

impl Spread {
    /// Nothing is marked; numbers without a page take no marks.
    fn new(owned: &Ownership, hosts: &[u64], bits: usize) -> Spread {
        let mut marks = PageMarks::new(owned.len(), bits);
        hosts.iter().enumerate().filter(|(_, host)| **host == 0).for_each(|(page, _)| marks.fill(page));
        Spread { owned: owned.clone(), marks, queue: VecDeque::new(), soon: Vec::with_capacity(SIDE_BY_SIDE) }
    }

    /// Marks some pages.
    #[inline]
    fn add(&mut self, pages: &[MarkedPage]) {
        for pages in pages.chunks(SIDE_BY_SIDE) {
            preload(pages.iter().map(|marked| self.marks.word(marked.page as usize)));
            for MarkedPage { page, bits } in pages {
                if self.marks.add(*page as usize, *bits) {
                    self.queue.push_back(*page);
                }
            }
        }
    }

    /// Follows the links of some pending pages: marks own pages, and deals the marks of others.
    /// Returns whether there are more.
    fn follow(&mut self, links: &LinkArrays, dealer: &mut Dealer<MarkedPage>) -> bool {
        for _ in 0..PAGES_AT_ONCE / SIDE_BY_SIDE {
            let count = SIDE_BY_SIDE.min(self.queue.len());
            let pages: Vec<u32> = self.queue.drain(..count).collect();
            if pages.is_empty() {
                return false;
            }
            links.preload(&pages);
            for page in pages {
                let bits = self.marks.take_pending(page as usize);
                for other in links.of(page) {
                    self.send(*other, bits, dealer);
                }
            }
            self.add_soon();
        }
        true
    }

    #[inline]
    fn send(&mut self, other: DocId, bits: u32, dealer: &mut Dealer<MarkedPage>) {
        let marked = MarkedPage { page: self.owned.index(other) as u32, bits };
        if self.owned.has(other) {
            self.soon.push(marked);
            if self.soon.len() == SIDE_BY_SIDE {
                self.add_soon();
            }
        } else {
            dealer.deal(self.owned.owner(other) as u64, marked);
        }
    }

    fn add_soon(&mut self) {
        let mut soon = std::mem::take(&mut self.soon);
        self.add(&soon);
        soon.clear();
        self.soon = soon;
    }
}

/// Returns, by own page, the bits of the seeds from which links lead to it. `seeds` are the same at
/// every worker: bit `n` is that of the pages with the number `n`. `hosts` has 0 for numbers
/// without a page; these have all bits.
///
/// # Errors
/// If links cannot be read, or a worker of this process failed.
pub(super) fn closure(
    cx: &mut Context,
    owned: &Ownership,
    hosts: &[u64],
    links: &OutLinks<'_>,
    seeds: &[(DocId, u32)],
) -> Result<PageMarks> {
    let bits = seeds.iter().map(|(_, seed)| *seed as usize + 1).max().unwrap_or(1);
    let mut spread = Spread::new(owned, hosts, bits);
    for (doc, seed) in seeds.iter().filter(|(doc, _)| owned.has(*doc)) {
        spread.add(&[MarkedPage { page: owned.index(*doc) as u32, bits: 1 << seed }]);
    }
    match links {
        OutLinks::Arrays(arrays) => in_memory(cx, spread, arrays.clone()),
        _ => by_passes(cx, spread, links),
    }
}

/// Follows links in memory.
fn in_memory(cx: &mut Context, spread: Spread, links: Rc<LinkArrays>) -> Result<PageMarks> {
    let watch = &cx.watch().clone();
    let none = Spread::new(&Ownership::new(0, 1, &[]), &[], 1);
    let spread = Rc::new(RefCell::new(spread));
    let probe: Handle<Product<u64, u32>> = Handle::new();
    install(cx, |scope| {
        let mut dealer = Dealer::new(scope.index(), scope.peers(), watch);
        // One record without bits wakes a worker whose seeds are pending.
        let index = scope.index();
        let (mut first, is_pending) = (Dealer::new(index, scope.peers(), watch), !spread.borrow().queue.is_empty());
        let begin = source(scope, "Seeds", |capability, _| {
            let mut capability = Some(capability);
            move |output| {
                let Some(capability) = capability.take() else { return };
                if is_pending {
                    first.deal(index as u64, MarkedPage { page: 0, bits: 0 });
                }
                let mut session = output.session_with_builder(&capability);
                first.finish().for_each(|mut block| session.give_container(&mut block));
            }
        });
        scope.iterative::<u32, _, _>(|inner| {
            let (handle, forwarded) = inner.loop_variable::<Block>(1);
            unary(begin.enter(inner).concat(forwarded), "Closure", |info| {
                let activator = inner.activator_for(info.address);
                let (spread, watch) = (spread.clone(), watch.clone());
                let mut held: Option<Capability<Product<u64, u32>>> = None;
                move |input, output| {
                    let mut spread = spread.borrow_mut();
                    input.for_each(|capability, block| {
                        spread.add(std::mem::take(block).open().records());
                        held.get_or_insert_with(|| hold(&capability, output));
                    });
                    // After a failure the capability is kept: other processes would take silence
                    // for an end.
                    if watch.failed() {
                        return;
                    }
                    let Some(capability) = &held else { return };
                    let mut session = output.session_with_builder(capability);
                    let slice = Instant::now();
                    while spread.follow(&links, &mut dealer) {
                        dealer.full().for_each(|mut block| session.give_container(&mut block));
                        if slice.elapsed() > SLICE {
                            return activator.activate();
                        }
                    }
                    dealer.finish().for_each(|mut block| session.give_container(&mut block));
                    drop(session);
                    held = None;
                }
            })
            .probe_with(&probe)
            .connect_loop(handle);
        });
    });
    run_to_end(cx, &probe)?;
    Ok(spread.replace(none).marks)
}

/// Follows links that do not fit into memory: each round is a pass over all of them, in parts, so
/// that few marks are in flight.
fn by_passes(cx: &mut Context, mut spread: Spread, links: &OutLinks<'_>) -> Result<PageMarks> {
    loop {
        // Pages that are marked in this round are followed in the next one.
        let current = spread.marks.take_all_pending();
        let is_pending = !std::mem::take(&mut spread.queue).is_empty();
        if !cx.any(is_pending)? {
            return Ok(spread.marks);
        }
        let mut pass = if is_pending { links.pass()? } else { None };
        loop {
            let mut dealer = cx.dealer();
            let mut sent = 0;
            while let Some(reading) = &mut pass
                && sent < SENT_AT_ONCE
            {
                let is_more = reading.read(|page, other| {
                    let bits = current.pending(page as usize);
                    if bits > 0 {
                        sent += 1;
                        spread.send(other, bits, &mut dealer);
                    }
                })?;
                spread.add_soon();
                if !is_more {
                    pass = None;
                }
            }
            all_to_all(cx, dealer)?.iter().for_each(|block| spread.add(block.records()));
            if !cx.any(pass.is_some())? {
                break;
            }
        }
    }
}
