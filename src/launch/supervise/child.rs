//! A process as its generation holds it: started here, or by the agent of a task.

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::launch::Running;
use crate::launch::hosts::{HostReach, Launch, ProcessHost};
use crate::launch::pipes::{Pipes, ProcessExit};
use crate::launch::program::ended;

/// How long a process whose stdout ended may take to be gone.
const GONE_DEADLINE: Duration = Duration::from_secs(5);

/// A process that was started.
pub(crate) enum Child {
    /// The program itself, or the `ssh` that reaches it.
    Here(std::process::Child),
    /// The one of a task.
    Task(Running),
}

impl Child {
    /// Starts a process on its host.
    pub fn start(host: &ProcessHost) -> Result<(Child, Pipes)> {
        if let HostReach::Task { agents, task } = &host.place {
            let (running, pipes) = agents.begin(*task)?;
            return Ok((Child::Task(running), pipes));
        }
        let Launch { mut command, first } = host.launch(&["worker"])?;
        // A group of its own: Ctrl-C reaches the supervisor, which ends all in order.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        let stdin = Box::new(child.stdin.take().context("a child has a stdin")?);
        let stdout = Box::new(child.stdout.take().context("a child has a stdout")?);
        let stderr = Box::new(child.stderr.take().context("a child has a stderr")?);
        Ok((Child::Here(child), Pipes { first, stdin, stdout, stderr }))
    }

    /// How one whose stdout ended has ended; it is killed where it does not by itself.
    pub fn gone(&mut self) -> Result<ProcessExit> {
        let failed = "cannot wait for a process";
        match self {
            Child::Here(child) => Ok(ProcessExit::Exited(match ended(child, GONE_DEADLINE).context(failed)? {
                Some(status) => status,
                None => child.wait().context(failed)?,
            })),
            Child::Task(running) => Ok(running.gone(GONE_DEADLINE).unwrap_or_else(|| {
                running.kill();
                ProcessExit::Lost("it does not say how its process ended".to_owned())
            })),
        }
    }

    /// Kills it if it still runs; says whether it is known to be gone. Of one that another machine has, that is its
    /// `ssh`.
    pub fn kill(&mut self) -> bool {
        match self {
            Child::Here(child) => {
                // An error says that it ended already.
                let _ = child.kill();
                child.wait().is_ok()
            }
            Child::Task(running) => running.kill(),
        }
    }
}
