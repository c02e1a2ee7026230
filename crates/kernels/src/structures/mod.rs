//! Data structures that do not depend on timely.
//!
//! In reading order:
//!
//! - [`ownership`]: which worker owns which document;
//! - [`numbering`]: dense numbers for documents;
//! - [`union_find`]: connected components, shared by the workers of a process;
//! - [`own_union_find`]: those that one thread has to itself;
//! - [`hashing`]: hash maps with documents as keys;
//! - [`group_by_key`]: hash grouping of the records of a partition;
//! - [`key_counts`]: counts by key, sorted;
//! - [`seen_twice`]: values that occur at least twice, nearly exactly;
//! - [`bit_columns`]: a few bits for each vector;
//! - [`rank_bitmap`]: the rank of a number in a set;
//! - [`doc_map`]: a document for each own one, mostly itself;
//! - [`doc_filter`]: a Bloom-style filter for documents;
//! - [`word_set`]: a set of hashes that is filled and asked many times;
//! - [`text_list`]: many short texts in one buffer;
//! - [`order`]: sorts with little code;
//! - [`external_sort`]: records in order, in bounded memory;
//! - [`row_sort`]: rows of bytes in order, in bounded memory.

pub mod bit_columns;
pub mod doc_filter;
pub mod doc_map;
pub mod external_sort;
pub mod group_by_key;
pub mod hashing;
pub mod key_counts;
pub mod numbering;
pub mod order;
pub mod own_union_find;
pub mod ownership;
pub mod rank_bitmap;
pub mod row_sort;
pub mod seen_twice;
pub mod text_list;
pub mod union_find;
pub mod word_set;

pub use self::bit_columns::BitColumns;
pub use self::doc_filter::DocFilter;
pub use self::doc_map::{DocMap, SparseDocs};
pub use self::external_sort::{ExternalSort, Sortable, Sorted};
pub use self::group_by_key::Grouper;
pub use self::hashing::{ByKey, DocHasher, Hashes};
pub use self::key_counts::Sums;
pub use self::numbering::{Numbering, OwnNumbers};
pub use self::order::CompactSort;
pub use self::own_union_find::OwnUnionFind;
pub use self::ownership::Ownership;
pub use self::rank_bitmap::RankBitmap;
pub use self::row_sort::{RowSort, SortedRows};
pub use self::seen_twice::Counters;
pub use self::text_list::TextList;
pub use self::union_find::UnionFind;
pub use self::word_set::WordSet;
