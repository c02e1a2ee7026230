//! Stores of several weeks: crawls of all pages or of a part, batches, deletions, and what stays.

/// Batches that are added to a store, whose documents stay.
mod batches;
/// Jobs whose fields changed since their week was made.
mod changed_jobs;
/// Deleted pages.
mod deletion;
/// Histories of small stores, with deletions and removed weeks.
mod histories;
/// What a week keeps besides clusters: chunks of pages, redirects, failed downloads by host.
mod kept;
/// Links of pages that stay, to what came in another batch.
mod late_links;
/// What could not be downloaded, against a plain walk over the tables and the inputs.
pub mod missing;
/// Crawls of a part of the pages.
pub mod partial;
/// Links through redirects count for the studies.
pub mod redirected;
/// Old weeks that are removed.
mod removed;
/// A store that gets more shards, against one that had them from the first.
mod reshard;
/// A store that gets more shards: what is refused, and what a kill leaves.
mod reshard_stopped;
/// What stays of the week before in a crawl of a part of the pages, case by case.
mod stays;
/// A store of an older version is brought up to date.
mod upgrade;
/// Week over week: from what changed and from all pages, with the same tables.
mod weekly;
