//! The agents of a scheduler's tasks, as task 0 (the supervisor) sees them. Each agent starts the
//! process of its task.
//!
//! ```text
//! task 0: supervisor ── pipes ────────▶ process 0 ◀──────────┐
//!           ▲                                                │ TLS, as in any pool
//!           └── control connection ── task 1: agent ── pipes ─▶ process 1
//! ```
//!
//! An agent does what `sshd` does for a pool over ssh: on request it starts a process, forwards its
//! pipes, and kills it; it also kills it when the supervisor has ended. Agents connect in any order
//! and authenticate themselves by their certificates (the steps of `participant`). An agent that
//! was lost may connect again, also as a new task of the same number: it replaces the former one.

use std::io;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::control::{Control, ControlFrame, MAX_FRAME, broke};
use super::task::SchedulerTask;
use crate::config::{Config, Tasks};
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::handshake::participant::Participant;
use crate::launch::handshake::unauthenticated::RefusalSink;
use crate::launch::handshake::{Deadlines, Identity, Roster};
use crate::launch::pipes::{ProcessExit, ProcessPipes};

/// How long tasks wait for each other by default.
pub(crate) const WAIT: Duration = Duration::from_secs(300);
/// After this time the missing tasks are reported, and again after twice the time.
const REPORT_AFTER: Duration = Duration::from_secs(10);
/// Agents may join as long as the run lasts.
const JOIN_DEADLINE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// How long an agent may take to kill a process.
const KILL_DEADLINE: Duration = Duration::from_secs(5);
/// How long agents may take to end after the end of the run.
const FINISH_DEADLINE: Duration = Duration::from_secs(3);

/// The agents of a run; clones share them.
#[derive(Clone)]
pub struct Agents(Arc<AgentsInner>);

struct AgentsInner {
    wait: Duration,
    /// How long the end of a run waits for tasks that are not connected, to inform them.
    wait_at_end: Duration,
    timeout: Duration,
    /// The address to which agents connect, for messages.
    address: String,
    participant: Arc<Participant>,
    announcer: Arc<Announcer>,
    state: Mutex<AgentsState>,
    changed: Condvar,
}

/// Reports what happens at the listener, with the current epoch.
struct Announcer {
    events: EventSink,
    epoch: AtomicU64,
}

impl Announcer {
    fn report(&self, kind: &str, text: &str, process: Option<usize>) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        (self.events)(ProcessEvent { kind, text, epoch, process });
    }
}

/// The state of the tasks, by their number; task 0 has no agent.
struct AgentsState {
    agents: Vec<Option<Arc<ConnectedAgent>>>,
    /// The host of each task, now or last.
    hosts: Vec<Option<String>>,
    /// The reason why the last agent of a task was lost.
    lost: Vec<Option<String>>,
    /// Which tasks were told to end; a new task of the same number was not.
    leaving: Vec<bool>,
    /// Which tasks the run goes on without.
    left_out: Vec<bool>,
    /// Which tasks need not be informed of the end of the run any more.
    informed: Vec<bool>,
    /// The exit code of the run, after its end.
    finished: Option<u8>,
}

/// One connected agent.
pub(crate) struct ConnectedAgent {
    control: Control,
    host: String,
    /// The addresses of the connection: this machine's and the agent's.
    addresses: (IpAddr, IpAddr),
    /// The number of its current process: input for an earlier process is not sent.
    current: Mutex<u64>,
    receiver: Mutex<FrameReceiver>,
}

/// The receiver of the frames of an agent.
enum FrameReceiver {
    /// No process runs.
    None,
    Process(ProcessReceivers),
    /// The agent was lost, for this reason.
    Lost(String),
}

/// The pipes and the exit of a process.
struct ProcessReceivers {
    output: Sender<Vec<u8>>,
    errors: Sender<Vec<u8>>,
    exit: Sender<ProcessExit>,
}

/// A process that an agent started.
pub(crate) struct Running {
    agent: Arc<ConnectedAgent>,
    exit: Receiver<ProcessExit>,
}

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "agents at {}", self.0.address)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The roster on which both sides of a control connection must agree, as `participant` checks it.
pub(crate) fn roster(task: &SchedulerTask) -> Roster {
    Roster::new(task.job, 0, vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0); task.count])
}

