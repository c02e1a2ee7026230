//! What an engine answers: documents, clusters, what is most like a text, and changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Engine;
use super::clusters::ClusterChange;
use super::parts::ComparedDocs;
use super::tables::doc_table::TextPlace;
use super::texts::{Texts, shingles_of};
use crate::live::batch::features_of;
use crate::live::refusal::Refusal;
use crate::readers::Body;
use crate::records::{DocumentKey, KeyHash, Level};

/// The nearest documents that an answer has.
const NEAREST: usize = 3;
/// The nodes of each key that are looked at for them, the documents of each node, and the fewest of
/// all that are compared.
const NODES: usize = 8;
const OF_NODE: usize = 4;
const COMPARED: usize = 64;
/// The most bytes of the names of near documents in the answers of a batch, or of those in one
/// answer.
const NAMES: usize = 16 << 20;
/// The documents whose nearest ones are looked for at once.
const ASKED: usize = 256;

/// What is known of a record after its batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The id of the document, in a store of ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its canonical URL, in a store of URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its number in the tables; null before it is committed.
    pub doc: Option<i64>,
    /// Whether it was not there before the batch.
    pub new: bool,
    /// Whether it is not there now: it was deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The cluster; null for a document without a near-duplicate. A negative id is that of a
    /// cluster which no table has yet.
    pub cluster: Option<i64>,
    /// Documents of the cluster.
    pub size: u64,
    /// The strictest level at which another document is like it.
    pub level: Option<Level>,
    /// The name of the cluster's first document.
    pub canonical: Option<String>,
    /// Whether the estimate decided about pages that this one may be in a cluster with, though
    /// texts should: a text is not at hand, or there are very many pages.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The most similar ones of the documents that share a key with it, as far as these were looked
    /// at.
    pub nearest: Vec<Near>,
    /// What the batch did to its cluster.
    pub changes: Vec<ClusterChange>,
}

/// A document that is like another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Near {
    /// Its id or URL.
    pub name: String,
    /// The share of equal features: an estimate of the similarity.
    pub similarity: f64,
    /// Its cluster.
    pub cluster: Option<i64>,
    /// The exact similarity, if it was asked for: the share of shingles in both texts. None of a
    /// document whose text is not at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<Option<f64>>,
}

/// A cluster with some of its documents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterAnswer {
    /// The id.
    pub cluster: i64,
    /// Documents.
    pub size: u64,
    /// The name of the first document.
    pub canonical: String,
    /// The names of documents, in order.
    pub documents: Vec<String>,
    /// As [`Answer::estimated`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// A change with its number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberedChange {
    /// The number, from 1.
    pub number: u64,
    /// The change.
    #[serde(flatten)]
    pub change: ClusterChange,
}

/// What a process has in memory, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Documents.
    pub documents: u64,
    /// Distinct vectors.
    pub nodes: u64,
    /// Clusters of two documents or more.
    pub clusters: u64,
    /// Changes of clusters since the start.
    pub changes: u64,
    /// Records that were taken since the start.
    pub records: u64,
}

impl Engine {
    /// What is known of a document.
    ///
    /// # Errors
    /// If it is not there, or a process is gone that has a part of the keys.
    pub fn document(&mut self, name: &str) -> Result<Answer, Refusal> {
        let key = self.key_of(name)?;
        let missing = || Refusal::missing(format!("there is no document {name}"));
        self.docs.find(key).ok_or_else(missing)?;
        self.answers_of(&[(key, name)]).map_err(unable)?.pop().ok_or_else(missing)
    }

    /// A cluster with at most `most` of its documents.
    ///
    /// # Errors
    /// If it is not there.
    pub fn cluster(&mut self, id: i64, most: usize) -> Result<ClusterAnswer, Refusal> {
        let sets = self.clusters.sets(id).map(<[u32]>::to_vec);
        let sets = sets.ok_or_else(|| Refusal::missing(format!("there is no cluster {id}")))?;
        let members = sets.iter().flat_map(|set| self.sets().members(*set));
        let mut docs: Vec<u32> = match &self.verified {
            Some(verified) => members.flat_map(|page| &verified.page(*page).docs).copied().collect(),
            None => members.flat_map(|node| self.nodes.docs(*node)).copied().collect(),
        };
        docs.sort_unstable();
        let name = |doc: &u32| self.docs.name(*doc).to_owned();
        let canonical = docs.first().map(name).unwrap_or_default();
        Ok(ClusterAnswer {
            cluster: id,
            size: docs.len() as u64,
            canonical,
            documents: docs.iter().take(most).map(name).take_while(fits(&mut { NAMES })).collect(),
            estimated: docs.first().is_some_and(|doc| self.is_estimated(*doc)),
        })
    }

