//! The log of a command on stderr: short lines on a terminal, lines with the run's name in a file,
//! JSON events for programs.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde_json::{Map, Value};

use crate::launch::ProcessEvent;
use crate::objects::hide_passwords;
use crate::records::short_hash;
use crate::text::{printable_json, printable_lines};
use crate::watch::Span;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// Not at all; nor are notices, but warnings and errors are.
    Quiet,
    /// A bar if stderr is a terminal, otherwise a line every few seconds.
    Person,
    /// As [`Display::Person`]; and at the end the time of each stage.
    Verbose,
    /// One JSON object on each line.
    Json,
}

impl Display {
    /// The display that the flags select. `--quiet` overrides `--json`, which overrides
    /// `--verbose`.
    ///
    /// ```
    /// use nigh::log::Display;
    /// assert_eq!(Display::new(true, true, true), Display::Quiet);
    /// assert_eq!(Display::new(false, true, true), Display::Json);
    /// assert_eq!(Display::new(false, false, false), Display::Person);
    /// ```
    pub fn new(quiet: bool, verbose: bool, json: bool) -> Display {
        match (quiet, json, verbose) {
            (true, _, _) => Display::Quiet,
            (_, true, _) => Display::Json,
            (_, _, true) => Display::Verbose,
            _ => Display::Person,
        }
    }
}

/// The log of a command, written to stderr. If stderr is not a terminal, each line has the name of
/// the run, and in a run of several processes the process and the restart number (`epoch`). Each
/// JSON event has all of these, its time, its level, and the id of the run.
#[derive(Clone)]
pub struct Log(Arc<LogState>);

struct LogState {
    display: Display,
    json: bool,
    run: String,
    job: RwLock<Option<String>>,
    process: OnceLock<usize>,
    is_alone: AtomicBool,
    epoch: AtomicU64,
    stopped: AtomicBool,
}

impl Log {
    /// A log that writes JSON events if `json`, and lines otherwise. It has no run's name yet, and
    /// an id that no other run has.
    pub fn new(display: Display, json: bool) -> Log {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let run = format!("{host} {} {}", std::process::id(), jiff::Timestamp::now());
        Log::of_run(short_hash(run.as_bytes()), display, json)
    }

