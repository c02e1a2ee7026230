//! The state that is kept between runs: a store of weeks, and the unfinished week in it.
//!
//! In reading order: `store` (the folders of a store, its lock, the commit of a week), `weeks` (what the store records of each
//! week), `indexes` (URL to document, supershingle to documents), `history` (tables that span several weeks), `durable` (files
//! that survive a power cut). Start with `store/commit.rs`: it has the protocol of a commit.
//!
//! ```text
//! STORE/
//!   manifest.json              method and committed weeks; replaced atomically
//!   lock                       locked by the run that writes
//!   week=2024-01-08/           a committed week: one rename makes it appear, complete
//!     documents|features|urls|links|clusters|…/*.parquet
//!     job.toml  week.json  summary.json
//!     deleted/                 URLs that were deleted from the week, until their rows have left every `urls`
//!   urls/before=2024-01-08/    URLs of the removed weeks before that date: by id (`urls`), by hash (`url-runs`)
//!   evolution/                 tables made of several weeks; replaced as one folder
//!   _postings/                 inverted index of the last week's supershingles; optional
//!   _work/week=2024-01-15/     an unfinished week: grows wave by wave; queries over week=* do not see it
//!   _work/replaced-2024-01-15/ the old version of a week while the new version takes its place
//!   _work/scratch-2024-01-15/  files of an unfinished week that are not kept with it
//!     journal.json             the complete waves; replaced atomically
//! ```
//!
//! In a pool of machines `_work` has another name, `_work-…`, in each generation of processes, so that a process of an earlier
//! generation cannot write there.
//!
//! The row of a URL in `urls` stays in the week that first saw the URL. So a week is committed by one rename, and rows once
//! written are not written again, with one exception: rows of deleted URLs are removed from `urls`.
//!
//! ```
//! use nigh::state::Store;
//!
//! let folder = std::env::temp_dir().join("nigh-no-such-store");
//! let store = Store::at(&folder);
//! assert!(store.manifest().unwrap().is_none(), "no week was committed yet");
//! assert_eq!(store.week("2024-01-08".parse().unwrap()), folder.join("week=2024-01-08"));
//! ```

mod durable;
mod history;
mod indexes;
mod store;
mod weeks;

pub use self::durable::{replace, sync_folder};
pub use self::history::{Downloads, History, PastWeek, Results};
pub use self::indexes::{Coding, PostingFile, PostingRuns, UrlIndex, write_postings};
pub use self::store::{Begun, Store, Vacuumed, run_folder};
pub use self::weeks::{CommittedWeek, Counts, Earlier, InputKey, Journal, Manifest, Segment, Unfinished, WholeWeek};
