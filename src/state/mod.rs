//! What is kept between runs: a store, and the week that is being made in it.
//!
//! In reading order: `store` (folders, lock, commit), `manifest` (what a store holds), `journal` (how
//! far an unfinished week is), `urls` (which URL has which id), `durable` (files that survive a
//! power cut).
//!
//! ```text
//! STORE/
//!   manifest.json              method, committed weeks; replaced whole
//!   lock                       held by the run that writes
//!   week=2024-01-08/           committed: appears whole, by one rename
//!     documents|features|urls|links|clusters|…/*.parquet
//!     job.toml  week.json  summary.json
//!   _work/week=2024-01-15/     unfinished: grows wave by wave, invisible to readers of week=*
//!   _work/scratch-2024-01-15/  what is not kept with the week
//!     journal.json             the waves that are whole; replaced whole
//! ```
//!
//! URLs keep their rows in the week in which they were first seen (`urls`), so that a week is
//! committed by one rename and nothing that was written is ever written again.

mod durable;
mod journal;
mod manifest;
mod store;
mod urls;

pub use durable::{replace, sync_folder};
pub use journal::{Counts, InputKey, Journal, Segment};
pub use manifest::{CommittedWeek, FORMAT, Manifest, WholeWeek};
pub use store::{Begun, Store, Unfinished};
pub use urls::{UrlIndex, UrlLookup};
