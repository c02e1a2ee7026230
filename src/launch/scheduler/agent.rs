//! The agent of a task: starts a process where the task is, as often as the supervisor asks for one.
//!
//! It looks for task 0 until that is there, shows its certificate, and then only does what it is told. When the
//! connection ends or falls silent it kills its process, and tries for a while to come back: where nobody listens at
//! the supervisor's port any more the run is over, and so is the agent.

use std::io;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::agents::{WAIT, roster};
use super::control::{Control, ControlFrame, MOST, broke};
use super::task::SchedulerTask;
use crate::config::{Config, Tasks};
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::handshake::join::{Participant, Unjoined};
use crate::launch::handshake::{Credentials, Deadlines, Identity};
use crate::launch::program::this_program;

/// How long one attempt to reach task 0 may take, at most.
const ATTEMPT: Duration = Duration::from_secs(10);
/// How long to wait before the next one.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a supervisor that was lost is looked for, besides the config's `timeout`.
const COME_BACK: Duration = Duration::from_secs(30);
/// How often it is looked whether the process has ended.
const LOOK: Duration = Duration::from_millis(20);

/// One task's agent.
struct TaskAgent<'a> {
    task: &'a SchedulerTask,
    table: &'a Tasks,
    credentials: Credentials,
    timeout: Duration,
    voice: &'a EventSink,
}

/// Whether task 0 was there before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    First,
    Again,
}

/// How a control connection ended.
enum Ending {
    /// The supervisor said that the run is over, with this exit code.
    Finished(u8),
    /// It broke, or fell silent.
    Lost(String),
}

/// Serves the supervisor of a run, which is task 0, until the run is over. Returns the run's exit code.
///
/// # Errors
/// Where task 0 does not come in time, refuses this one, or is gone.
pub fn serve_task(task: &SchedulerTask, table: &Tasks, config: &Config, voice: &EventSink) -> Result<u8> {
    let keys = config.keys.clone().context("tasks know each other by `keys`")?;
    let credentials = Identity::Keys(keys).credentials(task.me)?;
    let agent = TaskAgent { task, table, credentials, timeout: config.timeout(), voice };
    let mut control = agent.find(table.wait.map_or(WAIT, |wait| wait.0), Sought::First)?;
    loop {
        match agent.attend(&control) {
            Ending::Finished(code) => return Ok(code),
            Ending::Lost(reason) => {
                let text = format!("task {} lost task 0 at {}: {reason}", task.me, task.supervisor);
                agent.tell(&text);
                control = agent.find(COME_BACK + config.timeout(), Sought::Again).context(text)?;
            }
        }
    }
}

