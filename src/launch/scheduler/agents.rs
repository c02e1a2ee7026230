//! The tasks of a scheduler, as their supervisor has them: an agent each, which starts processes where the task is.
//!
//! ```text
//! task 0: supervisor ── pipes ────────▶ process 0 ◀──────────┐
//!           ▲                                                │ TLS, as in any pool
//!           └── control connection ── task 1: agent ── pipes ─▶ process 1
//! ```
//!
//! An agent does what `sshd` does for a pool over ssh: it starts a process when it is told to, hands on its pipes, and
//! kills it when it is told to or when the supervisor is gone. Agents come in any order, are known by their
//! certificates (the steps of `join`), and one that was lost may come again, as a new task of the same number: it takes
//! the former's place.

use std::io;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::control::{Control, ControlFrame, MOST, broke};
use super::task::SchedulerTask;
use crate::config::{Config, Tasks};
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::handshake::join::Participant;
use crate::launch::handshake::{Deadlines, Identity, Roster};
use crate::launch::pipes::{Pipes, ProcessExit};

/// How long tasks wait for each other where the config does not say.
pub(crate) const WAIT: Duration = Duration::from_secs(300);
/// Who is missing after so long is told, and then again after twice as long.
const TOLD_AFTER: Duration = Duration::from_secs(10);
/// The door is open for as long as the run lasts.
const OPEN: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// How long an agent may take to have a process killed.
const KILL_DEADLINE: Duration = Duration::from_secs(5);
/// How long agents may take to end once they were told to.
const PARTING: Duration = Duration::from_secs(3);

/// The agents of a run; every handle is the same.
#[derive(Clone)]
pub struct Agents(Arc<AgentsInner>);

struct AgentsInner {
    wait: Duration,
    timeout: Duration,
    /// Where agents are told to go, for messages.
    door: String,
    party: Arc<Participant>,
    announcer: Arc<Announcer>,
    state: Mutex<AgentsState>,
    changed: Condvar,
}

/// Says what happens at the door, and in which epoch.
struct Announcer {
    voice: EventSink,
    epoch: AtomicU64,
}

impl Announcer {
    fn say(&self, kind: &str, text: &str, task: usize) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        (self.voice)(ProcessEvent { kind, text, epoch, process: Some(task) });
    }
}

/// What is known of the tasks, by their number; task 0 has no agent.
struct AgentsState {
    agents: Vec<Option<Arc<ConnectedAgent>>>,
    /// Where each is, or was last.
    hosts: Vec<Option<String>>,
    /// Why the last agent of a task was lost.
    lost: Vec<Option<String>>,
    /// Which tasks know how the run ended.
    told: Vec<bool>,
    finished: Option<u8>,
}

/// One agent that has come.
pub(crate) struct ConnectedAgent {
    control: Control,
    host: String,
    /// Where it reached this machine, and from where.
    addresses: (IpAddr, IpAddr),
    /// Which process of it is the current one: what is meant for a former one is not sent.
    turn: Mutex<u64>,
    hearing: Mutex<FrameReceiver>,
}

/// Who hears what an agent says.
enum FrameReceiver {
    Nobody,
    Generation(ProcessReceivers),
    /// It is gone, and this is why.
    Lost(String),
}

struct ProcessReceivers {
    output: Sender<Vec<u8>>,
    errors: Sender<Vec<u8>>,
    gone: Sender<ProcessExit>,
}

/// A process that an agent started.
pub(crate) struct Running {
    agent: Arc<ConnectedAgent>,
    gone: Receiver<ProcessExit>,
}

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "agents at {}", self.0.door)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What both sides of a control connection must agree on, in the words of `join`.
pub(crate) fn roster(task: &SchedulerTask) -> Roster {
    Roster::new(task.job, 0, vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0); task.count])
}

