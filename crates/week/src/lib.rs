//! What makes a week: dataflows over the records of pages, and the jobs that run them one after
//! the other.
//!
//! ```text
//! jobs                       what makes a week
//! operators                  the dataflows: timely appears from here up
//! ```

use nigh_exchange::watch;
use nigh_kernels::{kernels, records, structures};
use nigh_readers::readers;
use nigh_store::{config, plan, state, summary};
use nigh_tables::{stats, tables};
use nigh_text::{features, text};

pub mod jobs;
pub mod operators;
