//! The processes of a generation, as their supervisor knows them: their ends, and what is written
//! to them and read from them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use anyhow::{Context, Result};

use super::child::Child;
use super::process::{EndAtBorder, Outcome, ProcessReport, Ready};
use crate::launch::Agents;
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::pipes::ProcessExit;
use crate::launch::process_hosts::{HostReach, Pool};

/// What the thread that reads a process' stdout received.
pub(super) enum StdoutMessage {
    Report(ProcessReport),
    Closed,
}

/// A process and what its supervisor knows of it.
pub(super) struct SupervisedProcess {
    pub(super) me: usize,
    pub(super) child: Child,
    /// The address to which the other processes connect.
    pub(super) reached: IpAddr,
    /// Returns its stdin after [`Start`](super::process::Start) was written to it.
    pub(super) stdin_back: Receiver<Box<dyn Write + Send>>,
    /// Its stdin. The process ends by itself when this is dropped.
    pub(super) stdin: Option<Box<dyn Write + Send>>,
    /// Its report that it listens.
    pub(super) ready: Option<Ready>,
    /// Whether it has joined all others.
    pub(super) has_joined: bool,
    /// Its report of its end.
    pub(super) outcome: Option<Outcome>,
    /// Whether its stdout ended.
    pub(super) closed: bool,
    /// Whether its exit was received.
    pub(super) exited: bool,
    /// Whether it was told to end.
    pub(super) is_leaving: bool,
}

impl SupervisedProcess {
    /// Waits for its end after its stdout ended.
    pub(super) fn wait(&mut self) -> Result<ProcessExit> {
        self.closed = true;
        let exit = self.child.wait()?;
        self.exited = true;
        Ok(exit)
    }
}

/// The processes of a generation. Dropping it ends all of them.
pub(super) struct Processes<'a> {
    pub(super) pool: &'a Pool,
    pub(super) epoch: u64,
    pub(super) events: &'a EventSink,
    pub(super) all: Vec<SupervisedProcess>,
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
                        let process = Some(pool.hosts[me].number);
                        events(ProcessEvent { kind: "straggler", text: &text, epoch, process });
                    };
                    let done = process.closed || matches!(process.outcome, Some(Outcome::Done(_) | Outcome::AtBorder));
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

/// Asks for the end of the generation after a wave, if reading the rest would take at least
/// `worth`. The first process deals the waves.
pub(super) fn ask_for_end(processes: &mut Processes<'_>, worth: Duration) {
    let first = processes.all.first_mut().and_then(|process| process.stdin.as_mut());
    // If it has ended since, `follow` receives that.
    let _ = first.map(|stdin| {
        write_line(stdin, &EndAtBorder { worth }).and_then(|()| stdin.flush().context("a process has ended"))
    });
}

/// Writes a message to a process as a line of JSON.
pub(super) fn write_line(stdin: &mut impl Write, message: &impl serde::Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(message).context("a message to a process is plain data")?;
    line.push(b'\n');
    stdin.write_all(&line).context("a process ended before it had read its work")
}

/// Starts a thread that reads the reports of a process from its stdout.
pub(super) fn read_reports(me: usize, stdout: impl BufRead + Send + 'static, sender: Sender<(usize, StdoutMessage)>) {
    std::thread::spawn(move || {
        for line in stdout.split(b'\n') {
            let Ok(line) = line else { break };
            // Lines that a login prints before the program starts are not reports; nor are they all
            // UTF-8.
            let Ok(report) = serde_json::from_slice(&line) else { continue };
            if sender.send((me, StdoutMessage::Report(report))).is_err() {
                return;
            }
        }
        let _ = sender.send((me, StdoutMessage::Closed));
    });
}

/// Starts a thread that forwards the stderr of a process as events, each line after the name of the
/// process.
pub(super) fn forward_errors(
    name: String,
    process: usize,
    epoch: u64,
    stderr: impl Read + Send + 'static,
    events: EventSink,
) {
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

    #[test]
    fn lines_that_are_no_reports_are_passed_over_whatever_their_bytes() {
        let (sender, received) = std::sync::mpsc::channel();
        read_reports(3, &b"Welcome\nBienvenue \xe0 caf\xe9\n\n\"joined\"\r\n\"leaving\""[..], sender);
        let kinds = received.iter().map(|(me, message)| match message {
            StdoutMessage::Report(report) => (me, serde_json::to_string(&report).unwrap()),
            StdoutMessage::Closed => (me, "closed".to_owned()),
        });
        let wanted = ["\"joined\"", "\"leaving\"", "closed"].map(|kind| (3, kind.to_owned()));
        assert_eq!(kinds.collect::<Vec<_>>(), wanted);
    }
}
