//! The number of clusters of each host in a week (Fetterly 2004, section 3, Fig. 6).
//!
//! A cluster counts for every host with a page in it. A page without near-duplicates is a cluster,
//! too, as in the study's cluster map; could-not-download has no pages and does not count.

use anyhow::Result;
use nigh_exchange::Context;

use crate::operators::host_pages::{SINGLETONS, pages_by_host, without_host};
use crate::state::History;
use crate::structures::Ownership;

/// Counts the clusters of each host in week number `number` of the history; pages that are not
/// known by URL have no host. Returns the hosts whose hashes this worker owns, in order, each once:
/// the hash and the number of clusters. Costs what [`pages_by_host`] does.
///
/// # Errors
/// If a file cannot be read (names it), or a worker of this process failed.
pub fn host_clusters(
    cx: &mut Context,
    history: &History,
    number: usize,
    owned: &Ownership,
) -> Result<Vec<(u128, u64)>> {
    let pages = pages_by_host(cx, history, number, owned)?;
    let mut hosts: Vec<(u128, u64)> = Vec::new();
    let of_hosts = pages.chunk_by(|((a, _), _), ((b, _), _)| a == b);
    for of_host in of_hosts.filter(|of_host| of_host[0].0.0 != without_host()) {
        let clusters = of_host.iter().map(|((_, cluster), pages)| if *cluster == SINGLETONS { *pages } else { 1 });
        hosts.push((of_host[0].0.0, clusters.sum()));
    }
    Ok(hosts)
}
