//! The sets of units: the chunks of each centre, read from the table `chunks` in every pass; those
//! of hosts from memory.
//!
//! A pass over pages holds one batch of rows in memory, and each centre takes 8 bytes. The pages of
//! a host belong to several workers, so the chunks of hosts are exchanged: twice 16 bytes for each
//! chunk of each page while that happens, 12 for each chunk of a host after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use arrow_array::{BinaryArray, FixedSizeBinaryArray, Int64Array, RecordBatch};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all};

use super::copies::Copies;
use super::text_changes::TextChanges;
use super::units::Units;
use crate::config::{Chunking, Cut};
use crate::features::chunk_set;
use crate::operators::set_join::{Element, KnownSet, SetPass, SetSource, SetsPass, WeightedSets};
use crate::records::DocId;
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{ChunkRow, RowRange, Scan, Table, field};

/// The sets of the own units of a worker.
#[derive(Clone)]
pub enum UnitSource {
    /// Of pages; and what is known of each, or nothing of any.
    Pages(Arc<ChunkSource>, Arc<Vec<KnownSet>>),
    /// Of hosts.
    Hosts(Arc<WeightedSets>),
}

/// The chunks of the own pages that are centres.
pub struct ChunkSource {
    files: Vec<RowRange>,
    owned: Ownership,
    /// By own number: whether the page is a centre.
    is_centre: Vec<bool>,
    /// The centres, in the order of the files.
    names: Vec<u64>,
    chunking: Chunking,
    cut: Cut,
    /// The chunks of all centres, once a pass has read them all; else the largest number.
    fingerprints: AtomicU64,
}

/// A chunk of a page at the owner of its host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct HostChunk {
    host: DocId,
    chunk: u64,
}

