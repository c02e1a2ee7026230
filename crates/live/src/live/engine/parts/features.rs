//! The features of documents, which several processes share by the numbers of documents.

use anyhow::Result;

use super::messages::{MOST_BYTES, PartReply, Request};
use super::processes::{SharedProcesses, another_reply};
use crate::features::equal_features;
use crate::records::FeatureBits;
use crate::structures::ByKey;

/// The most documents of a request, if they have few features.
const AT_ONCE: usize = 8192;
/// The most bytes of a feature in a message.
const BYTES_OF_FEATURE: usize = 3;

/// The features of the documents of one of `count` parts: those whose numbers are the same modulo
/// `count`.
pub(super) struct PartFeatures {
    count: usize,
    width: usize,
    /// Those of document `doc` begin at `doc / count * width`.
    bits: Vec<FeatureBits>,
}

impl PartFeatures {
    /// A part without documents, each of which has `width` features.
    pub(super) fn new(count: usize, width: usize) -> PartFeatures {
        PartFeatures { count, width, bits: Vec::new() }
    }

    /// Features of a document.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Makes room for the first documents of all parts together, so many.
    pub(super) fn reserve(&mut self, documents: usize) {
        self.bits.reserve(documents.div_ceil(self.count) * self.width);
    }

    /// Notes the features of a document.
    pub(super) fn set(&mut self, doc: u32, features: &[FeatureBits]) {
        let at = doc as usize / self.count * self.width;
        if self.bits.len() < at + self.width {
            self.bits.resize(at + self.width, 0);
        }
        self.bits[at..at + features.len()].copy_from_slice(features);
    }

    /// The features of a document; none if they were not noted.
    pub(super) fn of(&self, doc: u32) -> &[FeatureBits] {
        let at = doc as usize / self.count * self.width;
        self.bits.get(at..at + self.width).unwrap_or_default()
    }

    /// Adds the features of a document, zeros if they were not noted.
    pub(super) fn add_to(&self, doc: u32, features: &mut Vec<FeatureBits>) {
        let end = features.len() + self.width;
        features.extend_from_slice(self.of(doc));
        features.resize(end, 0);
    }
}

/// Features, and the documents that they are compared with.
pub(in crate::live::engine) struct ComparedDocs {
    pub(in crate::live::engine) features: Vec<FeatureBits>,
    pub(in crate::live::engine) docs: Vec<u32>,
}

/// The features of all documents.
pub(in crate::live::engine) struct DocumentFeatures {
    own: PartFeatures,
    others: SharedProcesses,
    /// The most documents of a request.
    at_once: usize,
    /// By process: documents and features that it does not have yet.
    waiting: Vec<(Vec<u32>, Vec<FeatureBits>)>,
    /// Those of documents of other processes that were fetched.
    fetched: ByKey<u64, Box<[FeatureBits]>>,
}

impl DocumentFeatures {
    /// No features, of which a document has `width`. The other processes have begun with none.
    pub(in crate::live::engine) fn new(width: usize, others: &SharedProcesses) -> DocumentFeatures {
        let count = others.lock().count() + 1;
        DocumentFeatures {
            own: PartFeatures::new(count, width),
            others: others.clone(),
            at_once: (MOST_BYTES / 2 / BYTES_OF_FEATURE / width.max(1)).clamp(1, AT_ONCE),
            waiting: vec![Default::default(); count],
            fetched: ByKey::default(),
        }
    }

    /// The process that has the features of a document.
    fn process(&self, doc: u32) -> usize {
        doc as usize % self.own.count
    }

    /// Makes room for the first documents, so many.
    pub(in crate::live::engine) fn reserve(&mut self, documents: usize) {
        self.own.reserve(documents);
    }

    /// Notes the features of a document. Those of other processes are sent by
    /// [`DocumentFeatures::send`].
    pub(in crate::live::engine) fn set(&mut self, doc: u32, features: &[FeatureBits]) {
        match self.process(doc) {
            0 => self.own.set(doc, features),
            // A document without words is compared with none.
            _ if features.is_empty() => {}
            process => {
                let (docs, bits) = &mut self.waiting[process];
                docs.push(doc);
                bits.extend_from_slice(features);
            }
        }
    }

    /// Whether so many documents wait that they are to be sent before others come.
    pub(in crate::live::engine) fn is_full(&self) -> bool {
        self.waiting.iter().any(|(docs, _)| docs.len() >= self.at_once)
    }

    /// Sends the features that other processes do not have yet.
    ///
    /// # Errors
    /// If one of these is gone.
    pub(in crate::live::engine) fn send(&mut self) -> Result<()> {
        let (width, at_once) = (self.own.width, self.at_once);
        while self.waiting.iter().any(|(docs, _)| !docs.is_empty()) {
            let some: Vec<(Vec<u32>, Vec<FeatureBits>)> = self
                .waiting
                .iter_mut()
                .map(|(docs, bits)| {
                    let rest = docs.len().min(at_once);
                    let (later, later_bits) = (docs.split_off(rest), bits.split_off(rest * width));
                    (std::mem::replace(docs, later), std::mem::replace(bits, later_bits))
                })
                .collect();
            let request = |process: usize| {
                let (docs, features) = some[process].clone();
                Request::Note { docs, features }
            };
            self.others.wanted(self.ask(request)?, |_, reply| (reply == PartReply::Ready).then_some(()))?;
        }
        Ok(())
    }

