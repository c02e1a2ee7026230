//! The state that is kept between runs: a store of weeks, and the unfinished week in it.
//!
//! In reading order: `store` (the folders of a store, its lock, the commit of a week), `weeks`
//! (what the store records of each week), `indexes` (URL to document, supershingle to documents),
//! `history` (tables that span several weeks), `durable` (files that survive a power cut). Start
//! with `store/commit.rs`: it has the protocol of a commit.
//!
//! ```text
//! STORE/
//!   documents|features|urls|links|clusters|…/week=2024-01-08/nigh-00001-00000.parquet
//!                                    a table of a committed week: number of the commit, number of the file
//!   evolution/TABLE/nigh-00003-00000.parquet       tables made of several weeks
//!   clusters/_delta_log/             log of a table for Delta Lake, if `nigh catalog` was asked for it; so for each table
//!   views.sql                        views of the committed tables, for DuckDB
//!   _nigh/
//!     manifest.json                  method, committed weeks and results; replaced atomically: that is a commit
//!     digests/00007.json             size and digest of each file of the last commit and of those before it that stay
//!     lock                           locked by the run that writes
//!     week=2024-01-08/00001/         records of a week, by the number of the commit: job.toml, week.json, summary.json
//!     before=2024-01-08/00004/       URLs of the removed weeks before that date: by id (`urls`), by hash (`url-runs`)
//!     evolution/00003/               job.toml and summary.json of the tables made of several weeks; tables.json where
//!                                    these have rows of each shard
//!     postings/                      inverted index of the last week's supershingles; optional
//!     work/week=2024-01-15/          the tables of an unfinished week: they grow wave by wave
//!     work/scratch-2024-01-15/       files of an unfinished week that are not kept with it
//!       journal.json                 the complete waves; replaced atomically
//!     work/results/                  the tables of a study while they are made, and what does not fit into memory
//!     work/commit/                   a commit in preparation
//!     work/reshard/                  the weeks with more shards, a store that `nigh reshard` makes
//! ```
//!
//! A file belongs to the store if the manifest, or a `week.json` that it names, lists the file. No
//! file is written over, except that `nigh upgrade` replaces each `week.json`. A commit puts its
//! files beside the others, then replaces the manifest, then removes what the manifest does not
//! list any more.
//!
//! In a pool of machines `work` has another name, `work-…`, in each generation of processes, so
//! that a process of an earlier generation cannot write there.
//!
//! The row of a URL in `urls` stays in the week that first saw the URL, and those of a page in
//! `features`, `links` and `chunks` in the week that crawled it. Rows once written are not written
//! again, with one exception: a deletion writes `urls` again without the rows of deleted URLs. If a
//! store gets more shards, all of its weeks are made again, since an id has its shard.
//!
//! ```
//! use nigh_store::state::Store;
//!
//! let folder = std::env::temp_dir().join("nigh-no-such-store");
//! let store = Store::at(&folder);
//! assert!(store.manifest().unwrap().is_none(), "no week was committed yet");
//! let week = "2024-01-08".parse().unwrap();
//! assert_eq!(store.table("documents", week), folder.join("documents/week=2024-01-08"));
//! ```

mod durable;
mod history;
mod indexes;
mod store;
mod weeks;

pub use self::durable::{replace, replace_with, sync_folder};
pub use self::history::{Downloads, History, PastWeek, Results};
pub use self::indexes::{Coding, PostingFile, PostingRuns, UrlIndex, UrlLookup, write_postings};
pub(crate) use self::store::views;
pub use self::store::{Begun, KnownContent, KnownFiles, Store, Upgraded, Vacuumed, run_folder};
pub use self::store::{LOCK, ListedTable, MANIFEST, OWN, VIEWS, commit_of, damaged_log, removed_folder};
pub use self::weeks::{
    AnotherText, BundleName, BundleWriter, CatalogFormat, CommittedWeek, DocumentTotals, Earlier, InputKey, KeptFiles,
    Manifest, Piece, PlacedPiece, ReadingCounts, RevisitCounts, Segment, SegmentOrigin, TablePart, Unfinished,
    WeekFiles, WeekJournal, WeekTables, WholeWeek,
};
pub use self::weeks::{KEPT_TABLES, shard_file};
