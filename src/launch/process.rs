//! One process of several: told by its supervisor what to do, telling it how it goes.
//!
//! Lines of JSON over the process' own pipes: [`Start`] and then the [`Roster`] come in on stdin, [`Report`]s go
//! out on stdout. When stdin ends the supervisor is gone, and so is the process.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::join::{Deadlines, Roster, join, listen};
use super::threads::Peers;
use crate::watch::{Progress, Watch};

/// How often a process tells its counters.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// What a process is told first.
#[derive(Serialize, Deserialize)]
pub struct Start {
    /// Its number.
    pub me: usize,
    /// Where it is to listen; at a port of the system's choosing where that is 0.
    pub listen: SocketAddr,
    /// What the processes of the run know each other by.
    pub identity: Identity,
    /// What to do, as its caller wrote it.
    pub plan: Box<serde_json::value::RawValue>,
}

/// What a process tells.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Where it listens.
    Listening(SocketAddr),
    /// Its counters.
    Progress(Progress),
    /// How it ended.
    Ended(Outcome),
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
/// Where the supervisor cannot be understood or the others cannot be joined.
pub fn serve(
    work: impl FnOnce(&str, Peers, Arc<Watch>) -> Outcome,
    failure: impl Fn(&anyhow::Error) -> Outcome + Send + 'static,
) -> Result<u8> {
    let mut lines = std::io::stdin().lock().lines();
    let mut line = || lines.next().context("the supervisor is gone")?.context("cannot read from the supervisor");
    let start: Start = serde_json::from_str(&line()?).context("the supervisor speaks another version")?;
    let credentials = start.identity.credentials(start.me)?;
    let (listener, address) = listen(start.listen, &credentials)?;
    let stdout = Arc::new(Mutex::new(std::io::stdout()));
    tell(&stdout, &Report::Listening(address))?;
    let roster: Roster = serde_json::from_str(&line()?).context("the supervisor speaks another version")?;
    let sockets = join(start.me, &listener, &roster, &credentials, Deadlines::default())?;
    drop((listener, lines));
    std::thread::spawn(|| {
        // Nothing more is said on stdin: it ends when the supervisor does.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let watch = Arc::new(Watch::default());
    let (watched, told) = (watch.clone(), stdout.clone());
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(REPORT_EVERY);
            if let Some(error) = watched.take_failure() {
                let outcome = failure(&error);
                let code = outcome.code();
                let _ = tell(&told, &Report::Ended(outcome));
                std::process::exit(code.into());
            }
            if tell(&told, &Report::Progress(watched.progress())).is_err() {
                std::process::exit(1);
            }
        }
    });
    let outcome = work(start.plan.get(), Peers::Sockets { me: start.me, sockets }, watch);
    let code = outcome.code();
    tell(&stdout, &Report::Ended(outcome))?;
    Ok(code)
}

fn tell(stdout: &Mutex<std::io::Stdout>, report: &Report) -> Result<()> {
    let mut line = serde_json::to_vec(report).context("a report is plain data")?;
    line.push(b'\n');
    let mut stdout = stdout.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    stdout.write_all(&line).and_then(|()| stdout.flush()).context("the supervisor is gone")
}
