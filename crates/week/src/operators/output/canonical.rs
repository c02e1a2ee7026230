//! The canonical documents: those of each very similar cluster that stay, by the job's policy or by
//! the values of its columns.
//!
//! ```text
//! documents of clusters, values ─▶ (root, group, order, doc)     40 bytes or more, to the owner of the root's partition
//! each group of a cluster       ─▶ the smallest ones             8 bytes, to the owner of the document
//! ```
//!
//! Where copies within a batch stay, an order begins with the batch. An order is bytes. All records
//! have room for the longest one of the week: 16 bytes for a policy, 11 for a number, a time or a
//! boolean, 124 for a text at most.
//!
//! Memory: that of the stage, and a byte for each own document. The columns that the policy needs
//! are read once for each range of keys.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use arrow_array::{Array, Date32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use bytemuck::Pod;
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, SpillBuffer, by_key};

use super::cluster_sizes::LevelClusters;
use crate::config::{Canonical, ChosenSoFar, DocumentFacts};
use crate::records::{DocId, mix};
use crate::structures::{Ownership, SparseDocs};
use crate::tables::{PieceScan, RowRange, ValueRows, field};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;

/// The numbers of inputs, by the week (days since 1970) and the name.
pub type InputNumbers = BTreeMap<i32, BTreeMap<String, u32>>;

/// What canonical documents are found with.
pub struct CanonicalStage {
    /// Which documents of a cluster stay.
    pub canonical: Canonical,
    /// The numbers of the inputs by week and name, in their order.
    pub inputs: InputNumbers,
    /// The own rows of `documents`, segment by segment.
    pub documents: Vec<RowRange>,
    /// Those of `values`, in the same order; `None` for a segment without values.
    pub values: Vec<Option<RowRange>>,
}

/// A document of a cluster on its way to the others: the root, the group, the order by eight bytes
/// each, and the document. The order of records is that of their numbers.
type OrderedMember<const N: usize> = [u64; N];

/// The numbers of a member besides its order.
const AROUND: usize = 3;

/// Whether each own document is canonical, by number. One without a near-duplicate is; one that is
/// not of the week is not.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub fn canonical(
    cx: &mut Context,
    stage: CanonicalStage,
    owned: &Ownership,
    similar: &LevelClusters,
) -> Result<Vec<bool>> {
    if stage.canonical.is_root() {
        return Ok(similar.roots.iter().map(|(doc, root)| doc == root).collect());
    }
    let roots = similar.clustered();
    // Those that are not in clusters are alone, if they are there.
    let alone: Vec<bool> =
        similar.roots.iter().map(|(doc, root)| doc == root && similar.sizes.members(root) == 1).collect();
    if stage.canonical.most == 0 {
        return Ok(alone);
    }
    let all = cx.sum(roots.len() as u64)?;
    let columns = stage.canonical.columns().into();
    let source = Rc::new(MemberSource { stage, columns, owned: owned.clone(), roots });
    let longest = cx.sorted(vec![source.longest()?])?.pop().unwrap_or_default();
    match AROUND + longest.div_ceil(8) {
        ..=5 => chosen::<5>(cx, source, all, alone),
        6..=8 => chosen::<8>(cx, source, all, alone),
        9..=16 => chosen::<16>(cx, source, all, alone),
        17..=32 => chosen::<32>(cx, source, all, alone),
        33..=64 => chosen::<64>(cx, source, all, alone),
        65..=128 => chosen::<128>(cx, source, all, alone),
        numbers => bail!("a document is ordered by {} bytes, more than terms can have: a fault of nigh", 8 * numbers),
    }
}

/// Adds the documents of clusters that stay to those that are alone. `all` is the number of
/// documents of clusters.
fn chosen<const N: usize>(cx: &mut Context, source: Rc<MemberSource>, all: u64, alone: Vec<bool>) -> Result<Vec<bool>>
where
    OrderedMember<N>: Pod,
{
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<OrderedMember<N>>(), 1, cx.peers(), cx.memory());
    let (owned, choice) = (source.owned.clone(), ChosenSoFar::new(&source.stage.canonical));
    let open = move || {
        let (source, mut scan) = (source.clone(), None);
        move |dealer: &mut RangeDealer<'_, OrderedMember<N>>| {
            source.batch(&mut scan, &mut |root, group, order, doc| {
                let mut member = [0; N];
                [member[0], member[1], member[N - 1]] = [root.to_table() as u64, group, doc.to_table() as u64];
                for (number, bytes) in member[2..N - 1].iter_mut().zip(order.chunks(8)) {
                    let mut all = [0; 8];
                    all[..bytes.len()].copy_from_slice(bytes);
                    *number = u64::from_be_bytes(all);
                }
                dealer.deal(0, mix(root.to_table() as u64 ^ group), member);
            })
        }
    };
    let each = {
        let (peers, mut members) = (cx.peers(), Vec::new());
        move |partition: &Partition<'_, OrderedMember<N>>, dealer: &mut Dealer<DocId>| {
            members.clear();
            partition.blocks(|block| members.extend_from_slice(block.records()))?;
            members.sort_unstable();
            for group in members.chunk_by(|a, b| a[..2] == b[..2]) {
                let mut choice = choice.clone();
                let stays = |member: &&OrderedMember<N>| choice.stays(&member[2].to_be_bytes());
                for member in group.iter().take_while(stays) {
                    let doc = DocId::from_table(member[N - 1] as i64);
                    dealer.deal(doc.owner(peers) as u64, doc);
                }
            }
            Ok(())
        }
    };
    let canonical = Rc::new(RefCell::new(alone));
    let take = {
        let canonical = canonical.clone();
        move |block: BlockOf<DocId>| {
            let mut canonical = canonical.borrow_mut();
            block.records().iter().for_each(|doc| canonical[owned.index(*doc)] = true);
        }
    };
    let waiting = SpillBuffer::new(cx.scratch(), cx.memory());
    by_key(cx, "Canonical", cut, waiting, open, each, take)?;
    Ok(canonical.take())
}

