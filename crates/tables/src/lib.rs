//! Tables of `nigh`: each is declared once, as a row type; it is written as Parquet with a
//! description of every column, and read by columns.
//!
//! ```text
//! tables                     declarations, writers, readers, and the log of commits that Delta readers follow
//! stats                      counts, fits and distributions, which tables and summaries have
//! ```

// `#[derive(Table)]` names the traits of `tables` as other packages do.
extern crate self as nigh_tables;

use nigh_kernels::records;
use nigh_readers::readers;

pub mod stats;
pub mod tables;
