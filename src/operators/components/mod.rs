//! From edges to the root of every document: connected components.
//!
//! In reading order: `edges` (edges on their way to the owners of their ends), `label_propagation` (labels that decrease
//! until nothing changes), `pointer_doubling` (labels to roots), `verify` (both ends of every edge have one root),
//! `forests` (the union-finds of several processes become one, by the four steps above).

mod edges;
mod forests;
mod label_propagation;
mod pointer_doubling;
mod verify;

pub use self::edges::{edges, tell_edges};
pub use self::forests::{JoinedForests, join_forests};
pub use self::label_propagation::{Labels, components};
pub use self::pointer_doubling::resolve;
pub use self::verify::verify;
