//! A started process of a generation: a child of the supervisor, or a process of a scheduler's
//! task.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::launch::Running;
use crate::launch::pipes::{ProcessExit, ProcessPipes};
use crate::launch::process_hosts::{HostReach, Launch, ProcessHost};
use crate::launch::program::{ended, spawn_with_pipes};

/// How long a process may run after its stdout ended.
const EXIT_DEADLINE: Duration = Duration::from_secs(5);

/// A process that was started.
pub(crate) enum Child {
    /// A child of the supervisor: the program itself, or the `ssh` that runs it.
    Local(std::process::Child),
    /// A process that the agent of a task started.
    Task(Running),
}

impl Child {
    /// Starts a process on its host.
    pub fn start(host: &ProcessHost) -> Result<(Child, ProcessPipes)> {
        if let HostReach::Task { agents, task } = &host.reach {
            let (running, pipes) = agents.start(*task)?;
            return Ok((Child::Task(running), pipes));
        }
        let Launch { mut command, first } = host.launch(&["worker"])?;
        // A process group of its own: only the supervisor receives Ctrl-C, and ends all processes
        // in order.
        let (child, stdin, stdout, stderr) = spawn_with_pipes(command.process_group(0))?;
        let (stdin, stdout, stderr) = (Box::new(stdin), Box::new(stdout), Box::new(stderr));
        Ok((Child::Local(child), ProcessPipes { first, stdin, stdout, stderr }))
    }

    /// Waits for a process whose stdout ended. Kills it if it does not end within the deadline.
    pub fn wait(&mut self) -> Result<ProcessExit> {
        let failed = "cannot wait for a process";
        match self {
            Child::Local(child) => Ok(ProcessExit::Exited(match ended(child, EXIT_DEADLINE).context(failed)? {
                Some(status) => status,
                None => child.wait().context(failed)?,
            })),
            Child::Task(running) => Ok(running.wait(EXIT_DEADLINE).unwrap_or_else(|| {
                running.kill();
                ProcessExit::Lost("its agent does not report the end of the process".to_owned())
            })),
        }
    }

    /// Kills the process if it still runs. Returns whether it has certainly ended; for a process
    /// reached by ssh, whether the `ssh` has.
    pub fn kill(&mut self) -> bool {
        match self {
            Child::Local(child) => {
                // An error means that it has ended already.
                let _ = child.kill();
                child.wait().is_ok()
            }
            Child::Task(running) => running.kill(),
        }
    }
}
