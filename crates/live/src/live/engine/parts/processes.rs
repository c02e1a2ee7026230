//! The other processes: starts them, asks them, notices when one is gone, and starts all again.
//!
//! A part of the keys depends on the order in which nodes came and went, and the edges that the
//! first process knows are those of all parts. So when one process is gone, or answers too late,
//! all are ended and start again without nodes, and the engine is read again from the store and the
//! journal: see [`crate::live::service`].

use std::borrow::Cow;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use super::messages::{PartReply, Request, bytes_of, receive, receive_hello, send_hello};

/// How long a process that has closed its output may take to end: then its status is known.
const END: Duration = Duration::from_secs(1);
/// After processes could not be started, they are not before this time.
const RETRY: Duration = Duration::from_secs(1);

/// How often what has come is read after the time for it is over; at most a millisecond each.
const LATE: usize = 1000;

/// Starts the process with a number, from 1, and connects to it.
type ProcessStart = Box<dyn Fn(usize) -> Result<RunningProcess> + Send + Sync>;

/// Takes a message for the user.
type Say = Box<dyn Fn(&str) + Send>;

/// The other processes of an engine, each with a part of the keys.
pub struct KeyProcesses {
    /// What each is called in messages.
    names: Vec<String>,
    start: ProcessStart,
    timeout: Duration,
    /// All or none.
    running: Vec<RunningProcess>,
    /// Why none runs.
    fault: Option<String>,
    not_before: Option<Instant>,
    /// When all of them answered last, or were started.
    heard: Instant,
    /// Reports that a process is gone, and that all run again.
    say: Say,
}

/// The processes as engines share them: one that is made takes them over from the one before.
#[derive(Clone)]
pub(in crate::live) struct SharedProcesses(Arc<Mutex<KeyProcesses>>);

impl SharedProcesses {
    pub(in crate::live) fn of(processes: KeyProcesses) -> SharedProcesses {
        SharedProcesses(Arc::new(Mutex::new(processes)))
    }

    /// What is wanted of each reply; the number of a process, from 1, comes with it.
    ///
    /// # Errors
    /// If a process sent another reply than it was asked for.
    pub(super) fn wanted<T>(
        &self,
        replies: Vec<PartReply>,
        of: impl Fn(usize, PartReply) -> Option<T>,
    ) -> Result<Vec<T>> {
        let of_each = (1..).zip(replies).map(|(number, reply)| of(number, reply).ok_or(number));
        of_each.collect::<Result<_, usize>>().map_err(|number| self.lock().fail(number, another_reply()))
    }

