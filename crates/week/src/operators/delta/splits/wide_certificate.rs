//! The wide certificate: proves that a document can leave its cluster from all keys of the
//! documents that share its keys.
//!
//! It is for the few documents without a certificate by their own keys alone. The vector of each of
//! their holders is fetched, and a key that two holders have connects what they have, whether or
//! not the document has it, too. Cost: two all-to-alls, one of which carries the vector of each
//! holder.

use std::collections::HashMap;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all, blocks};

use super::certificate::{RemainingHolder, is_certified};
use super::split_components::RemainingMembers;
use crate::features::VectorKeys;
use crate::records::{DocId, Key};
use crate::structures::ByKey;

/// A retracted document that has no certificate by its own keys, and the unchanged holders of these
/// keys.
pub(crate) struct Uncertified {
    pub(crate) doc: DocId,
    /// Sorted by document, as [`is_certified`] leaves them.
    pub(crate) holders: Vec<RemainingHolder>,
}

/// Asks the owner of `holder` for its vector, on behalf of a retracted document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct VectorQuestion {
    holder: DocId,
    retracted: DocId,
}

/// A word of the vector of `holder`, to the owner of the retracted document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct VectorWord {
    retracted: DocId,
    holder: DocId,
    column: u64,
    word: u64,
}

/// Returns for each document of `uncertified`, which are own ones, whether it can leave its cluster
/// without splitting it.
///
/// `unchanged` reads the vectors of own unchanged documents, which ascend; `before` returns the
/// vector that a retracted document had.
///
/// ```text
/// for each uncertified document r:
///     slot_of = the keys of r, numbered 0, 1, ...
///     for each holder h of a key of r:
///         for each key of h's vector:
///             slot = slot_of[key], or the next free number
///             add (h, slot) to the holders of r
///     r is certified, if is_certified(holders of r, number of keys of r)
/// ```
///
/// # Errors
/// If vectors cannot be read, or a worker of this process failed.
pub(crate) fn wide_certificates<'a>(
    cx: &mut Context,
    mut uncertified: Vec<Uncertified>,
    unchanged: impl Fn(&[DocId]) -> Result<RemainingMembers>,
    before: impl Fn(DocId) -> Option<&'a [u64]>,
    keys: &VectorKeys,
) -> Result<Vec<(DocId, bool)>> {
    if cx.sorted(vec![u8::from(!uncertified.is_empty())])?.iter().all(|any| *any == 0) {
        return Ok(Vec::new());
    }
    let words = holder_vectors(cx, &uncertified, unchanged)?;
    let mut words = words.chunk_by(|a, b| a.retracted == b.retracted).peekable();
    uncertified.sort_unstable_by_key(|uncertified| uncertified.doc);
    let own_slots = keys.count() as u32;
    let certified = uncertified.into_iter().map(|Uncertified { doc, mut holders }| {
        // The document's own keys have the first slots; other keys have those that follow.
        let mut slot_of: ByKey<Key, u32> = HashMap::default();
        slot_of.extend(before(doc).into_iter().flat_map(|old| keys.megashingles(old, u64::MAX).zip(0..)));
        let words = words.next_if(|words| words[0].retracted == doc).unwrap_or_default();
        for of_holder in words.chunk_by(|a, b| a.holder == b.holder) {
            let vector: Vec<u64> = of_holder.iter().map(|word| word.word).collect();
            for key in keys.megashingles(&vector, u64::MAX) {
                let next = own_slots + slot_of.len() as u32;
                let slot = *slot_of.entry(key).or_insert(next);
                holders.push(RemainingHolder { doc: of_holder[0].holder, slot });
            }
        }
        (doc, is_certified(&mut holders, own_slots))
    });
    Ok(certified.collect())
}

/// The vectors of all holders of the keys of own uncertified documents, in the order of these, then
/// of the holders.
fn holder_vectors(
    cx: &mut Context,
    uncertified: &[Uncertified],
    unchanged: impl Fn(&[DocId]) -> Result<RemainingMembers>,
) -> Result<Vec<VectorWord>> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for Uncertified { doc, holders } in uncertified {
        let of_holders = holders.chunk_by(|a, b| a.doc == b.doc).map(|of_holder| of_holder[0].doc);
        for holder in of_holders.filter(|holder| *holder != DocId::NONE) {
            dealer.deal(holder.owner(peers) as u64, VectorQuestion { holder, retracted: *doc });
        }
    }
    let mut questions: Vec<VectorQuestion> = blocks(all_to_all(cx, dealer)?);
    questions.sort_unstable();
    let mut docs: Vec<DocId> = questions.iter().map(|question| question.holder).collect();
    docs.dedup();
    let RemainingMembers { docs, words } = unchanged(&docs)?;
    let width = words.len().checked_div(docs.len()).unwrap_or(0);
    let mut vectors = docs.iter().zip(words.chunks_exact(width.max(1))).peekable();
    let mut dealer = cx.dealer();
    for VectorQuestion { holder, retracted } in questions {
        while vectors.next_if(|(doc, _)| **doc < holder).is_some() {}
        let Some((_, vector)) = vectors.peek().filter(|(doc, _)| **doc == holder) else { continue };
        for (column, word) in (0..).zip(*vector) {
            dealer.deal(retracted.owner(peers) as u64, VectorWord { retracted, holder, column, word: *word });
        }
    }
    let mut words: Vec<VectorWord> = blocks(all_to_all(cx, dealer)?);
    words.sort_unstable();
    Ok(words)
}
