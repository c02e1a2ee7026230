//! Data structures that do not depend on timely.
//!
//! In reading order:
//!
//! - [`documents`]: which worker owns which, dense numbers, maps and filters of them;
//! - [`components`]: connected components, by union-find;
//! - [`hashing`]: hash maps with documents as keys;
//! - [`group_by_key`]: hash grouping of the records of a partition;
//! - [`key_counts`]: counts by key, sorted;
//! - [`sets`]: sets of numbers and hashes;
//! - [`text_list`]: many short texts in one buffer;
//! - [`sorts`]: in memory, and of more than it holds.

pub mod components;
pub mod documents;
pub mod group_by_key;
pub mod hashing;
pub mod key_counts;
pub mod sets;
pub mod sorts;
pub mod text_list;

pub use self::components::{OwnUnionFind, UnionFind};
pub use self::documents::{DocFilter, DocMap, Numbering, OwnNumbers, Ownership, SparseDocs};
pub use self::group_by_key::Grouper;
pub use self::hashing::{ByKey, DocHasher, Hashes};
pub use self::key_counts::Sums;
pub use self::sets::{BitColumns, Counters, RankBitmap, WordSet};
pub use self::sorts::{CompactSort, ExternalSort, RowSort, Sortable, Sorted, SortedRows};
pub use self::text_list::TextList;
