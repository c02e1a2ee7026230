//! Steps of a dataflow, one a file. Timely appears from here up.
//!
//! In reading order:
//!
//! - running: `phase` (a dataflow to its end; who owns what), `gather` (small results to everybody), `round`
//!   (records to their owners), `shared` (what the workers of a process share), `numbering` (dense numbers);
//! - exchange: `block` (records of one partition, routed whole), `ranges` (keyed records, a range at a time), `stash`
//!   (blocks that wait, in memory or on disk), `partitions` (a partition at a time), `lookup` (what the owners of some
//!   nodes know), `ranks` (where numbers stand in a list);
//! - reading: `crawl` (files to answers), `spill` (answers in order), `segments` (waves to tables), `failures` (what
//!   could not be downloaded, to tables), `commit` (waves become durable),
//!   `vectors` (sketches from tables), `chunks` (supershingles alone, in order);
//! - clustering: `clusters` (the whole stage), `collapse` (identical vectors), `counters` (what occurs twice), `marks`
//!   (what is known of own vectors), `prune` (who may agree with anybody), `survivors` (those who may), `group` (by key,
//!   in cache), `pairs` (shared megashingles to edges), `forest` (edges joined within a process), `join` (forests of all
//!   processes), `components` (labels), `resolve` (labels to roots), `edges` and `verify` (every edge has one root),
//!   `exact` (exact copies among identical vectors);
//! - week over week: `choice` (which way is quicker), `roots` (last week's), `delta` (this week's, from those),
//!   `changes` (vectors that differ), `heirs` (who stays in their clusters), `filter` (which supershingles they have),
//!   `postings` (who shares some of them), `holders` and `keyed` (who holds their keys), `sent` (how many were told),
//!   `certificate` and `bridges` (who may leave without parting others), `pieces` (what clusters fall into), `leaves`
//!   (who only joins a cluster), `relabel` (label differences, by differential dataflow), `renamed` (roots after a
//!   change), `sieve` (a quick look);
//! - tables: `tally` (members of clusters), `sums` (counts by key), `overlaps` (what clusters have in common), `names`
//!   (which cluster is which of last week's, and what became of those), `evidence` (how alike), `largest`, `links`;
//! - weeks: `cluster_map` (a committed week's clusters), `retention`, `births` (and deaths), `hosts` (clusters of hosts),
//!   `amounts` (changes).
//!
//! No table depends on the number of workers: what a step finds is a function of its input alone. (How much of what
//! need not be exact is sent does depend on how keys are cut.)

mod amounts;
mod births;
mod block;
mod bridges;
mod certificate;
mod changes;
mod choice;
mod chunks;
mod cluster_map;
mod clusters;
mod collapse;
mod commit;
mod components;
mod counters;
mod crawl;
mod delta;
mod edges;
mod evidence;
mod exact;
mod failures;
mod filter;
mod forest;
mod gather;
mod group;
mod heirs;
mod holders;
mod hosts;
mod join;
mod keyed;
mod largest;
mod leaves;
mod links;
mod lookup;
mod marks;
mod names;
mod numbering;
mod overlaps;
mod pairs;
mod partitions;
mod phase;
mod pieces;
mod postings;
mod prune;
mod ranges;
mod ranks;
mod relabel;
mod renamed;
mod resolve;
mod retention;
mod roots;
mod round;
mod segments;
mod sent;
mod shared;
mod sieve;
mod spare;
mod spill;
mod stash;
mod sums;
mod survivors;
mod tally;
mod vectors;
mod verify;

pub use amounts::amounts;
pub use births::{births, deaths};
pub use block::{Block, BlockBuilder, Dealer, by_part};
pub use choice::{Choice, choose};
pub use chunks::{VectorFile, VectorFiles};
pub use cluster_map::{Belongs, COULD_NOT_DOWNLOAD, ClusterMap, cluster_map};
pub use clusters::{Clustering, Clusters, Took, clusters};
pub use commit::{Note, TooManyRejects, check_rejects, commit};
pub use components::{Labels, components};
pub use crawl::{Answer, Bad, Found, crawl};
pub use delta::{Delta, Delved, VectorRoots, delta};
pub use edges::{edges, tell_edges};
pub use evidence::{Alike, evidence};
pub use exact::exact;
pub use failures::{Failed, Reasons, failures};
pub use filter::Filter;
pub use forest::Forest;
pub use gather::gather;
pub use hosts::host_clusters;
pub use join::{Joined, join};
pub use largest::{LevelClusters, largest};
pub use links::links;
pub use names::{Names, Naming, Past, names};
pub use numbering::Numbering;
pub use overlaps::{Overlap, overlaps};
pub use phase::{Owned, run_to_end};
pub use postings::{Index, NextRun, post_all};
pub use relabel::{EdgeDifference, relabel};
pub use resolve::resolve;
pub use retention::retention;
pub use roots::{read_past, read_roots};
pub use round::round;
pub use segments::{Made, segments};
pub use shared::{InProcess, Shared};
pub use sieve::Sieve;
pub use tally::{Tallies, tally};
pub use vectors::{VectorBatch, Vectors, own_segments, pages};
pub use verify::verify;
