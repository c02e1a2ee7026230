//! What the workers of one process share in memory: one field for each value that some step shares.
//!
//! A process makes one of these and hands it to all of its workers. The first worker that needs a value makes it, and it is
//! dropped with the last worker's handle ([`Shared`]), so no value stays from one step to the next.

use crate::features::Polynomials;
use crate::operators::delta::ChangedKeys;
use crate::operators::exchange::{Shared, SharedAnswers};
use crate::operators::ingest::UnreadPieces;
use crate::operators::set_join::RowsInProcess;
use crate::structures::UnionFind;

/// All values that the workers of a process share.
#[derive(Default)]
pub struct InProcess {
    /// The polynomials of the method. To find them takes 10 ms, which every worker spent before.
    pub polynomials: Shared<Polynomials>,
    /// The pieces of the crawl that the process was given and has not read.
    pub unread: Shared<UnreadPieces>,
    /// The union-find of the step that joins nodes at the moment.
    pub union_find: Shared<UnionFind>,
    /// The ids of survivors, for lookups.
    pub survivor_ids: Shared<SharedAnswers<1>>,
    /// The ids of vectors and of their roots, for lookups.
    pub vector_ids: Shared<SharedAnswers<2>>,
    /// The supershingles of changed documents.
    pub changed_keys: Shared<ChangedKeys>,
    /// The roots, sizes and hosts of pages with replicas, for lookups.
    pub clustered_pages: Shared<SharedAnswers<3>>,
    /// The rows of a set join.
    pub set_rows: Shared<RowsInProcess>,
}
