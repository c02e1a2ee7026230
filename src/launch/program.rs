//! Runs programs with a time limit.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

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

/// How a child ended; `None` where it had to be killed after so long.
pub(crate) fn ended(child: &mut Child, within: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > within {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where this program is.
pub(crate) fn this_program() -> Result<PathBuf> {
    let path = std::env::current_exe().context("cannot tell where this program is")?;
    // The link leads to the program even when its file was replaced meanwhile.
    Ok(if path.exists() { path } else { PathBuf::from("/proc/self/exe") })
}
