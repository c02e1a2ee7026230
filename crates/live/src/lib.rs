//! What a user asks of a week, and clusters that a process keeps right document by document.
//!
//! ```text
//! live                       clusters that a process keeps right
//! look                       what a user asks of a week
//! ```

use nigh_kernels::{kernels, records, structures};
use nigh_readers::readers;
use nigh_store::{config, plan, state, summary};
use nigh_studies::studies;
use nigh_tables::tables;
use nigh_text::{features, text};
use nigh_week::operators;

pub mod live;
pub mod look;
