//! Retention: how much of each cluster of the first week is still together in a later week
//! (Fetterly 2004, section 3, Fig. 4, 5 and 7).
//!
//! For each URL with a page in the first week, the two clusters of the URL have some URLs in
//! common. If either cluster has one URL, the two have this URL in common, and the worker of the
//! URL has both sizes. Other URLs are counted by pairs of clusters ([`overlaps`]); the owner of a
//! pair has the size of the first cluster, and looks up the size of the second at its owner. In the
//! later week a URL may belong to could-not-download.
//!
//! A worker holds two cluster maps (32 bytes a URL) and 24 to 72 bytes for each pair of larger
//! clusters.

use std::rc::Rc;

use anyhow::{Result, bail};
use nigh_exchange::{Context, LocalAnswers, lookup};

use super::cluster_map::{COULD_NOT_DOWNLOAD, ClusterMap};
use crate::operators::output::overlaps;
use crate::records::DocId;
use crate::stats::{RetentionSums, SizeClass};
use crate::structures::Ownership;

/// Sums the containment and similarity of each URL's two clusters, by size class of its cluster in
/// the first week, in the order of [`SizeClass::ALL`]. Each worker returns a part of the sums.
///
/// # Errors
/// If two clusters have more URLs in common than one of them has, or a worker of this process
/// failed.
pub fn retention(
    cx: &mut Context,
    owned: &Ownership,
    first: &Rc<ClusterMap>,
    later: &Rc<ClusterMap>,
) -> Result<[RetentionSums; SizeClass::ALL.len()]> {
    let mut retained = [RetentionSums::default(); SizeClass::ALL.len()];
    let mut add = |common: u64, first: u64, later: u64| {
        if !retained[SizeClass::of(first) as usize].add(common, first, later) {
            bail!("the store is damaged: clusters of {first} and {later} URLs have {common} in common");
        }
        Ok(())
    };
    let both = |number| Some((first.page(number)?, later.cluster(number)));
    for (before, after) in (0..owned.len()).filter_map(both).filter(|(a, b)| a.size == 1 || b.size == 1) {
        add(1, before.size, after.size)?;
    }
    let larger = (0..owned.len()).filter_map(both).filter(|(a, b)| a.size > 1 && b.size > 1);
    let pairs = Rc::new(overlaps(cx, larger.map(|(before, after)| (before.root, after.root)))?);

    let doc = |root: u64| DocId::from_table(root as i64);
    // The owner of the second cluster's root has its size. Every worker has the size of
    // could-not-download.
    let roots = {
        let pairs = pairs.clone();
        move || {
            let pairs = pairs.clone();
            (0..pairs.len()).map(move |number| pairs[number].b).filter(|b| *b != COULD_NOT_DOWNLOAD).map(doc)
        }
    };
    let size_of = {
        let later = later.clone();
        move |number: usize| [later.page(number).map_or(0, |cluster| cluster.size)]
    };
    let mut sizes: Vec<u64> = Vec::with_capacity(pairs.len());
    let local = LocalAnswers::own(cx, size_of);
    lookup(cx, owned, roots, &local, |_, [size]| sizes.push(size))?;
    let mut sizes = sizes.into_iter();
    for pair in pairs.iter() {
        let before = first.page(owned.index(doc(pair.a))).map_or(0, |cluster| cluster.size);
        let after = match pair.b {
            COULD_NOT_DOWNLOAD => later.absent(),
            _ => sizes.next().unwrap_or(0),
        };
        add(pair.count, before, after)?;
    }
    Ok(retained)
}
