//! Reads the tables of a week, each worker those of its own shards.
//!
//! In reading order:
//!
//! - `vectors`: the files with the supershingles of documents, and lookups in them;
//! - `chunks`: scans them in large chunks, in the order of documents;
//! - `columns`: one open file of vectors;
//! - `counting`: which rows of a file count;
//! - `sketches`: supershingles and features, batch by batch;
//! - `pages`: checksums of page bodies, and the list of a worker's segments;
//! - `links`: links whose targets are known;
//! - `redirects`: the pages that redirects lead to;
//! - `late_targets`: the pages that links lead to, if these came later;
//! - `url_targets`: what redirects and late pages say of a URL;
//! - `roots`: the roots and cluster ids of a committed week.

mod chunks;
mod columns;
mod counting;
mod late_targets;
mod links;
mod pages;
mod redirects;
mod roots;
mod sketches;
mod url_targets;
mod vectors;

pub use self::chunks::{ChunkScan, VectorChunk};
pub use self::late_targets::LateTargets;
pub use self::links::{LinkReader, LinkSource, OwnLink};
pub use self::pages::{docs_with_urls, own_segments, pages};
pub use self::redirects::MOST_REDIRECTS;
pub use self::roots::{PastClusters, VectorRoots, read_past, read_roots};
pub use self::sketches::{SketchFiles, VectorBatch, Vectors};
pub use self::url_targets::UrlTargets;
pub use self::vectors::{VectorFile, VectorFiles, VectorRow};