    /// The documents that are most like a page that is not there.
    ///
    /// # Errors
    /// If it has no word, or a process is gone that has a part of the keys.
    pub fn similar(&mut self, body: &Body, most: usize) -> Result<Vec<Near>, Refusal> {
        let features = self.fingerprinters.first_mut().and_then(|fingerprinter| features_of(fingerprinter, body));
        let sketch = features.map(|features| features.facts.sketch).unwrap_or_default();
        if sketch.supershingles.is_empty() {
            return Err(Refusal::bad("the text has no word"));
        }
        let nodes = self.keys.sharing(&sketch.supershingles, NODES).map_err(unable)?.concat();
        let compared = [ComparedDocs { features: sketch.features, docs: self.docs_near(nodes, None, most) }];
        let equal = self.features.equal(&compared).map_err(unable)?;
        Ok(self.nearest(&compared[0].docs, &equal[0], most, &mut { NAMES }))
    }

    /// The distinct shingles of a page, ascending, by which similarities are exact.
    pub(in crate::live) fn shingles(&mut self, body: &Body) -> Vec<u64> {
        shingles_of(&mut self.fingerprinters[0], body)
    }

    /// Those of documents, by their names, as far as their texts are at hand.
    pub(in crate::live) fn shingles_of_documents<'a>(
        &mut self,
        names: impl Iterator<Item = &'a str>,
        texts: &mut dyn Texts,
    ) -> anyhow::Result<BTreeMap<String, Vec<u64>>> {
        let place = |name: &'a str| Some((name, self.doc(self.docs.find(self.key_of(name).ok()?)?).text()?));
        let places: Vec<(&str, TextPlace)> = names.filter_map(place).collect();
        let wanted: Vec<TextPlace> = places.iter().map(|(_, place)| *place).collect();
        let found = texts.shingles(&wanted, &mut self.fingerprinters[0])?;
        let found = places.into_iter().zip(found);
        Ok(found.filter_map(|((name, _), shingles)| Some((name.to_owned(), shingles?))).collect())
    }

    /// Whether the tables have a document.
    pub(in crate::live) fn is_of_tables(&self, name: &str) -> bool {
        let found = self.key_of(name).ok().and_then(|key| self.docs.find(key));
        found.is_some_and(|doc| self.doc(doc).number().is_some())
    }

    /// The changes after the one with this number, at most `most`.
    ///
    /// # Errors
    /// If they are not kept any more.
    pub fn changes_since(&self, since: u64, most: usize) -> Result<Vec<NumberedChange>, Refusal> {
        if since > self.changed {
            return Err(Refusal {
                status: 410,
                text: format!("the last change has number {}: read the clusters again", self.changed),
            });
        }
        if since < self.kept_after {
            let first = self.kept_after + 1;
            return Err(Refusal {
                status: 410,
                text: format!("changes before number {first} are not kept: read the clusters again"),
            });
        }
        let skipped = self.changes.partition_point(|change| change.number <= since);
        Ok(self.changes.iter().skip(skipped).take(most).cloned().collect())
    }

    fn key_of(&self, name: &str) -> Result<KeyHash, Refusal> {
        match self.method.documents {
            DocumentKey::Url => {
                let url = crate::text::canonical(name);
                let url = url.ok_or_else(|| Refusal::bad(format!("{name} is not an http or https address")))?;
                Ok(KeyHash::of(url.as_str()))
            }
            _ => Ok(KeyHash::of(name)),
        }
    }

    /// What is known of the documents of some keys, or of the names if they are not there.
    ///
    /// # Errors
    /// If a process is gone that has a part of the keys.
    pub(super) fn answers_of(&mut self, names: &[(KeyHash, &str)]) -> anyhow::Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(names.len());
        let mut left = NAMES;
        for names in names.chunks(ASKED) {
            // The documents that have keys, by the places of their names.
            let with_keys: Vec<(usize, u32)> = (0..names.len())
                .filter_map(|at| Some((at, self.docs.find(names[at].0)?)))
                .filter(|(_, doc)| self.nodes.has_vector(self.doc(*doc).node))
                .collect();
            let docs: Vec<u32> = with_keys.iter().map(|(_, doc)| *doc).collect();
            let vectors =
                docs.iter().flat_map(|doc| self.keys.vector(self.doc(*doc).node)).copied().collect::<Vec<_>>();
            let sharing = self.keys.sharing(&vectors, NODES)?;
            self.features.fetch(&docs)?;
            let compared = docs.iter().zip(sharing).map(|(doc, nodes)| ComparedDocs {
                features: self.features.of(*doc).to_vec(),
                docs: self.docs_near(nodes, Some(*doc), NEAREST),
            });
            let compared: Vec<ComparedDocs> = compared.collect();
            let equal = self.features.equal(&compared)?;
            let mut nearest: Vec<Vec<Near>> = names.iter().map(|_| Vec::new()).collect();
            for ((at, _), (compared, equal)) in with_keys.iter().zip(compared.iter().zip(&equal)) {
                nearest[*at] = self.nearest(&compared.docs, equal, NEAREST, &mut left);
            }
            for ((key, name), nearest) in names.iter().zip(nearest) {
                answers.push(self.answer_of(*key, name, nearest));
            }
        }
        Ok(answers)
    }

    /// What is known of the document of a key, or of the name if it is not there, with the
    /// documents that are `nearest`.
    fn answer_of(&mut self, key: KeyHash, name: &str, nearest: Vec<Near>) -> Answer {
        let is_id = self.method.documents != DocumentKey::Url;
        let found = self.docs.find(key);
        let name = found.map_or_else(|| name.to_owned(), |doc| self.docs.name(doc).to_owned());
        let mut answer = Answer {
            id: is_id.then(|| name.clone()),
            url: (!is_id).then_some(name),
            doc: None,
            new: false,
            deleted: found.is_none(),
            cluster: None,
            size: 0,
            level: None,
            canonical: None,
            estimated: false,
            nearest,
            changes: Vec::new(),
        };
        let Some(doc) = found else { return answer };
        let (node, checksum) = (self.doc(doc).node, self.doc(doc).checksum());
        let label = self.label_of_doc(doc);
        answer.doc = self.doc(doc).number();
        answer.cluster = self.id_of_doc(doc);
        answer.size = self.sets().docs_of(label);
        answer.level = self.level(node, checksum, answer.size);
        answer.estimated = self.is_estimated(doc);
        let canonical = self.sets().class(label).into_iter().map(|set| self.first(set)).min();
        answer.canonical = canonical.map(|doc| self.docs.name(doc).to_owned());
        answer
    }

    fn is_estimated(&self, doc: u32) -> bool {
        self.verified.as_ref().is_some_and(|verified| verified.is_estimated(self.member_of(doc)))
    }

    fn level(&self, node: u32, checksum: u128, size: u64) -> Option<Level> {
        let same = self.nodes.copies(node, checksum, &self.docs);
        // Of one vector, and in one cluster.
        let identical = match &self.verified {
            Some(verified) => {
                let parts = &verified.parts;
                let label = parts.label_of(verified.page_of(node, checksum));
                let pages = verified.pages_of(node).filter(|page| parts.label_of(*page) == label);
                pages.map(|page| parts.weight(page) as usize).sum()
            }
            None => self.nodes.docs(node).len(),
        };
        match (same, identical, size) {
            (2.., ..) => Some(Level::Exact),
            (_, 2.., _) => Some(Level::Identical),
            (.., 2..) => Some(Level::Similar),
            _ => None,
        }
    }

    /// The documents that are compared with one, or with a page that is not there, of some nodes
    /// that share a key with it.
    fn docs_near(&self, sharing: Vec<u32>, own: Option<u32>, most: usize) -> Vec<u32> {
        let own_node = own.map(|own| self.doc(own).node);
        let nodes: BTreeSet<u32> = sharing.into_iter().collect();
        let others = nodes.into_iter().filter(|node| own_node != Some(*node));
        let of_node = |node: u32| self.nodes.docs(node).iter().take(OF_NODE.max(most + 1));
        let docs = own_node.into_iter().chain(others).flat_map(of_node).filter(|doc| own != Some(**doc));
        docs.copied().take(COMPARED.max(4 * most)).collect()
    }

    /// The most similar ones of some documents, of which so many features each are equal, as long
    /// as their names have no more bytes than are `left`.
    fn nearest(&self, docs: &[u32], equal: &[usize], most: usize, left: &mut usize) -> Vec<Near> {
        let mut ranked: Vec<(Reverse<usize>, u32)> =
            equal.iter().copied().map(Reverse).zip(docs.iter().copied()).collect();
        ranked.sort_unstable();
        ranked.truncate(most);
        let near = |(Reverse(equal), doc): (Reverse<usize>, u32)| Near {
            name: self.docs.name(doc).to_owned(),
            similarity: equal as f64 / self.method.features as f64,
            cluster: self.id_of_doc(doc),
            exact: None,
        };
        let mut fits = fits(left);
        ranked.into_iter().map(near).take_while(|near| fits(&near.name)).collect()
    }
}

/// Whether a name has no more bytes than are left; it is then taken from these.
fn fits(left: &mut usize) -> impl FnMut(&String) -> bool {
    |name| {
        let rest = left.checked_sub(name.len());
        *left = rest.unwrap_or_default();
        rest.is_some()
    }
}

/// What cannot be answered now.
fn unable(error: anyhow::Error) -> Refusal {
    Refusal::unable(format!("{error:#}"))
}
