//! All passages of a corpus.

use std::rc::Rc;

use anyhow::{Result, bail};
use nigh_exchange::Context;

use super::check::differs;
use super::fingerprints::Hashing;
use super::found::{DocumentPassage, FoundCounts, FoundPassages, MostRepeated, passages};
use super::grams::{ReadCounts, repeated_grams};
use super::send::send;
use super::text_source::TextSource;
use super::windows::repeated_windows;
use crate::structures::Sorted;

/// How often the search begins again with other fingerprints, because two were equal by chance. One
/// time is rare.
const MOST_ROUNDS: u64 = 8;

/// The passages of a corpus.
pub struct RepeatedPassages {
    /// Those of own documents, by document and first word.
    pub passages: Sorted<DocumentPassage>,
    /// What this worker read.
    pub read: ReadCounts,
    /// What it found.
    pub found: FoundCounts,
    /// The passages with the most occurrences, of those whose first occurrence this worker read.
    pub most: Vec<MostRepeated>,
}

/// Finds all passages. `hashing` gives the hashing of each round, from 0.
///
/// # Errors
/// If a text cannot be read, a file cannot be written, or a worker of this process failed.
pub fn repeated(
    cx: &mut Context,
    texts: &mut dyn TextSource,
    hashing: &dyn Fn(u64) -> Hashing,
) -> Result<RepeatedPassages> {
    let peers = cx.peers();
    let readers: Rc<[usize]> = texts.readers().into();
    for round in 0..MOST_ROUNDS {
        let hashing = &hashing(round);
        let (grams, read) = repeated_grams(cx, texts, hashing)?;
        let windows = repeated_windows(cx, texts, hashing, grams)?;
        let FoundPassages { passages, claims, has_collision, counts: found, most } =
            passages(cx, texts, hashing, windows)?;
        let readers = readers.clone();
        let claims = send(cx, "claims", claims.sorted()?, move |claim| readers[claim.place.file()])?;
        let has_collision = differs(texts, claims)? || has_collision;
        if !cx.any(has_collision)? {
            let passages = send(cx, "passages", passages.sorted()?, move |passage| passage.doc.owner(peers))?;
            return Ok(RepeatedPassages { passages, read, found, most });
        }
    }
    bail!("passages with other words had one fingerprint {MOST_ROUNDS} times: this is a fault of nigh")
}
