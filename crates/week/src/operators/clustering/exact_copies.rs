//! Exact copies: among documents with identical vectors, those whose bodies are the same bytes.
//!
//! Equal bytes can be decoded to different texts if their charsets differ. The vector is therefore
//! part of the key: an exact copy is also virtually identical, and the levels nest.
//!
//! Nearly every duplicate has the bytes of its representative, which one lookup shows. Only the
//! other duplicates are sent on: in one all-to-all to the owner of the key made of representative
//! and checksum, and in a second one their roots back.
//!
//! Documents without words have no vector. Those with the same bytes are exact copies, too: each
//! worker sends one document for each checksum, so that a million empty texts do not meet at one
//! worker.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, LocalAnswers, all_to_all, blocks, lookup};

use crate::records::{DocId, Key};
use crate::structures::{ByKey, Ownership};

/// A duplicate whose body differs from that of its representative.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CopyCandidate {
    /// The same for the same representative and the same checksum.
    key: Key,
    doc: DocId,
}

/// The smallest document with the key of `doc`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CopyRoot {
    doc: DocId,
    root: DocId,
}

/// Returns, for each of `duplicates`, the smallest document with the same vector and the same
/// bytes.
///
/// `duplicates` are the own documents that have the vector of a smaller one, each with its
/// representative: the smallest document with that vector. `checksums` are those of own documents,
/// by own number.
///
/// # Errors
/// Where a worker of this process failed.
pub fn exact_copies(
    cx: &mut Context,
    owned: &Ownership,
    duplicates: &Rc<Vec<(DocId, DocId)>>,
    checksums: &Rc<Vec<u128>>,
) -> Result<Vec<DocId>> {
    let mut roots: Vec<DocId> = duplicates.iter().map(|(doc, _)| *doc).collect();
    let mut candidates: Vec<CopyCandidate> = Vec::new();
    let mut positions: ByKey<DocId, usize> = ByKey::default();
    compare_with_representatives(cx, owned, duplicates, checksums, |position, key| match key {
        None => roots[position] = duplicates[position].1,
        Some(key) => {
            let doc = duplicates[position].0;
            candidates.push(CopyCandidate { key, doc });
            positions.insert(doc, position);
        }
    })?;
    for CopyRoot { doc, root } in roots_of_candidates(cx, candidates)? {
        roots[positions[&doc]] = root;
    }
    Ok(roots)
}

/// Returns, for each of the own documents `wordless`, the smallest document without words that has
/// the same bytes, itself if it is alone. Each comes with its checksum.
///
/// # Errors
/// Where a worker of this process failed.
pub fn wordless_copies(cx: &mut Context, wordless: &[(DocId, u128)]) -> Result<Vec<DocId>> {
    let mut smallest: BTreeMap<u128, DocId> = BTreeMap::new();
    for (doc, checksum) in wordless {
        smallest.entry(*checksum).and_modify(|root| *root = (*doc).min(*root)).or_insert(*doc);
    }
    let candidate = |(checksum, doc): (&u128, &DocId)| CopyCandidate { key: Key::of(0, &halves(*checksum)), doc: *doc };
    let candidates = smallest.iter().map(candidate).collect();
    let roots: ByKey<DocId, DocId> =
        roots_of_candidates(cx, candidates)?.into_iter().map(|CopyRoot { doc, root }| (doc, root)).collect();
    Ok(wordless.iter().map(|(_, checksum)| roots[&smallest[checksum]]).collect())
}

/// Compares every duplicate with its representative by checksum. Calls `each` with the duplicate's
/// position in the list and `None` if they are equal, or else with the duplicate's key.
fn compare_with_representatives(
    cx: &mut Context,
    owned: &Ownership,
    duplicates: &Rc<Vec<(DocId, DocId)>>,
    checksums: &Rc<Vec<u128>>,
    mut each: impl FnMut(usize, Option<Key>),
) -> Result<()> {
    let own_checksums = {
        let checksums = checksums.clone();
        move |number: usize| halves(checksums[number])
    };
    let representatives = || {
        let duplicates = duplicates.clone();
        (0..duplicates.len()).map(move |position| duplicates[position].1)
    };
    let answers = LocalAnswers::own(cx, own_checksums);
    lookup(cx, owned, representatives, &answers, |position, checksum| {
        let (doc, representative) = duplicates[position];
        let [high, low] = halves(checksums[owned.index(doc)]);
        let differs = checksum != [high, low];
        each(position, differs.then(|| Key::of(0, &[representative.to_table() as u64, high, low])));
    })
}

