//! The canonical documents: those of each very similar cluster that stay, by the job's policy.
//!
//! ```text
//! documents of clusters ─▶ (root, order by the policy, doc)      48 bytes, to the owner of the root's partition
//! each cluster          ─▶ its smallest, or that of each host    8 bytes, to the owner of the document
//! ```
//!
//! Memory: that of the stage, and a byte for each own document. The columns that the policy needs are read once for each range of keys.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use arrow_array::{Array, Date32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, SpillBuffer, by_key};
use xxhash_rust::xxh3::xxh3_64;

use super::cluster_sizes::LevelClusters;
use crate::config::{Candidate, Policy};
use crate::records::{DocId, mix};
use crate::structures::{Ownership, SparseDocs};
use crate::tables::{PieceScan, RowRange, field};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;

/// The numbers of inputs, by the week (days since 1970) and the name.
pub type InputNumbers = BTreeMap<i32, BTreeMap<String, u32>>;

/// What canonical documents are found with.
pub struct CanonicalStage {
    /// Which document of a cluster stays.
    pub policy: Policy,
    /// The numbers of the inputs by week and name, in their order.
    pub inputs: InputNumbers,
}

/// A document of a cluster, on its way to the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Member {
    root: DocId,
    /// Of each group of a cluster one stays: the hash of the host, or 0.
    group: u64,
    order: [u64; 2],
    doc: DocId,
}

/// Whether each own document is canonical, by number. One without a near-duplicate is; one that is not of the week is not. `rows` are the own
/// rows of `documents`.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub fn canonical(
    cx: &mut Context,
    stage: &CanonicalStage,
    owned: &Ownership,
    similar: &LevelClusters,
    rows: Vec<RowRange>,
) -> Result<Vec<bool>> {
    if stage.policy == Policy::Root {
        return Ok(similar.roots.iter().map(|(doc, root)| doc == root).collect());
    }
    let roots = similar.clustered();
    // Those that are not in clusters are alone, if they are there.
    let alone: Vec<bool> =
        similar.roots.iter().map(|(doc, root)| doc == root && similar.sizes.members(root) == 1).collect();
    let all = cx.sum(roots.len() as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<Member>(), 1, cx.peers(), cx.memory());
    let source =
        Rc::new(MemberSource { policy: stage.policy, inputs: stage.inputs.clone(), owned: owned.clone(), roots, rows });
    let open = move || {
        let (source, mut scan) = (source.clone(), None);
        move |dealer: &mut RangeDealer<'_, Member>| source.deal(&mut scan, dealer)
    };
    let each = {
        let (peers, mut members) = (cx.peers(), Vec::new());
        move |partition: &Partition<'_, Member>, dealer: &mut Dealer<DocId>| {
            members.clear();
            partition.blocks(|block| members.extend_from_slice(block.records()))?;
            members.sort_unstable();
            for group in members.chunk_by(|a, b| (a.root, a.group) == (b.root, b.group)) {
                dealer.deal(group[0].doc.owner(peers) as u64, group[0].doc);
            }
            Ok(())
        }
    };
    let canonical = Rc::new(RefCell::new(alone));
    let take = {
        let (canonical, owned) = (canonical.clone(), owned.clone());
        move |block: BlockOf<DocId>| {
            let mut canonical = canonical.borrow_mut();
            block.records().iter().for_each(|doc| canonical[owned.index(*doc)] = true);
        }
    };
    let waiting = SpillBuffer::new(cx.scratch(), cx.memory());
    by_key(cx, "Canonical", cut, waiting, open, each, take)?;
    Ok(canonical.take())
}

/// The own documents of clusters, read from the table `documents`.
struct MemberSource {
    policy: Policy,
    inputs: InputNumbers,
    owned: Ownership,
    /// The roots of own documents in clusters, by number.
    roots: SparseDocs,
    rows: Vec<RowRange>,
}

impl MemberSource {
    /// Deals the documents of a batch; returns `false` if there is none left.
    fn deal(&self, scan: &mut Option<PieceScan<'static>>, dealer: &mut RangeDealer<'_, Member>) -> Result<bool> {
        let scan = match scan {
            Some(scan) => scan,
            none => {
                let columns: &'static [&str] = match self.policy {
                    Policy::First => &["doc", "file", "offset", "crawled"],
                    Policy::PerHost => &["doc", "file", "offset", "crawled", "host"],
                    Policy::Longest => &["doc", "words", "bytes"],
                    Policy::Newest => &["doc", "fetched"],
                    Policy::ShortestUrl => &["doc", "url"],
                    Policy::Root => &["doc"],
                };
                none.insert(PieceScan::new(self.rows.clone(), columns))
            }
        };
        let Some((_, batch)) = scan.batch()? else { return Ok(false) };
        self.deal_batch(&batch, dealer)?;
        Ok(true)
    }

    fn deal_batch<'b>(&self, batch: &'b RecordBatch, dealer: &mut RangeDealer<'_, Member>) -> Result<()> {
        let has = |name: &str| batch.column_by_name(name).is_some();
        let longs = |name: &str| has(name).then(|| field::<Int64Array>(batch, name)).transpose();
        let texts = |name: &str| has(name).then(|| field::<StringArray>(batch, name)).transpose();
        let docs: &Int64Array = field(batch, "doc")?;
        let (offsets, words, bytes) = (longs("offset")?, longs("words")?, longs("bytes")?);
        let (files, urls, hosts) = (texts("file")?, texts("url")?, texts("host")?);
        let times: Option<&'b TimestampMicrosecondArray> =
            has("fetched").then(|| field(batch, "fetched")).transpose()?;
        let weeks: Option<&'b Date32Array> = has("crawled").then(|| field(batch, "crawled")).transpose()?;
        for row in 0..batch.num_rows() {
            let doc = DocId::from_table(docs.value(row));
            let Some(root) = self.roots.get(self.owned.index(doc)) else { continue };
            let long = |column: Option<&Int64Array>| column.map_or(0, |column| column.value(row) as u64);
            let text = |column: Option<&'b StringArray>| {
                column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
            };
            let file = match files.zip(weeks) {
                Some((files, weeks)) => {
                    let name = files.value(row);
                    let number = self.inputs.get(&weeks.value(row)).and_then(|names| names.get(name));
                    *number.with_context(|| {
                        format!("{doc} is of the file {name}, which is no input of the week: the store is damaged")
                    })?
                }
                None => 0,
            };
            let candidate = Candidate {
                file,
                offset: long(offsets),
                words: long(words),
                bytes: long(bytes),
                fetched: times.filter(|times| times.is_valid(row)).map(|times| times.value(row)),
                url_bytes: text(urls).map(|url| url.len() as u32),
            };
            let group = hosts.map_or(0, |_| xxh3_64(text(hosts).unwrap_or_default().as_bytes()));
            let member = Member { root, group, order: self.policy.order(&candidate), doc };
            dealer.deal(0, mix(root.to_table() as u64 ^ group), member);
        }
        Ok(())
    }
}
