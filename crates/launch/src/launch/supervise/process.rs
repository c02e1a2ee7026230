//! One process of several: receives its work from the supervisor, joins the other processes, and
//! reports its progress.
//!
//! The messages are lines of JSON over the pipes of the process. It reads [`Start`] and then the
//! [`Roster`] from stdin, perhaps [`EndAtBorder`] later, and writes [`ProcessReport`]s to stdout
//! from its first moment: the supervisor takes a silent process for frozen. When stdin ends, the
//! supervisor has ended, and the process exits.
//!
//! On SIGTERM a process reports that it is to end, and goes on working: the supervisor ends all
//! processes after the wave that is read. A second SIGTERM ends it at once.

use std::io::{BufRead, Stdout, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::launch::handshake::{Credentials, Deadlines, Identity, Roster, join, listen};
use crate::launch::threads::Peers;
use crate::watch::{Progress, Watch};

/// How often a process reports its counters.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// The first message to a process.
#[derive(Serialize, Deserialize)]
pub struct Start {
    /// The number of the process, which is that of its key.
    pub me: usize,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// The address at which to listen; the system chooses the port if it is 0.
    pub listen: SocketAddr,
    /// The last port to try; the process takes the first that is free.
    pub last_port: u16,
    /// How the processes of the run identify themselves to each other.
    pub identity: Identity,
    /// The work, as the caller of `supervise` wrote it.
    pub plan: Box<serde_json::value::RawValue>,
}

/// A message of a process to its supervisor.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessReport {
    /// The process listens.
    Ready(Ready),
    /// The process has joined all others.
    Joined,
    /// Its counters.
    Progress(Progress),
    /// The process was told to end, by SIGTERM.
    Leaving,
    /// The process has ended its work.
    Ended(Outcome),
}

/// A request to the first process: to end the work of all processes after a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EndAtBorder {
    /// Only if reading the rest would take at least this long.
    pub worth: Duration,
}

/// A process that listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The address at which it listens.
    pub address: SocketAddr,
    /// Its process id on its machine.
    pub id: u32,
    /// The version of its program.
    pub version: String,
}

/// The outcome of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Success. Process 0 has a result, as the caller of `serve` wrote it.
    Done(Option<String>),
    /// The work was ended after a wave, as the supervisor asked. What is committed stays, and more
    /// is left to do.
    AtBorder,
    /// Failure.
    Failed {
        /// The error message.
        message: String,
        /// The exit code of the program for this error.
        code: u8,
        /// Whether another attempt may succeed.
        passes: bool,
    },
}

impl Outcome {
    /// The exit code of a process with this outcome.
    pub fn code(&self) -> u8 {
        match self {
            Outcome::Done(_) | Outcome::AtBorder => 0,
            Outcome::Failed { code, .. } => *code,
        }
    }
}

/// Runs this process for one supervisor, over stdin and stdout: joins the other processes and does
/// the work. Returns the exit code.
///
/// When a worker fails, the process reports the failure (`failure` makes its message) and exits at
/// once: its network threads would wait for the other processes, and those for this one.
///
/// # Errors
/// A line of the supervisor is missing or not understood.
pub fn serve(
    work: impl FnOnce(&str, Peers, Arc<Watch>) -> Outcome,
    failure: impl Fn(&anyhow::Error) -> Outcome + Clone + Send + 'static,
) -> Result<u8> {
    let mut lines = std::io::stdin().lock().lines();
    let mut line = || lines.next().context("the supervisor has ended")?.context("cannot read from the supervisor");
    let start: Start = serde_json::from_str(&line()?).context("the supervisor is of another version of nigh")?;
    let stdout = Arc::new(Mutex::new(std::io::stdout()));
    let watch = Arc::new(Watch::default());
    report_progress(&watch, &stdout, failure.clone());
    report_leaving(&stdout);
    let end = |outcome: Outcome| {
        let code = outcome.code();
        // What the process did since its last report.
        report(&stdout, &ProcessReport::Progress(watch.progress()))?;
        report(&stdout, &ProcessReport::Ended(outcome)).map(|()| code)
    };
    let ready = prepare(&start).and_then(|(listener, credentials)| {
        let address = listener.local_addr().context("cannot find the port")?;
        let (id, version) = (std::process::id(), env!("CARGO_PKG_VERSION").to_owned());
        report(&stdout, &ProcessReport::Ready(Ready { address, id, version })).map(|()| (listener, credentials))
    });
    let (listener, credentials) = match ready {
        Ok(ready) => ready,
        Err(error) => return end(failure(&error)),
    };
    let roster: Roster = serde_json::from_str(&line()?).context("the supervisor is of another version of nigh")?;
    drop(lines);
    follow_supervisor(&watch);
    let rank = roster.rank(start.me).context("the roster lacks this process")?;
    let sockets = match join(start.me, &listener, &roster, &credentials, Deadlines::default()) {
        Ok(sockets) => sockets,
        // Another process may have failed, or may not have started yet.
        Err(error) => return end(Outcome::Failed { message: format!("{error:#}"), code: 1, passes: true }),
    };
    report(&stdout, &ProcessReport::Joined)?;
    drop(listener);
    end(work(start.plan.get(), Peers::Sockets { me: rank, sockets }, watch.clone()))
}