    /// Makes the features of some documents ready, in the place of others of other processes.
    ///
    /// # Errors
    /// If one of these is gone.
    pub(in crate::live::engine) fn fetch(&mut self, docs: &[u32]) -> Result<()> {
        self.fetched.clear();
        let width = self.own.width;
        for docs in docs.chunks(self.at_once) {
            let of_process = |process: usize| -> Vec<u32> {
                docs.iter().copied().filter(|doc| self.process(*doc) == process).collect()
            };
            let asked: Vec<Vec<u32>> = (0..self.own.count).map(of_process).collect();
            let replies = self.ask(|process| Request::Features { docs: asked[process].clone() })?;
            let bits = self.others.wanted(replies, |number, reply| match reply {
                PartReply::Features(bits) if bits.len() == asked[number].len() * width => Some(bits),
                _ => None,
            })?;
            for (docs, bits) in asked[1..].iter().zip(bits) {
                let fetched = docs.iter().zip(bits.chunks_exact(width));
                self.fetched.extend(fetched.map(|(doc, bits)| (u64::from(*doc), bits.into())));
            }
        }
        Ok(())
    }

    /// The features of a document of this process, or one that was fetched.
    pub(in crate::live::engine) fn of(&self, doc: u32) -> &[FeatureBits] {
        match self.process(doc) {
            0 => self.own.of(doc),
            _ => self.fetched.get(&u64::from(doc)).expect("features that were fetched"),
        }
    }

    /// How many features are equal, for each document of each.
    ///
    /// # Errors
    /// If another process is gone.
    pub(in crate::live::engine) fn equal(&mut self, compared: &[ComparedDocs]) -> Result<Vec<Vec<usize>>> {
        let replies = self.ask(|process| {
            let (mut lengths, mut features, mut docs) = (Vec::new(), Vec::new(), Vec::new());
            for of in compared {
                let before = docs.len();
                docs.extend(of.docs.iter().copied().filter(|doc| self.process(*doc) == process));
                lengths.push((docs.len() - before) as u32);
                features.extend_from_slice(&of.features);
            }
            Request::Compare { features, lengths, docs }
        })?;
        let mut numbers: Vec<std::vec::IntoIter<u16>> = vec![Vec::new().into_iter()];
        numbers.extend(self.others.wanted(replies, |_, reply| match reply {
            PartReply::Equal(equal) => Some(equal.into_iter()),
            _ => None,
        })?);
        let mut all = Vec::with_capacity(compared.len());
        for of in compared {
            let mut equal = Vec::with_capacity(of.docs.len());
            for doc in &of.docs {
                equal.push(match self.process(*doc) {
                    0 => equal_features(self.own.of(*doc), &of.features),
                    process => match numbers[process].next() {
                        Some(equal) => usize::from(equal),
                        None => return Err(self.others.lock().fail(process, another_reply())),
                    },
                });
            }
            all.push(equal);
        }
        Ok(all)
    }

    /// Asks the other processes.
    fn ask(&self, request: impl Fn(usize) -> Request) -> Result<Vec<PartReply>> {
        if self.own.count == 1 {
            return Ok(Vec::new());
        }
        let mut others = self.others.lock();
        others.send(request)?;
        others.receive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KeyProcesses, SharedKeys};
    use super::*;
    use crate::records::mix;

    #[test]
    fn several_processes_compare_as_one() {
        let mut of_counts = [1, 2, 3].map(|processes| {
            let others = SharedProcesses::of(KeyProcesses::threads(processes - 1));
            let keys = SharedKeys::new((6, 2), 4, &others).unwrap();
            (DocumentFeatures::new(4, &others), keys)
        });
        let features = |doc: u32| (0..4).map(move |at| (mix(u64::from(doc) << 8 | at) % 3) as FeatureBits);
        let results = of_counts.each_mut().map(|(all, _)| {
            for round in 0..2 {
                for doc in 0..40_000 {
                    let of: Vec<FeatureBits> = features(doc + round).collect();
                    all.set(doc, if doc % 7 == 3 { &[] } else { &of });
                }
                assert_eq!(all.is_full(), all.own.count > 1);
                all.send().unwrap();
            }
            let docs: Vec<u32> = (0..40_000).filter(|doc| doc % 7 != 3).collect();
            all.fetch(&docs).unwrap();
            docs.iter().for_each(|doc| assert!(all.of(*doc).iter().copied().eq(features(doc + 1))));
            let compared = |of: u32| ComparedDocs {
                features: features(of).collect(),
                docs: (0..of % 9).map(|at| (mix(u64::from(at + of)) % 39_000) as u32 / 7 * 7).collect(),
            };
            let compared: Vec<ComparedDocs> = (0..60).map(compared).collect();
            let equal = all.equal(&compared).unwrap();
            for (of, equal) in compared.iter().zip(&equal) {
                let one = |doc: &u32| equal_features(&of.features, &features(doc + 1).collect::<Vec<_>>());
                assert_eq!(*equal, of.docs.iter().map(one).collect::<Vec<_>>());
            }
            equal
        });
        assert!(results.iter().all(|result| *result == results[0]));
    }
}
