//! A pool: machines on which processes are started by `ssh`.
//!
//! In reading order: `ssh` (a machine that is reached by ssh), `command` (runs a command with a
//! time limit), `check` (whether each host of a config is ready), `probe` (what a machine reports
//! about itself).

mod check;
mod command;
mod probe;
pub(super) mod ssh;

pub use self::check::{CheckedHost, check};
pub use self::probe::{Questions, serve_probe};
pub use self::ssh::SshHost;
