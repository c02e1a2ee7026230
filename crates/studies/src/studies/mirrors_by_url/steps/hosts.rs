//! The hosts with enough URLs, and a sample of the paths of each.
//!
//! ```text
//! URLs ─▶ records, to the owner of each URL                                    24 bytes each
//!     of each host the number of distinct URLs, and the smallest hashes of paths, partition by partition
//! these parts ─▶ the owner of the host                                         32 bytes each
//!     the number of all URLs; if there are enough: the sample, to where its URLs were read
//! ```
//!
//! The sample of a host are its smallest hashes of paths: two hosts with the same paths have the
//! same sample. URLs are spread by host and path together, so that the URLs of a very large host
//! are not at one worker; the parts of a host are, which are about its sample for each 16,384 URLs.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{
    BlockOf, Context, Dealer, KeptRecords, KeyRanges, Keyed, Partition, RangeDealer, SpillBuffer, by_group, by_key,
};
use serde::{Deserialize, Serialize};

use super::stage::UrlStage;
use super::urls::{Namer, UrlName, UrlSource, UrlState, is_plain};
use crate::records::fold;

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;
/// Recent URLs that are not sent again; pages of a host link to the same pages.
const RECENT: usize = 1 << 16;

/// What is known of a URL, as bits of a record.
const FETCHED: u64 = 1;
const GONE: u64 = 2;
const LISTED_FETCHED: u64 = 4;
const LISTED_GONE: u64 = 8;
/// It was read with the scheme `http`.
const PLAIN: u64 = 16;
const STATES: u32 = 5;

/// A URL, on its way to the worker that counts it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct UrlRecord {
    host: u64,
    path: u64,
    /// The number of the URL at the worker that read it, above the bits of what is known.
    place: u64,
}

/// A URL of a host, one of the smallest hashes of some of its paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct HostPart {
    host: u64,
    path: u64,
    /// The number of the URL, twice, and 1 more if some worker read it with the scheme `http`.
    place: u64,
    /// The worker that read it.
    from: u32,
    /// The number of distinct URLs that it stands for: all of the host in the partition at the
    /// first part, and 0 at others.
    urls: u32,
}

impl Keyed for HostPart {
    fn key(&self) -> u64 {
        self.host
    }
}

/// A path of a host's sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct SampledPath {
    /// The number of its URL at this worker.
    pub place: u64,
    /// The hash of the host.
    pub host: u64,
    /// The hash of the path.
    pub path: u64,
    /// The number of distinct URLs of the host.
    pub urls: u64,
    /// 1 for the first path of the sample, 0 for the others.
    pub is_first: u64,
    /// 1 if some worker read the URL with the scheme `http`, 0 if it is `https` wherever it was
    /// read.
    pub is_plain: u64,
}

/// What was counted of URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UrlCounts {
    /// URLs as they were read, repeated ones included.
    pub read: u64,
    /// Distinct URLs of which it is not known that they are gone.
    pub urls: u64,
    /// Distinct URLs that are gone.
    pub gone: u64,
    /// Hosts with URLs.
    pub hosts: u64,
    /// Hosts with enough of them.
    pub sampled: u64,
    /// The paths in their samples.
    pub paths: u64,
    /// Lines of lists without a URL.
    pub refused: u64,
}

impl UrlCounts {
    /// Adds those of another worker.
    pub fn add(&mut self, other: &UrlCounts) {
        let UrlCounts { read, urls, gone, hosts, sampled, paths, refused } = other;
        self.read += read;
        self.urls += urls;
        self.gone += gone;
        self.hosts += hosts;
        self.sampled += sampled;
        self.paths += paths;
        self.refused += refused;
    }
}