    /// As [`Log::new`], with the id of the run.
    pub fn of_run(run: String, display: Display, json: bool) -> Log {
        let (job, process, epoch) = (RwLock::new(None), OnceLock::new(), AtomicU64::new(0));
        let (is_alone, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        Log(Arc::new(LogState { display, json, run, job, process, is_alone, epoch, stopped }))
    }

    /// The id of the run.
    pub fn run(&self) -> &str {
        &self.0.run
    }

    /// Sets the name of the run, in place of an earlier one.
    pub fn name(&self, job: String) {
        *self.0.job.write().unwrap_or_else(PoisonError::into_inner) = Some(job);
    }

    /// Sets the number of the process that writes this log, if it is a process of a run. Only the
    /// first call has an effect.
    pub fn set_process(&self, process: usize) {
        let _ = self.0.process.set(process);
    }

    /// Says that the run has this process only. Its lines name no process; JSON events have the
    /// number 0.
    pub fn set_alone(&self) {
        self.0.is_alone.store(true, Ordering::Relaxed);
        self.set_process(0);
    }

    /// Sets the restart number of the processes.
    pub fn set_epoch(&self, epoch: u64) {
        self.0.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Writes a message for the user, unless the display is [`Display::Quiet`].
    pub fn notice(&self, text: &str) {
        if self.0.display != Display::Quiet {
            self.message("notice", text, self.epoch(), None);
        }
    }

    /// Writes a message that the user should act on: a notice whose level is `warning`.
    pub fn warn(&self, text: &str) {
        self.message("warning", text, self.epoch(), None);
    }

    /// Writes why the command fails.
    pub fn error(&self, text: &str) {
        self.message("error", text, self.epoch(), None);
    }

    /// Writes that a signal ends the command, and what is kept. Later messages are dropped: they
    /// are consequences of the stop.
    pub fn stopped(&self, text: &str) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.message("stopped", text, self.epoch(), None);
    }

    /// Whether [`Log::stopped`] was called.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Writes an event of the run's processes.
    pub fn event(&self, event: ProcessEvent<'_>) {
        let ProcessEvent { kind, text, epoch, process } = event;
        self.message(kind, text, epoch, process);
    }

    /// Writes the time of each stage in one process: as lines if the display is
    /// [`Display::Verbose`], as one event if it is [`Display::Json`].
    pub fn spans(&self, spans: &[Span]) {
        if self.0.display == Display::Json {
            let fields = || Map::from_iter([("stages".to_owned(), serde_json::json!(spans))]);
            self.write("stages", self.epoch(), None, String::new, fields);
        }
        if self.0.display == Display::Verbose {
            let line = |Span { stage, wall_s, cpu_s }: &Span| {
                format!("{:16} {wall_s:8.3} s, {cpu_s:8.3} CPU s\n", stage.title())
            };
            let _ = write!(std::io::stderr(), "{}", spans.iter().map(line).collect::<String>());
        }
    }

    /// Writes lines as they are, such as those of a plan.
    pub fn lines(&self, text: &str) {
        let _ = write!(std::io::stderr(), "{}", printable_lines(text));
    }

    /// Writes the progress of the run: `text` as a line, or `fields` as an event.
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

    /// Whether the log has JSON events.
    pub fn is_json(&self) -> bool {
        self.0.json
    }

    fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Relaxed)
    }

    fn message(&self, kind: &str, text: &str, epoch: u64, process: Option<usize>) {
        // A client of a service may quote its endpoint.
        let text = &*hide_passwords(text);
        let fields = || Map::from_iter([("message".to_owned(), text.into())]);
        self.write(kind, epoch, process, || text.to_owned(), fields);
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
        let job = self.0.job.read().unwrap_or_else(PoisonError::into_inner).clone();
        let line = if self.0.json {
            let mut event = Map::new();
            event.insert("time".into(), time_text(jiff::Timestamp::now()).into());
            event.insert("level".into(), level(kind).into());
            event.insert("event".into(), if kind == "warning" { "notice" } else { kind }.into());
            event.insert("run".into(), self.0.run.as_str().into());
            event.insert("job".into(), job.into());
            event.insert("epoch".into(), epoch.into());
            event.insert("process".into(), process.into());
            event.extend(fields());
            printable_json(&Value::Object(event).to_string()).into_owned()
        } else {
            // The text may quote an input, a peer or the system.
            let text = text();
            let text = printable_lines(&text);
            match job.filter(|_| !std::io::stderr().is_terminal()) {
                Some(job) if self.0.is_alone.load(Ordering::Relaxed) => format!("nigh [{job}]: {text}"),
                Some(job) => {
                    let process = process.map(|process| format!(", process {process}")).unwrap_or_default();
                    format!("nigh [{job}{process}, epoch {epoch}]: {text}")
                }
                None => format!("nigh: {text}"),
            }
        };
        // If stderr is closed, there is no other place for the message.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// A time as events have it: RFC 3339, in UTC, to the millisecond.
///
/// ```
/// let time = "2024-01-08T09:30:00.25+01:00".parse().unwrap();
/// assert_eq!(nigh::log::time_text(time), "2024-01-08T08:30:00.250Z");
/// ```
pub fn time_text(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// How serious an event of this kind is.
fn level(kind: &str) -> &'static str {
    match kind {
        "error" => "error",
        "warning" | "waiting" | "refused" | "lost" | "straggler" | "restart" | "restarts" | "without" | "regroup"
        | "leaving" | "stopped" => "warning",
        _ => "info",
    }
}
