//! The agent of a task: starts, feeds and kills a process on its machine as the supervisor
//! requests.
//!
//! It connects to task 0, as soon as that listens, and authenticates itself by its certificate.
//! When the connection ends or falls silent, it kills its process and tries for a while to connect
//! again. If nothing listens at the supervisor's port any more, the run has ended, and the agent
//! ends, too.
//!
//! A task that is told to end (SIGTERM) informs the supervisor, and ends when its process has
//! ended: after the wave that is read.

use std::io;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::agents::{WAIT, roster};
use super::control::{Control, ControlFrame, MAX_FRAME, broke};
use super::task::SchedulerTask;
use crate::config::{Config, Tasks};
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::handshake::participant::{Participant, Unjoined};
use crate::launch::handshake::{Credentials, Deadlines, Identity};
use crate::launch::program::{program_command, spawn_with_pipes};

/// The longest time of one attempt to connect to task 0.
const ATTEMPT_DEADLINE: Duration = Duration::from_secs(10);
/// The pause before the next attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long to try to reach a lost supervisor again, in addition to the config's `timeout`.
const RECONNECT_DEADLINE: Duration = Duration::from_secs(30);
/// How often to poll for the end of the process.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// The agent of one task.
struct TaskAgent<'a> {
    task: &'a SchedulerTask,
    table: &'a Tasks,
    credentials: Credentials,
    timeout: Duration,
    notice: &'a TaskNotice,
    events: &'a EventSink,
}

/// The notice that a task is to end; clones share it.
#[derive(Clone, Default)]
pub struct TaskNotice(Arc<Mutex<NoticeState>>);

#[derive(Default)]
struct NoticeState {
    /// The connection to task 0.
    control: Option<Control>,
    /// The exit code of the task, once it was told to end.
    code: Option<u8>,
}

impl TaskNotice {
    /// Tells the task to end with this exit code. Returns whether it will; if it is not connected,
    /// or was told before, it ends at once.
    pub fn leave(&self, code: u8) -> bool {
        let mut state = self.state();
        let is_first = state.code.replace(code).is_none();
        is_first && state.control.as_ref().is_some_and(|control| control.send(&ControlFrame::Leaving).is_ok())
    }

    /// Notes the connection, and repeats the notice there if there is one.
    fn is_connected(&self, control: &Control) {
        let mut state = self.state();
        state.control = Some(control.clone());
        if state.code.is_some() {
            // If the connection has ended, the thread that reads from it notices.
            let _ = control.send(&ControlFrame::Leaving);
        }
    }

    fn code(&self) -> Option<u8> {
        self.state().code
    }

    fn state(&self) -> std::sync::MutexGuard<'_, NoticeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether task 0 was connected before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Reconnect,
}

/// The end of a control connection.
enum ConnectionEnd {
    /// The run has ended with this exit code.
    Finished(u8),
    /// The connection broke or fell silent, for this reason.
    Lost(String),
}

/// Serves task 0, the supervisor of the run, until the run has ended, or the task was told to end
/// and its process has. Returns the exit code of the run, or that of the notice.
///
/// # Errors
/// Task 0 cannot be reached in time, refuses this task, or has ended.
pub fn serve_task(
    task: &SchedulerTask,
    table: &Tasks,
    config: &Config,
    notice: &TaskNotice,
    events: &EventSink,
) -> Result<u8> {
    let keys = config.keys.clone().context("tasks authenticate each other by `keys`")?;
    let credentials = Identity::Keys(keys).credentials(task.me)?;
    let agent = TaskAgent { task, table, credentials, timeout: config.timeout(), notice, events };
    let mut control = agent.connect(table.wait.map_or(WAIT, |wait| wait.0), Attempt::First)?;
    loop {
        notice.is_connected(&control);
        match agent.serve(&control) {
            ConnectionEnd::Finished(code) => return Ok(code),
            ConnectionEnd::Lost(reason) => {
                let text = format!("task {} lost task 0 at {}: {reason}", task.me, task.supervisor);
                agent.report(&text);
                control = agent.connect(RECONNECT_DEADLINE + config.timeout(), Attempt::Reconnect).context(text)?;
            }
        }
    }
}

