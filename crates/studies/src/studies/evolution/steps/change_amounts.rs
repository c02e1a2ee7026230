//! How much pages change from download to download (Fetterly 2004, section 3, Fig. 8 to 10).
//!
//! Two downloads of a URL are successive if it has no download between them: weeks in which the
//! download failed are skipped. A URL belongs to one size class: the class of its cluster at its
//! first download within the job's weeks. For a URL with a page in the first week this is the
//! study's |C_1(u)|. The study has no C_1 for a URL that appears later.

use anyhow::Result;
use nigh_exchange::Context;

use crate::state::{Downloads, History};
use crate::stats::{ChangeAmounts, SizeClass, change_amount};
use crate::structures::Ownership;

/// Counts the pairs of successive downloads of all URLs, by amount of change and size class; every
/// worker returns the same counts. A worker reads its shards one after the other and holds one
/// batch of each file of a shard: `memory` bytes in total.
///
/// # Errors
/// If a file cannot be read (names it), or a worker of this process failed.
pub fn change_amounts(cx: &mut Context, history: &History, owned: &Ownership, memory: u64) -> Result<ChangeAmounts> {
    let features = history.features;
    let mut of_worker = ChangeAmounts::new(features);
    for shard in owned.shards() {
        let mut downloads = Downloads::open(history, shard, memory)?;
        while let Some((_, downloads_of_url)) = downloads.document()? {
            let class = SizeClass::of(downloads_of_url[0].size);
            for pair in downloads_of_url.windows(2) {
                let (earlier, later) = (&pair[0], &pair[1]);
                let same = earlier.checksum == later.checksum;
                of_worker.add(change_amount(same, &earlier.features, &later.features, features), class);
            }
        }
    }
    let mut all = ChangeAmounts::new(features);
    cx.sorted(vec![of_worker])?.iter().for_each(|amounts| all.merge(amounts));
    Ok(all)
}
