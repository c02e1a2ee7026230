//! New roots after a change.
//!
//! In reading order: `incremental_labels` (label differences, by differential dataflow), `new_roots` (differences to roots).

mod incremental_labels;
mod new_roots;

pub use self::incremental_labels::{EdgeDifference, relabel};
pub(crate) use self::new_roots::NewRoots;