impl TaskAgent<'_> {
    fn report(&self, text: &str) {
        (self.events)(ProcessEvent { kind: "lost", text, epoch: 0, process: Some(self.task.me) });
    }

    /// Connects to task 0 and sends it the name of this host.
    fn connect(&self, within: Duration, attempt: Attempt) -> Result<Control> {
        let (until, ports) = (Instant::now() + within, self.table.control);
        let mut last = "it has no address".to_owned();
        let late = |last: &str| {
            let (me, supervisor, seconds) = (self.task.me, &self.task.supervisor, within.as_secs_f32());
            anyhow!("task {me} could not join task 0 at {supervisor} within {seconds} s: {last}")
        };
        loop {
            let mut ended = attempt == Attempt::Reconnect;
            match (self.task.supervisor.as_str(), 0).to_socket_addrs() {
                Err(error) => {
                    ended = false;
                    last = format!("cannot find its address ({error})");
                }
                Ok(addresses) => {
                    for address in addresses {
                        for port in ports.first..=ports.last {
                            let address = SocketAddr::new(address.ip(), port);
                            let left = until.saturating_duration_since(Instant::now());
                            if left.is_zero() {
                                return Err(late(&last));
                            }
                            match self.attempt(address, left.min(ATTEMPT_DEADLINE)) {
                                Ok(control) => return Ok(control),
                                Err(ConnectError::Closed) => last = format!("nothing listens at {address}"),
                                Err(ConnectError::Refused(reason)) if ports.first == ports.last => {
                                    bail!("task {} cannot join task 0 at {address}: {reason}", self.task.me)
                                }
                                // Another run on this machine may have the port.
                                Err(ConnectError::Refused(reason) | ConnectError::Broken(reason)) => {
                                    ended = false;
                                    last = format!("{address}: {reason}");
                                }
                            }
                        }
                    }
                }
            }
            if ended {
                bail!("{last}: task 0 has ended, and this task with it");
            }
            if Instant::now() + RETRY_PAUSE >= until {
                return Err(late(&last));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Tries one port, for at most `within`.
    fn attempt(&self, address: SocketAddr, within: Duration) -> Result<Control, ConnectError> {
        let until = Instant::now() + within;
        let broken = |error: io::Error| ConnectError::Broken(error.to_string());
        let socket = TcpStream::connect_timeout(&address, within).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Closed,
            _ => broken(error),
        })?;
        let (left, most) = (until.saturating_duration_since(Instant::now()), Deadlines::default());
        let deadlines = Deadlines { join: left, handshake: most.handshake.min(left), hello: most.hello.min(left) };
        let participant = Participant::new(self.task.me, roster(self.task), self.credentials.clone(), deadlines);
        let connection = participant.introduce(&socket, 0).map_err(|unjoined| match unjoined {
            Unjoined::Refused(reason) => ConnectError::Refused(reason),
            Unjoined::Broken(reason) => ConnectError::Broken(reason),
        })?;
        let connection = connection.ok_or_else(|| ConnectError::Refused("it has no TLS".to_owned()))?;
        let control = Control::new(socket, connection, self.timeout).map_err(broken)?;
        control.send(&ControlFrame::Name(host())).map_err(broken)?;
        Ok(control)
    }

    /// Serves the requests of the supervisor. No process is left when it returns.
    fn serve(&self, control: &Control) -> ConnectionEnd {
        let mut process: Option<AgentProcess> = None;
        loop {
            // Frames come at least every second.
            if let Some(code) = self.notice.code().filter(|_| process.as_ref().is_none_or(AgentProcess::has_ended)) {
                control.end();
                return ConnectionEnd::Finished(code);
            }
            match control.receive() {
                Ok(ControlFrame::Beat) => {}
                Ok(ControlFrame::Begin) => {
                    // A process that still runs is killed: its output would be taken for that of
                    // the next one.
                    drop(process.take());
                    match AgentProcess::start(control) {
                        Ok(started) => process = Some(started),
                        Err(error) => {
                            let text = format!("task {} cannot start a process: {error:#}\n", self.task.me);
                            let sent = control.send(&ControlFrame::Errors(text.into_bytes()));
                            // Exit code 126, as of a shell that cannot start a program.
                            if let Err(error) = sent.and_then(|()| control.send(&ControlFrame::Ended(126 << 8))) {
                                return ConnectionEnd::Lost(broke(&error, self.timeout));
                            }
                        }
                    }
                }
                Ok(ControlFrame::Input(bytes)) => process.iter().for_each(|process| process.write(bytes.clone())),
                Ok(ControlFrame::InputEnd) => process.iter_mut().for_each(AgentProcess::end_input),
                Ok(ControlFrame::Kill) => process.iter().for_each(AgentProcess::kill),
                Ok(ControlFrame::Finish(code)) => return ConnectionEnd::Finished(code),
                Ok(frame) => {
                    self.report(&format!("task 0 sent {frame}, which is not for an agent"));
                    control.cut();
                    return ConnectionEnd::Lost("it does not keep to the protocol".to_owned());
                }
                Err(error) => {
                    control.cut();
                    return ConnectionEnd::Lost(broke(&error, self.timeout));
                }
            }
        }
    }
}

/// The reason why an attempt to connect to task 0 failed.
enum ConnectError {
    /// Nothing listens at the port.
    Closed,
    /// The listener is not task 0 of this run, or refused this task.
    Refused(String),
    /// An error of the network, or a deadline.
    Broken(String),
}

