//! Failed downloads of a wave to a table of the wave: those of URLs that an earlier week knows, with their reasons.
//!
//! They go to the owner of the URL's shard, as answers do. Of several failures of one URL in a wave the first by (file,
//! ordinal) is kept, whatever else the URL answers this week: `missing` (in `jobs`) leaves out what has a page. Beside
//! those of `segments` the tables stand by themselves: a wave is committed when every worker has written both.
//!
//! Cost: the failures are sorted twice, by hash and by document, within the worker's memory; and a wave reads the
//! hashes of earlier weeks once more in every shard where something failed. In a store's first week nothing is known,
//! and nothing kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;

use crate::plan::Plan;
use crate::records::{DocId, UrlHash};
use crate::state::{Unfinished, UrlIndex, sync_folder};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::tables::{FailureRow, Scan, Table, Writer, field};
use crate::watch::Watch;

/// A download that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedDownload {
    /// The hash of the canonical URL; its shard owns the failure.
    pub hash: UrlHash,
    /// The input's number in the plan.
    pub file: u32,
    /// The record's number in the input: of several failures of a URL the first by (file, ordinal) counts.
    pub ordinal: u64,
    /// Why.
    pub reason: String,
}

impl Sortable for FailedDownload {
    type Key = (UrlHash, u32, u64);

    fn key(&self) -> Self::Key {
        (self.hash, self.file, self.ordinal)
    }

    fn weight(&self) -> usize {
        size_of::<FailedDownload>() + self.reason.len()
    }
}

/// A failed download of a known URL, in one of the week's waves.
#[derive(Serialize, Deserialize)]
struct FailedDoc {
    doc: DocId,
    wave: u64,
    reason: String,
}

impl Sortable for FailedDoc {
    type Key = (DocId, u64);

    fn key(&self) -> Self::Key {
        (self.doc, self.wave)
    }

    fn weight(&self) -> usize {
        size_of::<FailedDoc>() + self.reason.len()
    }
}

/// Writes the failures of every wave from `first_wave` on; tells for each worker and wave when that is durable.
pub fn failures<'scope>(
    failed: StreamVec<'scope, u64, FailedDownload>,
    plan: &Arc<Plan>,
    first_wave: usize,
    watch: &Arc<Watch>,
) -> StreamVec<'scope, u64, ()> {
    let shards = plan.method.shards;
    let store = plan.open_store();
    let url_files = watch.check(store.url_indexes(&plan.earlier)).unwrap_or_default();
    let route = Exchange::new(move |failed: &FailedDownload| u64::from(failed.hash.shard(shards)));
    let owner =
        FailureOwner { shards, unfinished: store.unfinished(plan.week), url_files, budget: plan.worker_memory / 32 };
    let (waves_in_all, watch, index) = (plan.waves.len(), watch.clone(), failed.scope().index());
    failed.unary_frontier::<CapacityContainerBuilder<Vec<()>>, _, _, _>(route, "Failures", |capability, _| {
        let mut waves: BTreeMap<u64, ExternalSort<FailedDownload>> = BTreeMap::new();
        // As in `segments`: every worker tells of every wave, and one that failed keeps its capability.
        let mut held = Some(capability);
        let mut wave = first_wave as u64;
        move |(input, frontier), output| {
            input.for_each_time(|capability, batches| {
                let wave = *capability.time();
                let sorter = waves.entry(wave).or_insert_with(|| owner.sorter(&format!("worker{index}-wave{wave}")));
                for failed in batches.flat_map(|batch| batch.drain(..)) {
                    if watch.failed() || watch.check(sorter.push(failed)).is_none() {
                        return;
                    }
                }
            });
            while let Some(capability) = &mut held
                && !watch.failed()
            {
                if wave as usize == waves_in_all {
                    held = None;
                } else if frontier.less_equal(&wave) {
                    break;
                } else {
                    capability.downgrade(&wave);
                    if let Some(sorter) = waves.remove(&wave)
                        && watch.check(owner.write(sorter, wave)).is_none()
                    {
                        return;
                    }
                    output.session(&*capability).give(());
                    wave += 1;
                }
            }
        }
    })
}

/// What a worker knows of its own shards.
struct FailureOwner {
    shards: u32,
    unfinished: Unfinished,
    /// The url files of earlier weeks, by shard.
    url_files: BTreeMap<u32, Vec<PathBuf>>,
    /// Memory of one sorter: of three, for two waves are in flight, and one of them is written.
    budget: u64,
}

impl FailureOwner {
    fn sorter<T: Sortable>(&self, name: &str) -> ExternalSort<T> {
        ExternalSort::new(&self.unfinished.spill().join(format!("failed-{name}")), self.budget)
    }

    /// Writes the failures of a wave, shard by shard.
    fn write(&self, sorter: ExternalSort<FailedDownload>, wave: u64) -> Result<()> {
        let mut sorted = sorter.sorted()?;
        let mut next = sorted.record()?;
        let mut rows = 0;
        while let Some(first) = next.take() {
            next = self.write_shard(first, &mut sorted, wave, &mut rows)?;
        }
        if rows > 0 {
            sync_folder(&self.unfinished.scratch_table(FailureRow::NAME, ""))?;
        }
        Ok(())
    }

