//! How clusters of the first week keep together until a later one (Fetterly 2004, section 3, Fig. 4, 5 and 7).
//!
//! A URL that is alone in its cluster in either week has one URL in common, and both sizes are beside it: only URLs of
//! larger clusters in both weeks are summed by pairs of clusters ([`overlaps`]). The owner of the first cluster knows
//! its size, and asks for the size of the second. A worker holds two cluster maps (32 bytes a URL) and 24 to 72 bytes
//! for each pair of larger clusters.
//!
//! Only URLs with a page in the first week have a cluster of it; in a later week they may belong to could-not-download.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, bail};
use timely::worker::Worker;

use super::cluster_map::{COULD_NOT_DOWNLOAD, ClusterMap};
use crate::operators::exchange::{LocalAnswers, lookup};
use crate::operators::output::overlaps;
use crate::records::DocId;
use crate::stats::{RetentionSums, SizeClass};
use crate::structures::Ownership;
use crate::watch::Watch;

/// Sums by class of the cluster in the first week, in the order of [`SizeClass::ALL`]: each worker gets a part.
///
/// # Errors
/// Where the two weeks contradict each other, or a worker of this process failed.
pub fn retention(
    worker: &mut Worker,
    owned: &Ownership,
    first: &Rc<ClusterMap>,
    later: &Rc<ClusterMap>,
    watch: &Arc<Watch>,
) -> Result<[RetentionSums; SizeClass::ALL.len()]> {
    let mut retained = [RetentionSums::default(); SizeClass::ALL.len()];
    let mut add = |common: u64, first: u64, later: u64| {
        if !retained[SizeClass::of(first) as usize].add(common, first, later) {
            bail!("the store is damaged: clusters of {first} and {later} URLs have {common} in common");
        }
        Ok(())
    };
    let both = |at| Some((first.page(at)?, later.cluster(at)));
    for (was, is) in (0..owned.len()).filter_map(both).filter(|(was, is)| was.size == 1 || is.size == 1) {
        add(1, was.size, is.size)?;
    }
    let larger = (0..owned.len()).filter_map(both).filter(|(was, is)| was.size > 1 && is.size > 1);
    let pairs = Rc::new(overlaps(worker, larger.map(|(was, is)| (was.name, is.name)), watch)?);

    let doc = |name: u64| DocId::from_table(name as i64);
    // Of pairs of pages the owner of the second cluster is asked for its size; could-not-download's is known.
    let (asked, sizes) = (pairs.clone(), later.clone());
    let questions = move || {
        let asked = asked.clone();
        (0..asked.len()).map(move |at| asked[at].b).filter(|b| *b != COULD_NOT_DOWNLOAD).map(doc)
    };
    let known = move |at: usize| [sizes.page(at).map_or(0, |cluster| cluster.size)];
    let mut answers: Vec<u64> = Vec::with_capacity(pairs.len());
    let near = LocalAnswers::own(worker, known);
    lookup(worker, owned, questions, &near, watch, |_, [size]| answers.push(size))?;
    let mut answers = answers.into_iter();
    for pair in pairs.iter() {
        let was = first.page(owned.index(doc(pair.a))).map_or(0, |cluster| cluster.size);
        let is = match pair.b {
            // Any known URL without a page belongs to it.
            COULD_NOT_DOWNLOAD => later.absent(),
            _ => answers.next().unwrap_or(0),
        };
        add(pair.count, was, is)?;
    }
    Ok(retained)
}
