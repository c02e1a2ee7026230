//! Whether documents leave without parting anybody, by all that the holders of their keys hold: for the few of which the
//! keys of their own do not show it.
//!
//! Of every holder the vector is asked for, and where two of them hold one key, whichever it is, what they hold is joined.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::worker::Worker;

use super::certificate::{RemainingHolder, holds};
use super::split_components::RemainingMembers;
use crate::features::VectorKeys;
use crate::operators::exchange::{Dealer, all_gather, all_to_all, blocks};
use crate::records::{DocId, Key};
use crate::structures::ByKey;
use crate::watch::Watch;

/// A document that is retracted, and the holders of its keys, who are joined by no key of its own.
pub(crate) struct Unproven {
    pub(crate) doc: DocId,
    pub(crate) holders: Vec<RemainingHolder>,
}

/// A document whose vector is asked for, on behalf of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct VectorQuestion {
    stays: DocId,
    of: DocId,
}

/// A word of its vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct VectorWord {
    of: DocId,
    stays: DocId,
    column: u64,
    word: u64,
}

/// Tells of each own document whether it leaves without parting anybody. Its holders are grouped by document and ascend, as
/// [`holds`] leaves them. `staying` reads the vectors of own documents, ascending; `before` has the vectors that the
/// retracted ones had.
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub(crate) fn bridged<'a>(
    worker: &mut Worker,
    mut unproven: Vec<Unproven>,
    staying: impl Fn(&[DocId]) -> Result<RemainingMembers>,
    before: impl Fn(DocId) -> Option<&'a [u64]>,
    keys: &VectorKeys,
    watch: &Arc<Watch>,
) -> Result<Vec<(DocId, bool)>> {
    let peers = worker.peers();
    if all_gather(worker, vec![u8::from(!unproven.is_empty())], watch)?.iter().all(|any| *any == 0) {
        return Ok(Vec::new());
    }
    let mut asked = Dealer::new(worker.index(), peers, watch);
    for Unproven { doc, holders } in &unproven {
        for of_one in holders.chunk_by(|a, b| a.stays == b.stays).filter(|of_one| of_one[0].stays != DocId::NONE) {
            let stays = of_one[0].stays;
            asked.deal(stays.owner(peers) as u64, VectorQuestion { stays, of: *doc });
        }
    }
    let mut asked: Vec<VectorQuestion> = blocks(all_to_all(worker, asked, watch)?);
    asked.sort_unstable();
    let mut docs: Vec<DocId> = asked.iter().map(|asked| asked.stays).collect();
    docs.dedup();
    let RemainingMembers { docs, words } = staying(&docs)?;
    let mut told = Dealer::new(worker.index(), peers, watch);
    let width = words.len().checked_div(docs.len()).unwrap_or(0);
    let mut vectors = docs.iter().zip(words.chunks_exact(width.max(1))).peekable();
    for VectorQuestion { stays, of } in asked {
        while vectors.next_if(|(doc, _)| **doc < stays).is_some() {}
        let Some((_, vector)) = vectors.peek().filter(|(doc, _)| **doc == stays) else { continue };
        for (column, word) in (0..).zip(*vector) {
            told.deal(of.owner(peers) as u64, VectorWord { of, stays, column, word: *word });
        }
    }
    let mut told: Vec<VectorWord> = blocks(all_to_all(worker, told, watch)?);
    told.sort_unstable();
    let mut told = told.chunk_by(|a, b| a.of == b.of).peekable();
    unproven.sort_unstable_by_key(|unproven| unproven.doc);
    let own = keys.count() as u32;
    let proven = unproven.into_iter().map(|Unproven { doc, mut holders }| {
        // The document's own keys have their slots; other keys have those that follow.
        let mut slots: ByKey<Key, u32> = HashMap::default();
        slots.extend(before(doc).into_iter().flat_map(|old| keys.megashingles(old, u64::MAX).zip(0..)));
        let words = told.next_if(|words| words[0].of == doc).unwrap_or_default();
        for of_one in words.chunk_by(|a, b| a.stays == b.stays) {
            let vector: Vec<u64> = of_one.iter().map(|told| told.word).collect();
            for key in keys.megashingles(&vector, u64::MAX) {
                let next = own + slots.len() as u32;
                holders.push(RemainingHolder { stays: of_one[0].stays, slot: *slots.entry(key).or_insert(next) });
            }
        }
        (doc, holds(&mut holders, own))
    });
    Ok(proven.collect())
}
