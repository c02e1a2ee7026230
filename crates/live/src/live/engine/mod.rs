//! Documents, and the clusters that they are in now.
//!
//! ```text
//! batch of records ─▶ features ─▶ nodes that come and go ─▶ edges of keys ─▶ fragments, labels ─▶ ids ─▶ answers
//! ```
//!
//! A batch is applied as a whole: of two records of one document the last one counts, and answers
//! tell what is there after it. The clusters are those that a full clustering of these documents
//! has, at all three levels: similar ones are what edges of keys connect, virtually identical
//! documents are of one node, and exact copies are those of a node that have the same checksum.
//! Documents without words have no keys: those with the same checksum are a node.
//!
//! If the method verifies clusters, what edges of keys connect are candidates, and the parts of
//! these that are similar enough are the clusters.
//!
//! In reading order: `answers`, `load` (the documents of a store), `tables` (documents,
//! those of each node, and how they are found by id), `keys` (the documents of each key, and the
//! edges between them), `parts` (keys and features in several processes), `sets` (sets of nodes),
//! `fragments` (what is known to be connected, and the graph of that with its labels), `verified`
//! (what of that is similar enough), `page` (equal documents), `pairs` (whether two pages are
//! similar enough), `texts` (their texts), `clusters` (ids and changes).

mod answers;
mod clusters;
mod fragments;
mod keys;
mod load;
mod page;
mod pairs;
mod parts;
mod sets;
mod tables;
mod texts;
mod verified;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use self::clusters::{Clusters, Moved};
use self::fragments::Fragments;
use self::fragments::labels::LabelWorkers;
use self::pairs::Pairs;
use self::parts::{DocumentFeatures, SharedKeys};
use self::sets::{NO_ID, Sets};
use self::tables::doc_table::{Doc, DocTable, NONE};
use self::tables::id_table::IdTable;
use self::tables::node_table::NodeTable;
use self::texts::BatchTexts;
use self::verified::Verified;
use super::batch::{Features, LineContent, Record, features};
use crate::config::Method;
use crate::features::{Fingerprinter, PageFacts, Sketch};
use crate::records::{DocumentKey, FeatureBits, KeyHash, fold};

pub use self::answers::{Answer, ClusterAnswer, Counts, Near, NumberedChange};
pub use self::clusters::ClusterChange;
pub use self::load::Load;
pub(super) use self::parts::SharedProcesses;
pub use self::parts::{KeyProcesses, serve_keys};
pub(super) use self::tables::doc_table::TextPlace;
pub(super) use self::texts::{NoTexts, Texts, shingles_of};

/// The changes that an answer has at most.
const ANSWERED: usize = 16;
/// The changes that are kept.
const KEPT_CHANGES: usize = 100_000;
/// The numbers of changes from one multiple of this to the next are an era.
const ERA: u64 = 1 << 32;

/// Numbers that are not given again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Given {
    /// To changes: none has a larger one.
    pub(super) changes: u64,
    /// To clusters that no table has.
    pub(super) clusters: i64,
}

/// What is wanted of a batch, besides that its documents are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// An answer for each record, and the changes.
    Answers,
    /// The changes.
    Changes,
    /// Nothing: its documents were there before.
    Nothing,
}

/// All documents and their clusters.
pub struct Engine {
    method: Method,
    fingerprinters: Vec<Fingerprinter>,
    docs: DocTable,
    features: DocumentFeatures,
    nodes: NodeTable,
    by_vector: IdTable,
    keys: SharedKeys,
    fragments: Fragments,
    /// The clusters, if the method verifies them: else the fragments make them.
    verified: Option<Verified>,
    clusters: Clusters,
    /// Documents that the tables have and that were deleted, by key; also those that came again.
    gone: BTreeMap<KeyHash, String>,
    changes: VecDeque<NumberedChange>,
    /// The largest number of a change, and that after which all are kept. After a commit some
    /// numbers are of no change.
    changed: u64,
    kept_after: u64,
    records: u64,
}

