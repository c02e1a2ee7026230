//! How far a run is, on stderr: a bar on a terminal, plain lines elsewhere, JSON events for programs.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::Bytes;
use crate::launch::Event;
use crate::report::grouped;
use crate::watch::{Progress, Span, Stage};

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

/// How often a bar is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Progress that is shown until it is dropped.
pub struct Shown {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A display that panicked has nothing more to show.
            let _ = thread.join();
        }
    }
}

/// Says something on stderr: as a line, or as an event for programs.
pub fn notice(json: bool, event: &str, text: &str) {
    let line =
        if json { serde_json::json!({ "event": event, "message": text }).to_string() } else { format!("nigh: {text}") };
    // Where nobody reads stderr any more, there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Says something of the processes of a run on stderr; as an event for programs it names the run, the process and which
/// start of the processes it is.
pub fn tell(json: bool, job: &str, event: Event<'_>) {
    let Event { kind, text, epoch, process } = event;
    if !json {
        return notice(false, kind, text);
    }
    let line = serde_json::json!({ "event": kind, "message": text, "job": job, "epoch": epoch, "process": process });
    // Where nobody reads stderr any more, there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Says how long the parts of a run took in one process, where that is wanted.
pub fn tell_spans(display: Display, spans: &[Span]) {
    if display == Display::Verbose {
        let line =
            |Span { stage, wall_s, cpu_s }: &Span| format!("{:16} {wall_s:8.3} s, {cpu_s:8.3} CPU s\n", stage.title());
        let _ = write!(std::io::stderr(), "{}", spans.iter().map(line).collect::<String>());
    }
}

/// What progress is shown of.
pub struct Shows {
    /// What a reader calls the run.
    pub job: String,
    /// Bytes of its inputs.
    pub bytes: u64,
    /// Which start of its processes it is.
    pub epoch: Arc<AtomicU64>,
}

/// Shows what `read` says of a run, from a thread of its own.
pub fn show(display: Display, run: Shows, read: impl Fn() -> Progress + Send + 'static) -> Shown {
    let ended = Arc::new(AtomicBool::new(false));
    if display == Display::Quiet {
        return Shown { ended, thread: None };
    }
    let over = ended.clone();
    let thread = std::thread::spawn(move || {
        let mut screen = Screen::new(display, run);
        while !over.load(Ordering::Acquire) {
            screen.draw(read());
            std::thread::park_timeout(DRAW_EVERY);
        }
        screen.end(read());
    });
    Shown { ended, thread: Some(thread) }
}

struct Screen {
    display: Display,
    run: Shows,
    bar: Option<ProgressBar>,
    bar_is_plain: bool,
    begun: Instant,
    /// When the last line was written, and for which stage.
    last: Option<(Instant, Stage)>,
}

impl Screen {
    fn new(display: Display, run: Shows) -> Screen {
        let terminal = display != Display::Json && std::io::stderr().is_terminal();
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(run.bytes), ProgressDrawTarget::stderr());
            let style =
                ProgressStyle::with_template("{prefix:14} {wide_bar} {percent:>3}% {bytes_per_sec} {msg} {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Screen { display, run, bar, bar_is_plain: false, begun: Instant::now(), last: None }
    }

    fn draw(&mut self, progress: Progress) {
        // A job that reads no crawl has not entered its first stage yet.
        if self.run.bytes == 0 && progress.stage == Stage::Read {
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_prefix(progress.stage.title());
            if progress.stage != Stage::Read && !self.bar_is_plain {
                // How long what follows will take is not known: a spinner, and no estimate.
                self.bar_is_plain = true;
                let style = ProgressStyle::with_template("{prefix:14} {spinner} {elapsed} {msg}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            }
            bar.tick();
            bar.set_position(progress.bytes.min(self.run.bytes));
            bar.set_message(format!("{} pages, {} rejects", grouped(progress.documents), grouped(progress.rejects)));
            return;
        }
        let due = match self.last {
            None => true,
            Some((at, stage)) => stage != progress.stage || at.elapsed() >= LINE_EVERY,
        };
        if due {
            self.line(progress);
        }
    }

    fn end(&mut self, progress: Progress) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None if self.display == Display::Json => self.line(progress),
            None => {}
        }
    }

    fn line(&mut self, progress: Progress) {
        self.last = Some((Instant::now(), progress.stage));
        let seconds = self.begun.elapsed().as_secs_f64();
        // Only reading tells how long it will take: the rest depends on what was read.
        let left = match (progress.stage, progress.bytes) {
            (Stage::Read, read @ 1..) => Some(seconds * self.run.bytes.saturating_sub(read) as f64 / read as f64),
            _ => None,
        };
        let text = if self.display == Display::Json {
            let event = serde_json::json!({
                "event": "progress",
                "job": self.run.job,
                "epoch": self.run.epoch.load(Ordering::Relaxed),
                "seconds": (seconds * 1000.0).round() / 1000.0,
                "stage": progress.stage,
                "bytes": progress.bytes,
                "of_bytes": self.run.bytes,
                "records": progress.records,
                "documents": progress.documents,
                "rejects": progress.rejects,
                "exchanged_bytes": progress.exchanged,
                "seconds_left": left.map(|left| left.round()),
            });
            event.to_string()
        } else if progress.stage == Stage::Read {
            format!(
                "{}: {} of {}, {} pages, {} rejects, {}/s{}",
                progress.stage.title(),
                Bytes(progress.bytes),
                Bytes(self.run.bytes),
                grouped(progress.documents),
                grouped(progress.rejects),
                Bytes((progress.bytes as f64 / seconds.max(1e-3)) as u64),
                left.map_or(String::new(), |left| format!(", about {left:.0} s left"))
            )
        } else {
            format!("{} after {seconds:.1} s", progress.stage.title())
        };
        // Where nobody reads stderr any more, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}