impl UnitSource {
    /// The sets of the own pages that are centres.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn of_pages(
        history: &History,
        owned: &Ownership,
        copies: &Copies,
        chunking: Chunking,
        cut: Cut,
    ) -> Result<UnitSource> {
        let is_centre = copies.pages.iter().map(|pages| *pages > 0).collect();
        let files = files(history, owned)?;
        let (names, fingerprints) = (Vec::new(), AtomicU64::new(u64::MAX));
        let mut sets = ChunkSource { files, owned: owned.clone(), is_centre, names, chunking, cut, fingerprints };
        let mut names = Vec::new();
        for rows in &sets.files {
            Scan::open(rows, &["doc"])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                names.extend(docs.values().iter().filter(|doc| sets.has(**doc)).map(|doc| *doc as u64));
                Ok(())
            })?;
        }
        sets.names = names;
        Ok(UnitSource::Pages(Arc::new(sets), Arc::default()))
    }

    /// The chunks of all own units, repeated ones of a unit counted once: the fingerprints of the
    /// study. `None` if no pass has read them all.
    pub fn fingerprints(&self) -> Option<u64> {
        match self {
            UnitSource::Pages(sets, _) if sets.names.is_empty() => Some(0),
            UnitSource::Pages(sets, _) => Some(sets.fingerprints.load(Ordering::Relaxed)).filter(|all| *all < u64::MAX),
            UnitSource::Hosts(sets) => Some(sets.elements() as u64),
        }
    }

    /// Adds what a former run knows: pages whose texts it had are old, and `family_of` gives the
    /// number of the family of a page, or 0: its chunks are given if it is new.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn with_known(
        self,
        changes: &TextChanges,
        mut family_of: impl FnMut(DocId, Option<&[u64]>) -> u32,
    ) -> Result<UnitSource> {
        let UnitSource::Pages(sets, _) = self else { return Ok(self) };
        let mut known = Vec::with_capacity(sets.names.len());
        let (mut pass, mut set, mut chunks) = (PagePass::of(sets.clone()), Vec::new(), Vec::new());
        for name in &sets.names {
            let doc = DocId::from_table(*name as i64);
            let is_old = changes.is_old[sets.owned.index(doc)];
            let family = if is_old {
                pass.skip()?;
                family_of(doc, None)
            } else {
                pass.next(&mut set)?;
                chunks.clear();
                chunks.extend(set.iter().map(|element| element.hash));
                family_of(doc, Some(&chunks))
            };
            known.push(KnownSet { is_old, family });
        }
        Ok(UnitSource::Pages(sets, Arc::new(known)))
    }

    /// The sets of the own hosts.
    ///
    /// # Errors
    /// If a file cannot be read, or a worker of this process failed.
    pub fn of_hosts(
        cx: &mut Context,
        history: &History,
        pages_owned: &Ownership,
        units: &Units,
        chunking: Chunking,
        cut: Cut,
    ) -> Result<UnitSource> {
        let (mut chunks, mut set) = (Vec::new(), Vec::new());
        for rows in files(history, pages_owned)? {
            Scan::open(&rows, &["doc", "text", "lines"])?.for_each(|batch| {
                let columns = ChunkColumns::of(batch)?;
                for row in 0..batch.num_rows() {
                    let host = units.host_of[pages_owned.index(DocId::from_table(columns.docs.value(row)))];
                    columns.chunks(row, chunking, cut, &mut set);
                    chunks.extend(set.iter().map(|chunk| HostChunk { host, chunk: *chunk }));
                }
                Ok(())
            })?;
        }
        chunks.sort_unstable();
        chunks.dedup();
        let peers = cx.peers();
        let mut dealer = cx.dealer();
        chunks.into_iter().for_each(|chunk| dealer.deal(chunk.host.owner(peers) as u64, chunk));
        let blocks = all_to_all(cx, dealer)?;
        let mut chunks: Vec<HostChunk> = blocks.iter().flat_map(|block| block.records()).copied().collect();
        drop(blocks);
        chunks.sort_unstable();
        chunks.dedup();
        let (mut sets, mut set) = (WeightedSets::default(), Vec::new());
        for of_host in chunks.chunk_by(|a, b| a.host == b.host) {
            set.clear();
            set.extend(of_host.iter().map(|chunk| Element { hash: chunk.chunk, weight: 1 }));
            sets.push(of_host[0].host.to_table() as u64, &set)?;
        }
        Ok(UnitSource::Hosts(Arc::new(sets)))
    }
}

/// The files of the table `chunks` of the last week, of own shards.
fn files(history: &History, owned: &Ownership) -> Result<Vec<RowRange>> {
    let number = history.weeks.len() - 1;
    let tables = history.tables(number);
    let mut files = Vec::new();
    for shard in owned.shards() {
        files.extend(history.rows(number, &tables, ChunkRow::NAME, shard)?);
    }
    Ok(files)
}

/// The columns of a batch of `chunks`.
struct ChunkColumns<'a> {
    docs: &'a Int64Array,
    texts: &'a FixedSizeBinaryArray,
    lines: &'a BinaryArray,
}

impl ChunkColumns<'_> {
    fn of(batch: &RecordBatch) -> Result<ChunkColumns<'_>> {
        Ok(ChunkColumns { docs: field(batch, "doc")?, texts: field(batch, "text")?, lines: field(batch, "lines")? })
    }

    fn chunks(&self, row: usize, chunking: Chunking, cut: Cut, set: &mut Vec<u64>) {
        chunk_set(chunking, cut, self.texts.value(row), self.lines.value(row), set);
    }
}

impl ChunkSource {
    /// Whether the page is a centre.
    fn has(&self, doc: i64) -> bool {
        self.is_centre[self.owned.index(DocId::from_table(doc))]
    }
}

impl SetSource for UnitSource {
    type Pass = UnitPass;

    fn len(&self) -> usize {
        match self {
            UnitSource::Pages(sets, _) => sets.names.len(),
            UnitSource::Hosts(sets) => sets.len(),
        }
    }