/// What a batch does to documents and nodes, before the clusters follow.
#[derive(Default)]
struct Work {
    /// Nodes that are made, and nodes that lost a document.
    made: Vec<u32>,
    left: BTreeSet<u32>,
    /// Documents that come to a node; and those that come to a page, each with it.
    entering: Vec<u32>,
    entering_pages: Vec<(u32, u32)>,
    moved: Vec<Moved>,
    /// Documents that were not there before.
    new: BTreeSet<u32>,
}

impl Engine {
    /// An engine without documents, with this many workers, in one process.
    ///
    /// # Errors
    /// If the method knows documents by their places; or the workers cannot be started.
    pub fn new(method: &Method, workers: usize) -> Result<Engine> {
        Engine::with_processes(method, workers, &SharedProcesses::of(KeyProcesses::none()))
    }

    /// As [`Engine::new`], with other processes that have a part of the keys. An engine that had
    /// these before can say nothing more about keys.
    ///
    /// # Errors
    /// As [`Engine::new`], or if one of these is gone.
    pub(super) fn with_processes(method: &Method, workers: usize, others: &SharedProcesses) -> Result<Engine> {
        ensure!(
            method.documents != DocumentKey::Row,
            "this store knows documents by their places in files: `nigh live` needs ids or URLs, by which a document is replaced"
        );
        let fingerprinters = (0..workers).map(|_| Fingerprinter::of_method(method)).collect::<Result<_>>()?;
        Ok(Engine {
            method: method.clone(),
            fingerprinters,
            docs: DocTable::default(),
            features: DocumentFeatures::new(method.features, others),
            nodes: NodeTable::default(),
            by_vector: IdTable::default(),
            keys: SharedKeys::new((method.supershingles, method.agreements), method.features, others)?,
            fragments: Fragments::new(LabelWorkers::start(workers)?),
            verified: Pairs::of_method(method)?.map(Verified::new),
            clusters: Clusters::default(),
            gone: BTreeMap::new(),
            changes: VecDeque::new(),
            changed: 0,
            kept_after: 0,
            records: 0,
        })
    }

    /// What documents are known by.
    pub fn documents(&self) -> DocumentKey {
        self.method.documents
    }

    /// The parameters.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// The names of documents that the tables have and that were deleted, also if they came again.
    pub(super) fn gone(&self) -> &BTreeMap<KeyHash, String> {
        &self.gone
    }

    /// The numbers that were given.
    pub(super) fn given(&self) -> Given {
        Given { changes: self.changed, clusters: self.clusters.given() }
    }

    /// The numbers that were given, with room for the `rename`s of a commit: one for each cluster,
    /// and one more for two that exchange their ids.
    pub(super) fn given_with_renames(&self) -> Given {
        let clusters = self.clusters.len() as u64;
        let renames = clusters + clusters / 2;
        Given { changes: self.changed + renames, clusters: self.clusters.given() }
    }

    /// Gives no number again that was given by then. No change before is kept.
    pub(super) fn go_on_from(&mut self, given: Given) {
        self.changed = self.changed.max(given.changes);
        self.kept_after = self.changed;
        self.changes.clear();
        self.clusters.go_on_from(given.clusters);
    }

    /// Goes on with numbers that no change had, whichever were given: those of the next [`ERA`].
    /// Which changes there were is not known.
    pub(super) fn begin_era(&mut self) {
        let changes = (self.changed / ERA).saturating_add(1).saturating_mul(ERA);
        self.go_on_from(Given { changes, clusters: 0 });
    }

    /// Takes the changes of another engine, whose batches and clusters this one has, and goes on
    /// with the larger numbers of both.
    pub(super) fn take_changes(&mut self, other: &mut Engine) {
        self.changes = std::mem::take(&mut other.changes);
        (self.kept_after, self.records) = (other.kept_after, other.records);
        self.changed = self.changed.max(other.changed);
    }

