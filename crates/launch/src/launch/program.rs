//! How this program starts itself again, and the end of a child with a time limit.

use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::config::Variables;
use crate::objects::credentials_variable;

/// The command that starts this program again on this machine. Its process has the variables of
/// this one, and what flags of this one say in their place.
///
/// # Errors
/// If the file of this program cannot be found.
pub fn program_command() -> Result<Command> {
    let mut command = Command::new(this_program()?);
    command.envs(inherited_variables().0);
    Ok(command)
}

/// The variables that a process on any machine has from this one.
pub(crate) fn inherited_variables() -> Variables {
    let (name, value) = credentials_variable();
    Variables([(name.to_owned(), value.to_owned())].into())
}

/// Starts a command with pipes: its stdin, stdout and stderr.
pub(crate) fn spawn_with_pipes(command: &mut Command) -> Result<(Child, ChildStdin, ChildStdout, ChildStderr)> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
    let stdin = child.stdin.take().context("a child has a stdin")?;
    let stdout = child.stdout.take().context("a child has a stdout")?;
    let stderr = child.stderr.take().context("a child has a stderr")?;
    Ok((child, stdin, stdout, stderr))
}

/// Waits for a child and returns its status; `None` if it did not end within this time and was
/// killed.
pub(crate) fn ended(child: &mut Child, within: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > within {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The path of this program.
pub(crate) fn this_program() -> Result<PathBuf> {
    let path = std::env::current_exe().context("cannot find the file of this program")?;
    // The link leads to the running program even if its file was replaced.
    Ok(if path.exists() { path } else { PathBuf::from("/proc/self/exe") })
}
