//! Made-up data for benchmarks, as large as wanted and the same each time.
//!
//! In reading order: `sizes` (cluster sizes by a power law), `permutation` (a random order without memory), `vectors` (vectors
//! of supershingles with known clusters), `dataset` (their files), `graphs` (graphs with known components).

mod dataset;
mod graphs;
mod permutation;
mod sizes;
mod vectors;

pub(crate) use self::dataset::{Dataset, SHARDS, files};
pub(crate) use self::graphs::{Graph, GraphShape};
pub(crate) use self::vectors::{Noise, Synthetic, WIDTH};
