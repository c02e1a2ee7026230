//! One generation of processes: they start together and end together.
//!
//! The supervisor starts all processes, waits until each has reported its address, sends the roster of addresses to all, and then follows
//! their reports until all have succeeded or one has failed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::child::Child;
use super::process::{Outcome, ProcessReport, Ready, Start};
use super::watchdog::{Finding, LOOK_EVERY, Watchdog};
use crate::launch::Agents;
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::exit_codes::{EXIT_PANIC, EXIT_PEER_LOST};
use crate::launch::handshake::{Identity, Roster};
use crate::launch::hosts::{HostReach, Pool};
use crate::launch::pipes::{Pipes, ProcessExit};
use crate::watch::Progress;

/// How long a process may take to start and to report its address.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// After a process has lost a connection, how long to wait for the process that caused it.
const CAUSE_DEADLINE: Duration = Duration::from_secs(5);
/// How long processes may run after all have reported success.
const EXIT_DEADLINE: Duration = Duration::from_secs(5);
/// The exit code of `ssh` when its connection breaks.
const EXIT_SSH: i32 = 255;

/// The description of a generation.
pub struct Generation<'a> {
    /// The hosts of its processes.
    pub pool: &'a Pool,
    /// The work of its processes, as JSON.
    pub plan: &'a str,
    /// How its processes identify themselves to each other.
    pub identity: Identity,
    /// Its number: the restarts before it.
    pub epoch: u64,
    /// Receives the stderr of the processes.
    pub events: &'a EventSink,
}

/// How a generation ended.
pub enum GenerationEnd {
    /// With an outcome that another generation would only repeat.
    Final(Outcome),
    /// With a failure that another generation may not have.
    Retry(GenerationFailure),
}

/// The failure of a generation.
pub struct GenerationFailure {
    /// The message: which process failed, and how.
    pub cause: String,
    /// The process that failed, if it is known.
    pub process: Option<usize>,
    /// Whether all processes had started.
    pub began: bool,
}

/// What the thread that reads a process' stdout received.
enum StdoutMessage {
    Report(ProcessReport),
    Closed,
}

/// A process and what its supervisor knows of it.
struct SupervisedProcess {
    me: usize,
    child: Child,
    /// Returns its stdin after [`Start`] was written to it.
    stdin_back: Receiver<Box<dyn Write + Send>>,
    /// Its stdin. The process ends by itself when this is dropped.
    stdin: Option<Box<dyn Write + Send>>,
    /// Its report that it listens.
    ready: Option<Ready>,
    /// Its report of its end.
    outcome: Option<Outcome>,
    /// Whether its stdout ended.
    closed: bool,
    /// Whether its exit was received.
    exited: bool,
}

impl SupervisedProcess {
    /// Waits for its end after its stdout ended.
    fn wait(&mut self) -> Result<ProcessExit> {
        self.closed = true;
        let exit = self.child.wait()?;
        self.exited = true;
        Ok(exit)
    }
}

/// The processes of a generation. Dropping it ends all of them.
struct Processes<'a> {
    pool: &'a Pool,
    epoch: u64,
    events: &'a EventSink,
    all: Vec<SupervisedProcess>,
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        let (pool, epoch, events) = (self.pool, self.epoch, self.events);
        std::thread::scope(|scope| {
            for process in &mut self.all {
                scope.spawn(|| {
                    drop(process.stdin.take());
                    let me = process.me;
                    let report_straggler = |why: &str| {
                        let text = format!(
                            "{} {why}, and may still run; it ends when it notices that the run has ended",
                            pool.name(me)
                        );
                        events(ProcessEvent { kind: "straggler", text: &text, epoch, process: Some(me) });
                    };
                    let done = process.closed || matches!(process.outcome, Some(Outcome::Done(_)));
                    let reach = &pool.hosts[process.me].reach;
                    // A frozen process on another machine does not notice that its stdin ended.
                    if let (HostReach::Ssh(host), false, Some(ready)) = (reach, done, &process.ready)
                        && !host.kill(ready.id)
                    {
                        report_straggler("cannot be reached to be ended");
                    }
                    // Tasks that know the end of the run end by themselves.
                    let finished = pool.agents.as_ref().is_some_and(Agents::is_finished);
                    if !process.exited && !process.child.kill() && !finished {
                        report_straggler("does not answer");
                    }
                });
            }
        });
    }
}

