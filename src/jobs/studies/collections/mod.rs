//! The collections job. In reading order: `job` (the steps), `former` (the avoid list of the run before), `judge` (what
//! crawls would have been without the pages of a list), `tables` (what is written).

mod former;
mod job;
mod judge;
mod tables;

pub use self::former::former_list;
pub use self::job::{check_level, collections};
