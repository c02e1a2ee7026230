//! The collections job. In reading order: `job` (the steps), `former` (the avoid list of the run before), `tables` (what is written).

mod former;
mod job;
mod tables;

pub use self::former::former_list;
pub use self::job::{check_level, collections};