    pub(in crate::live) fn lock(&self) -> MutexGuard<'_, KeyProcesses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that was started, and the connection to it; it is killed when this is dropped.
struct RunningProcess {
    socket: UnixStream,
    /// None of a thread, in tests.
    child: Option<Child>,
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl KeyProcesses {
    /// No other process: the first one has all keys.
    pub fn none() -> KeyProcesses {
        KeyProcesses::with(
            Vec::new(),
            Duration::ZERO,
            Box::new(|_| bail!("there is no other process")),
            Box::new(|_| {}),
        )
    }

    /// Starts other processes, one for each of `places`: the name of its machine, or none for this
    /// one. Each has to answer within `timeout`. `command` returns what
    /// starts the process with a number from 1, which is to call [`super::serve_keys`], and the
    /// first bytes of its standard input. `say` is told when a process is gone, and when all run
    /// again.
    ///
    /// # Errors
    /// If a process cannot be started, or is not of this version of nigh.
    pub fn start(
        places: Vec<Option<String>>,
        timeout: Duration,
        command: impl Fn(usize) -> Result<(Command, Vec<u8>)> + Send + Sync + 'static,
        say: impl Fn(&str) + Send + 'static,
    ) -> Result<KeyProcesses> {
        let start = move |number| {
            let (command, first) = command(number)?;
            run(command, &first, timeout)
        };
        let mut processes = KeyProcesses::with(places, timeout, Box::new(start), Box::new(say));
        processes.start_all()?;
        Ok(processes)
    }

    fn with(places: Vec<Option<String>>, timeout: Duration, start: ProcessStart, say: Say) -> KeyProcesses {
        let others = places.len();
        // The first process has number 0.
        let name = |(number, place): (usize, Option<String>)| {
            let place = place.map(|place| format!(" on {place}")).unwrap_or_default();
            format!("process {number} of 0 to {others}{place}")
        };
        let names = (1..).zip(places).map(name).collect();
        let (running, heard) = (Vec::new(), Instant::now());
        KeyProcesses { names, start, timeout, running, fault: None, not_before: None, heard, say }
    }

    /// Threads of this process in the place of others.
    #[cfg(test)]
    pub(in crate::live) fn threads(count: usize) -> KeyProcesses {
        let start = |_| {
            let (socket, other) = UnixStream::pair()?;
            std::thread::spawn(move || super::serve_keys(&other, &other));
            RunningProcess { socket, child: None }.greeted(Duration::from_secs(60))
        };
        let timeout = Duration::from_secs(60);
        let mut processes = KeyProcesses::with(vec![None; count], timeout, Box::new(start), Box::new(|_| {}));
        processes.start_all().unwrap();
        processes
    }

    /// Ends a thread or process, as a kill does.
    #[cfg(test)]
    pub(in crate::live) fn end(&mut self, number: usize) {
        self.running[number - 1].socket.shutdown(std::net::Shutdown::Both).unwrap();
    }

    /// The number of the others.
    pub(in crate::live) fn count(&self) -> usize {
        self.names.len()
    }

    /// Why no process runs, and what comes next; `None` if all is well.
    pub(in crate::live) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Whether no process has answered for so long.
    pub(in crate::live) fn is_silent_for(&self, time: Duration) -> bool {
        self.heard.elapsed() >= time
    }

    /// Looks whether all processes run and answer, so that one that is gone is noticed while
    /// nothing is asked.
    pub(in crate::live) fn look(&mut self) {
        if self.fault.is_none() {
            // The fault has the error.
            let _ = self.send(|_| Request::Ping).and_then(|()| self.receive());
        }
    }

    /// Notices processes that have ended, without asking them.
    pub(in crate::live) fn notice_ended(&mut self) {
        let is_ended = |running: &mut RunningProcess| {
            running.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
        };
        if let Some(place) = self.running.iter_mut().position(is_ended) {
            self.fail(place + 1, std::io::Error::from(ErrorKind::UnexpectedEof).into());
        }
    }

    /// Starts all processes again after a fault, without nodes. Returns whether they run.
    pub(in crate::live) fn restart(&mut self) -> bool {
        if self.not_before.is_some_and(|time| Instant::now() < time) {
            return false;
        }
        match self.start_all() {
            Ok(()) => {
                self.fault = None;
                (self.say)("all processes run again");
            }
            Err(error) => {
                let fault = format!("{error:#}: it is tried again");
                if self.fault.as_ref() != Some(&fault) {
                    (self.say)(&fault);
                }
                self.fault = Some(fault);
                self.not_before = Some(Instant::now() + RETRY);
            }
        }
        self.fault.is_none()
    }

    /// Starts all at the same time: a machine may take seconds to answer.
    fn start_all(&mut self) -> Result<()> {
        self.running.clear();
        let (start, names) = (&self.start, &self.names);
        let running: Result<Vec<RunningProcess>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=names.len()).map(|number| scope.spawn(move || start(number))).collect();
            let started = threads.into_iter().map(|thread| thread.join());
            let started = started.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            started.zip(names).map(|(running, name)| running.with_context(|| format!("cannot start {name}"))).collect()
        });
        self.running = running?;
        (self.not_before, self.heard) = (None, Instant::now());
        Ok(())
    }

    /// Sends each process a request, by its number.
    ///
    /// # Errors
    /// If a process is gone, or none runs.
    pub(super) fn send(&mut self, request: impl Fn(usize) -> Request) -> Result<()> {
        self.send_bytes(|number| Ok(Cow::Owned(bytes_of(&request(number))?)))
    }

    /// Sends all processes the same request.
    ///
    /// # Errors
    /// As [`KeyProcesses::send`].
    pub(super) fn send_all(&mut self, request: &Request) -> Result<()> {
        let bytes = bytes_of(request)?;
        self.send_bytes(|_| Ok(Cow::Borrowed(&bytes)))
    }

    fn send_bytes<'a>(&mut self, bytes: impl Fn(usize) -> Result<Cow<'a, [u8]>>) -> Result<()> {
        if let Some(fault) = &self.fault {
            bail!("{fault}");
        }
        let mut sent = Ok(());
        for (number, running) in (1..).zip(&mut self.running) {
            sent = bytes(number).and_then(|bytes| running.send(&bytes)).map_err(|error| (number, error));
            if sent.is_err() {
                break;
            }
        }
        sent.map_err(|(number, error)| self.fail(number, error))
    }

    /// The replies of all processes, in the order of their numbers.
    ///
    /// # Errors
    /// If a process is gone, or does not answer in time.
    pub(super) fn receive(&mut self) -> Result<Vec<PartReply>> {
        let mut replies = Vec::new();
        let until = Instant::now() + self.timeout;
        for (number, running) in (1..).zip(&mut self.running) {
            match running.receive(until) {
                Ok(reply) => replies.push(reply),
                Err(error) => return Err(self.fail(number, error)),
            }
        }
        self.heard = Instant::now();
        Ok(replies)
    }

    /// Ends all processes because of one. Returns the reason, which is kept. If it is the first
    /// one, with number 0, there is nothing to start again.
    pub(super) fn fail(&mut self, number: usize, error: anyhow::Error) -> anyhow::Error {
        let Some(place) = number.checked_sub(1) else {
            return error.context(format!("process 0 of 0 to {}", self.names.len()));
        };
        let what = match error {
            error if is_late(&error) => {
                format!("does not answer within {} seconds, and is killed", self.timeout.as_secs())
            }
            error => match self.running.get_mut(place).and_then(RunningProcess::status) {
                Some(status) => format!("has ended ({status})"),
                None => format!("sent what it should not: {error:#}"),
            },
        };
        self.running.clear();
        let fault = format!(
            "{} {what}: the processes start again, and the keys are read from the store and the journal",
            self.names[place]
        );
        (self.say)(&fault);
        self.fault = Some(fault.clone());
        anyhow!(fault)
    }
}

