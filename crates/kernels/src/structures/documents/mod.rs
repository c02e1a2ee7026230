//! Documents and the workers that own them.
//!
//! - [`ownership`]: which worker owns which document;
//! - [`numbering`]: dense numbers for documents;
//! - [`doc_map`]: a document for each own one, mostly itself;
//! - [`doc_filter`]: a Bloom-style filter for documents.

pub mod doc_filter;
pub mod doc_map;
pub mod numbering;
pub mod ownership;

pub use self::doc_filter::DocFilter;
pub use self::doc_map::{DocMap, SparseDocs};
pub use self::numbering::{Numbering, OwnNumbers};
pub use self::ownership::Ownership;