impl Agents {
    /// Opens the door of task 0, and lets the agents of the other tasks in from now on.
    ///
    /// # Errors
    /// Where no port is free, or the keys of process 0 do not hold.
    pub(crate) fn open(task: &SchedulerTask, table: &Tasks, config: &Config, voice: &EventSink) -> Result<Agents> {
        let keys = config.keys.clone().context("tasks know each other by `keys`")?;
        let credentials = Identity::Keys(keys).credentials(0)?;
        let listen = table.listen.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
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
        let deadlines = Deadlines { join: OPEN, ..Deadlines::default() };
        let state = AgentsState {
            agents: vec![None; task.count],
            hosts: vec![None; task.count],
            lost: vec![None; task.count],
            told: vec![false; task.count],
            finished: None,
        };
        let announcer = Arc::new(Announcer { voice: voice.clone(), epoch: AtomicU64::new(0) });
        let told = announcer.clone();
        let say = Box::new(move |text: &str| told.say("refused", &format!("task 0 {text}"), 0));
        let agents = Agents(Arc::new(AgentsInner {
            wait: table.wait.map_or(WAIT, |wait| wait.0),
            timeout: config.timeout(),
            door: format!("{} port {}", task.supervisor, address.port()),
            party: Arc::new(Participant::telling(0, roster(task), credentials, deadlines, say)),
            announcer,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }));
        let shared = agents.0.clone();
        std::thread::Builder::new().name("nigh:door".into()).spawn(move || shared.let_in(&listener))?;
        Ok(agents)
    }

    /// Waits until there is an agent for every task; gives the address of every task, task 0's first.
    ///
    /// # Errors
    /// Names the tasks that did not come in time, and why they were lost where they had been there.
    pub(crate) fn gather(&self, epoch: u64, voice: &EventSink) -> Result<Vec<IpAddr>> {
        let shared = &self.0;
        shared.announcer.epoch.store(epoch, Ordering::Relaxed);
        let begun = Instant::now();
        let mut tell_after = TOLD_AFTER;
        let mut state = lock(&shared.state);
        loop {
            let missing: Vec<usize> = (1..state.agents.len()).filter(|task| state.agents[*task].is_none()).collect();
            if missing.is_empty() {
                return Ok(addresses(&state.agents));
            }
            let waited = begun.elapsed();
            let names: Vec<String> = missing.iter().map(|task| named(*task, state.lost[*task].as_deref())).collect();
            let (names, count) = (names.join(", "), state.agents.len());
            if waited >= shared.wait {
                let refused = shared.party.strangers.last().map_or_else(String::new, |last| format!("; {last}"));
                let seconds = shared.wait.as_secs_f32();
                bail!("{names} of {count} tasks did not join task 0 at {} within {seconds} s{refused}", shared.door);
            }
            if waited >= tell_after {
                tell_after *= 2;
                let text = format!("{names} of {count} tasks are waited for, at {}", shared.door);
                voice(ProcessEvent { kind: "waiting", text: &text, epoch, process: None });
            }
            let pause = (shared.wait - waited).min(tell_after.saturating_sub(waited)).max(Duration::from_millis(1));
            state = shared.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Where a task is, or was last.
    pub(crate) fn host(&self, task: usize) -> Option<String> {
        lock(&self.0.state).hosts[task].clone()
    }

    /// Has the agent of a task start a process.
    pub(crate) fn begin(&self, task: usize) -> Result<(Running, Pipes)> {
        let agent = lock(&self.0.state).agents[task].clone();
        let agent = agent.with_context(|| format!("task {task} is not there"))?;
        let (output, stdout) = channel();
        let (errors, stderr) = channel();
        let (gone, is_gone) = channel();
        match &mut *lock(&agent.hearing) {
            FrameReceiver::Lost(reason) => bail!("its task was lost: {reason}"),
            hearing => *hearing = FrameReceiver::Generation(ProcessReceivers { output, errors, gone }),
        }
        let mut turn = lock(&agent.turn);
        *turn += 1;
        agent.control.send(&ControlFrame::Begin).context("its task was lost")?;
        let stdin = Stdin { agent: agent.clone(), turn: *turn };
        drop(turn);
        let pipes = Pipes {
            first: Vec::new(),
            stdin: Box::new(stdin),
            stdout: Box::new(ProcessOutput::from(stdout)),
            stderr: Box::new(ProcessOutput::from(stderr)),
        };
        Ok((Running { agent, gone: is_gone }, pipes))
    }

    /// Tells all agents that the run is over, with this exit code; those that have not come yet are waited for where it
    /// ended well, since nobody else would tell them. A task that comes after that waits for nothing.
    pub fn finish(&self, code: u8) {
        let shared = &self.0;
        let patience = if code == 0 { shared.wait } else { PARTING };
        let mut state = lock(&shared.state);
        state.finished = Some(code);
        let present: Vec<Arc<ConnectedAgent>> = state.agents.iter().flatten().cloned().collect();
        for task in 0..state.agents.len() {
            // One that was lost ends by itself; only after a good end it is told when it comes back.
            state.told[task] = state.agents[task].is_some() || (code != 0 && state.lost[task].is_some());
        }
        drop(state);
        present.iter().for_each(|agent| agent.finish(code));
        self.wait_until(patience, |state| state.told.iter().skip(1).all(|told| *told));
        // They end, and their connections with them.
        self.wait_until(PARTING, |state| state.agents.iter().all(Option::is_none));
    }

    /// Whether the run is over.
    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.0.state).finished.is_some()
    }

