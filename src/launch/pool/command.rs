//! Runs a command with a time limit.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::launch::program::ended;

/// Runs a command to its end, for at most so long.
pub(crate) fn finished(command: &mut Command, input: Option<Vec<u8>>, within: Duration) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = || format!("cannot run {name}");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().with_context(failed)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // Where it ends early, its exit code tells.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let (stdout, stderr) = (all_of(child.stdout.take()), all_of(child.stderr.take()));
    let status = ended(&mut child, within).with_context(failed)?;
    let status = status.with_context(|| format!("{name} did not end within {} s", within.as_secs()))?;
    // What it started in turn may keep the pipes for longer.
    let said = |pipe: Receiver<Vec<u8>>| pipe.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
    Ok(Output { status, stdout: said(stdout), stderr: said(stderr) })
}

fn all_of(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error still tells something.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}
