//! A store: a folder of committed weeks, to which one run at a time adds.
//!
//! In reading order: `folders` (where every file lies), `lock` (one run writes at a time), `commit` (a week from its beginning to
//! its commit, and recovery after a kill), `postings` (the inverted index of the last week), `forget` (removes the rows of deleted
//! URLs), `vacuum` (removes old weeks).

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