impl Agents {
    /// Listens as task 0, and accepts the agents of the other tasks from now on.
    ///
    /// # Errors
    /// No port is free, or the keys of process 0 are missing or invalid.
    pub(crate) fn open(task: &SchedulerTask, table: &Tasks, config: &Config, events: &EventSink) -> Result<Agents> {
        let keys = config.keys.clone().context("tasks authenticate each other by `keys`")?;
        let credentials = Identity::Keys(keys).credentials(0)?;
        let listen = table.listen.unwrap_or_else(all_addresses);
        let mut address = SocketAddr::new(listen, table.control.first);
        let listener = loop {
            match TcpListener::bind(address) {
                Ok(listener) => break listener,
                Err(_) if address.port() < table.control.last => address.set_port(address.port() + 1),
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("task 0 cannot listen on {address}: take another `control` port"));
                }
            }
        };
        let deadlines = Deadlines { join: JOIN_DEADLINE, ..Deadlines::default() };
        let state = AgentsState {
            agents: vec![None; task.count],
            hosts: vec![None; task.count],
            lost: vec![None; task.count],
            leaving: vec![false; task.count],
            left_out: vec![false; task.count],
            informed: vec![false; task.count],
            finished: None,
        };
        let announcer = Arc::new(Announcer { events: events.clone(), epoch: AtomicU64::new(0) });
        let report: RefusalSink = Box::new({
            let announcer = announcer.clone();
            move |text| announcer.report("refused", &format!("task 0 {text}"), Some(0))
        });
        let wait = table.wait.map_or(WAIT, |wait| wait.0);
        let may_shrink = config.min_processes.is_some_and(|min| min.0 < task.count);
        let agents = Agents(Arc::new(AgentsInner {
            wait,
            wait_at_end: if may_shrink { wait.min(config.grace()) } else { wait },
            timeout: config.timeout(),
            address: format!("{} port {}", task.supervisor, address.port()),
            participant: Arc::new(Participant::with_report(0, roster(task), credentials, deadlines, report)),
            announcer,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }));
        let shared = agents.0.clone();
        std::thread::Builder::new().name("nigh:listener".into()).spawn(move || shared.accept(&listener))?;
        Ok(agents)
    }

    /// Waits until each of these tasks has an agent. After `grace` at least `min` are enough; then
    /// tasks of `left_out`, which the run goes on without, count too if they have an agent and
    /// their time has come. Returns the addresses of the tasks that are used, by their numbers; the
    /// others are left out.
    ///
    /// # Errors
    /// Too few connected in time; the message has the numbers of the others, and the reason why one
    /// was lost if it was connected before.
    pub(crate) fn wait_for(
        &self,
        tasks: &[usize],
        left_out: &[(usize, Option<Instant>)],
        (min, grace): (usize, Duration),
        epoch: u64,
        events: &EventSink,
    ) -> Result<Vec<Option<IpAddr>>> {
        let shared = &self.0;
        // Longer than `wait` the run does not wait.
        let grace = grace.min(shared.wait);
        shared.announcer.epoch.store(epoch, Ordering::Relaxed);
        let start = Instant::now();
        let mut report_after = REPORT_AFTER;
        let mut state = lock(&shared.state);
        loop {
            let now = Instant::now();
            let waited = now.duration_since(start);
            let has_agent = |task: usize| state.agents[task].is_some() && !state.leaving[task];
            let missing: Vec<usize> = tasks.iter().copied().filter(|task| *task > 0 && !has_agent(*task)).collect();
            // A task that is back stands in for a missing one; else it is taken in after a wave.
            let is_back = |(task, from): &&(usize, Option<Instant>)| {
                !missing.is_empty() && has_agent(*task) && from.is_none_or(|from| from <= now)
            };
            let back: Vec<usize> = left_out.iter().filter(is_back).map(|(task, _)| *task).collect();
            let are_enough = waited >= grace && tasks.len() + back.len() >= min + missing.len();
            if missing.is_empty() || are_enough {
                let are_used = |task: usize| tasks.contains(&task) && !missing.contains(&task) || back.contains(&task);
                state.left_out = (0..state.agents.len()).map(|task| !are_used(task)).collect();
                let all = addresses(&state.agents).into_iter().enumerate();
                return Ok(all.map(|(task, address)| are_used(task).then_some(address)).collect());
            }
            let names: Vec<String> =
                missing.iter().map(|task| described(*task, state.lost[*task].as_deref())).collect();
            let (names, count) = (names.join(", "), state.agents.len());
            if waited >= shared.wait {
                let refused =
                    shared.participant.unauthenticated.last().map_or_else(String::new, |last| format!("; {last}"));
                let seconds = shared.wait.as_secs_f32();
                bail!("{names} of {count} tasks did not join task 0 at {} within {seconds} s{refused}", shared.address);
            }
            if waited >= report_after {
                report_after *= 2;
                let text = format!("waiting for {names} of {count} tasks, at {}", shared.address);
                events(ProcessEvent { kind: "waiting", text: &text, epoch, process: None });
            }
            let next = if waited < grace { grace } else { shared.wait };
            let times = left_out.iter().filter_map(|(_, from)| from.filter(|from| *from > now));
            let next_back = times.min().map_or(Duration::MAX, |from| from.duration_since(now));
            let pause = (next - waited).min(report_after.saturating_sub(waited)).min(next_back);
            let pause = pause.max(Duration::from_millis(1));
            state = shared.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The host of a task, now or last.
    pub(crate) fn host(&self, task: usize) -> Option<String> {
        lock(&self.0.state).hosts[task].clone()
    }

    /// Whether a task is connected, and was not told to end.
    pub(crate) fn can_be_used(&self, task: usize) -> bool {
        let state = lock(&self.0.state);
        state.agents[task].is_some() && !state.leaving[task]
    }

    /// Whether a task was told to end.
    pub(crate) fn is_leaving(&self, task: usize) -> bool {
        lock(&self.0.state).leaving[task]
    }

    /// Lets the agent of a task start a process.
    pub(crate) fn start(&self, task: usize) -> Result<(Running, ProcessPipes)> {
        let agent = lock(&self.0.state).agents[task].clone();
        let agent = agent.with_context(|| format!("task {task} is not connected"))?;
        let (output, stdout) = channel();
        let (errors, stderr) = channel();
        let (exit, exit_receiver) = channel();
        match &mut *lock(&agent.receiver) {
            FrameReceiver::Lost(reason) => bail!("its task was lost: {reason}"),
            receiver => *receiver = FrameReceiver::Process(ProcessReceivers { output, errors, exit }),
        }
        let mut current = lock(&agent.current);
        *current += 1;
        agent.control.send(&ControlFrame::Begin).context("its task was lost")?;
        let stdin = Stdin { agent: agent.clone(), process: *current };
        drop(current);
        let pipes = ProcessPipes {
            first: Vec::new(),
            stdin: Box::new(stdin),
            stdout: Box::new(ProcessOutput::from(stdout)),
            stderr: Box::new(ProcessOutput::from(stderr)),
        };
        Ok((Running { agent, exit: exit_receiver }, pipes))
    }

    /// Informs all agents that the run has ended with this exit code, and waits for their end.
    /// After a success it also waits for tasks that are not connected, to inform them, except those
    /// that the run goes on without, or that were told to end; after a failure such a task ends by
    /// itself.
    pub fn finish(&self, code: u8) {
        let shared = &self.0;
        let timeout = if code == 0 { shared.wait_at_end } else { FINISH_DEADLINE };
        let mut state = lock(&shared.state);
        state.finished = Some(code);
        let present: Vec<Arc<ConnectedAgent>> = state.agents.iter().flatten().cloned().collect();
        for task in 0..state.agents.len() {
            // A lost task ends by itself; after a success it is informed if it connects again.
            let is_lost = code != 0 && state.lost[task].is_some();
            let ends_by_itself = task == 0 || state.left_out[task] || state.leaving[task] || is_lost;
            state.informed[task] = state.agents[task].is_some() || ends_by_itself;
        }
        drop(state);
        present.iter().for_each(|agent| agent.finish(code));
        self.wait_until_informed(timeout);
        // Agents end, and their connections with them.
        self.wait_until(FINISH_DEADLINE, |state| state.agents.iter().all(Option::is_none));
    }

    /// Whether the run has ended.
    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.0.state).finished.is_some()
    }

    /// Waits until each task is informed of the end of the run, and reports which are not.
    fn wait_until_informed(&self, timeout: Duration) {
        let shared = &self.0;
        let (start, mut pause) = (Instant::now(), REPORT_AFTER);
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            self.wait_until(left.min(pause), |state| state.informed.iter().all(|informed| *informed));
            let state = lock(&shared.state);
            let missing: Vec<String> = (0..state.informed.len())
                .filter(|task| !state.informed[*task])
                .map(|task| described(task, state.lost[task].as_deref()))
                .collect();
            let count = state.informed.len();
            drop(state);
            if missing.is_empty() || left <= pause {
                return;
            }
            pause *= 2;
            let (missing, address) = (missing.join(", "), &shared.address);
            let text = format!("the run has ended, and waits for {missing} of {count} tasks, at {address}, to say so");
            shared.announcer.report("waiting", &text, None);
        }
    }

    fn wait_until(&self, timeout: Duration, reached: impl Fn(&AgentsState) -> bool) {
        let shared = &self.0;
        let waiting = |state: &mut AgentsState| !reached(state);
        drop(shared.changed.wait_timeout_while(lock(&shared.state), timeout, waiting));
    }
}

