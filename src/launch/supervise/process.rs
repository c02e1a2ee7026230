//! One process of several: told by its supervisor what to do, telling it how it goes.
//!
//! Lines of JSON over the process' own pipes: [`Start`] and then the [`Roster`] come in on stdin, [`ProcessReport`]s go
//! out on stdout, from the first moment on: a process that falls silent is taken for frozen. When stdin ends the
//! supervisor is gone, and so is the process.

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

/// How often a process tells its counters.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// What a process is told first.
#[derive(Serialize, Deserialize)]
pub struct Start {
    /// Its number.
    pub me: usize,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// Where it is to listen; at a port of the system's choosing where that is 0.
    pub listen: SocketAddr,
    /// The last port that it may listen at; it takes the first that is free.
    pub last_port: u16,
    /// What the processes of the run know each other by.
    pub identity: Identity,
    /// What to do, as its caller wrote it.
    pub plan: Box<serde_json::value::RawValue>,
}

/// What a process tells.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessReport {
    /// It listens.
    Ready(Ready),
    /// Its counters.
    Progress(Progress),
    /// How it ended.
    Ended(Outcome),
}

/// A process that listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Where.
    pub address: SocketAddr,
    /// Its number on its machine.
    pub id: u32,
    /// The version of its program.
    pub version: String,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Well; process 0 has a result, as its caller wrote it.
    Done(Option<String>),
    /// With this message and exit code.
    Failed {
        /// What went wrong, and where.
        message: String,
        /// The exit code for it.
        code: u8,
        /// Whether another attempt may go well.
        passes: bool,
    },
}

impl Outcome {
    /// The exit code that says it.
    pub fn code(&self) -> u8 {
        match self {
            Outcome::Done(_) => 0,
            Outcome::Failed { code, .. } => *code,
        }
    }
}

/// Serves one supervisor over stdin and stdout: joins the other processes and does the work. Returns the exit code.
///
/// When a worker fails the process says so (`failure` puts it in words) and exits at once: its network threads would
/// wait for the other processes, and these for it.
///
/// # Errors
/// Where the supervisor cannot be understood.
pub fn serve(
    work: impl FnOnce(&str, Peers, Arc<Watch>) -> Outcome,
    failure: impl Fn(&anyhow::Error) -> Outcome + Clone + Send + 'static,
) -> Result<u8> {
    let mut lines = std::io::stdin().lock().lines();
    let mut line = || lines.next().context("the supervisor is gone")?.context("cannot read from the supervisor");
    let start: Start = serde_json::from_str(&line()?).context("the supervisor speaks another version")?;
    let stdout = Arc::new(Mutex::new(std::io::stdout()));
    let watch = Arc::new(Watch::default());
    keep_telling(&watch, &stdout, failure.clone());
    let end = |outcome: Outcome| {
        let code = outcome.code();
        tell(&stdout, &ProcessReport::Ended(outcome)).map(|()| code)
    };
    let ready = prepare(&start).and_then(|(listener, credentials)| {
        let address = listener.local_addr().context("cannot tell the port")?;
        let (id, version) = (std::process::id(), env!("CARGO_PKG_VERSION").to_owned());
        tell(&stdout, &ProcessReport::Ready(Ready { address, id, version })).map(|()| (listener, credentials))
    });
    let (listener, credentials) = match ready {
        Ok(ready) => ready,
        Err(error) => return end(failure(&error)),
    };
    let roster: Roster = serde_json::from_str(&line()?).context("the supervisor speaks another version")?;
    drop(lines);
    end_with_supervisor();
    let sockets = match join(start.me, &listener, &roster, &credentials, Deadlines::default()) {
        Ok(sockets) => sockets,
        // Another process may be gone, or not be there yet.
        Err(error) => return end(Outcome::Failed { message: format!("{error:#}"), code: 1, passes: true }),
    };
    drop(listener);
    end(work(start.plan.get(), Peers::Sockets { me: start.me, sockets }, watch))
}

/// Goes to the folder, reads what the process shows to others, and opens the port.
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

/// Tells the counters, and the first failure, from a thread of its own.
fn keep_telling(
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
                let _ = tell(&stdout, &ProcessReport::Ended(outcome));
                std::process::exit(code.into());
            }
            if tell(&stdout, &ProcessReport::Progress(watch.progress())).is_err() {
                std::process::exit(1);
            }
            std::thread::sleep(REPORT_EVERY);
        }
    });
}

/// Ends this process when the supervisor is gone.
fn end_with_supervisor() {
    std::thread::spawn(|| {
        // Nothing more is said on stdin: it ends when the supervisor does.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

fn tell(stdout: &Mutex<Stdout>, report: &ProcessReport) -> Result<()> {
    let mut line = serde_json::to_vec(report).context("a report is plain data")?;
    line.push(b'\n');
    let mut stdout = stdout.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    stdout.write_all(&line).and_then(|()| stdout.flush()).context("the supervisor is gone")
}
