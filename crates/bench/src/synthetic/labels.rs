//! The labels of made-up vectors by construction: a second way to the result of the cluster stage,
//! for up to 4 billion documents.
//!
//! The members of a planned cluster are one cluster, and most other documents are alone: a borrowed
//! supershingle agrees with its lender in one, and two are needed. Documents agree in two, and one
//! of them is in no planned cluster, only if
//!
//! ```text
//! a document borrows two from members of one cluster, and a member has both             `joined`
//! two documents borrow the same two                                                     `twins`
//! a document borrows from a lender outside clusters that itself borrows from another    `lenders`
//! ```
//!
//! Each of these is looked for. The documents are passed over three times, and nothing but the
//! first document of each cluster, and the documents that borrow two, is in memory.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, ensure};

use super::vectors::{MadeVectors, WIDTH};
use crate::records::mix;
use crate::single_thread;

/// Documents that a thread takes at a time.
const STEP: u64 = 1 << 20;

/// Two supershingles with their columns, the lower column first.
type Two = [(usize, u64); 2];

/// The checksum of the labels of these vectors, as [`single_thread::checksum`], if documents that
/// agree in two supershingles are linked.
///
/// # Errors
/// If there are more documents than 32 bits can number.
pub fn label_checksum(vectors: &MadeVectors, threads: usize) -> Result<u64> {
    ensure!(u32::try_from(vectors.documents()).is_ok(), "{} documents are too many", vectors.documents());
    let joined = LinkedPlaces::of(links(vectors, threads));
    let unknown = |count: u64| (0..count).map(|_| AtomicU32::new(u32::MAX)).collect::<Vec<AtomicU32>>();
    let (firsts, firsts_of_joined) = (unknown(vectors.clusters()), unknown(joined.len()));
    in_steps(0..vectors.documents(), threads, |documents| {
        for document in documents {
            let (place, _) = vectors.place_of(document);
            if let Some(first) = firsts.get(place as usize) {
                first.fetch_min(document as u32, Ordering::Relaxed);
            }
            if let Some(group) = joined.group(place) {
                firsts_of_joined[group].fetch_min(document as u32, Ordering::Relaxed);
            }
        }
    });
    let sum = Mutex::new(0u64);
    in_steps(0..vectors.documents(), threads, |documents| {
        let labels = documents.map(|document| {
            let (place, _) = vectors.place_of(document);
            let first = joined.group(place).map(|group| &firsts_of_joined[group]).or(firsts.get(place as usize));
            (document, first.map_or(document, |first| first.load(Ordering::Relaxed).into()))
        });
        let of_step = single_thread::checksum(labels);
        let mut sum = sum.lock().expect("no thread panics with the sum");
        *sum = sum.wrapping_add(of_step);
    });
    Ok(sum.into_inner().expect("no thread panics with the sum"))
}

/// Calls `each` with parts of a range, on some threads.
fn in_steps(range: Range<u64>, threads: usize, each: impl Fn(Range<u64>) + Sync) {
    let steps: Mutex<_> = Mutex::new(range.clone().step_by(STEP as usize));
    let next = || steps.lock().expect("no thread panics with the steps").next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(start) = next() {
                    each(start..(start + STEP).min(range.end));
                }
            });
        }
    });
}

/// The places, other than those of one planned cluster, that are linked: pairs of places.
fn links(vectors: &MadeVectors, threads: usize) -> Vec<(u64, u64)> {
    let found = Mutex::new(LooseDocuments::default());
    in_steps(vectors.alone(), threads, |slots| {
        let of_step = LooseDocuments::of(vectors, slots);
        found.lock().expect("no thread panics with what is found").add(of_step);
    });
    let LooseDocuments { mut links, mut twins, joined } =
        found.into_inner().expect("no thread panics with what is found");
    twins.sort_unstable();
    let agree = |a: u64, b: u64| {
        let agreements = vectors.vector_at(a).into_iter().zip(vectors.vector_at(b)).filter(|(a, b)| a == b);
        agreements.count() >= 2
    };
    for same in twins.chunk_by(|a, b| a.0 == b.0) {
        let [(_, first), others @ ..] = same else { continue };
        let others = others.iter().filter(|(_, slot)| agree(*first, *slot));
        links.extend(others.map(|(_, slot)| (vectors.place(*first).0, vectors.place(*slot).0)));
    }
    for (cluster, borrowers) in joined {
        let wanted: HashSet<Two> = borrowers.iter().map(|(_, two)| *two).collect();
        let mut has = HashSet::new();
        for slot in vectors.slots_of(cluster) {
            let vector = vectors.vector_at(slot);
            let pairs = (0..WIDTH).flat_map(|a| (a + 1..WIDTH).map(move |b| (a, b)));
            let twos = pairs.map(|(a, b)| [(a, vector[a]), (b, vector[b])]);
            has.extend(twos.filter(|two| wanted.contains(two)));
        }
        let joined = borrowers.iter().filter(|(_, two)| has.contains(two));
        links.extend(joined.map(|(slot, _)| (vectors.place(*slot).0, cluster)));
    }
    links
}

