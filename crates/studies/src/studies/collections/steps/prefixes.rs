//! Prefixes: what part of the crawled pages below each directory are copies. It gives the common
//! prefix of each collection, and the directories that a crawler need not fetch.
//!
//! ```text
//! for each page of a collection, and each page on a host with a copied collection
//!     for each directory of its URL
//!         record: directory, those around it and within it, collection, bytes     64 bytes, to the owner of the directory
//! for each URL on such a host that links name, of which no week has a page, and that does not redirect to one (`named`)
//!     for each directory of it
//!         record: directory, a hash of the URL, whether a copy lies in the directory of the URL
//! for each directory
//!     all pages of a collection are below it                ─▶ it is a prefix of the collection
//!     copies are a share of `purity` of the pages below it and of the named URLs in directories without a copy
//!                                                           ─▶ it is pure; of nested ones the outermost is avoided
//! ```
//!
//! A collection that has at least `least-size` pages and is not the principal one of its similar
//! cluster is *copied*. Its pages are copies, if the principal collection has a page of their
//! trivial clusters. A directory with a page of a principal collection that has copies is not pure,
//! whatever else is below it. Nor is one that has all of its crawled pages in one directory within
//! it: that one says what was seen, and of the rest nothing is known. Directories are equal up to
//! collisions of 64-bit hashes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, all_to_all, by_key};

use super::clustered::ClusteredPages;
use super::directories::{directories, directory_hash};
use super::members::CollectionPage;
use super::named::{NAMED_COLUMNS, NamedUrls, find_named, named_urls};
use super::stage::CollectionStage;
use crate::operators::scan::UrlTargets;
use crate::records::{DocId, spread};
use crate::state::History;
use crate::structures::{ByKey, Hashes, Ownership};
use crate::tables::{DocumentRow, LinkRow, RowRange, Scan, Table, field};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;
/// Sums of one directory and one collection that a worker has before it deals them.
const SUMS: usize = 1 << 15;
/// Directories of a page, about.
const DIRECTORIES: u64 = 4;
/// Room for the error of a product of a share and a whole number.
const ROUNDING: f64 = 1e-9;

/// Some pages of one collection below one directory.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct CollectionBelow {
    directory: u64,
    parent: u64,
    /// [`DocId::NONE`] for pages of no collection.
    collection: DocId,
    /// The smallest of the pages.
    example: DocId,
    /// The bytes of the pages.
    bytes: u64,
    pages: u32,
    /// All pages of the collection.
    of_collection: u32,
    /// The bytes of the directory's text.
    length: u32,
    role: u32,
    /// The directory within this one that has all of the pages; 0 if one of them is in none, or
    /// there are several.
    within: u64,
}

// What pages and named URLs are for the avoid list. Of a named URL, `collection` is a hash of it.

/// A page that is neither a copy nor has copies.
const NEITHER: u32 = 0;
/// A page of a principal collection that has copies.
const PRINCIPAL: u32 = 1;
/// A page of a copied collection.
const COPY: u32 = 2;
/// A named URL in a directory that some copy lies in.
const NAMED: u32 = 3;
/// A named URL in another directory.
const UNSEEN: u32 = 4;

/// A directory that has all pages of a collection.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CommonDirectory {
    collection: DocId,
    length: u64,
}

/// A pure directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct PureDirectory {
    /// A hash of its text.
    directory: u64,
    /// That of the directory around it, or 0.
    parent: u64,
    /// A page below it: of the collection with most pages there, the smallest. Its URL begins with
    /// the directory.
    pub example: DocId,
    /// The bytes of all pages below it.
    pub bytes: u64,
    /// The crawled pages below it.
    pub pages: u32,
    /// Those of copied collections.
    pub copies: u32,
    /// The URLs below it that links name and of which no week has a page.
    pub named: u32,
    /// The bytes of its text.
    pub length: u32,
}

/// What directories say.
#[derive(Debug, Default)]
pub struct Prefixes {
    /// By own collection, by its first page: the bytes of the common directory of its pages.
    pub of_collections: BTreeMap<DocId, u32>,
    /// Pure directories whose parents are not pure, each at the owner of its example, by example.
    pub pure: Vec<PureDirectory>,
}

