//! Steps of a dataflow, one a file. Timely appears from here up.
//!
//! In reading order:
//!
//! - running: `phase` (a dataflow to its end; who owns what), `gather` (small results to everybody);
//! - exchange: `block` (records of one partition, routed whole), `ranges` (keyed records, a range at a
//!   time), `partitions` (a partition at a time);
//! - reading: `crawl` (files to answers), `spill` (answers in order), `segments` (waves to tables),
//!   `commit` (waves become durable);
//! - clustering: `vectors` (sketches from tables), `group` (by key, in cache), `collapse` (identical
//!   vectors), `edges` (shared megashingles), `components` (labels), `resolve` (labels to roots);
//! - tables: `tally` (members of clusters), `evidence` (how alike), `largest`, `links`.
//!
//! Nothing here depends on the number of workers: what a step gives is a function of its input alone.

mod block;
mod collapse;
mod commit;
mod components;
mod crawl;
mod edges;
mod evidence;
mod gather;
mod group;
mod largest;
mod links;
mod partitions;
mod phase;
mod ranges;
mod resolve;
mod segments;
mod spill;
mod tally;
mod vectors;

pub use block::{Block, BlockBuilder, Dealer, by_part};
pub use collapse::{IdentityRoots, Roots, Vectored, collapse, keep_roots};
pub use commit::{Note, TooManyRejects, check_rejects, commit};
pub use components::{Labels, components};
pub use crawl::{Answer, Bad, Found, crawl};
pub use edges::edges;
pub use evidence::{Alike, evidence};
pub use gather::gather;
pub use group::{Group, Grouper};
pub use largest::{LevelClusters, largest};
pub use links::links;
pub use partitions::each_partition;
pub use phase::{Owned, run_to_end};
pub use ranges::{Deal, Ranges, ranges};
pub use resolve::resolve;
pub use segments::{Made, segments};
pub use tally::{Tallies, tally};
pub use vectors::{VectorBatch, Vectors, checksums, own_segments};