/// Changes to the folder of the run, loads the credentials, and opens the port.
fn prepare(start: &Start) -> Result<(TcpListener, Credentials)> {
    std::env::set_current_dir(&start.folder).with_context(|| {
        format!(
            "cannot go to {}, the folder from which the run was started: it must be there on every host, as inputs and store",
            start.folder.display()
        )
    })?;
    let credentials = start.identity.credentials(start.me)?;
    let mut address = start.listen;
    loop {
        match listen(address, &credentials) {
            Ok((listener, _)) => return Ok((listener, credentials)),
            Err(_) if address.port() < start.last_port => address.set_port(address.port() + 1),
            Err(error) => return Err(error),
        }
    }
}

/// Starts a thread that reports the counters, and the first failure.
fn report_progress(
    watch: &Arc<Watch>,
    stdout: &Arc<Mutex<Stdout>>,
    failure: impl Fn(&anyhow::Error) -> Outcome + Send + 'static,
) {
    let (watch, stdout) = (watch.clone(), stdout.clone());
    std::thread::spawn(move || {
        loop {
            if let Some(error) = watch.take_failure() {
                let outcome = failure(&error);
                let code = outcome.code();
                let _ = report(&stdout, &ProcessReport::Ended(outcome));
                std::process::exit(code.into());
            }
            if report(&stdout, &ProcessReport::Progress(watch.progress())).is_err() {
                std::process::exit(1);
            }
            std::thread::sleep(REPORT_EVERY);
        }
    });
}

/// Starts a thread that notes the requests of the supervisor, and ends this process when the
/// supervisor has ended.
fn follow_supervisor(watch: &Arc<Watch>) {
    let watch = watch.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if let Ok(EndAtBorder { worth }) = serde_json::from_str(&line) {
                watch.ask_for_end(worth);
            }
        }
        // Stdin ends when the supervisor does.
        std::process::exit(1);
    });
}

/// Starts a thread that reports SIGTERM.
fn report_leaving(stdout: &Arc<Mutex<Stdout>>) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM]);
    // Without a handler the signal ends the process, and the supervisor sees that.
    let Ok(mut signals) = signals else { return };
    let stdout = stdout.clone();
    std::thread::spawn(move || {
        for (count, signal) in signals.forever().enumerate() {
            if count > 0 {
                std::process::exit(128 + signal);
            }
            // In a thread of its own: the report waits while the supervisor is stopped and reads
            // nothing, and a second signal must not wait.
            let stdout = stdout.clone();
            std::thread::spawn(move || {
                if report(&stdout, &ProcessReport::Leaving).is_err() {
                    std::process::exit(128 + signal);
                }
            });
        }
    });
}

fn report(stdout: &Mutex<Stdout>, report: &ProcessReport) -> Result<()> {
    let mut line = serde_json::to_vec(report).context("a report is plain data")?;
    line.push(b'\n');
    let mut stdout = stdout.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    stdout.write_all(&line).and_then(|()| stdout.flush()).context("the supervisor has ended")
}