/// All addresses of this machine: a listener there accepts IPv6 and IPv4, or IPv4 only where the
/// system has no such listeners.
fn all_addresses() -> IpAddr {
    let both = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let tried = TcpListener::bind((both, 0)).and_then(|listener| {
        let port = listener.local_addr()?.port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port))
    });
    if tried.is_ok() { both } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) }
}

/// A missing task, and the reason why it was lost if it was.
fn described(task: usize, lost: Option<&str>) -> String {
    match lost {
        None => format!("task {task}"),
        Some(reason) => format!("task {task} (it was lost: {reason})"),
    }
}

/// The addresses at which the processes of the tasks reach each other. An agent on the machine of
/// task 0 may have connected over loopback: the other tasks reach it at the address of task 0.
fn addresses(agents: &[Option<Arc<ConnectedAgent>>]) -> Vec<IpAddr> {
    let known = || agents.iter().flatten().map(|agent| agent.addresses);
    let from_elsewhere = known().find(|(_, from)| !from.is_loopback());
    let first = from_elsewhere.or(known().next()).map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |(here, _)| here);
    let address = |agent: &Option<Arc<ConnectedAgent>>| match agent {
        Some(agent) if !agent.addresses.1.is_loopback() => agent.addresses.1,
        _ => first,
    };
    agents.iter().map(address).collect()
}