/// The name of this machine for the scheduler, or for the system.
fn host() -> String {
    let system = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    std::env::var("SLURMD_NODENAME").unwrap_or_else(|_| system())
}

/// The process that the supervisor requested; dropping it kills the process.
struct AgentProcess {
    child: Arc<Mutex<Child>>,
    input: Option<Sender<Vec<u8>>>,
    follower: Option<JoinHandle<()>>,
}

impl AgentProcess {
    fn start(control: &Control) -> Result<AgentProcess> {
        let (child, mut stdin, stdout, stderr) = spawn_with_pipes(program_command()?.arg("worker").process_group(0))?;
        // In a thread of its own: a process that does not read must not block the agent.
        let (input, bytes) = channel::<Vec<u8>>();
        std::thread::spawn(move || bytes.into_iter().try_for_each(|chunk| stdin.write_all(&chunk)));
        let child = Arc::new(Mutex::new(child));
        let follower = std::thread::spawn({
            let (child, control) = (child.clone(), control.clone());
            move || {
                let errors = std::thread::spawn({
                    let control = control.clone();
                    move || forward(stderr, &control, ControlFrame::Errors)
                });
                forward(stdout, &control, ControlFrame::Output);
                let status = wait(&child);
                let _ = errors.join();
                // If the connection has ended, the thread that reads from it notices.
                let _ = control.send(&ControlFrame::Ended(status.map_or(1 << 8, ExitStatusExt::into_raw)));
            }
        });
        Ok(AgentProcess { child, input: Some(input), follower: Some(follower) })
    }

    fn write(&self, bytes: Vec<u8>) {
        // A process that has ended needs no input.
        self.input.iter().for_each(|input| drop(input.send(bytes.clone())));
    }

    fn end_input(&mut self) {
        self.input = None;
    }

    /// Whether it has ended, and all that it wrote is sent.
    fn has_ended(&self) -> bool {
        self.follower.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn kill(&self) {
        // An error means that it has ended already.
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.kill();
        if let Some(follower) = self.follower.take() {
            // A panic of the thread is reported by the panic hook.
            let _ = follower.join();
        }
    }
}

/// Forwards the output of a process until the pipe ends.
fn forward(mut pipe: impl Read, control: &Control, frame: impl Fn(Vec<u8>) -> ControlFrame) {
    let mut bytes = vec![0; MAX_FRAME];
    loop {
        match pipe.read(&mut bytes) {
            Ok(read @ 1..) if control.send(&frame(bytes[..read].to_vec())).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// Waits for the end of a process, without a limit.
fn wait(child: &Mutex<Child>) -> Option<ExitStatus> {
    loop {
        match child.lock().unwrap_or_else(PoisonError::into_inner).try_wait() {
            Ok(None) => {}
            Ok(status) => return status,
            Err(_) => return None,
        }
        std::thread::sleep(POLL_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::launch::wire::keys;

    /// Listeners at consecutive ports that accept connections and send nothing.
    fn silent_ports(count: u16) -> Vec<TcpListener> {
        loop {
            let first = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = first.local_addr().unwrap().port();
            let others = (1..count).map(|next| TcpListener::bind(("127.0.0.1", port.checked_add(next)?)).ok());
            if let Some(all) = std::iter::once(Some(first)).chain(others).collect() {
                return all;
            }
        }
    }

    #[test]
    fn silent_ports_do_not_delay_a_task_beyond_its_deadline() {
        let folder = tempfile::tempdir().unwrap();
        keys::make(folder.path(), 2, 1).unwrap();
        let ports = silent_ports(12);
        let ends = [&ports[0], &ports[11]].map(|listener| listener.local_addr().unwrap().port());
        let text = format!("scheduler = \"slurm\"\ncontrol = \"{}-{}\"", ends[0], ends[1]);
        let table: Tasks = toml::from_str(&text).unwrap();
        let task = SchedulerTask { me: 1, count: 2, supervisor: "127.0.0.1".into(), job: 7, cpus: None, machines: 1 };
        let credentials = Identity::Keys(folder.path().to_owned()).credentials(1).unwrap();
        let events: EventSink = Arc::new(|_| {});
        let timeout = Duration::from_secs(20);
        let notice = TaskNotice::default();
        let agent = TaskAgent { task: &task, table: &table, credentials, timeout, notice: &notice, events: &events };
        for (attempt, within) in
            [(Attempt::First, Duration::from_secs(1)), (Attempt::Reconnect, Duration::from_secs(6))]
        {
            let start = Instant::now();
            let error = agent.connect(within, attempt).err().unwrap().to_string();
            // A handshake with each port takes five seconds, and with all twelve a minute.
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}: {error}", start.elapsed());
            let wanted = format!("task 1 could not join task 0 at 127.0.0.1 within {} s: 127.0.0.1:", within.as_secs());
            assert!(error.contains(&wanted) && error.contains("did not identify itself"), "{error}");
        }
    }
}
