//! Processes that a scheduler (SLURM, Kubernetes) starts as the tasks of one job.
//!
//! In reading order: `task` (which task this is, from the scheduler's variables), `control` (the
//! frames between task 0 and the others), `agents` (the other tasks, as task 0 sees them), `agent`
//! (the code of the other tasks).

mod agent;
mod agents;
mod control;
mod task;

pub use self::agent::{TaskNotice, serve_task};
pub use self::agents::Agents;
pub(crate) use self::agents::Running;
pub use self::task::SchedulerTask;