impl TaskAgent<'_> {
    fn tell(&self, text: &str) {
        (self.voice)(ProcessEvent { kind: "lost", text, epoch: 0, process: Some(self.task.me) });
    }

    /// Finds task 0, and tells it where this one is.
    fn find(&self, within: Duration, sought: Sought) -> Result<Control> {
        let (until, ports) = (Instant::now() + within, self.table.control);
        let mut last = "it has no address".to_owned();
        let late = |last: &str| {
            let (me, place, seconds) = (self.task.me, &self.task.supervisor, within.as_secs_f32());
            anyhow!("task {me} could not join task 0 at {place} within {seconds} s: {last}")
        };
        loop {
            let mut gone = sought == Sought::Again;
            match (self.task.supervisor.as_str(), 0).to_socket_addrs() {
                Err(error) => {
                    gone = false;
                    last = format!("its address is not known here ({error})");
                }
                Ok(addresses) => {
                    for address in addresses {
                        for port in ports.first..=ports.last {
                            let address = SocketAddr::new(address.ip(), port);
                            let left = until.saturating_duration_since(Instant::now());
                            if left.is_zero() {
                                return Err(late(&last));
                            }
                            match self.attempt(address, left.min(ATTEMPT)) {
                                Ok(control) => return Ok(control),
                                Err(Unfound::Closed) => last = format!("nobody listens at {address}"),
                                Err(Unfound::Refused(reason)) if ports.first == ports.last => {
                                    bail!("task {} cannot join task 0 at {address}: {reason}", self.task.me)
                                }
                                // Another run of this machine may have the port.
                                Err(Unfound::Refused(reason) | Unfound::Broken(reason)) => {
                                    gone = false;
                                    last = format!("{address}: {reason}");
                                }
                            }
                        }
                    }
                }
            }
            if gone {
                bail!("{last}: task 0 has ended, and this task with it");
            }
            if Instant::now() + AGAIN >= until {
                return Err(late(&last));
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Tries one port, for at most so long.
    fn attempt(&self, address: SocketAddr, within: Duration) -> Result<Control, Unfound> {
        let until = Instant::now() + within;
        let broken = |error: io::Error| Unfound::Broken(error.to_string());
        let socket = TcpStream::connect_timeout(&address, within).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => Unfound::Closed,
            _ => broken(error),
        })?;
        let (left, most) = (until.saturating_duration_since(Instant::now()), Deadlines::default());
        let deadlines = Deadlines { join: left, handshake: most.handshake.min(left), hello: most.hello.min(left) };
        let party = Participant::new(self.task.me, roster(self.task), self.credentials.clone(), deadlines);
        let connection = party.introduce(&socket, 0).map_err(|unjoined| match unjoined {
            Unjoined::Refused(reason) => Unfound::Refused(reason),
            Unjoined::Broken(reason) => Unfound::Broken(reason),
        })?;
        let connection = connection.ok_or_else(|| Unfound::Refused("it has no TLS".to_owned()))?;
        let control = Control::new(socket, connection, self.timeout).map_err(broken)?;
        control.send(&ControlFrame::Name(host())).map_err(broken)?;
        Ok(control)
    }

    /// Does what the supervisor says; no process is left when it returns.
    fn attend(&self, control: &Control) -> Ending {
        let mut process: Option<AgentProcess> = None;
        loop {
            match control.hear() {
                Ok(ControlFrame::Beat) => {}
                Ok(ControlFrame::Begin) => {
                    // One that is still there is killed: what it says would be taken for the next one's.
                    drop(process.take());
                    match AgentProcess::start(control) {
                        Ok(started) => process = Some(started),
                        Err(error) => {
                            let text = format!("task {} cannot start a process: {error:#}\n", self.task.me);
                            let said = control.send(&ControlFrame::Errors(text.into_bytes()));
                            // The shell's words for a program that cannot be started.
                            if let Err(error) = said.and_then(|()| control.send(&ControlFrame::Ended(126 << 8))) {
                                return Ending::Lost(broke(&error, self.timeout));
                            }
                        }
                    }
                }
                Ok(ControlFrame::Input(bytes)) => process.iter().for_each(|process| process.tell(bytes.clone())),
                Ok(ControlFrame::InputEnd) => process.iter_mut().for_each(AgentProcess::end_input),
                Ok(ControlFrame::Kill) => process.iter().for_each(AgentProcess::kill),
                Ok(ControlFrame::Finish(code)) => return Ending::Finished(code),
                Ok(frame) => {
                    self.tell(&format!("task 0 says {frame}, which is not for an agent"));
                    control.cut();
                    return Ending::Lost("it does not keep to the protocol".to_owned());
                }
                Err(error) => {
                    control.cut();
                    return Ending::Lost(broke(&error, self.timeout));
                }
            }
        }
    }
}

/// Why task 0 was not found.
enum Unfound {
    /// Nobody listens there.
    Closed,
    /// Who listens is not task 0 of this run, or does not want this task.
    Refused(String),
    /// The network, or a deadline.
    Broken(String),
}

/// What the scheduler or the system calls this machine.
fn host() -> String {
    let system = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    std::env::var("SLURMD_NODENAME").unwrap_or_else(|_| system())
}

/// The process that the supervisor asked for; it is killed when this is dropped.
struct AgentProcess {
    child: Arc<Mutex<Child>>,
    input: Option<Sender<Vec<u8>>>,
    follower: Option<JoinHandle<()>>,
}