    /// Goes on counting where another engine ends, whose documents this one has read from the
    /// tables. A cluster that has another id here is a change, `rename`; these can be applied one
    /// by one. Numbers up to those that were given to this engine are left out: a process that
    /// starts goes on from these.
    pub(super) fn continue_from(&mut self, other: &mut Engine) {
        let given = self.changed;
        self.take_changes(other);
        self.changed = other.changed;
        self.clusters.go_on_from(other.clusters.given());
        let mut renamed = Vec::new();
        for id in other.clusters.ids() {
            let sets = other.clusters.sets(id).unwrap_or_default().to_vec();
            let before = sets.iter().map(|set| other.sets().set(*set).docs()).sum();
            let first = sets.into_iter().map(|set| other.first(set)).min().filter(|first| *first != NONE);
            let key = first.map(|doc| other.docs.key(doc));
            let Some(doc) = key.and_then(|key| self.docs.find(key)) else { continue };
            let Some(now) = self.id_of_doc(doc).filter(|now| *now != id) else { continue };
            let size = self.sets().docs_of(self.label_of_doc(doc));
            renamed.push(ClusterChange {
                event: "rename",
                cluster: id,
                into: Some(now),
                before,
                after: size,
                documents: size,
            });
        }
        self.keep(self.clusters.one_by_one(renamed));
        self.changed = self.changed.max(given);
    }

    /// What is in memory.
    pub fn counts(&self) -> Counts {
        Counts {
            documents: self.docs.count(),
            nodes: self.nodes.count(),
            clusters: self.clusters.len() as u64,
            changes: self.changed,
            records: self.records,
        }
    }

    /// Notes where the texts of records are that were applied: their batch begins at this place of
    /// the journal.
    pub(super) fn note_texts(&mut self, records: &[Record], batch: u64) {
        for record in records {
            let (at, bytes) = if matches!(record.body, Some(LineContent::Page(_))) { record.line } else { (0, 0) };
            if let Some(doc) = self.docs.find(record.key)
                && let Some(doc) = self.docs.get_mut(doc)
            {
                doc.set_text(batch + at as u64, u32::try_from(bytes).unwrap_or_default());
            }
        }
    }

    /// The features of the pages of records, for [`Engine::apply_with`].
    pub(super) fn features_of(&mut self, records: &[Record]) -> Vec<Option<Features>> {
        features(&mut self.fingerprinters, records)
    }

    /// Applies a batch with these features, and returns an answer for each record, in their order,
    /// if they are wanted. `texts` has the texts of earlier batches and of the tables.
    ///
    /// # Errors
    /// If a worker has ended, or the tables cannot be read: then nothing more can be done with the
    /// engine.
    pub(super) fn apply_with(
        &mut self,
        records: &[Record],
        features: Vec<Option<Features>>,
        texts: &mut dyn Texts,
        wanted: Wanted,
    ) -> Result<Vec<Answer>> {
        let of_records = records.iter().map(|record| (record.key, record.name.as_str())).zip(features).collect();
        self.apply_features(of_records, records, texts, wanted)
    }

    /// Applies a batch of documents by their names, whose checksums and sketches are known; `None`
    /// deletes one. Their texts are not at hand.
    ///
    /// # Errors
    /// If a worker has ended: then nothing more can be done with the engine.
    pub fn apply_known(&mut self, documents: &[(String, Option<(u128, Sketch)>)]) -> Result<Vec<Answer>> {
        let known = documents.iter().map(|(name, page)| {
            let features = page.as_ref().map(|(checksum, sketch)| {
                let facts = PageFacts { sketch: sketch.clone(), ..PageFacts::default() };
                Features { checksum: *checksum, facts }
            });
            ((KeyHash::of(name), name.as_str()), features)
        });
        self.apply_features(known.collect(), &[], &mut NoTexts, Wanted::Answers)
    }

