//! The supervisor: starts the processes of a run on this machine, and ends them together.
//!
//! Timely is fail-stop: no single process recovers. When one ends badly all others are ended, and the
//! first cause is what the user hears of; a process that only lost its connection is a victim.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::identity::{Identity, Secrets};
use super::join::Roster;
use super::process::{Outcome, Report, Start};
use super::{EXIT_PANIC, EXIT_PEER_LOST};
use crate::watch::Progress;

/// How long a process may take to start and tell where it listens.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long victims of a loss are waited for, to hear the cause.
const CAUSE_DEADLINE: Duration = Duration::from_secs(5);

/// The children of this process; they are killed and reaped when it is dropped.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // An error says that it ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the reader of a child's stdout heard.
enum Heard {
    Report(Report),
    Closed,
}

/// Runs `processes` copies of this program with the argument `worker`, each given the same plan; returns process 0's outcome, or
/// the first cause of failure. They join by TLS where there is a folder of pool `keys`. `progresses` is kept up to date
/// with every process' counters.
///
/// # Errors
/// Where processes cannot be started.
pub fn supervise(
    processes: usize,
    keys: Option<&Path>,
    plan: &str,
    progresses: &Arc<Mutex<Vec<Progress>>>,
) -> Result<Outcome> {
    let identity = match keys {
        Some(folder) => Identity::Keys(folder.to_owned()),
        None => Identity::Secrets(Secrets::generate()?),
    };
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let (sender, heard) = channel();
    let mut children = Children(Vec::new());
    let mut pipes = Vec::new();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for me in 0..processes {
        let mut child = spawn(&program)?;
        let mut stdin = child.stdin.take().context("a child has a stdin")?;
        let stdout = child.stdout.take().context("a child has a stdout")?;
        children.0.push(child);
        let plan = serde_json::value::RawValue::from_string(plan.to_owned()).context("a plan is JSON")?;
        say(&mut stdin, &Start { me, listen, identity: identity.clone(), plan })?;
        pipes.push(stdin);
        listen_to(me, BufReader::new(stdout), sender.clone());
    }
    let addresses = addresses(processes, &heard, &mut children)?;
    let roster = Roster::new(xxhash_rust::xxh3::xxh3_64(plan.as_bytes()), 0, addresses);
    for stdin in &mut pipes {
        say(stdin, &roster)?;
    }
    follow(&heard, &mut children, progresses)
}

#[cfg(unix)]
fn spawn(program: &Path) -> Result<Child> {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    // A group of its own: Ctrl-C reaches the supervisor, which ends all in order.
    command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    command.spawn().with_context(|| format!("cannot start {}", program.display()))
}

fn say(stdin: &mut ChildStdin, what: &impl serde::Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(what).context("what a process is told is plain data")?;
    line.push(b'\n');
    stdin.write_all(&line).context("a process ended before it began")
}

fn listen_to(me: usize, stdout: impl BufRead + Send + 'static, sender: Sender<(usize, Heard)>) {
    std::thread::spawn(move || {
        for line in stdout.lines() {
            let Some(report) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
            if sender.send((me, Heard::Report(report))).is_err() {
                return;
            }
        }
        let _ = sender.send((me, Heard::Closed));
    });
}

fn addresses(processes: usize, heard: &Receiver<(usize, Heard)>, children: &mut Children) -> Result<Vec<SocketAddr>> {
    let deadline = Instant::now() + START_DEADLINE;
    let mut addresses = vec![None; processes];
    while addresses.iter().any(|address| address.is_none()) {
        match heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((process, Heard::Report(Report::Listening(address)))) => addresses[process] = Some(address),
            Ok((_, Heard::Report(_))) => {}
            Ok((process, Heard::Closed)) => {
                let status = children.0[process].wait().context("cannot wait for a process")?;
                bail!("process {process} ended before it began ({status})")
            }
            Err(_) => bail!("the processes did not start within {} s", START_DEADLINE.as_secs()),
        }
    }
    Ok(addresses.into_iter().flatten().collect())
}

/// Follows the processes until all have ended well, or one has not.
fn follow(
    heard: &Receiver<(usize, Heard)>,
    children: &mut Children,
    progresses: &Arc<Mutex<Vec<Progress>>>,
) -> Result<Outcome> {
    let mut outcomes: Vec<Option<Outcome>> = children.0.iter().map(|_| None).collect();
    let mut closed = 0;
    // Set when the first process ended badly without saying why: its cause may still come from another one.
    let mut victim: Option<(Outcome, Instant)> = None;
    while closed < outcomes.len() {
        let wait = victim.as_ref().map_or(Duration::MAX, |(_, until)| until.saturating_duration_since(Instant::now()));
        let (process, news) = match heard.recv_timeout(wait) {
            Ok(news) => news,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        };
        match news {
            Heard::Report(Report::Listening(_)) => {}
            Heard::Report(Report::Progress(progress)) => {
                let mut progresses = progresses.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                progresses.resize(outcomes.len(), Progress::default());
                progresses[process] = progress;
            }
            Heard::Report(Report::Ended(outcome)) => {
                if matches!(outcome, Outcome::Failed { .. }) {
                    return Ok(outcome);
                }
                outcomes[process] = Some(outcome);
            }
            Heard::Closed => {
                closed += 1;
                let status = children.0[process].wait().context("cannot wait for a process")?;
                if outcomes[process].is_some() {
                    continue;
                }
                let lost = status.code() == Some(EXIT_PEER_LOST);
                let message = match status.code() {
                    Some(EXIT_PEER_LOST) => format!("process {process} lost the connection to another process"),
                    Some(EXIT_PANIC) => format!("process {process} panicked: a fault in this program"),
                    _ => format!("process {process} died ({status})"),
                };
                let outcome = Outcome::Failed {
                    message: format!("{message}; the same command goes on from what is committed"),
                    code: 1,
                };
                if !lost {
                    return Ok(outcome);
                }
                victim.get_or_insert((outcome, Instant::now() + CAUSE_DEADLINE));
            }
        }
    }
    match victim {
        Some((outcome, _)) => Ok(outcome),
        None => outcomes.swap_remove(0).context("process 0 said nothing of how it ended"),
    }
}