/// What is found of documents outside clusters.
#[derive(Default)]
struct LooseDocuments {
    /// Places that are linked.
    links: Vec<(u64, u64)>,
    /// A hash of the two supershingles that a document borrows, and its slot.
    twins: Vec<(u64, u64)>,
    /// By cluster, the slots that borrow two supershingles of it.
    joined: HashMap<u64, Vec<(u64, Two)>>,
}

impl LooseDocuments {
    fn of(vectors: &MadeVectors, slots: Range<u64>) -> LooseDocuments {
        let mut found = LooseDocuments::default();
        for slot in slots {
            let borrowed: Vec<(usize, u64)> = vectors.borrowed(slot).collect();
            for (_, lender) in borrowed.iter().filter(|(_, lender)| vectors.alone().contains(lender)) {
                // A lender that borrows nothing shares only what it lends: one supershingle.
                if *lender != slot && vectors.borrowed(*lender).next().is_some() {
                    let (own, other) = (vectors.vector_at(slot), vectors.vector_at(*lender));
                    if own.iter().zip(other).filter(|(a, b)| **a == *b).count() >= 2 {
                        found.links.push((vectors.place(slot).0, vectors.place(*lender).0));
                    }
                }
            }
            let [(a, first), (b, second)] = borrowed[..] else { continue };
            let vector = vectors.vector_at(slot);
            let two: Two = [(a.min(b), vector[a.min(b)]), (a.max(b), vector[a.max(b)])];
            let hash = two.iter().fold(0, |hash, (column, value)| mix(hash ^ *value).wrapping_add(*column as u64));
            found.twins.push((hash, slot));
            let (cluster, other) = (vectors.place(first).0, vectors.place(second).0);
            if cluster == other && cluster < vectors.clusters() {
                found.joined.entry(cluster).or_default().push((slot, two));
            }
        }
        found
    }

    fn add(&mut self, other: LooseDocuments) {
        self.links.extend(other.links);
        self.twins.extend(other.twins);
        for (cluster, slots) in other.joined {
            self.joined.entry(cluster).or_default().extend(slots);
        }
    }
}

/// Places that links join: clusters, and documents outside clusters.
struct LinkedPlaces {
    /// The group of each linked place: the number of one of its places.
    groups: HashMap<u64, usize>,
}

impl LinkedPlaces {
    fn of(links: Vec<(u64, u64)>) -> LinkedPlaces {
        let mut places: Vec<u64> = links.iter().flat_map(|(a, b)| [*a, *b]).collect();
        places.sort_unstable();
        places.dedup();
        let number = |place: &u64| places.binary_search(place).expect("every end of a link is listed") as u32;
        let edges: Vec<(u32, u32)> = links.iter().map(|(a, b)| (number(a), number(b))).collect();
        let roots = single_thread::components(places.len() as u32, edges.into_iter());
        LinkedPlaces { groups: places.into_iter().zip(roots.into_iter().map(|root| root as usize)).collect() }
    }

    /// The number of linked places.
    fn len(&self) -> u64 {
        self.groups.len() as u64
    }

    fn group(&self, place: u64) -> Option<usize> {
        self.groups.get(&place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Noise;

    #[test]
    fn they_are_those_of_a_single_thread() {
        let mut joined = 0;
        let small = (0..100).map(|number| (900 + 53 * number, 0.2, 0.8));
        for (documents, one, two) in
            small.chain([(0, 0.1, 0.1), (8200, 1.0, 0.0), (30_000, 0.1, 0.03), (50_000, 0.0, 1.0)])
        {
            let vectors = MadeVectors::new(documents, Noise { one, two });
            let all: Vec<[u64; WIDTH]> = (0..documents).map(|document| vectors.vector(document)).collect();
            let roots = single_thread::clusters(&all, 2);
            let labels = roots.iter().enumerate().map(|(document, root)| (document as u64, u64::from(*root)));
            assert_eq!(
                label_checksum(&vectors, 3).unwrap(),
                single_thread::checksum(labels),
                "{documents} {one} {two}"
            );
            joined += links(&vectors, 1).len();
        }
        assert!(joined > 100, "noise joins documents: {joined} links");
    }
}