impl AgentProcess {
    fn start(control: &Control) -> Result<AgentProcess> {
        let mut command = std::process::Command::new(this_program()?);
        command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().context("cannot start this program")?;
        let mut stdin = child.stdin.take().context("a child has a stdin")?;
        let stdout = child.stdout.take().context("a child has a stdout")?;
        let stderr = child.stderr.take().context("a child has a stderr")?;
        // A process that does not read must not keep the agent from hearing what else is said.
        let (input, bytes) = channel::<Vec<u8>>();
        std::thread::spawn(move || bytes.into_iter().try_for_each(|some| stdin.write_all(&some)));
        let child = Arc::new(Mutex::new(child));
        let (followed, control) = (child.clone(), control.clone());
        let follower = std::thread::spawn(move || {
            let (to, kept) = (control.clone(), followed.clone());
            let errors = std::thread::spawn(move || hand_on(stderr, &to, ControlFrame::Errors));
            hand_on(stdout, &control, ControlFrame::Output);
            // One that cannot say anything any more is of no use.
            let status = ended(&kept);
            let _ = errors.join();
            // Where the connection is gone, who reads from it knows.
            let _ = control.send(&ControlFrame::Ended(status.map_or(1 << 8, ExitStatusExt::into_raw)));
        });
        Ok(AgentProcess { child, input: Some(input), follower: Some(follower) })
    }

    fn tell(&self, bytes: Vec<u8>) {
        // One that ended needs to be told nothing.
        self.input.iter().for_each(|input| drop(input.send(bytes.clone())));
    }

    fn end_input(&mut self) {
        self.input = None;
    }

    fn kill(&self) {
        // An error says that it ended already.
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.kill();
        if let Some(follower) = self.follower.take() {
            // It has nothing to say when it panics.
            let _ = follower.join();
        }
    }
}

/// Hands on what a process writes, until it ends that.
fn hand_on(mut pipe: impl Read, control: &Control, frame: impl Fn(Vec<u8>) -> ControlFrame) {
    let mut bytes = vec![0; MOST];
    loop {
        match pipe.read(&mut bytes) {
            Ok(read @ 1..) if control.send(&frame(bytes[..read].to_vec())).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// How a process ends, which may take as long as it likes.
fn ended(child: &Mutex<Child>) -> Option<ExitStatus> {
    loop {
        match child.lock().unwrap_or_else(PoisonError::into_inner).try_wait() {
            Ok(None) => {}
            Ok(status) => return status,
            Err(_) => return None,
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::launch::wire::keys;

    /// So many ports in a row, at which somebody listens who never says a word.
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
    fn silent_ports_do_not_hold_a_task_for_longer_than_it_waits() {
        let folder = tempfile::tempdir().unwrap();
        keys::make(folder.path(), 2, 1).unwrap();
        let ports = silent_ports(12);
        let ends = [&ports[0], &ports[11]].map(|listener| listener.local_addr().unwrap().port());
        let text = format!("scheduler = \"slurm\"\ncontrol = \"{}-{}\"", ends[0], ends[1]);
        let table: Tasks = toml::from_str(&text).unwrap();
        let task = SchedulerTask { me: 1, count: 2, supervisor: "127.0.0.1".into(), job: 7, cpus: None, machines: 1 };
        let credentials = Identity::Keys(folder.path().to_owned()).credentials(1).unwrap();
        let voice: EventSink = Arc::new(|_| {});
        let timeout = Duration::from_secs(20);
        let agent = TaskAgent { task: &task, table: &table, credentials, timeout, voice: &voice };
        for (sought, within) in [(Sought::First, Duration::from_secs(1)), (Sought::Again, Duration::from_secs(6))] {
            let begun = Instant::now();
            let error = agent.find(within, sought).err().unwrap().to_string();
            // A handshake with each of them takes five seconds, and twelve a minute.
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}: {error}", begun.elapsed());
            let said = format!("task 1 could not join task 0 at 127.0.0.1 within {} s: 127.0.0.1:", within.as_secs());
            assert!(error.contains(&said) && error.contains("did not say who it is"), "{error}");
        }
    }
}
