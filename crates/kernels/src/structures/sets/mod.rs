//! Sets of numbers and hashes.
//!
//! - [`rank_bitmap`]: the rank of a number in a set;
//! - [`word_set`]: a set of hashes that is filled and asked many times;
//! - [`seen_twice`]: values that occur at least twice, nearly exactly;
//! - [`bit_columns`]: a few bits for each vector.

pub mod bit_columns;
pub mod rank_bitmap;
pub mod seen_twice;
pub mod word_set;

pub use self::bit_columns::BitColumns;
pub use self::rank_bitmap::RankBitmap;
pub use self::seen_twice::Counters;
pub use self::word_set::WordSet;
