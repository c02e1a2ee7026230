//! Whose cluster each page of a week is in: from all pages, or from the week before and what changed.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use timely::worker::Worker;

use super::week::{LastWeek, ReadWeek};
use crate::config::Mode;
use crate::features::VectorKeys;
use crate::kernels::chosen;
use crate::operators::clustering::{Clustering, Clusters, clusters, exact_copies};
use crate::operators::delta::{Choice, Delta, DeltaStats, NextRun, PostingIndex, choose, delta, post_all};
use crate::operators::exchange::all_gather;
use crate::operators::scan::{VectorFiles, VectorRoots, pages, read_roots};
use crate::records::DocId;
use crate::state::{CommittedWeek, PostingRuns, run_folder};
use crate::structures::{DocFilter, Numbering};
use crate::tables::{ClusterRow, Table};
use crate::watch::Stage;

/// The roots of all own documents at the three levels, by number; [`DocId::NONE`] where a URL has no page this week.
pub(crate) struct WeekRoots {
    pub similar: Vec<DocId>,
    pub identical: Vec<DocId>,
    pub exact: Vec<DocId>,
    /// A neighbour of each in the first level's cluster, where it is known; itself where it has none.
    pub neighbours: Vec<DocId>,
    pub known: KnownNeighbours,
    pub choice: Choice,
    /// The postings of the week's vectors, where its clusters were found from what changed.
    pub postings: Option<PostingRuns>,
}

/// Whose neighbours are known.
pub(crate) enum KnownNeighbours {
    /// Everybody's.
    All,
    /// Those of the clusters with these roots, ascending: the others are as they were last week.
    Of(Vec<DocId>),
}

impl KnownNeighbours {
    /// Whether the neighbours in the cluster with this root are known.
    pub(crate) fn has(&self, root: DocId) -> bool {
        match self {
            KnownNeighbours::All => true,
            KnownNeighbours::Of(roots) => roots.binary_search(&root).is_ok(),
        }
    }
}

/// What is known of a week from what changed.
struct ByDelta {
    roots: VectorRoots,
    /// Neighbours in the clusters that are no longer what they were.
    neighbours: Vec<DocId>,
    /// The roots of these clusters.
    marks: Vec<DocId>,
    /// The postings of the week's vectors.
    runs: Option<PostingRuns>,
}

