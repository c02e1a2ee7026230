//! Births and deaths: the sizes of the clusters that new URLs join, and of the clusters that
//! disappeared URLs leave.
//!
//! This goes beyond the study, which called it "an intriguing avenue". A *birth* is a URL that is
//! first seen in this week. The size of its cluster is counted without the births of the week, so
//! pages that appear together join a cluster of size 0. A *death* is a URL with a page in the week
//! before and none in this week; it may come back.

use std::rc::Rc;

use anyhow::{Context as _, Result};
use nigh_exchange::Context;

use super::cluster_map::ClusterMap;
use crate::operators::output::overlaps;
use crate::records::DocId;
use crate::state::PastWeek;
use crate::stats::{BySize, SizeClass};
use crate::structures::Ownership;

/// Counts the births of a week by size class of the cluster that they join: URLs that are not in
/// the week `before` and have a page in the week of `map`, which follows it. Each worker returns a
/// part of the counts; the total is their sum. A worker holds 24 to 48 bytes for each cluster with
/// births.
///
/// # Errors
/// If a cluster has more births than pages, or a worker of this process failed.
pub fn births(cx: &mut Context, owned: &Ownership, before: &PastWeek, map: &Rc<ClusterMap>) -> Result<BySize> {
    let mut births = BySize::default();
    let born =
        || owned.docs().enumerate().filter(|(_, doc)| !before.knows(*doc)).filter_map(|(number, _)| map.page(number));
    births[SizeClass::None as usize] += born().filter(|cluster| cluster.size == 1).count() as u64;
    let joining = born().filter(|cluster| cluster.size > 1).map(|cluster| (cluster.root, 0));
    // The births of a cluster are counted at the owner of its root (`a`), which has its size.
    for cluster in overlaps(cx, joining)? {
        let root = DocId::from_table(cluster.a as i64);
        let members = map.page(owned.index(root)).map_or(0, |page| page.size);
        let others = members.checked_sub(cluster.count).with_context(|| {
            format!("the store is damaged: a cluster of {members} pages has {} births", cluster.count)
        })?;
        births[SizeClass::of(others) as usize] += cluster.count;
    }
    Ok(births)
}

/// Counts the deaths of a week by size class of the cluster that they leave: URLs of this worker
/// with a page in the week `before` and none in the week `after`.
pub fn deaths(owned: &Ownership, before: &ClusterMap, after: &ClusterMap) -> BySize {
    let mut deaths = BySize::default();
    let dead = (0..owned.len()).filter(|number| after.page(*number).is_none());
    for cluster in dead.filter_map(|number| before.page(number)) {
        deaths[SizeClass::of(cluster.size) as usize] += 1;
    }
    deaths
}