    /// As [`Engine::apply_with`]. `lines` has the texts of the records, or nothing.
    fn apply_features(
        &mut self,
        records: Vec<((KeyHash, &str), Option<Features>)>,
        lines: &[Record],
        texts: &mut dyn Texts,
        wanted: Wanted,
    ) -> Result<Vec<Answer>> {
        self.fragments.contract();
        if let Some(verified) = &mut self.verified {
            verified.begin();
        }
        let last: BTreeMap<KeyHash, usize> = records.iter().enumerate().map(|(at, ((key, _), _))| (*key, at)).collect();
        let mut work = Work::default();
        for (at, ((key, name), features)) in records.iter().enumerate() {
            if last[key] == at {
                let has_text = lines.get(at).is_some_and(|line| matches!(line.body, Some(LineContent::Page(_))));
                self.change((*key, name), features.as_ref(), has_text, &mut work);
            }
        }
        let left = std::mem::take(&mut work.left).into_iter();
        let removed: Vec<u32> = left.filter(|node| self.nodes.docs(*node).is_empty()).collect();
        let [without, with] = [&removed, &work.made].map(|nodes| self.with_keys(nodes));
        removed.iter().for_each(|node| self.drop_node(*node));
        self.features.send()?;
        let edges = self.keys.change(&without, &with)?;
        self.fragments.update(&mut self.keys, (&work.made, &removed), edges)?;
        self.nodes.reuse(removed);
        for doc in &work.entering {
            self.fragments.sets.enter(self.doc(*doc).node, *doc);
        }
        let nodes = &self.nodes;
        let changes = if let Some(verified) = &mut self.verified {
            let touched = verified.cut(&mut self.fragments.sets);
            work.entering_pages.iter().for_each(|(doc, page)| verified.enter(*doc, *page));
            let documents = &mut BatchTexts {
                docs: &self.docs,
                features: &mut self.features,
                lines,
                last: &last,
                fingerprinter: &mut self.fingerprinters[0],
                texts,
            };
            verified.join(touched, documents)?;
            verified.name_clusters(&mut self.clusters, &work.moved)
        } else {
            self.clusters
                .update(&mut self.fragments.sets, &work.moved, |sets, of| sets.first_of(of, |node| nodes.first(node)))
        };
        self.records += records.len() as u64;
        match wanted {
            Wanted::Answers => {}
            Wanted::Changes => {
                self.keep(changes);
                return Ok(Vec::new());
            }
            Wanted::Nothing => return Ok(Vec::new()),
        }
        let names: Vec<(KeyHash, &str)> = records.iter().map(|(of, _)| *of).collect();
        let mut answers = self.answers_of(&names)?;
        for ((key, _), answer) in names.iter().zip(&mut answers) {
            answer.new = self.docs.find(*key).is_some_and(|doc| work.new.contains(&doc));
            let is_of = |change: &&ClusterChange| [Some(change.cluster), change.into].contains(&answer.cluster);
            if answer.cluster.is_some() {
                answer.changes = changes.iter().filter(is_of).take(ANSWERED).cloned().collect();
            }
        }
        self.keep(changes);
        Ok(answers)
    }

    /// Changes one document. `has_text` says whether its text is in the record.
    fn change(&mut self, (key, name): (KeyHash, &str), features: Option<&Features>, has_text: bool, work: &mut Work) {
        let known = self.docs.find(key);
        let Some(Features { checksum, facts }) = features else {
            if let Some(doc) = known {
                let from = self.id_of_doc(doc).unwrap_or(NO_ID);
                work.moved.push(Moved { from, to: None });
                self.leave_page(doc);
                self.leave(doc, work);
                if self.doc(doc).number().is_some() {
                    self.gone.insert(key, self.docs.name(doc).to_owned());
                }
                self.docs.remove(doc);
            }
            return;
        };
        let (node, is_made) = self.node_of(*checksum, &facts.sketch.supershingles);
        if is_made {
            work.made.push(node);
        }
        let doc = known.unwrap_or_else(|| {
            let doc = self.docs.add(name, None);
            work.new.insert(doc);
            doc
        });
        let from = known.and_then(|doc| self.id_of_doc(doc)).unwrap_or(NO_ID);
        let mut moved = (known.map(|doc| self.doc(doc).node) != Some(node)).then_some(node);
        if let Some(verified) = &mut self.verified {
            // Equal texts are one page. If a text comes for ready features, it counts, too.
            let before = known.and_then(|doc| self.docs.get(doc));
            let before = before.map(|doc| verified.page_of(doc.node, doc.checksum()));
            let page = verified.put(doc, node, *checksum, has_text);
            moved = (before != Some(page)).then_some(page);
            if moved.is_some() {
                before.into_iter().for_each(|before| verified.take(doc, before));
                work.entering_pages.push((doc, page));
            }
        }
        if known.is_some() && moved.is_some() {
            work.moved.push(Moved { from, to: moved });
        }
        match known {
            Some(doc) if self.doc(doc).node == node => self.nodes.take(&mut self.docs, doc),
            Some(doc) => {
                self.leave(doc, work);
                work.entering.push(doc);
            }
            None => work.entering.push(doc),
        }
        self.set_page(doc, *checksum, &facts.sketch.features);
        self.nodes.put(&mut self.docs, doc, node);
    }

