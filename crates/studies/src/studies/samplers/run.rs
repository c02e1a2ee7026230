//! The samplers job: how well samples of shingles estimate resemblance (Broder 1997; Fetterly 2004,
//! section 2).
//!
//! ```text
//! features, clusters of the week ─▶ pairs            some of each band of resemblance, of each cluster one at most
//! crawl files, at their places   ─▶ sets             the shingles of these pages, gathered pair by pair
//! sets, for each seed            ─▶ estimates        of every sampler
//! estimates, exact resemblance   ─▶ sampler-errors   bias and error by band, beside theory
//! words of all pages             ─▶ samplers         size, and pages without a sample
//! ```
//!
//! Pairs are drawn by hash, so the tables do not depend on workers. The functions of the week
//! choose the pairs; the estimates are of other ones.
//!
//! Memory: 8 bytes for each URL of a worker's shards, and the shingles of the pairs whose pages are
//! gathered together. All estimates are at worker 0, 8 bytes each: 4 MB for 3,600 pairs, 10
//! samplers and 12 seeds.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use arrow_array::Int64Array;
use nigh_exchange::{Context, send_rows};

use super::chosen_pairs::{PairRule, chosen_pairs};
use super::errors::{Band, bands};
use super::measure::{MeasuredPair, PairComparer, samplers as samplers_of};
use super::{SamplerSummary, Samplers, SamplersSummary};
use crate::config::Shape;
use crate::features::{Fingerprinter, Sampler};
use crate::jobs::page_places::{PagePlaces, places};
use crate::kernels;
use crate::kernels::polynomials;
use crate::operators::scan::{Vectors, read_roots};
use crate::operators::verify::{IfMissing, ReadAgain, gather, read_again};
use crate::records::DocId;
use crate::structures::{CompactSort, Ownership, UnionFind};
use crate::studies::StudyPlan;
use crate::tables::studies::samplers::{SamplerErrorRow, SamplerRow};
use crate::tables::{ClusterRow, DocumentRow, FeatureRow, RowRange, Scan, Table, field};
use crate::watch::{Stage, Watch};

/// What the user can do if a crawl file is not there.
const IF_MISSING: IfMissing = IfMissing::Fail { otherwise: "give the files of the week with --input" };

/// One, in the fixed point of sums of probabilities.
const ONE: f64 = (1u64 << 32) as f64;

/// The week that is studied, as one worker sees it.
struct SampledWeek<'a> {
    plan: &'a StudyPlan,
    job: &'a Samplers,
    owned: Ownership,
    watch: &'a Arc<Watch>,
}

/// Compares samplers on one worker, as [`run`](crate::studies::run) calls it. Worker 0 writes the
/// tables and returns the summary.
///
/// # Errors
/// If a file cannot be read or written, a crawl file has changed, or a worker failed.
pub fn samplers(cx: &mut Context, plan: &StudyPlan, job: &Samplers) -> Result<Option<SamplersSummary>> {
    let watch = &cx.watch().clone();
    let week = SampledWeek { plan, job, owned: plan.owned(cx), watch };
    let pairs = week.pairs(cx)?;
    cx.enter(Stage::Read);
    let measured = week.measure(cx, &pairs)?;
    cx.enter(Stage::Tables);
    let words = week.words(cx)?;
    if cx.index() > 0 {
        return Ok(None);
    }
    week.write(&measured, words).map(Some)
}

/// What the words of all pages of a week say.
struct WordCounts {
    /// Pages with words.
    pages: u64,
    /// By sampler: the share of these that have no sample.
    empty: Vec<f64>,
}

