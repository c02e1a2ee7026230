//! The store as a folder of weeks.
//!
//! In reading order: `folders` (where everything lies), `lock` (one run writes at a time), `commit` (a week from its
//! beginning to its commit, and recovery), `postings` (the inverted index of the last week), `forget` (weeks that are
//! removed), `vacuum` (their files).

mod commit;
mod folders;
mod forget;
mod lock;
mod postings;
mod vacuum;

pub use self::commit::Begun;
pub use self::folders::Store;
pub(crate) use self::folders::{BEFORE, JOURNAL};
pub use self::postings::run_folder;
pub use self::vacuum::Vacuumed;