    fn name(&self, set: usize) -> u64 {
        match self {
            UnitSource::Pages(sets, _) => sets.names[set],
            UnitSource::Hosts(sets) => sets.name(set),
        }
    }

    fn known(&self, set: usize) -> KnownSet {
        match self {
            UnitSource::Pages(_, known) => known.get(set).copied().unwrap_or_default(),
            UnitSource::Hosts(_) => KnownSet::default(),
        }
    }

    fn pass(&self) -> Result<UnitPass> {
        Ok(match self {
            UnitSource::Pages(sets, _) => UnitPass::Pages(Box::new(PagePass::of(sets.clone()))),
            UnitSource::Hosts(sets) => UnitPass::Hosts(sets.pass()?),
        })
    }
}

/// A pass over the sets of units.
pub enum UnitPass {
    /// Over pages.
    Pages(Box<PagePass>),
    /// Over hosts.
    Hosts(SetsPass),
}

/// A pass over the files of own pages.
pub struct PagePass {
    sets: Arc<ChunkSource>,
    /// The number of the next file.
    file: usize,
    scan: Option<Scan>,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    row: usize,
    chunks: Vec<u64>,
    /// The centres that were read, and their chunks.
    read: [u64; 2],
}

impl SetPass for UnitPass {
    fn next(&mut self, set: &mut Vec<Element>) -> Result<bool> {
        match self {
            UnitPass::Pages(pass) => pass.next(set),
            UnitPass::Hosts(pass) => pass.next(set),
        }
    }

    fn skip(&mut self) -> Result<bool> {
        match self {
            UnitPass::Pages(pass) => pass.skip(),
            UnitPass::Hosts(pass) => pass.skip(),
        }
    }
}

impl PagePass {
    fn of(sets: Arc<ChunkSource>) -> PagePass {
        PagePass { sets, file: 0, scan: None, batch: None, row: 0, chunks: Vec::new(), read: [0; 2] }
    }

    /// Reads the next batch; `false` after the last one.
    fn next_batch(&mut self) -> Result<bool> {
        loop {
            if let Some(scan) = &mut self.scan {
                self.batch = scan.batch()?;
                self.row = 0;
                if self.batch.is_some() {
                    return Ok(true);
                }
            }
            let Some(rows) = self.sets.files.get(self.file) else { return Ok(false) };
            self.scan = Some(Scan::open(rows, &["doc", "text", "lines"])?);
            self.file += 1;
        }
    }

    fn next(&mut self, set: &mut Vec<Element>) -> Result<bool> {
        set.clear();
        let Some(row) = self.next_row()? else { return Ok(false) };
        if let Some(batch) = &self.batch {
            let ChunkSource { chunking, cut, .. } = *self.sets;
            ChunkColumns::of(batch)?.chunks(row, chunking, cut, &mut self.chunks);
            set.extend(self.chunks.iter().map(|chunk| Element { hash: *chunk, weight: 1 }));
        }
        let [centres, chunks] = &mut self.read;
        (*centres, *chunks) = (*centres + 1, *chunks + set.len() as u64);
        if *centres == self.sets.names.len() as u64 {
            self.sets.fingerprints.store(*chunks, Ordering::Relaxed);
        }
        Ok(true)
    }

    fn skip(&mut self) -> Result<bool> {
        Ok(self.next_row()?.is_some())
    }

    /// The row of the next centre in the batch; `None` after the last one.
    fn next_row(&mut self) -> Result<Option<usize>> {
        loop {
            if let Some(batch) = &self.batch {
                let docs: &Int64Array = field(batch, "doc")?;
                let is_centre = |row: &usize| self.sets.has(docs.value(*row));
                if let Some(row) = (self.row..batch.num_rows()).find(is_centre) {
                    self.row = row + 1;
                    return Ok(Some(row));
                }
                self.batch = None;
            }
            if !self.next_batch()? {
                return Ok(None);
            }
        }
    }
}