    /// Takes a document from its page, if there are pages.
    fn leave_page(&mut self, doc: u32) {
        let (node, checksum) = (self.doc(doc).node, self.doc(doc).checksum());
        if let Some(verified) = &mut self.verified {
            verified.take(doc, verified.page_of(node, checksum));
        }
    }

    fn keep(&mut self, changes: Vec<ClusterChange>) {
        for change in changes {
            self.changed += 1;
            self.changes.push_back(NumberedChange { number: self.changed, change });
        }
        let surplus = self.changes.len().saturating_sub(KEPT_CHANGES);
        self.changes.drain(..surplus).for_each(|change| self.kept_after = change.number);
    }

    fn doc(&self, doc: u32) -> &Doc {
        self.docs.get(doc).expect("a document that is there")
    }

    /// The sets that make clusters: parts of verified clusters, or fragments.
    fn sets(&self) -> &Sets {
        self.verified.as_ref().map_or(&self.fragments.sets, |verified| &verified.parts)
    }

    /// The member of these that a document is of: its page, or its node.
    fn member_of(&self, doc: u32) -> u32 {
        let of = self.doc(doc);
        self.verified.as_ref().map_or(of.node, |verified| verified.page_of(of.node, of.checksum()))
    }

    fn label_of_doc(&self, doc: u32) -> u32 {
        self.sets().label_of(self.member_of(doc))
    }

    fn id_of_doc(&self, doc: u32) -> Option<i64> {
        let sets = self.sets();
        Some(sets.set(sets.of(self.member_of(doc))).id).filter(|id| *id != NO_ID)
    }

    /// The smallest document of a set.
    fn first(&mut self, set: u32) -> u32 {
        let nodes = &self.nodes;
        match &mut self.verified {
            Some(verified) => verified.first(set),
            None => self.fragments.sets.first_of(set, |node| nodes.first(node)),
        }
    }

    /// Whether a document is there.
    pub(super) fn has(&self, key: KeyHash) -> bool {
        self.docs.find(key).is_some()
    }

    /// Notes the checksum and the features of a document, which is at no node.
    fn set_page(&mut self, doc: u32, checksum: u128, features: &[FeatureBits]) {
        if let Some(page) = self.docs.get_mut(doc) {
            page.set_checksum(checksum);
        }
        self.features.set(doc, features);
    }

    /// The node of a page with these supershingles, and whether it is made now.
    fn node_of(&mut self, checksum: u128, vector: &[u64]) -> (u32, bool) {
        let known = if vector.is_empty() {
            self.nodes.without_words(checksum)
        } else {
            self.by_vector.find(fold(vector), |node| self.keys.vector(node) == vector)
        };
        if let Some(node) = known {
            return (node, false);
        }
        let node = self.nodes.make(vector.is_empty().then_some(checksum));
        if !vector.is_empty() {
            self.keys.set_vector(node, vector);
            let keys = &self.keys;
            self.by_vector.insert(fold(vector), node, |node| fold(keys.vector(node)));
        }
        (node, true)
    }

    fn drop_node(&mut self, node: u32) {
        if self.nodes.has_vector(node) {
            let keys = &self.keys;
            self.by_vector.remove(fold(keys.vector(node)), node, |node| fold(keys.vector(node)));
        }
        self.nodes.forget(node);
    }

    /// Those of some nodes that have keys.
    fn with_keys(&self, nodes: &[u32]) -> Vec<u32> {
        nodes.iter().copied().filter(|node| self.nodes.has_vector(*node)).collect()
    }

    /// Takes a document from its node, which is in a fragment.
    fn leave(&mut self, doc: u32, work: &mut Work) {
        let node = self.doc(doc).node;
        self.nodes.take(&mut self.docs, doc);
        self.fragments.sets.leave(node, doc);
        work.left.insert(node);
    }
}

#[cfg(test)]
mod tests;