impl SampledWeek<'_> {
    /// The rows of own shards in a table that has some for each segment.
    fn rows(&self, table: &str) -> Result<Vec<(RowRange, u32)>> {
        let (history, mut rows) = (&self.plan.history, Vec::new());
        let tables = history.tables(0);
        for shard in self.owned.shards() {
            rows.extend(history.rows(0, &tables, table, shard)?.into_iter().map(|rows| (rows, shard)));
        }
        Ok(rows)
    }

    /// The numbers of supershingles, if they can be made of the job's functions.
    fn shape(&self) -> Option<Shape> {
        let Samplers { functions: features, .. } = *self.job;
        let Shape { supershingles, agreements, .. } = self.plan.files.method.shape();
        features.is_multiple_of(supershingles).then_some(Shape { features, supershingles, agreements })
    }

    /// The pairs that are compared.
    fn pairs(&self, cx: &mut Context) -> Result<Vec<[DocId; 2]>> {
        let roots = read_roots(self.rows(ClusterRow::NAME)?.into_iter(), &self.owned)?.similar;
        let features: Vec<RowRange> = self.rows(FeatureRow::NAME)?.into_iter().map(|(rows, _)| rows).collect();
        let method = &self.plan.files.method;
        let rule = PairRule { features: method.features, most: self.job.pairs.get() as usize, seed: method.seed };
        let root = |doc: DocId| roots[self.owned.index(doc)];
        chosen_pairs(cx, &rule, || Vectors::of_rows(features.iter().cloned()), root)
    }

    /// Reads the pages of pairs again, and compares them. All results are at worker 0, in the order
    /// of the pairs.
    fn measure(&self, cx: &mut Context, pairs: &[[DocId; 2]]) -> Result<Vec<MeasuredPair>> {
        let (plan, files) = (self.plan, &self.plan.files);
        let roots = gathering_roots(pairs)?;
        let mut by_root: BTreeMap<DocId, Vec<(usize, [DocId; 2])>> = BTreeMap::new();
        for (number, pair) in pairs.iter().enumerate() {
            by_root.entry(roots[&pair[0]]).or_default().push((number, *pair));
        }
        let own: Vec<DocId> = roots.keys().copied().filter(|doc| self.owned.has(*doc)).collect();
        let rows = self.rows(DocumentRow::NAME)?.into_iter().map(|(rows, _)| rows);
        let PagePlaces { places, .. } = places(
            rows,
            (plan.history.last().week, files.method.documents, &files.crawl),
            &own,
            |doc| roots[&doc],
            IF_MISSING,
        )?;
        let polynomials = polynomials(files.method.seed, files.method.features);
        let again = ReadAgain {
            documents: files.method.documents,
            inputs: &files.crawl,
            reading: &files.reading,
            fingerprinter: Fingerprinter::new(&files.method, &polynomials, 0, kernels::chosen()?)?,
            kept: vec![Vec::new(); files.crawl.len()],
            if_missing: IF_MISSING,
            watch: self.watch,
        };
        let again = read_again(cx, again, places)?;
        let scratch = plan.results().scratch();
        let sets = gather(&mut cx.with(plan.worker_memory / 2, &scratch), again, &Rc::from([]))?.small;
        let measured = PairComparer::new(self.job, files.method.seed, self.shape())?.own_pairs(&by_root, sets)?;
        let to_first = measured.into_iter().map(|pair| (0, pair)).collect();
        let mut all = send_rows(cx, to_first)?;
        all.sort_items_by_key(|pair| pair.number);
        Ok(all)
    }

    /// Counts the pages of the week with words, and those without a sample; the same at every
    /// worker.
    fn words(&self, cx: &mut Context) -> Result<WordCounts> {
        let samplers = samplers_of(self.job);
        let mut own: Vec<(u64, u64)> = vec![(0, 0); samplers.len()];
        for (rows, _) in self.rows(DocumentRow::NAME)? {
            Scan::open(rows, &["words"])?.for_each(|batch| {
                let words: &Int64Array = field(batch, "words")?;
                for words in words.values().iter().filter(|words| **words > 0) {
                    for ((pages, empty), sampler) in own.iter_mut().zip(&samplers) {
                        *pages += 1;
                        *empty += (ONE * sampler.empty_chance(*words as usize, self.job.functions)) as u64;
                    }
                }
                Ok(())
            })?;
        }
        let mut all = vec![(0, 0); samplers.len()];
        for (number, (pages, empty)) in cx.concat(own.into_iter().enumerate().collect())? {
            let (all_pages, all_empty) = &mut all[number];
            (*all_pages, *all_empty) = (*all_pages + pages, *all_empty + empty);
        }
        let pages = all.first().map_or(0, |(pages, _)| *pages);
        let empty = all.iter().map(|(pages, empty)| *empty as f64 / ONE / (*pages).max(1) as f64).collect();
        Ok(WordCounts { pages, empty })
    }

    /// Writes the tables, and returns the summary.
    fn write(&self, measured: &[MeasuredPair], words: WordCounts) -> Result<SamplersSummary> {
        let (plan, job, shape) = (self.plan, self.job, self.shape());
        let samplers = samplers_of(job);
        let bands = bands(measured, job.pairs.get() as usize);
        let of_sampler = |(number, sampler): (usize, &Sampler)| -> Vec<SamplerErrorRow> {
            bands.iter().map(|band| band.row(number, *sampler, job.functions, shape)).collect()
        };
        let errors: Vec<Vec<SamplerErrorRow>> = samplers.iter().enumerate().map(of_sampler).collect();
        let size = |(number, sampler): (usize, &Sampler)| {
            let sizes = bands.iter().map(|band| band.values(number));
            let (values, sets) = sizes.fold((0, 0), |(values, sets), (more, of)| (values + more, sets + of));
            let values = (sets > 0).then(|| values as f64 / sets as f64);
            let bytes = values.map(|values| sampler.bytes(values));
            SamplerRow { sampler: sampler.name(), values, bytes, empty: words.empty[number] }
        };
        let sizes: Vec<SamplerRow> = samplers.iter().enumerate().map(size).collect();
        plan.write(sizes.iter().cloned())?;
        plan.write(errors.iter().flatten().cloned())?;
        let summary = |(size, errors): (SamplerRow, Vec<SamplerErrorRow>)| SamplerSummary::new(&size, &errors);
        let history = &plan.history;
        Ok(SamplersSummary {
            store: history.store.clone(),
            method: history.method.clone(),
            first: history.first().week,
            last: history.last().week,
            pages: words.pages,
            functions: job.functions as u64,
            seeds: job.seeds.get().into(),
            pairs: bands.iter().map(|band: &Band<'_>| band.pairs() as u64).sum(),
            samplers: sizes.into_iter().zip(errors).map(summary).collect(),
        })
    }
}

/// For each page of the pairs the root under which its set is gathered: the same for both pages of
/// a pair.
fn gathering_roots(pairs: &[[DocId; 2]]) -> Result<BTreeMap<DocId, DocId>> {
    let mut docs: Vec<DocId> = pairs.iter().flatten().copied().collect();
    docs.sort_rows();
    docs.dedup();
    ensure!(u32::try_from(docs.len()).is_ok(), "too many pairs");
    let number = |doc: &DocId| docs.partition_point(|other| other < doc) as u32;
    let edges: Vec<(u32, u32)> = pairs.iter().map(|[a, b]| (number(a), number(b))).collect();
    let components = UnionFind::new(docs.len());
    components.join(&edges)?;
    Ok((0u32..).zip(&docs).map(|(at, doc)| (*doc, docs[components.root(at) as usize])).collect())
}
