//! The pages that links of pages that stayed lead to, if these came later.
//!
//! A target is looked up when the page that links is crawled. Where pages stay in weeks that do not
//! have them, as in batches, some link to URLs that only a later week saw: their `target_doc` is
//! null in every week.
//!
//! ```text
//! links of own pages that stayed, without a target ─▶ the owners of the URLs' shards ─▶ the documents, of those that are known
//! ```
//!
//! Cost: where pages stayed, one more pass over their links; and in each round, whose links fit the
//! memory, one over the hashes of all URLs. Memory: 24 bytes for each URL that is found. Equal up
//! to collisions of 64-bit hashes.

use std::collections::{BTreeMap, VecDeque};

use anyhow::Result;
use arrow_array::{Array, Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, Dealer, all_to_all};

use super::redirects::hash;
use crate::records::{DocId, KeyHash};
use crate::state::{History, UrlLookup};
use crate::structures::{ByKey, Ownership};
use crate::tables::{RowRange, Scan, field};

/// Bytes of a question in a round, at the worker that asks and at the one that answers.
const QUESTION_BYTES: u64 = 128;
/// The fewest and the most links of a round.
const ROUND: [u64; 2] = [1 << 14, 1 << 22];

/// Asks which document has a URL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct OwnerQuestion {
    hash: [u64; 2],
    /// The worker that asks.
    worker: u64,
}

/// The document that has a URL with this hash.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct UrlOwner {
    hash: u64,
    doc: DocId,
}

/// The documents of URLs that came after the pages that link to them, by the hash of the URL.
#[derive(Debug, Default)]
pub struct LateTargets(ByKey<u64, DocId>);

impl LateTargets {
    /// Those of week number `number` that own links name.
    ///
    /// # Errors
    /// If a file cannot be read (names it), or a worker of this process failed.
    pub(super) fn of_own(cx: &mut Context, history: &History, number: usize, owned: &Ownership) -> Result<LateTargets> {
        let mut links = UnknownTargets::open(history, number, owned)?;
        let mut late = ByKey::default();
        if !cx.any(!links.files.is_empty())? {
            return Ok(LateTargets(late));
        }
        let (urls, shards) = (history.urls(number)?, history.weeks[number].rows.len() as u32);
        let at_once = (cx.memory() / QUESTION_BYTES).clamp(ROUND[0], ROUND[1]) as usize;
        let (worker, peers) = (cx.index() as u64, cx.peers() as u64);
        loop {
            let hashes = links.read(at_once)?;
            if !cx.any(!hashes.is_empty())? {
                return Ok(LateTargets(late));
            }
            let mut questions: Dealer<OwnerQuestion> = cx.dealer();
            for hash in hashes {
                questions.deal(u64::from(hash.shard(shards)) % peers, OwnerQuestion { hash: hash.halves(), worker });
            }
            let blocks = all_to_all(cx, questions)?;
            let mut asked: Vec<OwnerQuestion> = blocks.iter().flat_map(|block| block.records()).copied().collect();
            drop(blocks);
            asked.sort_unstable();
            let mut answers: Dealer<UrlOwner> = cx.dealer();
            find(&urls, &asked, shards, |question, doc| {
                answers.deal(question.worker, UrlOwner { hash: question.hash[1], doc });
            })?;
            for block in all_to_all(cx, answers)? {
                late.extend(block.records().iter().map(|answer| (answer.hash, answer.doc)));
            }
        }
    }

    /// Those of all links of a week, for a process that reads a week alone.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn of_all(history: &History, number: usize, all: &Ownership) -> Result<LateTargets> {
        let mut links = UnknownTargets::open(history, number, all)?;
        let mut late = ByKey::default();
        if links.files.is_empty() {
            return Ok(LateTargets(late));
        }
        let (urls, shards) = (history.urls(number)?, history.weeks[number].rows.len() as u32);
        loop {
            let hashes = links.read(ROUND[1] as usize)?;
            if hashes.is_empty() {
                return Ok(LateTargets(late));
            }
            let asked: Vec<OwnerQuestion> =
                hashes.into_iter().map(|hash| OwnerQuestion { hash: hash.halves(), worker: 0 }).collect();
            find(&urls, &asked, shards, |question, doc| {
                late.insert(question.hash[1], doc);
            })?;
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The document of a URL that came after a page that links to it.
    pub fn of(&self, url: &str) -> Option<DocId> {
        if self.is_empty() { None } else { self.0.get(&hash(url)).copied() }
    }
}

/// Calls `found` with each question, of those that ascend, whose URL is known, and its document.
fn find(
    urls: &BTreeMap<u32, Vec<RowRange>>,
    asked: &[OwnerQuestion],
    shards: u32,
    mut found: impl FnMut(&OwnerQuestion, DocId),
) -> Result<()> {
    let hash = |question: &OwnerQuestion| KeyHash::from_halves(question.hash);
    for of_shard in asked.chunk_by(|a, b| hash(a).shard(shards) == hash(b).shard(shards)) {
        let files = urls.get(&hash(&of_shard[0]).shard(shards));
        let mut lookup = UrlLookup::open(files.into_iter().flatten().cloned())?;
        for question in of_shard {
            if let Some(doc) = lookup.find(hash(question))? {
                found(question, doc);
            }
        }
    }
    Ok(())
}

/// The URLs without a document that links of pages that stayed name.
struct UnknownTargets {
    files: VecDeque<RowRange>,
    scan: Option<Scan>,
}

impl UnknownTargets {
    fn open(history: &History, number: usize, owned: &Ownership) -> Result<UnknownTargets> {
        let tables = history.tables(number);
        let mut files = VecDeque::new();
        for shard in owned.shards() {
            files.extend(history.links_that_stayed(number, &tables, shard)?);
        }
        Ok(UnknownTargets { files, scan: None })
    }

    /// The hashes of the URLs of some more links, of about `count`: ascending, each once. Empty
    /// only at the end.
    fn read(&mut self, count: usize) -> Result<Vec<KeyHash>> {
        let (mut hashes, mut read) = (Vec::new(), 0);
        while read < count || hashes.is_empty() {
            let Some(scan) = &mut self.scan else {
                let Some(rows) = self.files.pop_front() else { break };
                self.scan = Some(Scan::open(rows, &["target_url", "target_doc"])?);
                continue;
            };
            let Some(batch) = scan.batch()? else {
                self.scan = None;
                continue;
            };
            read += batch.num_rows();
            let (urls, docs): (&StringArray, &Int64Array) =
                (field(&batch, "target_url")?, field(&batch, "target_doc")?);
            let unknown = (0..batch.num_rows()).filter(|row| docs.is_null(*row));
            hashes.extend(unknown.map(|row| KeyHash::of(urls.value(row))));
        }
        hashes.sort_unstable();
        hashes.dedup();
        Ok(hashes)
    }
}