impl Generation<'_> {
    /// Starts the processes and follows them to their end.
    ///
    /// # Errors
    /// A process cannot be started on this machine, or is of another version.
    pub fn run(&self, progresses: &Arc<Mutex<Vec<Progress>>>) -> Result<GenerationEnd> {
        let (sender, messages) = channel();
        let mut processes = Processes { pool: self.pool, epoch: self.epoch, events: self.events, all: Vec::new() };
        if let Err(failure) = self.start(&mut processes, &sender)? {
            return Ok(GenerationEnd::Retry(failure));
        }
        let end = match self.addresses(&mut processes, &messages)? {
            Ok(addresses) => {
                let roster = self.roster(addresses);
                for process in &mut processes.all {
                    // The process is ready, so its stdin is back. If it has ended since, `follow` receives that.
                    process.stdin = process.stdin_back.recv_timeout(START_DEADLINE).ok();
                    let _ = process.stdin.as_mut().map(|stdin| write_line(stdin, &roster));
                }
                self.follow(&mut processes, &messages, progresses)?
            }
            Err(end) => end,
        };
        Ok(end)
    }

    /// The roster of the processes, which listen at these addresses.
    fn roster(&self, addresses: Vec<SocketAddr>) -> Roster {
        let job = xxhash_rust::xxh3::xxh3_64(self.plan.as_bytes());
        Roster { peer_timeout: self.pool.timeout, ..Roster::new(job, self.epoch, addresses) }
    }

    /// Starts all processes at the same time: the program may have to be copied to hosts.
    fn start(
        &self,
        processes: &mut Processes<'_>,
        sender: &Sender<(usize, StdoutMessage)>,
    ) -> Result<Result<(), GenerationFailure>> {
        let folder = std::env::current_dir().context("cannot find the current folder")?;
        let (folder, is_local) = (&folder, |me: usize| matches!(self.pool.hosts[me].reach, HostReach::Local));
        let started: Vec<Result<SupervisedProcess>> = std::thread::scope(|scope| {
            let start = |me| scope.spawn(move || self.spawn(me, folder, &sender.clone()));
            let threads: Vec<_> = (0..self.pool.processes()).map(start).collect();
            let process = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("spawn does not panic");
            threads.into_iter().map(process).collect()
        });
        let mut failure = None;
        for (me, process) in started.into_iter().enumerate() {
            match process {
                Ok(process) => processes.all.push(process),
                Err(error) => {
                    failure.get_or_insert((me, error));
                }
            }
        }
        match failure {
            None => Ok(Ok(())),
            // An error on this machine would only repeat; another host may be starting.
            Some((me, error)) if is_local(me) => Err(error),
            Some((me, error)) => Ok(Err(self.failure(Some(me), format!("{}: {error:#}", self.pool.name(me)), false))),
        }
    }

    /// Starts a process and the threads that write [`Start`] to it and read its stdout and stderr.
    fn spawn(
        &self,
        me: usize,
        folder: &std::path::Path,
        sender: &Sender<(usize, StdoutMessage)>,
    ) -> Result<SupervisedProcess> {
        let host = &self.pool.hosts[me];
        let (child, Pipes { first, mut stdin, stdout, stderr }) = Child::start(host)?;
        let start = Start {
            me,
            folder: folder.to_owned(),
            listen: SocketAddr::new(host.listen, host.ports.first),
            last_port: host.ports.last,
            identity: self.identity.clone(),
            plan: serde_json::value::RawValue::from_string(self.plan.to_owned()).context("a plan is JSON")?,
        };
        // The pipe to a host that cannot be reached takes what fits and then blocks: hence a thread of its own. If the process ends before it
        // has read everything, its exit code is the error.
        let (sender_of_stdin, stdin_back) = channel();
        std::thread::spawn(move || {
            let _ = stdin.write_all(&first).map_err(anyhow::Error::from).and_then(|()| write_line(&mut stdin, &start));
            let _ = sender_of_stdin.send(stdin);
        });
        read_reports(me, BufReader::new(stdout), sender.clone());
        forward_errors(self.pool.name(me), me, self.epoch, stderr, self.events.clone());
        Ok(SupervisedProcess {
            me,
            child,
            stdin_back,
            stdin: None,
            ready: None,
            outcome: None,
            closed: false,
            exited: false,
        })
    }

    /// Waits until every process has reported its address. Returns the addresses by process number.
    fn addresses(
        &self,
        processes: &mut Processes<'_>,
        messages: &Receiver<(usize, StdoutMessage)>,
    ) -> Result<Result<Vec<SocketAddr>, GenerationEnd>> {
        let deadline = Instant::now() + START_DEADLINE;
        while let Some(missing) = processes.all.iter().position(|process| process.ready.is_none()) {
            match messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((me, StdoutMessage::Report(ProcessReport::Ready(ready)))) => {
                    if ready.version != env!("CARGO_PKG_VERSION") {
                        bail!(
                            "{} is nigh {}, and this is nigh {}: install the same there, or set binary = \"copy\"",
                            self.pool.name(me),
                            ready.version,
                            env!("CARGO_PKG_VERSION")
                        );
                    }
                    processes.all[me].ready = Some(ready);
                }
                Ok((me, StdoutMessage::Report(ProcessReport::Ended(outcome)))) => {
                    return Ok(Err(self.ended(processes, me, outcome, false)));
                }
                Ok((_, StdoutMessage::Report(ProcessReport::Progress(_)))) => {}
                Ok((me, StdoutMessage::Closed)) => {
                    let exit = processes.all[me].wait()?;
                    return Ok(Err(GenerationEnd::Retry(self.failed(me, &exit, false))));
                }
                Err(_) => {
                    let cause =
                        format!("{} did not start within {} s", self.pool.name(missing), START_DEADLINE.as_secs());
                    return Ok(Err(GenerationEnd::Retry(self.failure(Some(missing), cause, false))));
                }
            }
        }
        let hosts = self.pool.hosts.iter().zip(&processes.all);
        Ok(Ok(hosts
            .filter_map(|(host, process)| Some(host.reached_at(process.ready.as_ref()?.address.port())))
            .collect()))
    }

    /// Follows the processes until all have ended well, or one has not.
    fn follow(
        &self,
        processes: &mut Processes<'_>,
        messages: &Receiver<(usize, StdoutMessage)>,
        progresses: &Arc<Mutex<Vec<Progress>>>,
    ) -> Result<GenerationEnd> {
        let count = processes.all.len();
        let mut watchdog = Watchdog::new(count, self.pool.timeout, self.pool.stall, Instant::now());
        // The first process that only lost a connection: another process may still report the cause.
        let mut victim: Option<(GenerationFailure, Instant)> = None;
        // Set when all processes have reported success: when to stop waiting for their exits.
        let mut done: Option<Instant> = None;
        while processes.all.iter().any(|process| !process.closed) {
            let now = Instant::now();
            match messages.recv_timeout(LOOK_EVERY) {
                Ok((me, StdoutMessage::Report(ProcessReport::Progress(progress)))) => {
                    watchdog.note(me, progress, now);
                    let mut progresses = progresses.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    progresses.resize(count, Progress::default());
                    progresses[me] = progress;
                }
                Ok((_, StdoutMessage::Report(ProcessReport::Ready(_)))) => {}
                Ok((me, StdoutMessage::Report(ProcessReport::Ended(outcome)))) => {
                    if matches!(outcome, Outcome::Failed { .. }) {
                        return Ok(self.ended(processes, me, outcome, true));
                    }
                    watchdog.excuse(me);
                    processes.all[me].outcome = Some(outcome);
                    if processes.all.iter().all(|process| process.outcome.is_some()) {
                        done = Some(now + EXIT_DEADLINE);
                    }
                }
                Ok((me, StdoutMessage::Closed)) => {
                    watchdog.excuse(me);
                    let exit = processes.all[me].wait()?;
                    if processes.all[me].outcome.is_none() {
                        let failure = self.failed(me, &exit, true);
                        if !matches!(&exit, ProcessExit::Exited(status) if status.code() == Some(EXIT_PEER_LOST)) {
                            return Ok(GenerationEnd::Retry(failure));
                        }
                        victim.get_or_insert((failure, now + CAUSE_DEADLINE));
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            match watchdog.look(now) {
                Finding::Fine => {}
                Finding::Silent(process, quiet) => return Ok(GenerationEnd::Retry(self.silent(process, quiet))),
                Finding::Stalled(idle) => {
                    let cause = format!("no process has made progress for {} s (`stall`)", idle.as_secs());
                    return Ok(GenerationEnd::Retry(self.failure(None, cause, true)));
                }
            }
            if done.is_some_and(|until| now > until) {
                break;
            }
            if victim.as_ref().is_some_and(|(_, until)| now > *until) {
                break;
            }
        }
        if let Some((victim, _)) = victim {
            let suspect = watchdog.suspect(Instant::now());
            return Ok(GenerationEnd::Retry(suspect.map_or(victim, |(process, quiet)| self.silent(process, quiet))));
        }
        let outcome = processes.all[0].outcome.take();
        Ok(GenerationEnd::Final(outcome.context("process 0 did not report its outcome")?))
    }

    /// The end of the generation after a process reported this outcome before the others.
    fn ended(&self, processes: &mut Processes<'_>, me: usize, outcome: Outcome, began: bool) -> GenerationEnd {
        processes.all[me].outcome = Some(outcome.clone());
        match outcome {
            Outcome::Failed { message, passes: true, .. } => {
                GenerationEnd::Retry(self.failure(Some(me), format!("{}: {message}", self.pool.name(me)), began))
            }
            Outcome::Failed { message, code, passes } if !matches!(self.pool.hosts[me].reach, HostReach::Local) => {
                GenerationEnd::Final(Outcome::Failed {
                    message: format!("{}: {message}", self.pool.name(me)),
                    code,
                    passes,
                })
            }
            outcome => GenerationEnd::Final(outcome),
        }
    }

    fn failure(&self, process: Option<usize>, cause: String, began: bool) -> GenerationFailure {
        GenerationFailure { cause, process, began }
    }

    fn silent(&self, process: usize, quiet: Duration) -> GenerationFailure {
        let cause = format!(
            "{} has sent nothing for {:.0} s: it is frozen, or its host or network has failed",
            self.pool.name(process),
            quiet.as_secs_f64()
        );
        self.failure(Some(process), cause, true)
    }

    fn failed(&self, process: usize, exit: &ProcessExit, began: bool) -> GenerationFailure {
        let name = self.pool.name(process);
        let status = match exit {
            ProcessExit::Exited(status) => status,
            ProcessExit::Lost(reason) => {
                let cause = format!("{name}: its task, host or network has failed: {reason}");
                return self.failure(Some(process), cause, began);
            }
        };
        let by_ssh = matches!(self.pool.hosts[process].reach, HostReach::Ssh(_));
        let cause = match (status.code(), status.signal()) {
            (Some(EXIT_PEER_LOST), _) => format!("{name} lost the connection to another process"),
            (Some(EXIT_PANIC), _) => format!("{name} panicked (exit code {EXIT_PANIC}): a fault in this program"),
            (Some(EXIT_SSH), _) if by_ssh && began => format!("{name} was killed, or the connection to its host broke"),
            (Some(EXIT_SSH), _) if by_ssh => format!("{name}: ssh cannot reach its host or cannot log in"),
            (Some(127), _) if by_ssh && !began => {
                format!("{name}: the program is not there; set `binary` to its path, or to \"copy\" to have it copied")
            }
            (Some(code), _) => format!("{name} failed with exit code {code}"),
            (None, Some(signal)) => match signal_hook::low_level::signal_name(signal) {
                Some(signal) => format!("{name} was killed by {signal}"),
                None => format!("{name} was killed by signal {signal}"),
            },
            (None, None) => format!("{name} failed ({status})"),
        };
        self.failure(Some(process), cause, began)
    }
}

/// Writes a message to a process as a line of JSON.
fn write_line(stdin: &mut impl Write, message: &impl serde::Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(message).context("a message to a process is plain data")?;
    line.push(b'\n');
    stdin.write_all(&line).context("a process ended before it had read its work")
}

/// Starts a thread that reads the reports of a process from its stdout.
fn read_reports(me: usize, stdout: impl BufRead + Send + 'static, sender: Sender<(usize, StdoutMessage)>) {
    std::thread::spawn(move || {
        for line in stdout.lines() {
            let Ok(line) = line else { break };
            // Lines that a login prints before the program starts are not reports.
            let Ok(report) = serde_json::from_str(&line) else { continue };
            if sender.send((me, StdoutMessage::Report(report))).is_err() {
                return;
            }
        }
        let _ = sender.send((me, StdoutMessage::Closed));
    });
}

/// Starts a thread that forwards the stderr of a process as events, each line after the name of the process.
fn forward_errors(name: String, process: usize, epoch: u64, stderr: impl Read + Send + 'static, events: EventSink) {
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n') {
            let Ok(line) = line else { return };
            let line = String::from_utf8_lossy(&line);
            let text = format!("{name}: {}", line.trim_end());
            events(ProcessEvent { kind: "process", text: &text, epoch, process: Some(process) });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::handshake::Secrets;

    #[test]
    fn the_roster_has_the_timeout_of_the_config() {
        let pool = Pool::here(2, &toml::from_str("timeout = \"90500ms\"").unwrap());
        let identity = Identity::Secrets(Secrets::generate().unwrap());
        let events: EventSink = Arc::new(|_| {});
        let generation = Generation { pool: &pool, plan: "{}", identity, epoch: 3, events: &events };
        let roster = generation.roster(Vec::new());
        assert_eq!((roster.epoch, roster.peer_timeout), (3, Duration::from_millis(90_500)));
    }
}
