//! Brings last week's clusters to this week from what changed. Above a few per cent of changed documents a full clustering is
//! quicker; `cost` predicts which one is.
//!
//! In reading order: `cost` (full or delta), `update` (the whole of a delta, from top to bottom), `step` (one slice of keys),
//! `sharing` (which unchanged documents share keys with changed ones), `splits` (whether clusters that lose documents
//! fall apart), `relabel` (new roots, by differential dataflow).

mod cost;
mod relabel;
mod sharing;
mod splits;
mod step;
mod update;

pub use self::cost::{Choice, choose};
pub use self::relabel::{EdgeDifference, relabel};
pub use self::sharing::{ChangedKeys, Changes, NextRun, PostingIndex, changes, post_all};
pub use self::splits::{RemainingHolder, RemainingMembers, holds, split_components};
pub use self::step::Delta;
pub use self::update::{DeltaStats, delta};
