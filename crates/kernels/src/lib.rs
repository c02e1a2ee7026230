//! What `nigh` is built on: the inner loops, the records that its workers exchange, and data
//! structures over them.
//!
//! It imports neither timely nor readers; only [`structures::sorts`] writes files. The
//! package is compiled with optimization in every profile, tests included: nearly all time of a run
//! is spent in it.
//!
//! ```text
//! structures                 data structures over records
//! records                    ids, hashes, weeks, levels
//! kernels                    the unsafe code, except one trait of the exchange
//! ```

pub mod kernels;
pub mod records;
pub mod structures;
