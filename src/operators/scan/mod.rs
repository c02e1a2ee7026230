//! Reads the tables of a week back, each worker those of its own shards.
//!
//! In reading order: `vectors` (supershingles, in large pieces), `sketches` (supershingles and features, batch by batch),
//! `pages` (hashes of page bodies, and the list of a worker's segments), `roots` (the roots of a committed week).

mod pages;
mod roots;
mod sketches;
mod vectors;

pub use self::pages::{own_segments, pages};
pub use self::roots::{PastClusters, VectorRoots, read_past, read_roots};
pub use self::sketches::{VectorBatch, Vectors};
pub use self::vectors::{ChunkScan, VectorChunk, VectorFile, VectorFiles, VectorRow};
