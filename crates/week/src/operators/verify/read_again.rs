//! Which worker reads which pages again: every crawl file is read by one worker.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use nigh_exchange::{Context, all_to_all};

use super::files_again::{FilesAgain, IfMissing, PagePlace};
use crate::config::Reading;
use crate::features::Fingerprinter;
use crate::readers::Input;
use crate::records::DocumentKey;
use crate::structures::CompactSort;
use crate::watch::Watch;

/// What is read again, and how.
pub struct ReadAgain<'a> {
    /// What the documents of the week are known by.
    pub documents: DocumentKey,
    /// The crawl files of the week.
    pub inputs: &'a [Input],
    /// How they are read.
    pub reading: &'a Reading,
    /// The fingerprinter of the method.
    pub fingerprinter: Fingerprinter,
    /// The files with the shingles that were kept of each input; they need not exist.
    pub kept: Vec<Vec<PathBuf>>,
    /// What becomes of pages that are not there.
    pub if_missing: IfMissing,
    /// Counters, and failures.
    pub watch: &'a Arc<Watch>,
}

/// Sends the places of pages of own documents to the workers that read their files, and returns the
/// files that this worker reads.
///
/// # Errors
/// If a worker of this process failed.
pub fn read_again(cx: &mut Context, again: ReadAgain<'_>, places: Vec<PagePlace>) -> Result<FilesAgain> {
    let ReadAgain { documents, inputs, reading, fingerprinter, kept, if_missing, watch: _ } = again;
    let peers = cx.peers();
    let reader_of = readers_of(inputs, peers);
    let mut dealer = cx.dealer();
    for place in places {
        dealer.deal(reader_of[place.file as usize] as u64, place);
    }
    let mut wanted: Vec<PagePlace> = Vec::new();
    all_to_all(cx, dealer)?.iter().for_each(|block| wanted.extend_from_slice(block.records()));
    wanted.sort_rows();
    Ok(FilesAgain::new(documents, inputs.to_vec(), reading.clone(), fingerprinter, wanted, kept, if_missing))
}

/// Which worker reads each input: the largest first, each by the worker with the fewest bytes so
/// far.
pub fn readers_of(inputs: &[Input], peers: usize) -> Vec<usize> {
    let mut by_size: Vec<usize> = (0..inputs.len()).collect();
    by_size.sort_items_by_key(|number| (Reverse(inputs[*number].bytes), *number));
    let (mut loads, mut readers) = (vec![0u64; peers], vec![0; inputs.len()]);
    for number in by_size {
        let least = (0..peers).min_by_key(|peer| loads[*peer]).unwrap_or(0);
        loads[least] += inputs[number].bytes.max(1);
        readers[number] = least;
    }
    readers
}
