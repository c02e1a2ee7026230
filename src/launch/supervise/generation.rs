//! One generation of processes: started together, followed, ended together.

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

/// How long a process may take to start and tell where it listens.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long victims of a loss are waited for, to hear the cause.
const CAUSE_DEADLINE: Duration = Duration::from_secs(5);
/// How long a process that said that it is done may take to be gone.
const GONE_DEADLINE: Duration = Duration::from_secs(5);
/// What `ssh` ends with when its connection breaks.
const EXIT_SSH: i32 = 255;

/// A generation that is to be run.
pub struct Generation<'a> {
    /// Where its processes are.
    pub pool: &'a Pool,
    /// What they are told to do.
    pub plan: &'a str,
    /// What they know each other by.
    pub identity: Identity,
    /// Its number.
    pub epoch: u64,
    /// Who is told what processes say on stderr.
    pub voice: &'a EventSink,
}

/// How a generation ended.
pub enum GenerationEnd {
    /// As a process said: well, or for good.
    Told(Outcome),
    /// In a way that another generation may not.
    Broken(GenerationFailure),
}

/// What broke a generation.
pub struct GenerationFailure {
    /// Which process it was, and how.
    pub cause: String,
    /// Its number, where it is known.
    pub process: Option<usize>,
    /// Whether all processes had begun.
    pub began: bool,
}

/// What the reader of a process' stdout heard.
enum StdoutMessage {
    Report(ProcessReport),
    Closed,
}

/// A process, as its supervisor holds it.
struct SupervisedProcess {
    me: usize,
    child: Child,
    /// Gives its stdin, once it was told what to do.
    told: Receiver<Box<dyn Write + Send>>,
    /// When it is dropped, the process ends by itself.
    stdin: Option<Box<dyn Write + Send>>,
    /// What it said when it was ready.
    ready: Option<Ready>,
    /// What it said of its end.
    outcome: Option<Outcome>,
    /// Whether its stdout ended.
    closed: bool,
    /// Whether it is known how it ended.
    gone: bool,
}

impl SupervisedProcess {
    /// How it ended, now that its stdout has.
    fn gone(&mut self) -> Result<ProcessExit> {
        self.closed = true;
        let gone = self.child.gone()?;
        self.gone = true;
        Ok(gone)
    }
}

