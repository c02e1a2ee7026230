//! One generation of processes: they start together and end together.
//!
//! The supervisor starts all processes, waits until each has reported its address, sends the roster
//! of addresses to all, and then follows their reports until all have succeeded or one has failed.
//! If a process is told to end (SIGTERM), or a host that was left out is back, it asks process 0 to
//! end the generation after a wave.
//!
//! Within a generation processes are counted by rank; what leaves it, as the number of a process,
//! is that of its host.

use std::io::{BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::child::Child;
use super::lookout::Lookout;
use super::process::{Outcome, ProcessReport, Start};
use super::processes::{
    Processes, StdoutMessage, SupervisedProcess, ask_for_end, forward_errors, read_reports, write_line,
};
use super::watchdog::{LOOK_EVERY, Watchdog, WatchdogFinding};
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::exit_codes::{EXIT_PANIC, EXIT_PEER_LOST};
use crate::launch::handshake::{Identity, Roster};
use crate::launch::pipes::{ProcessExit, ProcessPipes};
use crate::launch::process_hosts::{HostReach, Pool, ProcessAddresses};
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
    /// Whether the run may go on without some of its hosts.
    pub may_shrink: bool,
    /// Receives the stderr of the processes.
    pub events: &'a EventSink,
    /// Looks for the hosts that the run goes on without, and that it takes in when they are back.
    pub lookout: &'a Lookout,
}

/// How a generation ended.
pub enum GenerationEnd {
    /// With an outcome that another generation would only repeat.
    Final(Outcome),
    /// With a failure that another generation may not have.
    Retry(GenerationFailure),
    /// After a wave, as it was asked to; more is left to do.
    Border {
        /// The numbers of the processes that were told to end.
        leaving: Vec<usize>,
        /// The numbers of the hosts that are back.
        back: Vec<usize>,
    },
}

