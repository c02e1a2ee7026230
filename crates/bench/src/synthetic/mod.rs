//! Made-up input for benchmarks, of any size, and the same in every run and on every machine. What
//! only one study needs lies with its benchmark.
//!
//! In reading order: `random` (random numbers), `sizes` (cluster sizes by a power law),
//! `permutation` (a random order that takes no memory), `vectors` (vectors of supershingles with
//! known clusters), `labels` (these clusters, with what noise joins), `features` (features that fit
//! them), `dataset` (files of them), `graphs` (graphs with known components), `chunk_sets` (pages
//! with shared chunks), `words` and `pages` (a web of pages, with their text and markup),
//! `linked_hosts` (hosts that copy others, with their links).

mod chunk_sets;
mod dataset;
mod features;
mod graphs;
mod labels;
mod linked_hosts;
mod pages;
mod permutation;
mod random;
mod sizes;
mod vectors;
mod words;

pub use self::chunk_sets::ChunkSets;
pub use self::dataset::{Dataset, DatasetPlan, SHARDS, files};
pub use self::features::FEATURES;
pub use self::graphs::{Graph, GraphShape};
pub use self::labels::label_checksum;
pub use self::linked_hosts::LinkedHosts;
pub use self::pages::WebPages;
pub use self::random::Random;
pub use self::vectors::{MadeVectors, Noise, WIDTH};
pub use self::words::{Script, Vocabulary};