impl AgentsInner {
    /// Accepts agents until the program ends.
    fn accept(self: &Arc<AgentsInner>, listener: &TcpListener) {
        loop {
            // An error of one connection or of the system may pass.
            let Ok((socket, peer)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            let shared = self.clone();
            let result = self.participant.authenticate(socket, peer, move |task, socket, connection| {
                shared.participant.forget(task);
                if let Err(error) = shared.follow(task, socket, connection) {
                    let text = format!("task {task} at {peer} connected and was lost: {error:#}");
                    shared.announcer.report("lost", &text, Some(task));
                }
            });
            if let Err(error) = result {
                self.announcer.report("refused", &format!("task 0 cannot accept {peer}: {error:#}"), Some(0));
            }
        }
    }

    /// Receives the frames of an agent until its connection ends.
    fn follow(&self, task: usize, socket: TcpStream, connection: Option<rustls::Connection>) -> Result<()> {
        let connection = connection.context("it connected without TLS")?;
        let control = Control::new(socket, connection, self.timeout)?;
        let (here, there) = control.addresses()?;
        let host = loop {
            match control.receive()? {
                ControlFrame::Name(host) => break host,
                ControlFrame::Beat => {}
                frame => return Err(anyhow!("it sent {frame} instead of its host's name")),
            }
        };
        let receiver = Mutex::new(FrameReceiver::None);
        let addresses = (here.ip().to_canonical(), there.ip().to_canonical());
        let agent = Arc::new(ConnectedAgent { control, host, addresses, current: Mutex::new(0), receiver });
        let finished = {
            let mut state = lock(&self.state);
            if let Some(former) = state.agents[task].replace(agent.clone()) {
                former.lose("another task of this number connected".to_owned());
            }
            state.hosts[task] = Some(agent.host.clone());
            (state.lost[task], state.leaving[task]) = (None, false);
            state.informed[task] = state.finished.is_some();
            state.finished
        };
        self.changed.notify_all();
        finished.iter().for_each(|code| agent.finish(*code));
        let reason = loop {
            match agent.control.receive() {
                Ok(ControlFrame::Leaving) => {
                    let mut state = lock(&self.state);
                    if state.agents[task].as_ref().is_some_and(|current| Arc::ptr_eq(current, &agent)) {
                        state.leaving[task] = true;
                    }
                    drop(state);
                    self.changed.notify_all();
                }
                Ok(frame) => {
                    if let Err(reason) = agent.pass(frame) {
                        break reason;
                    }
                }
                Err(error) => break broke(&error, self.timeout),
            }
        };
        let mut state = lock(&self.state);
        if state.agents[task].as_ref().is_some_and(|current| Arc::ptr_eq(current, &agent)) {
            state.agents[task] = None;
            state.lost[task] = Some(format!("{reason}, on {}", agent.host));
        }
        drop(state);
        agent.lose(reason);
        self.changed.notify_all();
        Ok(())
    }
}

impl ConnectedAgent {
    /// Passes a frame to the receiver of the process.
    fn pass(&self, frame: ControlFrame) -> Result<(), String> {
        let mut receiver = lock(&self.receiver);
        match (&*receiver, frame) {
            (_, ControlFrame::Beat) => {}
            // The supervisor may not read the pipes any more.
            (FrameReceiver::Process(process), ControlFrame::Output(bytes)) => drop(process.output.send(bytes)),
            (FrameReceiver::Process(process), ControlFrame::Errors(bytes)) => drop(process.errors.send(bytes)),
            (FrameReceiver::Process(process), ControlFrame::Ended(status)) => {
                let _ = process.exit.send(ProcessExit::Exited(ExitStatus::from_raw(status)));
                *receiver = FrameReceiver::None;
            }
            (FrameReceiver::Lost(reason), _) => return Err(reason.clone()),
            (_, frame) => return Err(format!("it sent {frame} at the wrong time")),
        }
        Ok(())
    }

