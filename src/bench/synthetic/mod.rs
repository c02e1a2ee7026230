//! Made-up input for benchmarks, of any size, and the same in every run and on every machine.
//!
//! In reading order: `sizes` (cluster sizes by a power law), `permutation` (a random order that
//! takes no memory), `vectors` (vectors of supershingles with known clusters), `labels` (these
//! clusters, with what noise joins), `features` (features that fit them), `dataset` (files of
//! them), `graphs` (graphs with known components), `chunk_sets` (pages with shared chunks), `words`
//! and `pages` (a web of pages, with their text and markup), `host_clusters` (hosts with shared
//! clusters), `linked_hosts` (hosts that copy others, with their links), `url_hosts` (hosts that
//! copy the paths of others).

mod chunk_sets;
mod dataset;
mod features;
mod graphs;
mod host_clusters;
mod labels;
mod linked_hosts;
mod pages;
mod permutation;
mod random;
mod sizes;
mod url_hosts;
mod vectors;
mod words;

pub(crate) use self::chunk_sets::ChunkSets;
pub(crate) use self::dataset::{Dataset, DatasetPlan, SHARDS, files};
pub(crate) use self::features::FEATURES;
pub(crate) use self::graphs::{Graph, GraphShape};
pub(crate) use self::host_clusters::HostClusters;
pub(crate) use self::labels::label_checksum;
pub(crate) use self::linked_hosts::LinkedHosts;
pub(crate) use self::pages::WebPages;
pub(crate) use self::url_hosts::UrlHosts;
pub(crate) use self::vectors::{Noise, Synthetic, WIDTH};
#[cfg(feature = "live")]
pub(crate) use self::words::{Script, Vocabulary};
