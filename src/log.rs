//! What a command says of itself, on stderr: short lines on a terminal, lines that name their run in a file, JSON events
//! for programs.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::launch::ProcessEvent;
use crate::watch::Span;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// Not at all.
    Quiet,
    /// A bar where stderr is a terminal, a line every few seconds elsewhere.
    Person,
    /// As for a person; and at the end how long each part took.
    Verbose,
    /// A JSON object a line.
    Json,
}

impl Display {
    /// As flags ask for it.
    pub fn new(quiet: bool, verbose: bool, json: bool) -> Display {
        match (quiet, json, verbose) {
            (true, _, _) => Display::Quiet,
            (_, true, _) => Display::Json,
            (_, _, true) => Display::Verbose,
            _ => Display::Person,
        }
    }
}

/// Where a command says what happens: stderr. Lines in a file, and events, tell of which run they are, of which process and
/// of which start of its processes (epoch).
#[derive(Clone)]
pub struct Log(Arc<Told>);

struct Told {
    display: Display,
    json: bool,
    job: OnceLock<String>,
    process: OnceLock<usize>,
    epoch: AtomicU64,
    stopped: AtomicBool,
}

impl Log {
    /// The log of a command; it names no run before it is named.
    pub fn new(display: Display, json: bool) -> Log {
        let (job, process, epoch) = (OnceLock::new(), OnceLock::new(), AtomicU64::new(0));
        Log(Arc::new(Told { display, json, job, process, epoch, stopped: AtomicBool::new(false) }))
    }

    /// Names the run; the first name stays.
    pub fn name(&self, job: String) {
        let _ = self.0.job.set(job);
    }

    /// Says which process of the run writes this log, where it is one of them.
    pub fn is_of(&self, process: usize) {
        let _ = self.0.process.set(process);
    }

    /// Says which start of the processes begins.
    pub fn begins(&self, epoch: u64) {
        self.0.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Says what a person should know, unless nothing is to be said.
    pub fn notice(&self, text: &str) {
        if self.0.display != Display::Quiet {
            self.say("notice", text, self.epoch(), None);
        }
    }

    /// Says why the command fails.
    pub fn error(&self, text: &str) {
        self.say("error", text, self.epoch(), None);
    }

    /// Says that a signal ends the command, and what is kept. What is said later is what comes of that, and is not heard.
    pub fn stopped(&self, text: &str) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.say("stopped", text, self.epoch(), None);
    }

    /// Whether a signal ends the command.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Says what happens to the processes of the run.
    pub fn event(&self, event: ProcessEvent<'_>) {
        let ProcessEvent { kind, text, epoch, process } = event;
        self.say(kind, text, epoch, process);
    }

    /// Says how long the parts of a run took in one process, where that is wanted.
    pub fn spans(&self, spans: &[Span]) {
        if self.0.display == Display::Verbose {
            let line = |Span { stage, wall_s, cpu_s }: &Span| {
                format!("{:16} {wall_s:8.3} s, {cpu_s:8.3} CPU s\n", stage.title())
            };
            let _ = write!(std::io::stderr(), "{}", spans.iter().map(line).collect::<String>());
        }
    }

    /// Says how far the run is: a line of `text`, or an event with these fields.
    pub fn progress(&self, text: impl FnOnce() -> String, fields: impl FnOnce() -> Value) {
        let fields = || match fields() {
            Value::Object(fields) => fields,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        self.write("progress", self.epoch(), None, text, fields);
    }

    /// How the progress of a run is shown.
    pub fn display(&self) -> Display {
        self.0.display
    }

    /// Whether programs read this log.
    pub fn is_json(&self) -> bool {
        self.0.json
    }

    fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Relaxed)
    }

    fn say(&self, kind: &str, text: &str, epoch: u64, process: Option<usize>) {
        let message = || Map::from_iter([("message".to_owned(), text.into())]);
        self.write(kind, epoch, process, || text.to_owned(), message);
    }

    fn write(
        &self,
        kind: &str,
        epoch: u64,
        process: Option<usize>,
        text: impl FnOnce() -> String,
        fields: impl FnOnce() -> Map<String, Value>,
    ) {
        if self.is_stopped() && kind != "stopped" {
            return;
        }
        let process = process.or(self.0.process.get().copied());
        let job = self.0.job.get();
        let line = if self.0.json {
            let mut event = Map::new();
            event.insert("event".into(), kind.into());
            event.insert("job".into(), job.cloned().into());
            event.insert("epoch".into(), epoch.into());
            event.insert("process".into(), process.into());
            event.extend(fields());
            Value::Object(event).to_string()
        } else {
            match job.filter(|_| !std::io::stderr().is_terminal()) {
                Some(job) => {
                    let process = process.map(|process| format!(", process {process}")).unwrap_or_default();
                    format!("nigh [{job}{process}, epoch {epoch}]: {}", text())
                }
                None => format!("nigh: {}", text()),
            }
        };
        // Where nobody reads stderr any more, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}
