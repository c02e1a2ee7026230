//! Pairs of a later week, from the tables of a former run and from what changed since.
//!
//! The chunks that two pages share depend on their texts alone. So pairs of two texts that both
//! weeks have stay as they are, and the join finds those of which one text at least is new. A new
//! page joins a family that it has enough of; families that nothing but a whole run can see stay
//! unseen, and their pairs are listed.
//!
//! ```text
//! former tables ─▶ kept pairs, kept members of families, their collections
//! new pages     ─▶ members of former families
//!               ─▶ the set join, with those as known pairs ─▶ further pairs
//! ```
//!
//! Which pairs are listed and which are those of families depends on the former runs; all pairs
//! together do not.
//!
//! Each run reads the chunks of the whole week. Postings, an index from chunks to pages, would be
//! larger than the lines of the table `chunks` (8 bytes for each chunk and 5 for its page, against
//! 4 for each line), and one more thing to keep true. Components are computed again from all edges:
//! that takes a fortieth of such a run, and to follow them by differential dataflow would take more
//! (SPEED.md, section 6).

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use nigh_exchange::Context;

use super::former::{FamilyIndex, FormerTables};
use super::found_pairs::FamiliesAndEdges;
use super::prefix::prefix_pairs;
use super::source::UnitSource;
use super::unit_pairs::{FamilyChunks, FamilyMember, PairTables};
use crate::config::Chunking;
use crate::operators::components::{OwnForest, edge};
use crate::operators::set_join::{SetJoinStage, TooManyPairs};
use crate::records::DocId;
use crate::structures::ByKey;

/// What a former run says of one chunking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerCounts {
    /// The chunking.
    pub chunking: Chunking,
    /// The least number of chunks that two pages share.
    pub least: u32,
    /// The pairs in its table `overlap`.
    pub pairs: u64,
    /// The families in its table `families`, and their pairs.
    pub families: [u64; 2],
}

/// Finds the pairs and families of the pages of `source`, and adds the pairs that are listed to
/// `tables`.
///
/// # Errors
/// As [`prefix_pairs`]; or if the former tables are damaged.
pub fn followed_pairs(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: UnitSource,
    former: &FormerTables<'_>,
    counts: FormerCounts,
    tables: &mut PairTables,
) -> Result<FamiliesAndEdges> {
    let owned = former.owned;
    let mut families = former.families(cx, counts.chunking, counts.families)?;
    let mut number_of: ByKey<u64, u32> = families.numbers();
    let (mut joined, mut index) = (Vec::new(), FamilyIndex::new(&families.collections));
    let source = source.with_known(former.changes, |doc, chunks| match chunks {
        None => number_of.remove(&(doc.to_table() as u64)).unwrap_or_default(),
        Some(chunks) => index.family_of(chunks, counts.least).map_or(0, |(number, weight)| {
            let FamilyChunks { family, chunks } = &families.collections[number];
            joined.push(FamilyMember { unit: doc, family: *family, weight, of: chunks.len() as u32 });
            number as u32 + 1
        }),
    })?;
    drop(index);
    families.members.extend(joined);
    // The pairs that the former run listed are listed, too, except those that are gone.
    let Some(room) = stage.max_pairs.checked_sub(counts.pairs) else {
        bail!(TooManyPairs { pairs: counts.pairs, most: stage.max_pairs, elements: Vec::new() });
    };
    let new_pairs = SetJoinStage { has_known: true, max_pairs: room, ..stage.clone() };
    let found = prefix_pairs(cx, &new_pairs, &source, None, tables, owned);
    let mut found = found.map_err(|error| match error.downcast::<TooManyPairs>() {
        Ok(TooManyPairs { pairs, elements, .. }) => {
            let pairs = pairs.saturating_add(counts.pairs);
            TooManyPairs { pairs, most: stage.max_pairs, elements }.into()
        }
        Err(error) => error,
    })?;
    drop(source);
    let mut forest = OwnForest::default();
    former.add_pairs(cx, counts.chunking, counts.pairs, tables, &mut forest)?;
    found.edges.extend(forest.into_edges());
    let names = present_names(cx, &families.members)?;
    for member in families.members {
        if let Some(family) = names.get(&member.family).copied() {
            let [unit, first] = [member.unit, family].map(|doc| doc.to_table() as u64);
            found.edges.extend((unit != first).then(|| edge(unit, first)));
            found.families.push(FamilyMember { family, ..member });
        }
    }
    // Every worker has all collections, and gives those whose families it owns.
    let present = families.collections.into_iter().filter_map(|FamilyChunks { family, chunks }| {
        let family = *names.get(&family)?;
        owned.has(family).then_some(FamilyChunks { family, chunks })
    });
    found.collections = present.collect();
    Ok(found)
}

/// The smallest member of each family of at least two, by its former name; the same at every
/// worker.
fn present_names(cx: &mut Context, members: &[FamilyMember]) -> Result<BTreeMap<DocId, DocId>> {
    let mut own: BTreeMap<DocId, (DocId, u64)> = BTreeMap::new();
    for FamilyMember { unit, family, .. } in members {
        let (first, count) = own.entry(*family).or_insert((*unit, 0));
        (*first, *count) = ((*first).min(*unit), *count + 1);
    }
    let own = own.into_iter().map(|(family, (first, count))| (family, first, count)).collect();
    let all: Vec<(DocId, DocId, u64)> = cx.sorted(own)?;
    let whole = |parts: &[(DocId, DocId, u64)]| {
        let members: u64 = parts.iter().map(|part| part.2).sum();
        // Parts of a family are in the order of their first members.
        (members > 1).then_some((parts[0].0, parts[0].1))
    };
    Ok(all.chunk_by(|a, b| a.0 == b.0).filter_map(whole).collect())
}
