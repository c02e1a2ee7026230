//! A pool: machines on which processes are started by `ssh`.
//!
//! In reading order: `hosts` (the machines of a config), `check` (whether each of them is ready), `probe` (what a machine
//! reports about itself).

mod check;
pub(super) mod hosts;
mod probe;

pub use self::check::{Checked, check};
pub use self::hosts::{HostReach, Launch, Pool, ProcessHost};
pub use self::probe::{Questions, serve_probe};