pub(super) fn another_reply() -> anyhow::Error {
    anyhow!("another reply than to what it was asked")
}

/// Whether a time was over.
fn is_late(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// Runs a command as a process, and connects to it.
fn run(mut command: Command, first: &[u8], timeout: Duration) -> Result<RunningProcess> {
    let (mut socket, other) = UnixStream::pair().context("cannot make a pair of sockets")?;
    let input = OwnedFd::from(other.try_clone().context("cannot make a pair of sockets")?);
    // A process group of its own: only the first process has Ctrl-C, and the others end with it.
    command.stdin(input).stdout(OwnedFd::from(other)).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| program.clone())?;
    // The command has the other end, too.
    drop(command);
    socket.set_write_timeout(Some(timeout))?;
    let written = socket.write_all(first);
    let running = RunningProcess { socket, child: Some(child) };
    let greeted = written.map_err(anyhow::Error::from).and_then(|()| running.greeted(timeout));
    greeted.map_err(|error| match is_late(&error) {
        true => anyhow!("{program} does not answer within {} seconds", timeout.as_secs()),
        false => error.context(program),
    })
}

impl RunningProcess {
    /// Exchanges hellos.
    fn greeted(mut self, timeout: Duration) -> Result<RunningProcess> {
        self.socket.set_write_timeout(Some(timeout))?;
        receive_hello(&mut InTime::new(&self.socket, Instant::now() + timeout))?;
        send_hello(&mut self.socket)?;
        Ok(self)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.socket.write_all(bytes)?)
    }

    fn receive(&mut self, until: Instant) -> Result<PartReply> {
        let reply = receive(&mut InTime::new(&self.socket, until))?;
        reply.ok_or_else(|| std::io::Error::from(ErrorKind::UnexpectedEof).into())
    }

    /// The status of a process that has ended, or does so soon.
    fn status(&mut self) -> Option<String> {
        let Some(child) = &mut self.child else { return Some("a thread".to_owned()) };
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status.to_string()),
                Ok(None) if begun.elapsed() < END => std::thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}

/// Reads until a time. What has come by then is read later, too: this process may have been stopped
/// for a while.
struct InTime<'a> {
    socket: &'a UnixStream,
    until: Instant,
    /// How often it may still read after that time.
    late: usize,
}

impl InTime<'_> {
    fn new(socket: &UnixStream, until: Instant) -> InTime<'_> {
        InTime { socket, until, late: LATE }
    }
}

impl Read for InTime<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.late = self.late.checked_sub(1).ok_or(ErrorKind::TimedOut)?;
        }
        self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        self.socket.read(buffer)
    }
}
