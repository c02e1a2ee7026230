//! A store: a folder of committed weeks, to which one run at a time adds.
//!
//! In reading order: `folders` (where every file lies), `lock` (one run writes at a time), `commit`
//! (a week from its beginning to its commit, and recovery after a kill), `publication` (staged
//! files become part of the store at once), `digests` (the digests of all files), `sweep` (removes
//! files that no commit lists), `views` (views of the tables for DuckDB), `catalog` (logs of the
//! tables for Delta Lake), `postings` (the inverted index of the last week), `forget` (leaves out
//! the rows of deleted URLs), `reshard` (a store with more shards takes the place of this one),
//! `vacuum` (removes old weeks), `upgrade` (brings a store of the format before up to date).

mod catalog;
mod commit;
mod digests;
mod folders;
mod forget;
mod lock;
mod postings;
mod publication;
mod reshard;
mod sweep;
mod upgrade;
mod vacuum;
mod views;

pub use self::catalog::{ListedTable, damaged as damaged_log};
pub use self::commit::Begun;
pub use self::digests::{KnownContent, KnownFiles};
pub use self::folders::Store;
pub(crate) use self::folders::TABLES;
#[cfg(test)]
pub(crate) use self::folders::part_file;
pub use self::folders::{JOURNAL, LOCK, MANIFEST, OWN, commit_of, removed_folder};
pub use self::postings::run_folder;
pub use self::upgrade::Upgraded;
pub use self::vacuum::Vacuumed;
pub use self::views::VIEWS;
pub(crate) use self::views::views;
