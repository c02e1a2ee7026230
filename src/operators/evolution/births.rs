//! Births and deaths: which clusters new URLs join, and which ones those leave that are gone.
//!
//! Beyond the study, which called it "an intriguing avenue". A birth is a URL first seen in the week; the cluster that
//! it joins is measured without the week's births, so that pages which appear together join nothing. A death is a URL
//! with a page in the week before and none in this one; it may come back.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use timely::worker::Worker;

use super::cluster_map::ClusterMap;
use crate::operators::output::overlaps;
use crate::records::DocId;
use crate::state::PastWeek;
use crate::stats::{BySize, SizeClass};
use crate::structures::Ownership;
use crate::watch::Watch;

/// Counts the URLs first seen after the week `before` that have a page in `map`'s week, the one that follows, by class
/// of the cluster that they join: each worker gets a part. A worker holds 24 to 48 bytes for each cluster with births.
///
/// # Errors
/// Where the week contradicts itself, or a worker of this process failed.
pub fn births(
    worker: &mut Worker,
    owned: &Ownership,
    before: &PastWeek,
    map: &Rc<ClusterMap>,
    watch: &Arc<Watch>,
) -> Result<BySize> {
    let mut births = BySize::default();
    let born = || owned.docs().enumerate().filter(|(_, doc)| !before.knows(*doc)).filter_map(|(at, _)| map.page(at));
    births[SizeClass::None as usize] += born().filter(|cluster| cluster.size == 1).count() as u64;
    let joining = born().filter(|cluster| cluster.size > 1).map(|cluster| (cluster.name, 0));
    for births_of in overlaps(worker, joining, watch)? {
        let root = owned.index(DocId::from_table(births_of.a as i64));
        let members = map.page(root).map_or(0, |cluster| cluster.size);
        let others = members.checked_sub(births_of.count).with_context(|| {
            format!("the store is damaged: a cluster of {members} pages has {} births", births_of.count)
        })?;
        births[SizeClass::of(others) as usize] += births_of.count;
    }
    Ok(births)
}

/// Counts the own URLs with a page in one week and none in the next, by class of the cluster that they leave.
pub fn deaths(owned: &Ownership, before: &ClusterMap, after: &ClusterMap) -> BySize {
    let mut deaths = BySize::default();
    for left in (0..owned.len()).filter(|at| after.page(*at).is_none()).filter_map(|at| before.page(at)) {
        deaths[SizeClass::of(left.size) as usize] += 1;
    }
    deaths
}