    /// Writes the failures of the shard of `first`, whose others come next; gives the first one of another shard.
    fn write_shard(
        &self,
        first: FailedDownload,
        sorted: &mut Sorted<FailedDownload>,
        wave: u64,
        rows: &mut u64,
    ) -> Result<Option<FailedDownload>> {
        let shard = first.hash.shard(self.shards);
        let earlier = self.url_files.get(&shard).map_or(&[][..], |files| files);
        let mut urls = UrlIndex { unfinished: &self.unfinished, shard, segments: &[], earlier }.lookup(0)?;
        let mut known = self.sorter(&format!("shard{shard}-wave{wave}"));
        let mut next = Some(first);
        while let Some(failed) = next.take_if(|failed| failed.hash.shard(self.shards) == shard) {
            let hash = failed.hash;
            if let Some(doc) = urls.find(hash)? {
                known.push(FailedDoc { doc, wave, reason: failed.reason })?;
            }
            next = sorted.record()?;
            while next.as_ref().is_some_and(|failed| failed.hash == hash) {
                next = sorted.record()?;
            }
        }
        let mut writer = Writer::create(&file(&self.unfinished, shard, wave as usize))?;
        let mut known = known.sorted()?;
        while let Some(FailedDoc { doc, reason, .. }) = known.record()? {
            writer.push(FailureRow { doc: doc.to_table(), reason })?;
        }
        *rows += writer.finish_if_any()?;
        Ok(next)
    }
}

/// Why documents of a shard could not be downloaded, in their order.
pub struct FailureReasons {
    /// The failures of all waves, by document and wave.
    failures: Sorted<FailedDoc>,
    next: Option<FailedDoc>,
}

impl FailureReasons {
    /// Reads a shard's failures in so many waves, and puts them in order within `memory` bytes.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn read(unfinished: &Unfinished, shard: u32, waves: usize, memory: u64) -> Result<FailureReasons> {
        let mut failures = ExternalSort::new(&unfinished.spill().join(format!("failed-shard{shard}")), memory);
        for wave in 0..waves {
            let path = file(unfinished, shard, wave);
            // Where nothing failed there is none.
            if !path.exists() {
                continue;
            }
            Scan::open(&path, &["doc", "reason"])?.for_each(|batch| {
                let (docs, reasons): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "reason")?);
                (0..batch.num_rows()).try_for_each(|row| {
                    let (doc, reason) = (DocId::from_table(docs.value(row)), reasons.value(row).to_owned());
                    failures.push(FailedDoc { doc, wave: wave as u64, reason })
                })
            })?;
        }
        let mut failures = failures.sorted()?;
        Ok(FailureReasons { next: failures.record()?, failures })
    }

    /// Why a document could not be downloaded, as the first wave has it; `None` where nothing tells. Documents must be
    /// asked in ascending order, each once.
    ///
    /// # Errors
    /// Names the run that cannot be read.
    pub fn of(&mut self, doc: DocId) -> Result<Option<String>> {
        while self.next.as_ref().is_some_and(|failed| failed.doc < doc) {
            self.next = self.failures.record()?;
        }
        match self.next.take_if(|failed| failed.doc == doc) {
            Some(failed) => {
                self.next = self.failures.record()?;
                Ok(Some(failed.reason))
            }
            None => Ok(None),
        }
    }
}

/// The file of a shard's failures in a wave. (Not named as a segment's: a shard may have failures in a wave and no
/// pages, and is then without a segment in the journal.)
fn file(unfinished: &Unfinished, shard: u32, wave: usize) -> PathBuf {
    unfinished.scratch_table(FailureRow::NAME, &format!("shard{shard:05}-failed-wave{wave:05}.parquet"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Segment, Store};

    #[test]
    fn the_first_wave_tells_why_whatever_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = Store::at(folder.path()).unfinished("2024-01-15".parse().unwrap());
        for (wave, rows) in [(0, &[5][..]), (2, &[3, 5, 9])] {
            let mut writer = Writer::create(&file(&unfinished, 7, wave)).unwrap();
            for row in rows {
                let doc = DocId::new(7, *row).to_table();
                writer.push(FailureRow { doc, reason: format!("wave {wave}") }).unwrap();
            }
            writer.finish().unwrap();
        }
        for memory in [0, 1 << 20] {
            let mut reasons = FailureReasons::read(&unfinished, 7, 3, memory).unwrap();
            let told = [2, 3, 5, 6, 9, 10].map(|row| reasons.of(DocId::new(7, row)).unwrap().unwrap_or_default());
            assert_eq!(told, ["", "wave 2", "wave 0", "", "wave 2", ""]);
        }
    }

    #[test]
    fn a_file_belongs_to_its_wave_and_to_no_segment() {
        let unfinished = Store::at("store".as_ref()).unfinished("2024-01-15".parse().unwrap());
        let path = file(&unfinished, 7, 12);
        let name = path.file_name().unwrap().to_str().unwrap();
        // So that a rerun keeps it when the wave is whole, be there pages of the shard or not.
        assert_eq!((Segment::wave_of(name), Segment::shard_of(name)), (Some(12), None));
    }
}