    /// Notes that the agent is lost, and ends its connection.
    fn lose(&self, reason: String) {
        let mut receiver = lock(&self.receiver);
        if let FrameReceiver::Process(process) = &*receiver {
            let _ = process.exit.send(ProcessExit::Lost(reason.clone()));
        }
        if !matches!(&*receiver, FrameReceiver::Lost(_)) {
            *receiver = FrameReceiver::Lost(reason);
        }
        self.control.cut();
    }

    fn finish(&self, code: u8) {
        // An error means that the agent has ended.
        if self.control.send(&ControlFrame::Finish(code)).is_ok() {
            self.control.end();
        }
    }
}

impl Running {
    /// Waits for the end of the process or its task; `None` if it does not end within this time.
    pub fn wait(&self, within: Duration) -> Option<ProcessExit> {
        match self.exit.recv_timeout(within) {
            Ok(exit) => Some(exit),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(ProcessExit::Lost("it has ended already".to_owned())),
        }
    }

    /// Kills the process. Returns whether it has certainly ended. A task that does not answer
    /// counts as lost: its agent kills the process when it notices that.
    pub fn kill(&self) -> bool {
        let sent = self.agent.control.send(&ControlFrame::Kill);
        let ended = sent.is_ok() && self.wait(KILL_DEADLINE).is_some();
        if !ended {
            self.agent.lose("it does not answer".to_owned());
        }
        ended
    }
}

/// The stdin of a process that an agent started.
struct Stdin {
    agent: Arc<ConnectedAgent>,
    /// The number of its process.
    process: u64,
}

impl Stdin {
    /// Sends a frame for this process; an error if another process runs by now.
    fn send(&self, frame: &ControlFrame) -> io::Result<()> {
        let current = lock(&self.agent.current);
        if *current == self.process { self.agent.control.send(frame) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

impl Write for Stdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = &bytes[..bytes.len().min(MAX_FRAME)];
        self.send(&ControlFrame::Input(chunk.to_vec())).map(|()| chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // `write` has sent everything.
        Ok(())
    }
}

impl Drop for Stdin {
    fn drop(&mut self) {
        // A process that has ended needs no end of its stdin.
        let _ = self.send(&ControlFrame::InputEnd);
    }
}

/// The output of a process, read from its frames.
struct ProcessOutput {
    frames: Receiver<Vec<u8>>,
    rest: io::Cursor<Vec<u8>>,
}

impl From<Receiver<Vec<u8>>> for ProcessOutput {
    fn from(frames: Receiver<Vec<u8>>) -> ProcessOutput {
        ProcessOutput { frames, rest: io::Cursor::default() }
    }
}

impl Read for ProcessOutput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.rest.read(out)? {
                0 if !out.is_empty() => match self.frames.recv() {
                    Ok(frame) => self.rest = io::Cursor::new(frame),
                    // The process has ended.
                    Err(_) => return Ok(0),
                },
                read => return Ok(read),
            }
        }
    }
}

#[cfg(test)]
mod tests;
