//! Named URLs: those that links of the week name, of which no week has a page, and that do not
//! redirect to a page. What they are is not known: most were never fetched, some are no pages.
//! Beside copies they are taken for copies; in other directories they are not.
//!
//! ```text
//! copies                            ─▶ the directory that each lies in ─▶ to the owner of the directory: it has copies
//! named URLs on hosts with copies   ─▶ the directory that each lies in ─▶ asks whether it has copies
//! ```
//!
//! Memory: 8 bytes for each named URL of a worker, while they are counted; and for each directory
//! that it has copies or links of, or owns.

use anyhow::Result;
use arrow_array::{Array as _, Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, Dealer, all_to_all};

use super::directories::{directories, directory_hash};
use crate::host_order::host_hash;
use crate::operators::scan::UrlTargets;
use crate::records::{DocId, spread};
use crate::structures::Hashes;
use crate::tables::{DocumentRow, RowRange, Scan, Table, field};

/// The host of a canonical URL, with its port.
fn host(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |at| begin + at);
    &url[begin..end]
}

/// Calls `each` with the named URLs of a batch of links that lie on one of these hosts; a URL that
/// several links name comes several times.
pub(super) fn named_urls(
    batch: &arrow_array::RecordBatch,
    hosts: &Hashes,
    url_targets: &UrlTargets,
    mut each: impl FnMut(&str),
) -> Result<()> {
    let (urls, targets): (&StringArray, &Int64Array) = (field(batch, "target_url")?, field(batch, "target_doc")?);
    for row in (0..batch.num_rows()).filter(|row| targets.is_null(*row)) {
        let url = urls.value(row);
        if hosts.contains(&host_hash(host(url))) && url_targets.of(url).is_none() {
            each(url);
        }
    }
    Ok(())
}

/// The columns of [`named_urls`].
pub(super) const NAMED_COLUMNS: [&str; 2] = ["target_url", "target_doc"];

/// A question whether a directory has copies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct DirectoryQuestion {
    directory: u64,
    from: u64,
}

/// What is found of the named URLs that own pages link to.
pub(super) struct NamedUrls {
    /// How many there are.
    pub count: usize,
    /// Of the directories that they lie in, those that some copy lies in.
    pub beside_copies: Hashes,
}

/// Looks at the named URLs on these hosts.
///
/// # Errors
/// If a file cannot be read (names it), or a worker failed.
pub(super) fn find_named(
    cx: &mut Context,
    files: &[(&'static str, RowRange)],
    hosts: &Hashes,
    url_targets: &UrlTargets,
    is_copy: impl Fn(DocId) -> bool,
) -> Result<NamedUrls> {
    let peers = cx.peers() as u64;
    let (mut of_copies, mut of_named, mut named) = (Hashes::default(), Hashes::default(), Hashes::default());
    let innermost = |url: &str| directories(url).last().map(|of| of.hash);
    for (table, rows) in files {
        if *table == DocumentRow::NAME {
            Scan::open(rows, &["doc", "url"])?.for_each(|batch| {
                let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                let copies = (0..batch.num_rows()).filter(|row| is_copy(DocId::from_table(docs.value(*row))));
                of_copies.extend(copies.filter_map(|row| innermost(urls.value(row))));
                Ok(())
            })?;
        } else {
            Scan::open(rows, &NAMED_COLUMNS)?.for_each(|batch| {
                named_urls(batch, hosts, url_targets, |url| {
                    named.insert(directory_hash(url));
                    of_named.extend(innermost(url));
                })
            })?;
        }
    }
    let count = named.len();
    drop(named);
    let mut dealer: Dealer<u64> = cx.dealer();
    of_copies.iter().for_each(|directory| dealer.deal(spread(*directory) % peers, *directory));
    let blocks = all_to_all(cx, dealer)?;
    let with_copies: Hashes = blocks.iter().flat_map(|block| block.records()).copied().collect();
    let from = cx.index() as u64;
    let mut dealer: Dealer<DirectoryQuestion> = cx.dealer();
    of_named.iter().for_each(|directory| {
        dealer.deal(spread(*directory) % peers, DirectoryQuestion { directory: *directory, from })
    });
    let blocks = all_to_all(cx, dealer)?;
    let mut dealer: Dealer<u64> = cx.dealer();
    let questions = blocks.iter().flat_map(|block| block.records());
    questions
        .filter(|asked| with_copies.contains(&asked.directory))
        .for_each(|asked| dealer.deal(asked.from, asked.directory));
    let blocks = all_to_all(cx, dealer)?;
    let beside_copies = blocks.iter().flat_map(|block| block.records()).copied().collect();
    Ok(NamedUrls { count, beside_copies })
}