    fn wait_until(&self, patience: Duration, reached: impl Fn(&AgentsState) -> bool) {
        let shared = &self.0;
        let waiting = |state: &mut AgentsState| !reached(state);
        drop(shared.changed.wait_timeout_while(lock(&shared.state), patience, waiting));
    }
}

/// A task that is waited for, and why it is not there any more.
fn named(task: usize, lost: Option<&str>) -> String {
    match lost {
        None => format!("task {task}"),
        Some(reason) => format!("task {task} (it was lost: {reason})"),
    }
}

/// Where the processes of the tasks reach each other. An agent on the machine of task 0 may have come by loopback:
/// others reach it as they reach task 0.
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
    /// Lets agents in until the program ends.
    fn let_in(self: &Arc<AgentsInner>, listener: &TcpListener) {
        loop {
            // What became of one connection, or what the system lacks just now, passes.
            let Ok((socket, who)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let shared = self.clone();
            let asked = self.party.ask(socket, who, move |task, socket, connection| {
                shared.party.forget(task);
                if let Err(error) = shared.attend(task, socket, connection) {
                    let text = format!("task {task} at {who} came and went: {error:#}");
                    shared.announcer.say("lost", &text, task);
                }
            });
            if let Err(error) = asked {
                self.announcer.say("refused", &format!("task 0 cannot let {who} in: {error:#}"), 0);
            }
        }
    }

    /// Follows an agent until it is gone.
    fn attend(&self, task: usize, socket: TcpStream, connection: Option<rustls::Connection>) -> Result<()> {
        let connection = connection.context("it came without TLS")?;
        let control = Control::new(socket, connection, self.timeout)?;
        let (here, there) = control.addresses()?;
        let host = loop {
            match control.hear()? {
                ControlFrame::Name(host) => break host,
                ControlFrame::Beat => {}
                frame => return Err(anyhow!("it says {frame} instead of where it is")),
            }
        };
        let hearing = Mutex::new(FrameReceiver::Nobody);
        let addresses = (here.ip().to_canonical(), there.ip().to_canonical());
        let agent = Arc::new(ConnectedAgent { control, host, addresses, turn: Mutex::new(0), hearing });
        let finished = {
            let mut state = lock(&self.state);
            if let Some(former) = state.agents[task].replace(agent.clone()) {
                former.lose("another task of this number came".to_owned());
            }
            state.hosts[task] = Some(agent.host.clone());
            state.lost[task] = None;
            state.told[task] = state.finished.is_some();
            state.finished
        };
        self.changed.notify_all();
        finished.iter().for_each(|code| agent.finish(*code));
        let reason = loop {
            match agent.control.hear() {
                Ok(frame) => {
                    if let Err(reason) = agent.hears(frame) {
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
    /// Gives a frame to who waits for it.
    fn hears(&self, frame: ControlFrame) -> Result<(), String> {
        let mut hearing = lock(&self.hearing);
        match (&*hearing, frame) {
            (_, ControlFrame::Beat) => {}
            // Nobody may listen any more.
            (FrameReceiver::Generation(ears), ControlFrame::Output(bytes)) => drop(ears.output.send(bytes)),
            (FrameReceiver::Generation(ears), ControlFrame::Errors(bytes)) => drop(ears.errors.send(bytes)),
            (FrameReceiver::Generation(ears), ControlFrame::Ended(status)) => {
                let _ = ears.gone.send(ProcessExit::Exited(ExitStatus::from_raw(status)));
                *hearing = FrameReceiver::Nobody;
            }
            (FrameReceiver::Lost(reason), _) => return Err(reason.clone()),
            (_, frame) => return Err(format!("it says {frame} at the wrong time")),
        }
        Ok(())
    }

    /// Notes that it is gone.
    fn lose(&self, reason: String) {
        let mut hearing = lock(&self.hearing);
        if let FrameReceiver::Generation(ears) = &*hearing {
            let _ = ears.gone.send(ProcessExit::Lost(reason.clone()));
        }
        if !matches!(&*hearing, FrameReceiver::Lost(_)) {
            *hearing = FrameReceiver::Lost(reason);
        }
        self.control.cut();
    }

    fn finish(&self, code: u8) {
        // One that is gone hears nothing.
        if self.control.send(&ControlFrame::Finish(code)).is_ok() {
            self.control.end();
        }
    }
}

impl Running {
    /// How the process ended, or its task; `None` where it did not within this time.
    pub fn gone(&self, within: Duration) -> Option<ProcessExit> {
        match self.gone.recv_timeout(within) {
            Ok(gone) => Some(gone),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(ProcessExit::Lost("it ended already".to_owned())),
        }
    }

    /// Has the process killed; says whether it is known to be gone. A task that does not answer is given up: its agent
    /// kills the process when it hears again.
    pub fn kill(&self) -> bool {
        let said = self.agent.control.send(&ControlFrame::Kill);
        let gone = said.is_ok() && self.gone(KILL_DEADLINE).is_some();
        if !gone {
            self.agent.lose("it does not answer".to_owned());
        }
        gone
    }
}

/// The stdin of a process that an agent started.
struct Stdin {
    agent: Arc<ConnectedAgent>,
    turn: u64,
}

impl Stdin {
    /// Says something to the process, and to no later one.
    fn say(&self, frame: &ControlFrame) -> io::Result<()> {
        let turn = lock(&self.agent.turn);
        match *turn == self.turn {
            true => self.agent.control.send(frame),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Write for Stdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = &bytes[..bytes.len().min(MOST)];
        self.say(&ControlFrame::Input(some.to_vec())).map(|()| some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Whatever was written was sent.
        Ok(())
    }
}

impl Drop for Stdin {
    fn drop(&mut self) {
        // A process that is gone needs no end of its stdin.
        let _ = self.say(&ControlFrame::InputEnd);
    }
}

/// What a process wrote, as it comes.
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
                    // Nobody writes any more.
                    Err(_) => return Ok(0),
                },
                read => return Ok(read),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::wire::keys;

    /// What is said: kind, text, epoch and process.
    type Said = (String, String, u64, Option<usize>);

    #[test]
    fn what_happens_at_the_door_is_an_event_that_names_the_task() {
        let folder = tempfile::tempdir().unwrap();
        keys::make(folder.path(), 2, 1).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = format!(
            "workers = 1\nkeys = {:?}\n[tasks]\nscheduler = \"slurm\"\nlisten = \"127.0.0.1\"\ncontrol = \"{port}-{}\"",
            folder.path(),
            port.saturating_add(50)
        );
        let config: Config = toml::from_str(&text).unwrap();
        let task = SchedulerTask { me: 0, count: 2, supervisor: "127.0.0.1".into(), job: 7, cpus: None, machines: 1 };
        let (sender, events) = channel::<Said>();
        let sender = Mutex::new(sender);
        let voice: EventSink = Arc::new(move |event| {
            let ProcessEvent { kind, text, epoch, process } = event;
            let _ = lock(&sender).send((kind.to_owned(), text.to_owned(), epoch, process));
        });
        let agents = Agents::open(&task, config.tasks.as_ref().unwrap(), &config, &voice).unwrap();
        let door: u16 = agents.0.door.rsplit(' ').next().unwrap().parse().unwrap();
        let next = || events.recv_timeout(Duration::from_secs(60)).unwrap();

        TcpStream::connect(("127.0.0.1", door)).unwrap().write_all(&[0xff; 1000]).unwrap();
        let (kind, text, epoch, process) = next();
        assert_eq!((kind.as_str(), epoch, process), ("refused", 0, Some(0)));
        assert!(text.starts_with("task 0 refused a connection from 127.0.0.1") && text.contains("not TLS"), "{text}");

        // A task of the run that does not keep to the protocol; in another epoch.
        agents.0.announcer.epoch.store(3, Ordering::Relaxed);
        let credentials = Identity::Keys(folder.path().to_owned()).credentials(1).unwrap();
        let party = Participant::new(1, roster(&task), credentials, Deadlines::default());
        let socket = TcpStream::connect(("127.0.0.1", door)).unwrap();
        let connection = party.introduce(&socket, 0).ok().flatten().expect("it is let in");
        let control = Control::new(socket, connection, Duration::from_secs(20)).unwrap();
        control.send(&ControlFrame::Output(vec![7; MOST])).unwrap();
        let (kind, text, epoch, process) = next();
        assert_eq!((kind.as_str(), epoch, process), ("lost", 3, Some(1)));
        assert!(text.contains("task 1 at 127.0.0.1") && text.contains("`output` (65536 bytes) instead"), "{text}");
    }
}
