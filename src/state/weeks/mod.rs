//! What is known of weeks.
//!
//! In reading order: `manifest` (the committed weeks of a store), `earlier` (the weeks on which another one builds),
//! `journal` (the waves of a week in the making), `unfinished` (its files).

mod earlier;
mod journal;
mod manifest;
mod unfinished;

pub use self::earlier::Earlier;
pub use self::journal::{Counts, InputKey, Journal, Segment};
pub use self::manifest::{CommittedWeek, Manifest, RemovedWeeks, WholeWeek};
pub use self::unfinished::Unfinished;
pub(crate) use self::unfinished::week_of;
