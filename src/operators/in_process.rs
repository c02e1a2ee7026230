//! What the workers of one process share in memory, one field for each step that shares something.

use crate::operators::delta::Filter;
use crate::operators::exchange::{Board, Shared};
use crate::structures::Forest;

/// All that the workers of a process share.
#[derive(Default)]
pub struct InProcess {
    /// The union-find of what is joined at the moment.
    pub forest: Shared<Forest>,
    /// The names of survivors, and those of vectors and of their roots.
    pub names: (Shared<Board<1>>, Shared<Board<2>>),
    /// The supershingles of what changed.
    pub filter: Shared<Filter>,
}