fn role(page: &CollectionPage, least_size: u32) -> u32 {
    if page.is_principal() {
        if page.largest_copy >= least_size { PRINCIPAL } else { NEITHER }
    } else if page.pages >= least_size && page.has_principal > 0 {
        COPY
    } else {
        NEITHER
    }
}

/// Finds the prefixes of the collections of week number `number`. `members` are own pages,
/// ascending, and `targets` those of own links that the table does not have.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
#[allow(clippy::too_many_arguments, reason = "each is a finding of one step")]
pub fn prefixes(
    cx: &mut Context,
    stage: &CollectionStage,
    history: &History,
    number: usize,
    owned: &Ownership,
    pages: &Arc<ClusteredPages>,
    members: &Rc<Vec<CollectionPage>>,
    targets: &Arc<UrlTargets>,
) -> Result<Prefixes> {
    let peers = cx.peers();
    let copies = members.iter().filter(|page| role(page, stage.least_size) == COPY);
    let mut hosts: Vec<u64> = copies.map(|page| pages.hosts[owned.index(page.doc)]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let hosts: Hashes = cx.sorted(hosts)?.into_iter().collect();
    let all;
    let source = {
        let tables = history.tables(number);
        let mut files = Vec::new();
        // Without copies no prefix is avoided.
        let read: &[&'static str] =
            if hosts.is_empty() { &[DocumentRow::NAME] } else { &[DocumentRow::NAME, LinkRow::NAME] };
        for table in read.iter().copied() {
            for shard in owned.shards() {
                files.extend(history.rows(number, &tables, table, shard)?.into_iter().map(|rows| (table, rows)));
            }
        }
        let is_copy = |doc: DocId| {
            let member = members.binary_search_by_key(&doc, |page| page.doc);
            member.is_ok_and(|at| role(&members[at], stage.least_size) == COPY)
        };
        let NamedUrls { count, beside_copies } = find_named(cx, &files, &hosts, targets, is_copy)?;
        let on_hosts = pages.hosts.iter().filter(|host| hosts.contains(host)).count() + members.len();
        all = DIRECTORIES * cx.sum((on_hosts + count) as u64)?;
        Rc::new(DirectoryPages {
            files,
            beside_copies,
            owned: owned.clone(),
            pages: pages.clone(),
            members: members.clone(),
            targets: targets.clone(),
            hosts,
            least_size: stage.least_size,
        })
    };
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<CollectionBelow>(), 1, peers, cx.memory());
    let open = move || {
        let mut pass = Pass { source: source.clone(), file: 0, scan: None, sums: ByKey::default() };
        move |deal: &mut RangeDealer<'_, CollectionBelow>| pass.deal(deal)
    };
    let pure: Rc<RefCell<Vec<PureDirectory>>> = Rc::default();
    let find = {
        let (pure, purity) = (pure.clone(), stage.purity);
        let mut records: Vec<CollectionBelow> = Vec::new();
        move |partition: &Partition<'_, CollectionBelow>, dealer: &mut Dealer<CommonDirectory>| {
            records.clear();
            partition.blocks(|block| records.extend(block.records()))?;
            records.sort_unstable_by_key(|below| (below.directory, below.collection, below.role));
            for of_directory in records.chunk_by(|a, b| a.directory == b.directory) {
                // Of a collection, pages with one role and with another.
                let below: Vec<CollectionBelow> =
                    of_directory.chunk_by(|a, b| (a.collection, a.role) == (b.collection, b.role)).map(sum).collect();
                let (of_pages, named): (Vec<CollectionBelow>, Vec<CollectionBelow>) =
                    below.into_iter().partition(|part| part.role < NAMED);
                for parts in of_pages.chunk_by(|a, b| a.collection == b.collection) {
                    let (CollectionBelow { collection, of_collection, length, .. }, pages) =
                        (parts[0], sum(parts).pages);
                    if pages == of_collection {
                        dealer.deal(
                            collection.owner(peers) as u64,
                            CommonDirectory { collection, length: length.into() },
                        );
                    }
                }
                let unseen = named.iter().filter(|part| part.role == UNSEEN).count();
                pure.borrow_mut().extend(pure_directory(
                    &of_pages,
                    [named.len(), unseen].map(|count| count as u32),
                    purity,
                ));
            }
            Ok(())
        }
    };
    let of_collections: Rc<RefCell<BTreeMap<DocId, u32>>> = Rc::default();
    let take = {
        let of_collections = of_collections.clone();
        move |block: BlockOf<CommonDirectory>| {
            for CommonDirectory { collection, length } in block.records() {
                let mut of_collections = of_collections.borrow_mut();
                let longest = of_collections.entry(*collection).or_default();
                *longest = (*longest).max(*length as u32);
            }
        }
    };
    by_key(cx, "Directories", cut, cx.spill_buffer(), open, find, take)?;
    let pure = outermost(cx, pure.take())?;
    Ok(Prefixes { of_collections: of_collections.take(), pure })
}

