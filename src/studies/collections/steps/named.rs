//! Named URLs: those that links of the week name, and that no crawl has fetched. What they are is not known, so no prefix is avoided for
//! directories of which only named URLs are known.
//!
//! ```text
//! pages on hosts with copies ─▶ the directory that each lies in ─▶ to the owner of the directory: it is seen
//! named URLs on these hosts  ─▶ the directory that each lies in ─▶ asks whether it is seen
//! ```
//!
//! Memory: 8 bytes for each directory of these hosts that a worker has pages or links of, and of which it is the owner.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use anyhow::Result;
use arrow_array::{Array as _, Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, Dealer, all_to_all};

use super::directories::directories;
use super::pages::host_hash;
use crate::records::spread;
use crate::structures::DocHasher;
use crate::tables::{DocumentRow, LinkRow, RowRange, Scan, Table, field};

/// Hashes of directories or of hosts.
pub(super) type Hashes = HashSet<u64, BuildHasherDefault<DocHasher>>;

/// The host of a canonical URL, with its port.
fn host(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |at| begin + at);
    &url[begin..end]
}

/// Calls `each` with the named URLs of a batch of links that lie on one of these hosts; a URL that several links name comes several times.
pub(super) fn named_urls(batch: &arrow_array::RecordBatch, hosts: &Hashes, mut each: impl FnMut(&str)) -> Result<()> {
    let (urls, targets): (&StringArray, &Int64Array) = (field(batch, "target_url")?, field(batch, "target_doc")?);
    for row in (0..batch.num_rows()).filter(|row| targets.is_null(*row)) {
        let url = urls.value(row);
        if hosts.contains(&host_hash(host(url))) {
            each(url);
        }
    }
    Ok(())
}

/// The columns of [`named_urls`].
pub(super) const NAMED_COLUMNS: [&str; 2] = ["target_url", "target_doc"];

/// A question whether a directory is seen, or its answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Question {
    directory: u64,
    from: u64,
}

/// Of the directories that named URLs of own pages lie in, those that some crawled page lies in.
///
/// # Errors
/// If a file cannot be read (names it), or a worker failed.
pub(super) fn seen_directories(cx: &mut Context, files: &[(&'static str, RowRange)], hosts: &Hashes) -> Result<Hashes> {
    let peers = cx.peers() as u64;
    let (mut of_pages, mut of_named) = (Hashes::default(), Hashes::default());
    let innermost = |url: &str| directories(url).last().map(|of| of.hash);
    for (table, rows) in files {
        if *table == DocumentRow::NAME {
            Scan::open(rows, &["url", "host"])?.for_each(|batch| {
                let [urls, names]: [&StringArray; 2] = [field(batch, "url")?, field(batch, "host")?];
                let rows = (0..batch.num_rows()).filter(|row| hosts.contains(&host_hash(names.value(*row))));
                of_pages.extend(rows.filter_map(|row| innermost(urls.value(row))));
                Ok(())
            })?;
        } else {
            debug_assert_eq!(*table, LinkRow::NAME);
            Scan::open(rows, &NAMED_COLUMNS)?
                .for_each(|batch| named_urls(batch, hosts, |url| of_named.extend(innermost(url))))?;
        }
    }
    let mut dealer: Dealer<u64> = cx.dealer();
    of_pages.iter().for_each(|directory| dealer.deal(spread(*directory) % peers, *directory));
    let blocks = all_to_all(cx, dealer)?;
    let seen: Hashes = blocks.iter().flat_map(|block| block.records()).copied().collect();
    let from = cx.index() as u64;
    let mut dealer: Dealer<Question> = cx.dealer();
    of_named
        .iter()
        .for_each(|directory| dealer.deal(spread(*directory) % peers, Question { directory: *directory, from }));
    let blocks = all_to_all(cx, dealer)?;
    let mut dealer: Dealer<u64> = cx.dealer();
    let questions = blocks.iter().flat_map(|block| block.records());
    questions
        .filter(|asked| seen.contains(&asked.directory))
        .for_each(|asked| dealer.deal(asked.from, asked.directory));
    let blocks = all_to_all(cx, dealer)?;
    Ok(blocks.iter().flat_map(|block| block.records()).copied().collect())
}