/// The failure of a generation.
pub struct GenerationFailure {
    /// The message: which process failed, and how.
    pub cause: String,
    /// The number of the process that failed, if it is known.
    pub process: Option<usize>,
    /// Whether all processes had started.
    pub began: bool,
    /// Whether each process had joined all others.
    pub joined: bool,
    /// The numbers of the hosts elsewhere on which no process started.
    pub missing: Vec<usize>,
    /// The numbers of the processes that were told to end, and have.
    pub leaving: Vec<usize>,
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
                    // The process is ready, so its stdin is back. If it has ended since, `follow`
                    // receives that.
                    process.stdin = process.stdin_back.recv_timeout(START_DEADLINE).ok();
                    let _ = process.stdin.as_mut().map(|stdin| write_line(stdin, &roster));
                }
                match self.follow(&mut processes, &messages, progresses)? {
                    GenerationEnd::Retry(failure) => {
                        let joined = processes.all.iter().all(|process| process.has_joined);
                        GenerationEnd::Retry(GenerationFailure { joined, ..failure })
                    }
                    end => end,
                }
            }
            Err(end) => end,
        };
        Ok(end)
    }

    /// The roster of the processes, which listen at these addresses.
    fn roster(&self, addresses: Vec<SocketAddr>) -> Roster {
        let job = xxhash_rust::xxh3::xxh3_64(self.plan.as_bytes());
        let numbers = self.pool.hosts.iter().map(|host| host.number).collect();
        Roster { numbers, peer_timeout: self.pool.timeout, ..Roster::new(job, self.epoch, addresses) }
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
        let mut unstarted = Vec::new();
        for (me, process) in started.into_iter().enumerate() {
            match process {
                Ok(process) => processes.all.push(process),
                // An error on this machine would only repeat; another host may be starting.
                Err(error) if is_local(me) => return Err(error),
                Err(error) => unstarted.push((me, format!("{}: {error:#}", self.pool.name(me)))),
            }
        }
        Ok(if unstarted.is_empty() { Ok(()) } else { Err(self.unstarted(unstarted)) })
    }

    /// The failure of a generation in which these processes did not start, each with its cause.
    fn unstarted(&self, unstarted: Vec<(usize, String)>) -> GenerationFailure {
        let is_elsewhere = |rank: &usize| !matches!(self.pool.hosts[*rank].reach, HostReach::Local);
        let missing = unstarted.iter().map(|(rank, _)| *rank).filter(is_elsewhere);
        let missing = missing.map(|rank| self.pool.hosts[rank].number).collect();
        let first = unstarted.first().map(|(rank, _)| *rank);
        let cause = unstarted.into_iter().map(|(_, cause)| cause).collect::<Vec<_>>().join("; ");
        GenerationFailure { missing, ..self.failure(first, cause, false) }
    }

    /// Starts a process and the threads that write [`Start`] to it and read its stdout and stderr.
    fn spawn(
        &self,
        me: usize,
        folder: &std::path::Path,
        sender: &Sender<(usize, StdoutMessage)>,
    ) -> Result<SupervisedProcess> {
        let host = &self.pool.hosts[me];
        let ProcessAddresses { listen, reached } = host.addresses()?;
        let (child, ProcessPipes { first, mut stdin, stdout, stderr }) = Child::start(host)?;
        let start = Start {
            me: host.number,
            folder: folder.to_owned(),
            listen: SocketAddr::new(listen, host.ports.first),
            last_port: host.ports.last,
            identity: self.identity.clone(),
            plan: serde_json::value::RawValue::from_string(self.plan.to_owned()).context("a plan is JSON")?,
        };
        // The pipe to a host that cannot be reached takes what fits and then blocks: hence a thread
        // of its own. If the process ends before it has read everything, its exit code is the
        // error.
        let (sender_of_stdin, stdin_back) = channel();
        std::thread::spawn(move || {
            let _ = stdin.write_all(&first).map_err(anyhow::Error::from).and_then(|()| write_line(&mut stdin, &start));
            let _ = sender_of_stdin.send(stdin);
        });
        read_reports(me, BufReader::new(stdout), sender.clone());
        forward_errors(host.name(), host.number, self.epoch, stderr, self.events.clone());
        Ok(SupervisedProcess {
            me,
            child,
            reached,
            stdin_back,
            stdin: None,
            ready: None,
            has_joined: false,
            outcome: None,
            closed: false,
            exited: false,
            is_leaving: false,
        })
    }

    /// Waits until every process has reported its address, or has failed to start. Returns the
    /// addresses by rank.
    fn addresses(
        &self,
        processes: &mut Processes<'_>,
        messages: &Receiver<(usize, StdoutMessage)>,
    ) -> Result<Result<Vec<SocketAddr>, GenerationEnd>> {
        let deadline = Instant::now() + START_DEADLINE;
        let mut unstarted: Vec<(usize, String)> = Vec::new();
        loop {
            let has_failed = |me: usize| unstarted.iter().any(|(failed, _)| *failed == me);
            let is_awaited =
                |process: &&SupervisedProcess| process.ready.is_none() && !process.closed && !has_failed(process.me);
            let awaited: Vec<usize> = processes.all.iter().filter(is_awaited).map(|process| process.me).collect();
            if awaited.is_empty() {
                break;
            }
            match messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((me, StdoutMessage::Report(ProcessReport::Ready(ready)))) => {
                    if ready.version != env!("CARGO_PKG_VERSION") {
                        let cause = format!(
                            "{} is nigh {}, and this is nigh {}: install the same there, or set binary = \"copy\"",
                            self.pool.name(me),
                            ready.version,
                            env!("CARGO_PKG_VERSION")
                        );
                        ensure!(self.may_be_missing(me), cause);
                        unstarted.push((me, cause));
                    }
                    processes.all[me].ready = Some(ready);
                }
                // Its folder, keys or address may not be there yet, or not any more.
                Ok((me, StdoutMessage::Report(ProcessReport::Ended(Outcome::Failed { message, .. }))))
                    if self.may_be_missing(me) =>
                {
                    unstarted.push((me, format!("{}: {message}", self.pool.name(me))));
                }
                Ok((me, StdoutMessage::Report(ProcessReport::Ended(outcome)))) => {
                    return Ok(Err(self.ended(processes, me, outcome, false)));
                }
                Ok((_, StdoutMessage::Report(ProcessReport::Progress(_) | ProcessReport::Joined))) => {}
                Ok((me, StdoutMessage::Report(ProcessReport::Leaving))) => processes.all[me].is_leaving = true,
                Ok((me, StdoutMessage::Closed)) => {
                    // One that ends after it was ready did not start either.
                    let exit = processes.all[me].wait()?;
                    if !has_failed(me) {
                        unstarted.push((me, self.failed(me, &exit, false).cause));
                    }
                }
                Err(_) => {
                    let late = |me| {
                        (me, format!("{} did not start within {} s", self.pool.name(me), START_DEADLINE.as_secs()))
                    };
                    unstarted.extend(awaited.into_iter().map(late));
                    break;
                }
            }
        }
        if !unstarted.is_empty() {
            unstarted.sort_unstable();
            return Ok(Err(GenerationEnd::Retry(self.unstarted(unstarted))));
        }
        let address = |process: &SupervisedProcess| {
            Some(SocketAddr::new(process.reached, process.ready.as_ref()?.address.port()))
        };
        Ok(Ok(processes.all.iter().filter_map(address).collect()))
    }

    /// Whether the run may go on without the host of this process.
    fn may_be_missing(&self, me: usize) -> bool {
        self.may_shrink && !matches!(self.pool.hosts[me].reach, HostReach::Local)
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
        // The first process that only lost a connection: another process may still report the
        // cause.
        let mut victim: Option<(GenerationFailure, Instant)> = None;
        // Set when all processes have reported success: when to stop waiting for their exits.
        let mut done: Option<Instant> = None;
        let begun = Instant::now();
        // The numbers of the hosts for which the generation ends after a wave.
        let mut back: Vec<usize> = Vec::new();
        // Those that were told to end before all had started.
        for me in (0..count).filter(|me| processes.all[*me].is_leaving).collect::<Vec<usize>>() {
            self.leave(processes, me);
        }
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
                Ok((me, StdoutMessage::Report(ProcessReport::Joined))) => processes.all[me].has_joined = true,
                Ok((me, StdoutMessage::Report(ProcessReport::Leaving))) => self.leave(processes, me),
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
                            return Ok(GenerationEnd::Retry(self.with_leaving(failure, processes)));
                        }
                        victim.get_or_insert((failure, now + CAUSE_DEADLINE));
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let hosts = self.pool.hosts.iter().zip(&processes.all);
            let told = hosts.filter(|(host, process)| !process.is_leaving && host.is_leaving());
            let told: Vec<usize> = told.map(|(_, process)| process.me).collect();
            told.into_iter().for_each(|me| self.leave(processes, me));
            if back.is_empty() && begun.elapsed() >= self.pool.rejoin {
                back = self.lookout.found();
                if !back.is_empty() {
                    self.take_in(processes, &back);
                }
            }
            match watchdog.look(now) {
                WatchdogFinding::Fine => {}
                WatchdogFinding::Silent(process, quiet) => {
                    let failure = self.silent(process, quiet);
                    return Ok(GenerationEnd::Retry(self.with_leaving(failure, processes)));
                }
                WatchdogFinding::Stalled(idle) => {
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
            let failure = suspect.map_or(victim, |(process, quiet)| self.silent(process, quiet));
            return Ok(GenerationEnd::Retry(self.with_leaving(failure, processes)));
        }
        match processes.all[0].outcome.take().context("the first process did not report its outcome")? {
            Outcome::AtBorder => Ok(GenerationEnd::Border { leaving: self.leaving(processes), back }),
            outcome => Ok(GenerationEnd::Final(outcome)),
        }
    }

    /// Notes that a process was told to end, and asks for the end of the generation after the wave
    /// that is read.
    fn leave(&self, processes: &mut Processes<'_>, me: usize) {
        processes.all[me].is_leaving = true;
        let text = format!(
            "{} was told to end (SIGTERM): the processes end after the wave that is read, and begin again without it if that is allowed",
            self.pool.name(me)
        );
        let process = Some(self.pool.hosts[me].number);
        (self.events)(ProcessEvent { kind: "leaving", text: &text, epoch: self.epoch, process });
        ask_for_end(processes, Duration::ZERO);
    }

    /// Asks for the end of the generation after a wave, if enough is left to read, to take in hosts
    /// that are back.
    fn take_in(&self, processes: &mut Processes<'_>, back: &[usize]) {
        let text = format!(
            "{} can be used again: the processes end after a wave and begin again with it, if much is left to read",
            self.lookout.names(back)
        );
        (self.events)(ProcessEvent { kind: "back", text: &text, epoch: self.epoch, process: back.first().copied() });
        ask_for_end(processes, self.pool.rejoin);
    }

    /// The numbers of the processes that were told to end.
    fn leaving(&self, processes: &Processes<'_>) -> Vec<usize> {
        let leaving = processes.all.iter().filter(|process| process.is_leaving);
        leaving.map(|process| self.pool.hosts[process.me].number).collect()
    }

    /// A failure of a process that was told to end: it has.
    fn with_leaving(&self, failure: GenerationFailure, processes: &Processes<'_>) -> GenerationFailure {
        let leaving: Vec<usize> =
            self.leaving(processes).into_iter().filter(|number| failure.process == Some(*number)).collect();
        GenerationFailure { leaving, ..failure }
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

    /// A failure of the process with this rank.
    fn failure(&self, process: Option<usize>, cause: String, began: bool) -> GenerationFailure {
        let process = process.map(|rank| self.pool.hosts[rank].number);
        GenerationFailure { cause, process, began, joined: false, missing: Vec::new(), leaving: Vec::new() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::handshake::Secrets;

    #[test]
    fn the_roster_has_the_timeout_of_the_config() {
        let pool = Pool::here(2, &toml::from_str("timeout = \"90500ms\"").unwrap());
        let identity = Identity::Secrets(Secrets::generate().unwrap());
        let events: EventSink = Arc::new(|_| {});
        let lookout = Lookout::new(Vec::new(), pool.rejoin);
        let generation = Generation {
            pool: &pool,
            plan: "{}",
            identity,
            may_shrink: false,
            epoch: 3,
            events: &events,
            lookout: &lookout,
        };
        let roster = generation.roster(Vec::new());
        assert_eq!((roster.epoch, roster.peer_timeout), (3, Duration::from_millis(90_500)));
    }

    #[test]
    fn processes_keep_the_numbers_of_their_hosts_in_a_generation_without_some() {
        let mut pool = Pool::here(3, &toml::from_str("").unwrap());
        pool.hosts.remove(1);
        let identity = Identity::Secrets(Secrets::generate().unwrap());
        let events: EventSink = Arc::new(|_| {});
        let lookout = Lookout::new(Vec::new(), pool.rejoin);
        let generation = Generation {
            pool: &pool,
            plan: "{}",
            identity,
            may_shrink: false,
            epoch: 0,
            events: &events,
            lookout: &lookout,
        };
        let roster = generation.roster(vec!["127.0.0.1:1".parse().unwrap(); 2]);
        assert_eq!((roster.numbers.clone(), roster.rank(2)), (vec![0, 2], Some(1)));
        let failure = generation.failure(Some(1), "it died".into(), true);
        assert_eq!((failure.process, pool.name(1)), (Some(2), "process 2".to_owned()));
    }
}