/// The sum of some records of one directory and one collection.
fn sum(parts: &[CollectionBelow]) -> CollectionBelow {
    parts[1..].iter().fold(parts[0], |mut sum, part| {
        sum.add(part);
        sum
    })
}

impl CollectionBelow {
    fn add(&mut self, other: &CollectionBelow) {
        self.pages += other.pages;
        self.bytes += other.bytes;
        self.example = self.example.min(other.example);
        if self.within != other.within {
            self.within = 0;
        }
    }
}

/// The directory of these records, one for each collection, if it is pure. Below it are so many
/// named URLs; `unseen` of them lie in directories without a copy.
fn pure_directory(below: &[CollectionBelow], [named, unseen]: [u32; 2], purity: f64) -> Option<PureDirectory> {
    let copies = || below.iter().filter(|part| part.role == COPY);
    let most = copies().min_by_key(|part| (std::cmp::Reverse(part.pages), part.collection))?;
    let (pages, of_copies) = (below.iter().map(|part| part.pages).sum::<u32>(), copies().map(|part| part.pages).sum());
    let has_principal = below.iter().any(|part| part.role == PRINCIPAL);
    let is_wider = most.within > 0 && below.iter().all(|part| part.within == most.within);
    let known = f64::from(pages) + f64::from(unseen);
    let is_pure = !has_principal && !is_wider && of_copies > 1 && f64::from(of_copies) + ROUNDING >= purity * known;
    is_pure.then(|| PureDirectory {
        directory: most.directory,
        parent: most.parent,
        example: most.example,
        bytes: below.iter().map(|part| part.bytes).sum(),
        pages,
        copies: of_copies,
        named,
        length: most.length,
    })
}

/// A question whether a directory is pure, or that it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Nested {
    directory: u64,
    /// 0: it is pure. Else one more than the asker's number of the directory within it.
    asks: u64,
    from: u64,
}

/// Leaves out pure directories within pure ones, and hands each to the owner of its example.
fn outermost(cx: &mut Context, mut pure: Vec<PureDirectory>) -> Result<Vec<PureDirectory>> {
    let (index, peers) = (cx.index(), cx.peers());
    let owner = |directory: u64| spread(directory) % peers as u64;
    pure.sort_unstable();
    let mut dealer = cx.dealer();
    for (number, PureDirectory { directory, parent, .. }) in (1..).zip(&pure) {
        dealer.deal(owner(*directory), Nested { directory: *directory, asks: 0, from: 0 });
        if *parent > 0 {
            dealer.deal(owner(*parent), Nested { directory: *parent, asks: number, from: index as u64 });
        }
    }
    let blocks = all_to_all(cx, dealer)?;
    let mut nested: Vec<Nested> = blocks.iter().flat_map(|block| block.records()).copied().collect();
    nested.sort_unstable();
    let mut dealer: Dealer<u64> = cx.dealer();
    for of_directory in nested.chunk_by(|a, b| a.directory == b.directory).filter(|all| all[0].asks == 0) {
        let askers = of_directory.iter().filter(|asker| asker.asks > 0);
        askers.for_each(|asker| dealer.deal(asker.from, asker.asks - 1));
    }
    let mut is_within = vec![false; pure.len()];
    for block in all_to_all(cx, dealer)? {
        block.records().iter().for_each(|number| is_within[*number as usize] = true);
    }
    let mut dealer = cx.dealer();
    for (directory, _) in pure.iter().zip(is_within).filter(|(_, is_within)| !is_within) {
        dealer.deal(directory.example.owner(peers) as u64, *directory);
    }
    let blocks = all_to_all(cx, dealer)?;
    let mut pure: Vec<PureDirectory> = blocks.iter().flat_map(|block| block.records()).copied().collect();
    pure.sort_unstable_by_key(|directory| (directory.example, directory.length));
    Ok(pure)
}