/// Returns the roots of this worker's candidates, in any order. Candidates of all workers with the
/// same key meet at the key's owner, which sends the smallest of them to the owner of each.
fn roots_of_candidates(cx: &mut Context, candidates: Vec<CopyCandidate>) -> Result<Vec<CopyRoot>> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for candidate in candidates {
        dealer.deal(candidate.key.partition_bits() % peers as u64, candidate);
    }
    let received = all_to_all(cx, dealer)?;
    let candidates = || received.iter().flat_map(|block| block.records());

    let mut smallest: BTreeMap<Key, DocId> = BTreeMap::new();
    for CopyCandidate { key, doc } in candidates() {
        smallest.entry(*key).and_modify(|root| *root = (*doc).min(*root)).or_insert(*doc);
    }
    let mut dealer = cx.dealer();
    for CopyCandidate { key, doc } in candidates() {
        dealer.deal(doc.owner(peers) as u64, CopyRoot { doc: *doc, root: smallest[key] });
    }
    Ok(blocks(all_to_all(cx, dealer)?))
}

/// The high and the low word of a checksum.
fn halves(checksum: u128) -> [u64; 2] {
    [(checksum >> 64) as u64, checksum as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn exact_copies_have_the_vector_and_the_bytes_of_their_root() {
        let rows = [50; 4];
        let docs: Vec<DocId> = (0..4).flat_map(|shard| (0..50).map(move |row| DocId::new(shard, row))).collect();
        // Eight vectors, and four bodies of each.
        let hash = |doc: DocId| mix(doc.to_table() as u64);
        let vector = move |doc| hash(doc) % 8;
        let checksum = move |doc| u128::from(hash(doc) / 8 % 4) << 64;
        for workers in [1, 2, 4] {
            let all = docs.clone();
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let owned = Ownership::new(cx.index(), cx.peers(), &rows);
                let representative = |doc| *all.iter().find(|other| vector(**other) == vector(doc)).unwrap();
                let duplicates: Vec<(DocId, DocId)> =
                    owned.docs().map(|doc| (doc, representative(doc))).filter(|(doc, root)| doc != root).collect();
                let checksums = Rc::new(owned.docs().map(checksum).collect());
                let roots = exact_copies(cx, &owned, &Rc::new(duplicates.clone()), &checksums).unwrap();
                duplicates.into_iter().map(|(doc, _)| doc).zip(roots).collect::<Vec<_>>()
            });
            for (doc, root) in guards.unwrap().join().into_iter().flat_map(Result::unwrap) {
                let is_copy = |other: &&DocId| vector(**other) == vector(doc) && checksum(**other) == checksum(doc);
                assert_eq!(root, *docs.iter().find(is_copy).unwrap(), "{doc}, {workers} workers");
            }
        }
    }

    #[test]
    fn documents_without_words_have_the_smallest_one_with_the_same_bytes() {
        let rows = [50; 4];
        let docs: Vec<DocId> = (0..4).flat_map(|shard| (0..50).map(move |row| DocId::new(shard, row))).collect();
        let checksum = |doc: DocId| u128::from(mix(doc.to_table() as u64) % 70);
        for workers in [1, 2, 4] {
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let owned = Ownership::new(cx.index(), cx.peers(), &rows);
                let own: Vec<(DocId, u128)> = owned.docs().map(|doc| (doc, checksum(doc))).collect();
                let roots = wordless_copies(cx, &own).unwrap();
                own.into_iter().map(|(doc, _)| doc).zip(roots).collect::<Vec<_>>()
            });
            let found: BTreeMap<DocId, DocId> = guards.unwrap().join().into_iter().flat_map(Result::unwrap).collect();
            assert_eq!(found.len(), docs.len());
            for (doc, root) in found {
                assert_eq!(root, *docs.iter().find(|other| checksum(**other) == checksum(doc)).unwrap(), "{doc}");
            }
        }
    }
}
