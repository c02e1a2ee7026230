//! Sorts.
//!
//! - [`order`]: with little code;
//! - [`external_sort`]: records in order, in bounded memory;
//! - [`row_sort`]: rows of bytes in order, in bounded memory.

pub mod external_sort;
pub mod order;
pub mod row_sort;

pub use self::external_sort::{ExternalSort, Sortable, Sorted};
pub use self::order::CompactSort;
pub use self::row_sort::{RowSort, SortedRows};
