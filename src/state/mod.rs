//! What is kept between runs: a store, and the week that is being made in it.
//!
//! In reading order: `store` (folders, lock, commit), `manifest` (what a store holds), `journal` (how far an
//! unfinished week is), `earlier` (what a week stands on), `urls` (which URL has which id), `forget` (URLs that were
//! deleted), `vacuum` (weeks that are removed), `history` (the weeks that are there), `downloads` (every URL's, week
//! after week), `results` (tables made of weeks), `postings` (an index of the last week's vectors), `durable` (files
//! that survive a power cut).
//!
//! ```text
//! STORE/
//!   manifest.json              method, committed weeks; replaced whole
//!   lock                       held by the run that writes
//!   week=2024-01-08/           committed: appears whole, by one rename
//!     documents|features|urls|links|clusters|…/*.parquet
//!     job.toml  week.json  summary.json
//!     deleted/                 URLs that are being deleted with the week, until no `urls` has them
//!   urls/before=2024-01-08/    the URLs of the weeks before that one, which were removed: by id (`urls`), by hash (`url-runs`)
//!   evolution/                 tables made of the weeks; replaced as a whole
//!   _postings/                 who holds which supershingle in the last week; missing where no week asked for it
//!   _work/week=2024-01-15/     unfinished: grows wave by wave, invisible to readers of week=*; a pool of machines
//!                              works in a folder `_work-…` that each generation of its processes names anew
//!   _work/replaced-2024-01-15/ the week as it was, while another one takes its place
//!   _work/scratch-2024-01-15/  what is not kept with the week
//!     journal.json             the waves that are whole; replaced whole
//! ```
//!
//! URLs keep their rows in the week in which they were first seen (`urls`), so that a week is
//! committed by one rename; what was written is not written again, but that rows of deleted URLs are left out of `urls`.

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
