//! Connected components: from edges to the root of every document.
//!
//! In reading order: `edges` (sends edges to the owners of their documents), `label_propagation`
//! (labels that decrease until none changes), `pointer_doubling` (from labels to roots), `verify`
//! (both ends of every edge have the same root), `roots` (all of these, from edges to roots),
//! `own_forest` (the edges of one worker, without those that join nothing), `forests` (joins the
//! union-finds of all processes, by the four steps above).

mod edges;
mod forests;
mod label_propagation;
mod own_forest;
mod pointer_doubling;
mod roots;
mod verify;

pub use self::edges::{edges, send_edges};
pub use self::forests::{JoinedForests, join_forests};
pub use self::label_propagation::{Labels, components};
pub use self::own_forest::{OwnForest, edge};
pub use self::pointer_doubling::resolve;
pub use self::roots::component_roots;
pub use self::verify::verify;
