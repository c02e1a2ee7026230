//! Runs a command with a time limit.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::launch::program::ended;

/// Runs a command to its end, with `input` on its stdin, for at most `within`.
pub(crate) fn run_within(command: &mut Command, input: Option<Vec<u8>>, within: Duration) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = || format!("cannot run {name}");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().with_context(failed)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A command that ends early closes the pipe: its exit code is the error.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let (stdout, stderr) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
    let status = ended(&mut child, within).with_context(failed)?;
    let status = status.with_context(|| format!("{name} did not end within {} s", within.as_secs()))?;
    // Its own children may keep the pipes open.
    let output = |pipe: Receiver<Vec<u8>>| pipe.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
    Ok(Output { status, stdout: output(stdout), stderr: output(stderr) })
}

/// Reads a pipe to its end in a thread of its own.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // The bytes before an error are kept.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}
