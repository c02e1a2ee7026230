//! What the workers of one process share in memory, one field for each step that shares something.

use crate::operators::delta::ChangedKeys;
use crate::operators::exchange::{Shared, SharedAnswers};
use crate::structures::UnionFind;

/// All that the workers of a process share.
#[derive(Default)]
pub struct InProcess {
    /// The union-find of what is joined at the moment.
    pub forest: Shared<UnionFind>,
    /// The names of survivors, and those of vectors and of their roots.
    pub names: (Shared<SharedAnswers<1>>, Shared<SharedAnswers<2>>),
    /// The supershingles of what changed.
    pub filter: Shared<ChangedKeys>,
}