/// The own pages of a week.
struct DirectoryPages {
    /// Of documents and links, with the name of the table.
    files: Vec<(&'static str, RowRange)>,
    /// The directories of own named URLs that some copy lies in.
    beside_copies: Hashes,
    owned: Ownership,
    pages: Arc<ClusteredPages>,
    members: Rc<Vec<CollectionPage>>,
    targets: Arc<UrlTargets>,
    /// The hosts with copied collections, of all workers.
    hosts: Hashes,
    least_size: u32,
}

/// One pass over the own pages.
struct Pass {
    source: Rc<DirectoryPages>,
    /// The next file.
    file: usize,
    scan: Option<(&'static str, Scan)>,
    sums: ByKey<u64, CollectionBelow>,
}

impl Pass {
    /// Deals what one batch of pages adds up to. Returns `false` at the end.
    fn deal(&mut self, deal: &mut RangeDealer<'_, CollectionBelow>) -> Result<bool> {
        let Some((table, scan)) = &mut self.scan else {
            let Some((table, file)) = self.source.files.get(self.file) else {
                self.flush(deal);
                return Ok(false);
            };
            let columns: &[&str] = if *table == LinkRow::NAME { &NAMED_COLUMNS } else { &["doc", "url", "bytes"] };
            self.scan = Some((*table, Scan::open(file, columns)?));
            self.file += 1;
            return Ok(true);
        };
        let table = *table;
        let Some(batch) = scan.batch()? else {
            self.scan = None;
            return Ok(true);
        };
        if table == LinkRow::NAME {
            let source = self.source.clone();
            named_urls(&batch, &source.hosts, &source.targets, |url| self.add_named(url, deal))?;
            if self.sums.len() >= SUMS {
                self.flush(deal);
            }
            return Ok(true);
        }
        let (docs, urls): (&Int64Array, &StringArray) = (field(&batch, "doc")?, field(&batch, "url")?);
        let bytes: &Int64Array = field(&batch, "bytes")?;
        for row in 0..batch.num_rows() {
            self.add(DocId::from_table(docs.value(row)), urls.value(row), bytes.value(row) as u64, deal);
        }
        if self.sums.len() >= SUMS {
            self.flush(deal);
        }
        Ok(true)
    }

    fn add(&mut self, doc: DocId, url: &str, bytes: u64, deal: &RangeDealer<'_, CollectionBelow>) {
        let DirectoryPages { owned, pages, members, hosts, least_size, .. } = &*self.source;
        let member = members.binary_search_by_key(&doc, |page| page.doc).ok().map(|at| &members[at]);
        if member.is_none() && !hosts.contains(&pages.hosts[owned.index(doc)]) {
            return;
        }
        let (collection, of_collection) = member.map_or((DocId::NONE, 0), |page| (page.collection, page.pages));
        let role = member.map_or(NEITHER, |page| role(page, *least_size));
        for of in directories(url).filter(|of| deal.takes(spread(of.hash))) {
            let below = CollectionBelow {
                directory: of.hash,
                parent: of.parent,
                collection,
                example: doc,
                bytes,
                pages: 1,
                of_collection,
                length: of.length as u32,
                role,
                within: of.within,
            };
            let key = of.hash ^ spread(collection.to_table() as u64 ^ u64::from(role) << 62);
            self.sums.entry(key).and_modify(|sum| sum.add(&below)).or_insert(below);
        }
    }

    fn add_named(&mut self, url: &str, deal: &RangeDealer<'_, CollectionBelow>) {
        let is_beside = directories(url).last().is_some_and(|of| self.source.beside_copies.contains(&of.hash));
        let role = if is_beside { NAMED } else { UNSEEN };
        let named = directory_hash(url);
        for of in directories(url).filter(|of| deal.takes(spread(of.hash))) {
            let collection = DocId::from_table(named as i64);
            let length = of.length as u32;
            let below = CollectionBelow { directory: of.hash, collection, length, role, ..CollectionBelow::zeroed() };
            self.sums.insert(of.hash ^ spread(named ^ u64::from(role) << 60), below);
        }
    }

    fn flush(&mut self, deal: &mut RangeDealer<'_, CollectionBelow>) {
        for (_, below) in self.sums.drain() {
            deal.deal(0, spread(below.directory), below);
        }
    }
}
