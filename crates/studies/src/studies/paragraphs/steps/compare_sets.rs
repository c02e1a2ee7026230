//! What two pages of different workers have in common, for few pairs of pages: the set of one
//! travels to the other.
//!
//! Memory: the sets of all pages in pairs, 8 bytes for each paragraph, and those of a round on
//! their way.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all, send_rows};
use serde::{Deserialize, Serialize};

use super::page_sets::PageSets;
use super::source::ParagraphSource;
use crate::records::DocId;

/// Pairs of a round.
const ROUND: usize = 1 << 14;

/// A pair of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct PagePair {
    /// The page of the worker that asks.
    pub own: DocId,
    /// The other page, of any worker.
    pub other: DocId,
}

/// What the two pages of a pair have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ComparedPair {
    /// The pair.
    pub pair: PagePair,
    /// The distinct paragraphs that both have, ascending.
    pub shared: Vec<u64>,
    /// The distinct paragraphs of each.
    pub sizes: [u32; 2],
}

/// Compares pairs of an own page of `own` and a page of `others`: those of any worker. The result
/// is at the worker that asks, in no particular order.
///
/// # Errors
/// If pages cannot be read, a page is not in its source, or a worker of this process failed.
pub fn compare_sets(
    cx: &mut Context,
    [own, others]: [&impl ParagraphSource; 2],
    pairs: &[PagePair],
) -> Result<Vec<ComparedPair>> {
    let (index, peers) = (cx.index(), cx.peers());
    let own_sets = sets(own, pairs.iter().map(|pair| pair.own).collect())?;
    let mut dealer = cx.dealer();
    let mut wanted: Vec<DocId> = pairs.iter().map(|pair| pair.other).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted.into_iter().for_each(|other| dealer.deal(other.owner(peers) as u64, other));
    let asked = all_to_all(cx, dealer)?;
    let other_sets = sets(others, asked.iter().flat_map(|block| block.records()).copied().collect())?;
    drop(asked);
    let rounds = cx.sorted(vec![pairs.len().div_ceil(ROUND)])?.last().copied().unwrap_or(0);
    let missing = |doc: DocId| format!("the page {doc} has no paragraphs");
    let mut compared = Vec::with_capacity(pairs.len());
    let mut rest = pairs.chunks(ROUND);
    for _ in 0..rounds {
        let mut questions = Vec::new();
        for pair in rest.next().unwrap_or_default() {
            let set = own_sets.get(&pair.own).with_context(|| missing(pair.own))?;
            questions.push((pair.other.owner(peers), (index, *pair, set.clone())));
        }
        let mut answers = Vec::new();
        for (from, pair, set) in send_rows::<(usize, PagePair, Vec<u64>)>(cx, questions)? {
            let other = other_sets.get(&pair.other).with_context(|| missing(pair.other))?;
            let sizes = [set.len() as u32, other.len() as u32];
            answers.push((from, ComparedPair { pair, shared: shared(&set, other), sizes }));
        }
        compared.extend(send_rows(cx, answers)?);
    }
    Ok(compared)
}

/// The distinct paragraphs of some pages, ascending.
fn sets(source: &impl ParagraphSource, mut wanted: Vec<DocId>) -> Result<BTreeMap<DocId, Vec<u64>>> {
    wanted.sort_unstable();
    wanted.dedup();
    let (mut sets, mut distinct, mut set) = (BTreeMap::new(), PageSets::default(), Vec::new());
    if !wanted.is_empty() {
        source.each(|doc, paragraphs| {
            if wanted.binary_search(&doc).is_ok() {
                distinct.sorted(paragraphs, &mut set);
                sets.insert(doc, set.clone());
            }
            Ok(())
        })?;
    }
    Ok(sets)
}

/// The values that two ascending lists share.
fn shared(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut at = 0;
    let is_shared = |value: &&u64| {
        at += b[at..].partition_point(|other| other < *value);
        b.get(at) == Some(*value)
    };
    a.iter().filter(is_shared).copied().collect()
}
