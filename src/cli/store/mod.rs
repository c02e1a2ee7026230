//! What is done to a store that is there.
//!
//! - `delete.rs` removes pages from the last week, and `verify.rs` checks its clusters: `remake.rs`
//!   computes that week again, for both. `reshard.rs` gives a store more shards.
//! - `index.rs` makes what `nigh find` looks up; `catalog.rs` keeps a description of the tables for
//!   Delta Lake.
//! - `check.rs` finds damaged files, and changes nothing.
//! - `vacuum.rs` removes old weeks; `upgrade.rs` brings a store of an older version up to date.

pub(super) mod catalog;
pub(super) mod check;
pub(super) mod delete;
pub(super) mod index;
mod key_file;
mod remake;
pub(super) mod reshard;
pub(super) mod upgrade;
pub(super) mod vacuum;
pub(super) mod verify;

pub(super) use remake::DELETED_SINCE;