/// The own documents of clusters, read from the tables `documents` and `values`.
struct MemberSource {
    stage: CanonicalStage,
    /// The columns whose values are compared.
    columns: Arc<[String]>,
    owned: Ownership,
    /// The roots of own documents in clusters, by number.
    roots: SparseDocs,
}

/// A scan of both tables.
struct MemberScan {
    documents: PieceScan<'static>,
    /// The values of a piece, and its number.
    values: Option<(usize, ValueRows)>,
}

/// What is done with a document: its root, group and order, and itself.
type EachMember<'a> = &'a mut dyn FnMut(DocId, u64, &[u8], DocId);

impl MemberSource {
    /// The bytes of the longest order.
    fn longest(&self) -> Result<usize> {
        let Some(longest) = self.stage.canonical.order_bytes() else {
            let (mut scan, mut longest) = (None, 0);
            while self.batch(&mut scan, &mut |_, _, order, _| longest = order.len().max(longest))? {}
            return Ok(longest);
        };
        Ok(longest)
    }

    /// Calls `each` with the documents of a batch; returns `false` if there is none left.
    fn batch(&self, scan: &mut Option<MemberScan>, each: EachMember<'_>) -> Result<bool> {
        let scan = match scan {
            Some(scan) => scan,
            none => {
                let columns = self.stage.canonical.table_columns();
                let documents = PieceScan::new(self.stage.documents.clone(), columns);
                none.insert(MemberScan { documents, values: None })
            }
        };
        let Some((piece, batch)) = scan.documents.batch()? else { return Ok(false) };
        let values = match scan.values.take() {
            Some((of, values)) if of == piece => values,
            _ => ValueRows::open(self.stage.values[piece].clone(), self.columns.clone())?,
        };
        let (_, values) = scan.values.insert((piece, values));
        self.each(&batch, values, each)?;
        Ok(true)
    }

    fn each<'b>(&self, batch: &'b RecordBatch, values: &mut ValueRows, each: EachMember<'_>) -> Result<()> {
        let has = |name: &str| batch.column_by_name(name).is_some();
        let longs = |name: &str| has(name).then(|| field::<Int64Array>(batch, name)).transpose();
        let texts = |name: &str| has(name).then(|| field::<StringArray>(batch, name)).transpose();
        let docs: &Int64Array = field(batch, "doc")?;
        let (offsets, words, bytes) = (longs("offset")?, longs("words")?, longs("bytes")?);
        let (files, urls, hosts) = (texts("file")?, texts("url")?, texts("host")?);
        let times: Option<&'b TimestampMicrosecondArray> =
            has("fetched").then(|| field(batch, "fetched")).transpose()?;
        let weeks: Option<&'b Date32Array> = has("crawled").then(|| field(batch, "crawled")).transpose()?;
        let comparison = self.stage.canonical.comparison(&self.columns);
        let mut order = Vec::new();
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
                    let number = self.stage.inputs.get(&weeks.value(row)).and_then(|names| names.get(name));
                    *number.with_context(|| {
                        format!("{doc} is of the file {name}, which is no input of the week: the store is damaged")
                    })?
                }
                None => 0,
            };
            let candidate = DocumentFacts {
                file,
                offset: long(offsets),
                words: long(words),
                bytes: long(bytes),
                fetched: times.filter(|times| times.is_valid(row)).map(|times| times.value(row)),
                url_bytes: text(urls).map(|url| url.len() as u32),
                host: text(hosts),
                crawled: weeks.map_or(0, |weeks| weeks.value(row)),
            };
            let values = values.of(doc.to_table())?;
            comparison.write_order(&candidate, values, &mut order);
            each(root, comparison.group(&candidate, values), &order, doc);
        }
        Ok(())
    }
}
