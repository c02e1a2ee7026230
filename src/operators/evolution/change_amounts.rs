//! How much pages change from download to download (Fetterly 2004, section 3, Fig. 8 to 10).
//!
//! Two downloads of a URL are successive when it has none between them: weeks in which it failed are skipped. A URL is
//! of the class of its cluster at its first download within the job's weeks: for a URL with a page in the first week
//! that is |C_1(u)|, as the study has it; one that came later has no C_1, and keeps one class, too.

use anyhow::Result;
use timely::worker::Worker;

use crate::operators::exchange::all_gather;
use crate::state::{Downloads, History};
use crate::stats::{ChangeAmounts, SizeClass, change_amount};
use crate::structures::Ownership;
use crate::watch::Watch;

/// Counts the pairs of successive downloads of all URLs, the same at every worker. A worker goes over its shards one
/// after the other, and holds of each file of a shard one batch: `memory` bytes in all.
///
/// # Errors
/// Names the file that cannot be read; or where a worker of this process failed.
pub fn change_amounts(
    worker: &mut Worker,
    history: &History,
    owned: &Ownership,
    memory: u64,
    watch: &Watch,
) -> Result<ChangeAmounts> {
    let features = history.features;
    let mut mine = ChangeAmounts::new(features);
    for shard in owned.shards() {
        let mut downloads = Downloads::open(history, shard, memory)?;
        while let Some((_, of_url)) = downloads.document()? {
            let class = SizeClass::of(of_url[0].size);
            for pair in of_url.windows(2) {
                let (earlier, later) = (&pair[0], &pair[1]);
                let same = earlier.checksum == later.checksum;
                mine.add(change_amount(same, &earlier.features, &later.features, features), class);
            }
        }
    }
    let mut all = ChangeAmounts::new(features);
    all_gather(worker, vec![mine], watch)?.iter().for_each(|amounts| all.merge(amounts));
    Ok(all)
}
