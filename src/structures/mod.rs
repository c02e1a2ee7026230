//! Data structures that know nothing of timely.
//!
//! In reading order: [`ownership`] (which worker owns which document), [`numbering`] (dense numbers for documents),
//! [`union_find`] (shared by the workers of a process), [`hashing`] (maps keyed by documents), [`group_by_key`],
//! [`key_counts`] and [`seen_twice`] (grouping, counting, and values that occur twice), [`bit_columns`], [`rank_bitmap`] and
//! [`doc_filter`] (bits for each document), [`external_sort`] (sorted runs on disk).

pub mod bit_columns;
pub mod doc_filter;
pub mod external_sort;
pub mod group_by_key;
pub mod hashing;
pub mod key_counts;
pub mod numbering;
pub mod ownership;
pub mod rank_bitmap;
pub mod seen_twice;
pub mod union_find;

pub use self::bit_columns::BitColumns;
pub use self::doc_filter::DocFilter;
pub use self::external_sort::{ExternalSort, Sortable, Sorted};
pub use self::group_by_key::Grouper;
pub(crate) use self::hashing::ByKey;
pub use self::hashing::DocHasher;
pub use self::key_counts::Sums;
pub use self::numbering::{Numbering, OwnNumbers};
pub use self::ownership::Ownership;
pub use self::rank_bitmap::RankBitmap;
pub use self::seen_twice::Counters;
pub use self::union_find::UnionFind;