impl ReadWeek<'_> {
    /// What is known already: the week before, or this one with what is deleted from it; `None` for a store's first.
    pub(crate) fn last_week(&self) -> Result<Option<LastWeek>> {
        let known = self.plan.deletion.as_ref().map(|deletion| &deletion.of).or(self.plan.earlier.last());
        known.map(|known| self.committed(known)).transpose()
    }

    /// The week before; `None` for a store's first.
    pub(crate) fn week_before(&self) -> Result<Option<LastWeek>> {
        self.plan.earlier.last().map(|before| self.committed(before)).transpose()
    }

    fn committed(&self, week: &CommittedWeek) -> Result<LastWeek> {
        let store = self.plan.open_store();
        let (folder, journal) = (store.week(week.week), store.whole(week.week)?.journal);
        Ok(LastWeek { folder, journal, postings: store.postings(week) })
    }

    /// Finds the clusters at all levels.
    pub(crate) fn roots(
        &self,
        worker: &mut Worker,
        keys: &Rc<VectorKeys>,
        last: Option<&LastWeek>,
    ) -> Result<WeekRoots> {
        let (plan, owned, watch) = (self.plan, self.owned, self.watch);
        let width = plan.method.supershingles;
        let after = VectorFiles::of_week(self.unfinished.folder(), self.journal, owned, width);
        let full = Choice::full(plan.mode);
        let mut postings = None;
        let (choice, VectorRoots { mut similar, mut identical }, neighbours, known) = match last {
            None => {
                let (roots, neighbours) = self.in_full(worker, &after, keys)?;
                (full, roots, neighbours, KnownNeighbours::All)
            }
            Some(last) => {
                watch.enter(Stage::Changes);
                let before = VectorFiles::of_week(&last.folder, &last.journal, owned, width);
                let index = match plan.mode {
                    Mode::Full => None,
                    _ => {
                        PostingIndex::open(worker, &plan.open_store().postings_folder(), last.postings.clone(), watch)?
                    }
                };
                let (weeks, has_postings) = ((&before, &after), index.is_some());
                let choice = choose(worker, plan.mode, weeks, has_postings, owned, plan.worker_memory, watch)?;
                if choice.way == Mode::Delta {
                    let ByDelta { roots, neighbours, marks, runs } =
                        self.by_delta(worker, last, weeks, keys, (choice.slices, index))?;
                    postings = runs;
                    (choice, roots, neighbours, KnownNeighbours::Of(marks))
                } else {
                    drop(index);
                    let (roots, neighbours) = self.in_full(worker, &after, keys)?;
                    (choice, roots, neighbours, KnownNeighbours::All)
                }
            }
        };
        // Pages without words have no vector, and URLs without a page have none.
        let (pages, checksums) = pages(self.unfinished, self.journal, owned)?;
        for roots in [&mut similar, &mut identical] {
            for (root, page) in roots.iter_mut().zip(&pages) {
                if *root == DocId::NONE || *page == DocId::NONE {
                    *root = *page;
                }
            }
        }
        // A duplicate goes where its representative goes.
        let duplicates: Rc<Vec<(DocId, DocId)>> =
            Rc::new(pages.iter().zip(&identical).filter(|(doc, root)| doc != root).map(|(d, r)| (*d, *r)).collect());
        let mut exact_roots = pages;
        for ((copy, _), root) in
            duplicates.iter().zip(exact_copies(worker, owned, &duplicates, &Rc::new(checksums), watch)?)
        {
            exact_roots[owned.index(*copy)] = root;
        }
        Ok(WeekRoots { similar, identical, exact: exact_roots, neighbours, known, choice, postings })
    }

    /// The roots of all own vectors, and a neighbour of each.
    fn in_full(
        &self,
        worker: &mut Worker,
        files: &VectorFiles,
        keys: &Rc<VectorKeys>,
    ) -> Result<(VectorRoots, Vec<DocId>)> {
        let (plan, owned) = (self.plan, self.owned);
        let docs = Arc::new(files.docs(owned)?);
        let mut rows: BTreeMap<u32, u64> = (0..plan.method.shards).map(|shard| (shard, 0)).collect();
        let mut own: BTreeMap<u32, u64> = BTreeMap::new();
        docs.iter().for_each(|doc| *own.entry(doc.shard()).or_default() += 1);
        rows.extend(all_gather(worker, own.into_iter().collect(), self.watch)?);
        let rows: Vec<u64> = rows.into_values().collect();
        let clustering = Clustering {
            memory: Clustering::in_flight(plan.worker_memory, &rows, plan.peers())?,
            files: files.clone(),
            numbering: Rc::new(Numbering::new(&rows)),
            keys: keys.clone(),
            agreements: plan.method.agreements,
            scratch: self.unfinished.spill(),
            shared: self.shared.clone(),
            threads: plan.workers,
            watch: self.watch.clone(),
        };
        let named = docs.clone();
        let Clusters { duplicates, survivors, .. } =
            clusters(worker, &clustering, move |vector| named[vector].to_table() as u64)?;
        let doc = |name: u64| DocId::from_table(name as i64);
        let mut similar = vec![DocId::NONE; owned.len()];
        docs.iter().for_each(|doc| similar[owned.index(*doc)] = *doc);
        let (mut neighbours, mut identical) = (similar.clone(), similar.clone());
        for (vector, root, neighbour) in survivors.iter().chain(duplicates.iter()) {
            let at = owned.index(docs[vector as usize]);
            (similar[at], neighbours[at]) = (doc(root), doc(neighbour));
        }
        for (vector, _, same) in duplicates.iter() {
            identical[owned.index(docs[vector as usize])] = doc(same);
        }
        Ok((VectorRoots { similar, identical }, neighbours))
    }

    /// The roots of all own vectors from those of last week.
    fn by_delta(
        &self,
        worker: &mut Worker,
        last: &LastWeek,
        (before, after): (&VectorFiles, &VectorFiles),
        keys: &Rc<VectorKeys>,
        (slices, index): (u64, Option<PostingIndex>),
    ) -> Result<ByDelta> {
        let (plan, owned, watch) = (self.plan, self.owned, self.watch);
        let mut roots = read_roots(last.files(ClusterRow::NAME, owned), owned)?;
        // Of slices some vectors are this week's, which it does not have.
        let index = index.filter(|_| slices == 1);
        let rows = plan.urls(self.journal);
        // Of what is deleted nothing is kept, not even that it held some supershingle.
        let name = run_folder(plan.week, &self.journal.key.hash);
        let next_run = plan.deletion.is_none().then(|| NextRun { made: self.unfinished.postings(), name });
        let stage = Delta {
            before,
            after,
            owned,
            keys,
            agreements: plan.method.agreements,
            slices,
            index: index.as_ref(),
            next_run: next_run.as_ref().filter(|_| index.as_ref().is_some_and(|index| index.takes_more(&rows))),
            threads: plan.workers,
            filter: &self.shared.changed_keys,
            union_find: &self.shared.union_find,
            watch,
        };
        let DeltaStats { changed_clusters: marks, postings: mut runs, .. } = delta(worker, &stage, &mut roots)?;
        let kernels = chosen()?;
        if let (Some(next), None) = (&next_run, &runs) {
            watch.enter(Stage::Postings);
            let memory = plan.worker_memory / 2;
            runs = Some(post_all(worker, after, &rows, next, memory, &self.unfinished.spill(), watch)?);
        }
        // Why a page is in a cluster that changed is found out anew; and with it, once more, that it is.
        let sieve = DocFilter::new(marks.iter(), kernels);
        let marked = |root: &DocId| sieve.may_have(*root) && marks.binary_search(root).is_ok();
        let all = owned.docs().zip(&roots.similar);
        let changed: Rc<Vec<DocId>> = Rc::new(all.filter(|(_, root)| marked(root)).map(|(doc, _)| doc).collect());
        let (wanted, sieve) = (changed.clone(), DocFilter::new(changed.iter(), kernels));
        let wanted = move |doc| sieve.may_have(doc) && wanted.binary_search(&doc).is_ok();
        let files = after.only(wanted, changed.len() as u64);
        let (found, neighbours) = self.in_full(worker, &files, keys)?;
        for doc in changed.iter() {
            let at = owned.index(*doc);
            ensure!(
                (found.similar[at], found.identical[at]) == (roots.similar[at], roots.identical[at]),
                "{doc} has the roots {} and {} by what changed, {} and {} by its cluster: a fault in this program; `mode = \"full\"` goes around it",
                roots.similar[at],
                roots.identical[at],
                found.similar[at],
                found.identical[at]
            );
        }
        Ok(ByDelta { roots, neighbours, marks, runs })
    }
}