/// Samples the hosts with enough URLs. Returns the sampled paths of which this worker read the
/// URLs, in the order of their places, and what this worker counted.
///
/// # Errors
/// If URLs cannot be read, or records not written; or a worker of this process failed.
pub fn sampled_hosts(
    cx: &mut Context,
    stage: &UrlStage,
    source: &impl UrlSource,
) -> Result<(Vec<SampledPath>, UrlCounts)> {
    let mut own = UrlCounts::default();
    let mut records = cx.kept();
    let (mut namer, mut recent) = (Namer::default(), vec![None; RECENT]);
    let lines = source.each(&mut |url, state| {
        let UrlName { host, path } = namer.name(url);
        let bits = match state {
            UrlState::Named => 0,
            UrlState::Fetched => FETCHED,
            UrlState::Gone => GONE,
            UrlState::ListedFetched => LISTED_FETCHED,
            UrlState::ListedGone => LISTED_GONE,
        } | if is_plain(url) { PLAIN } else { 0 };
        let place = own.read;
        own.read += 1;
        let last = &mut recent[(path ^ host.rotate_left(32)) as usize % RECENT];
        if *last == Some((host, path, bits)) {
            return Ok(());
        }
        *last = Some((host, path, bits));
        records.push(UrlRecord { host, path, place: place << STATES | bits })
    })?;
    own.refused = lines.refused;
    drop(recent);
    let counts = cx.sorted(vec![records.len() as u64])?;
    let all: u64 = counts.iter().sum();
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<UrlRecord>(), 1, cx.peers(), cx.memory());
    let records = Rc::new(records);
    let open = move || {
        let (records, mut block) = (records.clone(), 0);
        move |deal: &mut RangeDealer<'_, UrlRecord>| {
            records.block(block, |records| {
                records.iter().for_each(|record| deal.deal(0, fold(&[record.host, record.path]), *record));
            })?;
            block += 1;
            Ok(block < records.blocks())
        }
    };
    let found = Rc::new(RefCell::new((cx.kept::<HostPart>(), 0, 0)));
    let each = {
        let (found, most) = (found.clone(), stage.sample_size(all) as usize);
        let mut sorted: Vec<(UrlRecord, u32)> = Vec::new();
        move |partition: &Partition<'_, UrlRecord>, _: &mut Dealer<u8>| {
            let (parts, urls, gone) = &mut *found.borrow_mut();
            sorted.clear();
            partition.blocks(|block| sorted.extend(block.records().iter().map(|url| (*url, block.from))))?;
            sorted.sort_unstable();
            for of_host in sorted.chunk_by(|(a, _), (b, _)| a.host == b.host) {
                let distinct = || of_host.chunk_by(|(a, _), (b, _)| a.path == b.path);
                let there = || distinct().filter(|of_url| !is_gone(of_url));
                let mut count = there().count() as u32;
                *urls += u64::from(count);
                *gone += distinct().count() as u64 - u64::from(count);
                for of_url in there().take(most) {
                    let (UrlRecord { host, path, place }, from) = of_url[0];
                    let (urls, is_plain) = (std::mem::take(&mut count), u64::from(bits(of_url) & PLAIN > 0));
                    let place = (place >> STATES) << 1 | is_plain;
                    parts.push(HostPart { host, path, place, from, urls })?;
                }
            }
            Ok(())
        }
    };
    let waiting = SpillBuffer::new(cx.scratch(), cx.memory());
    by_key(cx, "Urls", cut, waiting, open, each, |_: BlockOf<u8>| {})?;
    let (parts, urls, gone) = found.replace((cx.kept(), 0, 0));
    (own.urls, own.gone) = (urls, gone);
    sample(cx, stage, parts, own)
}

/// All bits of the records of a URL.
fn bits(of_url: &[(UrlRecord, u32)]) -> u64 {
    of_url.iter().fold(0, |bits, (url, _)| bits | url.place)
}

/// Whether it is known that the host does not have a URL. What the week says counts before what
/// lists say.
fn is_gone(of_url: &[(UrlRecord, u32)]) -> bool {
    let bits = bits(of_url);
    bits & FETCHED == 0 && (bits & GONE > 0 || bits & (LISTED_FETCHED | LISTED_GONE) == LISTED_GONE)
}

/// Adds the parts of each host, and samples those that have enough URLs.
fn sample(
    cx: &mut Context,
    stage: &UrlStage,
    parts: KeptRecords<HostPart>,
    mut own: UrlCounts,
) -> Result<(Vec<SampledPath>, UrlCounts)> {
    let counts = Rc::new(RefCell::new((0, 0)));
    let each = {
        let (counts, stage) = (counts.clone(), stage.clone());
        move |of_host: &[HostPart], sampled_paths: &mut Dealer<SampledPath>| {
            let (hosts, sampled) = &mut *counts.borrow_mut();
            *hosts += 1;
            let urls = of_host.iter().map(|part| u64::from(part.urls)).sum();
            if urls < stage.least_urls {
                return;
            }
            *sampled += 1;
            let smallest = of_host.iter().take(stage.sample_size(urls) as usize);
            for (number, HostPart { host, path, place, from, .. }) in smallest.enumerate() {
                let (host, path, is_first) = (*host, *path, u64::from(number == 0));
                let (place, is_plain) = (place >> 1, place & 1);
                sampled_paths.deal((*from).into(), SampledPath { place, host, path, urls, is_first, is_plain });
            }
        }
    };
    let paths = Rc::new(RefCell::new(Vec::new()));
    let take = {
        let paths = paths.clone();
        move |block: BlockOf<SampledPath>| paths.borrow_mut().extend_from_slice(block.records())
    };
    by_group(cx, "Hosts", parts, each, take)?;
    let mut paths = paths.take();
    paths.sort_unstable();
    (own.hosts, own.sampled) = *counts.borrow();
    own.paths = paths.len() as u64;
    Ok((paths, own))
}
