//! The store of all weeks: what a job says, what was committed, and who may write.
//!
//! ```text
//! query                      the rows of any table, as other programs read them
//! summary  plan  mirror      mirror: a local copy of a store in a bucket
//! state                      the store of all weeks
//! config                     settings of jobs and machines
//! ```

use nigh_kernels::{records, structures};
use nigh_readers::{objects, readers};
use nigh_tables::{stats, tables};
use nigh_text::text;

pub mod config;
pub mod mirror;
pub mod plan;
pub mod query;
pub mod state;
pub mod summary;