/// The processes of a generation; none of them is left when it is dropped.
struct Processes<'a> {
    pool: &'a Pool,
    epoch: u64,
    voice: &'a EventSink,
    all: Vec<SupervisedProcess>,
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        let (pool, epoch, voice) = (self.pool, self.epoch, self.voice);
        std::thread::scope(|scope| {
            for process in &mut self.all {
                scope.spawn(|| {
                    drop(process.stdin.take());
                    let me = process.me;
                    let straggles = |why: &str| {
                        let text = format!("{} {why} to end it; it ends when it hears again", pool.name(me));
                        voice(ProcessEvent { kind: "straggler", text: &text, epoch, process: Some(me) });
                    };
                    let done = process.closed || matches!(process.outcome, Some(Outcome::Done(_)));
                    let place = &pool.hosts[process.me].place;
                    // One that is frozen on another machine does not see that its stdin ended.
                    if let (HostReach::Ssh(host), false, Some(ready)) = (place, done, &process.ready)
                        && !host.kill(ready.id)
                    {
                        straggles("cannot be reached");
                    }
                    // Tasks that know that the run is over end by themselves.
                    let over = pool.agents.as_ref().is_some_and(Agents::is_finished);
                    if !process.gone && !process.child.kill() && !over {
                        straggles("does not answer");
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
    /// Where nothing can be started at all.
    pub fn run(&self, progresses: &Arc<Mutex<Vec<Progress>>>) -> Result<GenerationEnd> {
        let (sender, heard) = channel();
        let mut processes = Processes { pool: self.pool, epoch: self.epoch, voice: self.voice, all: Vec::new() };
        if let Err(broken) = self.start(&mut processes, &sender)? {
            return Ok(GenerationEnd::Broken(broken));
        }
        let end = match self.gather(&mut processes, &heard)? {
            Ok(addresses) => {
                let roster = self.roster(addresses);
                for process in &mut processes.all {
                    // It is ready, and so was told; one that is gone already is heard of below.
                    process.stdin = process.told.recv_timeout(START_DEADLINE).ok();
                    let _ = process.stdin.as_mut().map(|stdin| say(stdin, &roster));
                }
                self.follow(&mut processes, &heard, progresses)?
            }
            Err(end) => end,
        };
        Ok(end)
    }

    /// What the processes are told of each other.
    fn roster(&self, addresses: Vec<SocketAddr>) -> Roster {
        let job = xxhash_rust::xxh3::xxh3_64(self.plan.as_bytes());
        Roster { peer_timeout: self.pool.timeout, ..Roster::new(job, self.epoch, addresses) }
    }

    /// Starts all processes at once: a program may have to be sent along.
    fn start(
        &self,
        processes: &mut Processes<'_>,
        sender: &Sender<(usize, StdoutMessage)>,
    ) -> Result<Result<(), GenerationFailure>> {
        let folder = std::env::current_dir().context("cannot tell the current folder")?;
        let (folder, here) = (&folder, |me: usize| matches!(self.pool.hosts[me].place, HostReach::Local));
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
            // What fails here would fail again; what fails there may be a host that is starting.
            Some((me, error)) if here(me) => Err(error),
            Some((me, error)) => Ok(Err(self.broken(Some(me), format!("{}: {error:#}", self.pool.name(me)), false))),
        }
    }

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
        // Of a host that cannot be reached the pipe takes what fits, and then nothing: nobody waits for it. Where it
        // ended before it was told all, its exit code says why.
        let (told, stdin_back) = channel();
        std::thread::spawn(move || {
            let _ = stdin.write_all(&first).map_err(anyhow::Error::from).and_then(|()| say(&mut stdin, &start));
            let _ = told.send(stdin);
        });
        listen_to(me, BufReader::new(stdout), sender.clone());
        hand_on(self.pool.name(me), (me, self.epoch), stderr, self.voice.clone());
        Ok(SupervisedProcess {
            me,
            child,
            told: stdin_back,
            stdin: None,
            ready: None,
            outcome: None,
            closed: false,
            gone: false,
        })
    }

    /// Waits until every process has said where it listens.
    fn gather(
        &self,
        processes: &mut Processes<'_>,
        heard: &Receiver<(usize, StdoutMessage)>,
    ) -> Result<Result<Vec<SocketAddr>, GenerationEnd>> {
        let deadline = Instant::now() + START_DEADLINE;
        while let Some(missing) = processes.all.iter().position(|process| process.ready.is_none()) {
            match heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
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
                    let gone = processes.all[me].gone()?;
                    return Ok(Err(GenerationEnd::Broken(self.died(me, &gone, false))));
                }
                Err(_) => {
                    let cause =
                        format!("{} did not start within {} s", self.pool.name(missing), START_DEADLINE.as_secs());
                    return Ok(Err(GenerationEnd::Broken(self.broken(Some(missing), cause, false))));
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
        heard: &Receiver<(usize, StdoutMessage)>,
        progresses: &Arc<Mutex<Vec<Progress>>>,
    ) -> Result<GenerationEnd> {
        let count = processes.all.len();
        let mut watchdog = Watchdog::new(count, self.pool.timeout, self.pool.stall, Instant::now());
        // Set when the first process only lost a connection: the cause may still come from another one.
        let mut victim: Option<(GenerationFailure, Instant)> = None;
        // Set when all have said that they are done.
        let mut done: Option<Instant> = None;
        while processes.all.iter().any(|process| !process.closed) {
            let now = Instant::now();
            match heard.recv_timeout(LOOK_EVERY) {
                Ok((me, StdoutMessage::Report(ProcessReport::Progress(progress)))) => {
                    watchdog.tell(me, progress, now);
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
                        done = Some(now + GONE_DEADLINE);
                    }
                }
                Ok((me, StdoutMessage::Closed)) => {
                    watchdog.excuse(me);
                    let gone = processes.all[me].gone()?;
                    if processes.all[me].outcome.is_none() {
                        let broken = self.died(me, &gone, true);
                        if !matches!(&gone, ProcessExit::Exited(status) if status.code() == Some(EXIT_PEER_LOST)) {
                            return Ok(GenerationEnd::Broken(broken));
                        }
                        victim.get_or_insert((broken, now + CAUSE_DEADLINE));
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            match watchdog.look(now) {
                Finding::Fine => {}
                Finding::Silent(process, quiet) => return Ok(GenerationEnd::Broken(self.silent(process, quiet))),
                Finding::Stalled(still) => {
                    let cause = format!("nothing has moved in any process for {} s (`stall`)", still.as_secs());
                    return Ok(GenerationEnd::Broken(self.broken(None, cause, true)));
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
            return Ok(GenerationEnd::Broken(suspect.map_or(victim, |(process, quiet)| self.silent(process, quiet))));
        }
        let outcome = processes.all[0].outcome.take();
        Ok(GenerationEnd::Told(outcome.context("process 0 said nothing of how it ended")?))
    }

    /// What a process said of its end, which was not a good one.
    fn ended(&self, processes: &mut Processes<'_>, me: usize, outcome: Outcome, began: bool) -> GenerationEnd {
        processes.all[me].outcome = Some(outcome.clone());
        match outcome {
            Outcome::Failed { message, passes: true, .. } => {
                GenerationEnd::Broken(self.broken(Some(me), format!("{}: {message}", self.pool.name(me)), began))
            }
            Outcome::Failed { message, code, passes } if !matches!(self.pool.hosts[me].place, HostReach::Local) => {
                GenerationEnd::Told(Outcome::Failed {
                    message: format!("{}: {message}", self.pool.name(me)),
                    code,
                    passes,
                })
            }
            outcome => GenerationEnd::Told(outcome),
        }
    }

    fn broken(&self, process: Option<usize>, cause: String, began: bool) -> GenerationFailure {
        GenerationFailure { cause, process, began }
    }

    fn silent(&self, process: usize, quiet: Duration) -> GenerationFailure {
        let cause = format!(
            "{} has said nothing for {:.0} s: it is frozen, or its host or network is gone",
            self.pool.name(process),
            quiet.as_secs_f64()
        );
        self.broken(Some(process), cause, true)
    }

    fn died(&self, process: usize, gone: &ProcessExit, began: bool) -> GenerationFailure {
        let name = self.pool.name(process);
        let status = match gone {
            ProcessExit::Exited(status) => status,
            ProcessExit::Lost(reason) => {
                let cause = format!("{name}: its task is gone, or its host or network: {reason}");
                return self.broken(Some(process), cause, began);
            }
        };
        let away = matches!(self.pool.hosts[process].place, HostReach::Ssh(_));
        let cause = match (status.code(), status.signal()) {
            (Some(EXIT_PEER_LOST), _) => format!("{name} lost the connection to another process"),
            (Some(EXIT_PANIC), _) => format!("{name} panicked (exit code {EXIT_PANIC}): a fault in this program"),
            (Some(EXIT_SSH), _) if away && began => format!("{name} was killed, or the connection to its host broke"),
            (Some(EXIT_SSH), _) if away => format!("{name}: ssh cannot reach its host, or log in there"),
            (Some(127), _) if away && !began => {
                format!("{name}: the program is not there; set `binary` to its path, or to \"copy\" to send it along")
            }
            (Some(code), _) => format!("{name} died with exit code {code}"),
            (None, Some(signal)) => match signal_hook::low_level::signal_name(signal) {
                Some(signal) => format!("{name} was killed by {signal}"),
                None => format!("{name} was killed by signal {signal}"),
            },
            (None, None) => format!("{name} died ({status})"),
        };
        self.broken(Some(process), cause, began)
    }
}

fn say(stdin: &mut impl Write, what: &impl serde::Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(what).context("what a process is told is plain data")?;
    line.push(b'\n');
    stdin.write_all(&line).context("a process ended before it began")
}

fn listen_to(me: usize, stdout: impl BufRead + Send + 'static, sender: Sender<(usize, StdoutMessage)>) {
    std::thread::spawn(move || {
        for line in stdout.lines() {
            let Ok(line) = line else { break };
            // Whatever a login prints there before the program starts is none of its reports.
            let Ok(report) = serde_json::from_str(&line) else { continue };
            if sender.send((me, StdoutMessage::Report(report))).is_err() {
                return;
            }
        }
        let _ = sender.send((me, StdoutMessage::Closed));
    });
}

/// Hands on what a process says on stderr, with its name in front.
fn hand_on(name: String, of: (usize, u64), stderr: impl Read + Send + 'static, voice: EventSink) {
    let (process, epoch) = of;
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n') {
            let Ok(line) = line else { return };
            let line = String::from_utf8_lossy(&line);
            let text = format!("{name}: {}", line.trim_end());
            voice(ProcessEvent { kind: "process", text: &text, epoch, process: Some(process) });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::handshake::Secrets;

    #[test]
    fn processes_give_each_other_up_after_the_timeout_of_the_config() {
        let pool = Pool::here(2, &toml::from_str("timeout = \"90500ms\"").unwrap());
        let identity = Identity::Secrets(Secrets::generate().unwrap());
        let voice: EventSink = Arc::new(|_| {});
        let generation = Generation { pool: &pool, plan: "{}", identity, epoch: 3, voice: &voice };
        let roster = generation.roster(Vec::new());
        assert_eq!((roster.epoch, roster.peer_timeout), (3, Duration::from_millis(90_500)));
    }
}
