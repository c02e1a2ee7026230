//! New roots after a change.
//!
//! In reading order: `incremental_labels` (from differences of edges to labels, by differential
//! dataflow), `new_roots` (from labels to roots).

mod incremental_labels;
mod new_roots;

pub use self::incremental_labels::labels_of_edges;
pub use self::incremental_labels::{EdgeDifference, incremental_labels};
pub(crate) use self::new_roots::NewRoots;
