//! How far a run is, on stderr: a bar on a terminal, lines of the log elsewhere.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::Bytes;
use crate::log::{Display, Log};
use crate::report::grouped;
use crate::watch::{Progress, Stage};

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

/// Shows what `read` says of a run whose inputs have so many bytes, from a thread of its own.
pub fn show(log: &Log, bytes: u64, read: impl Fn() -> Progress + Send + 'static) -> Shown {
    let ended = Arc::new(AtomicBool::new(false));
    if log.display() == Display::Quiet {
        return Shown { ended, thread: None };
    }
    let (over, log) = (ended.clone(), log.clone());
    let thread = std::thread::spawn(move || {
        let mut screen = Screen::new(log, bytes);
        while !over.load(Ordering::Acquire) {
            screen.draw(read());
            std::thread::park_timeout(DRAW_EVERY);
        }
        screen.end(read());
    });
    Shown { ended, thread: Some(thread) }
}

struct Screen {
    log: Log,
    /// Bytes of the run's inputs.
    bytes: u64,
    bar: Option<ProgressBar>,
    bar_is_plain: bool,
    begun: Instant,
    /// When the last line was written, and for which stage.
    last: Option<(Instant, Stage)>,
}

impl Screen {
    fn new(log: Log, bytes: u64) -> Screen {
        let terminal = !log.is_json() && std::io::stderr().is_terminal();
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
            let style =
                ProgressStyle::with_template("{prefix:14} {wide_bar} {percent:>3}% {bytes_per_sec} {msg} {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Screen { log, bytes, bar, bar_is_plain: false, begun: Instant::now(), last: None }
    }

    fn draw(&mut self, progress: Progress) {
        // A job that reads no crawl has not entered its first stage yet.
        if self.bytes == 0 && progress.stage == Stage::Read {
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
            bar.set_position(progress.bytes.min(self.bytes));
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
            None if self.log.is_json() => self.line(progress),
            None => {}
        }
    }

    fn line(&mut self, progress: Progress) {
        self.last = Some((Instant::now(), progress.stage));
        let seconds = self.begun.elapsed().as_secs_f64();
        // Only reading tells how long it will take: the rest depends on what was read.
        let left = match (progress.stage, progress.bytes) {
            (Stage::Read, read @ 1..) => Some(seconds * self.bytes.saturating_sub(read) as f64 / read as f64),
            _ => None,
        };
        let text = || match progress.stage {
            Stage::Read => format!(
                "{}: {} of {}, {} pages, {} rejects, {}/s{}",
                progress.stage.title(),
                Bytes(progress.bytes),
                Bytes(self.bytes),
                grouped(progress.documents),
                grouped(progress.rejects),
                Bytes((progress.bytes as f64 / seconds.max(1e-3)) as u64),
                left.map_or(String::new(), |left| format!(", about {left:.0} s left"))
            ),
            stage => format!("{} after {seconds:.1} s", stage.title()),
        };
        let fields = || {
            serde_json::json!({
                "seconds": (seconds * 1000.0).round() / 1000.0,
                "stage": progress.stage,
                "bytes": progress.bytes,
                "of_bytes": self.bytes,
                "records": progress.records,
                "documents": progress.documents,
                "rejects": progress.rejects,
                "exchanged_bytes": progress.exchanged,
                "seconds_left": left.map(|left| left.round()),
            })
        };
        self.log.progress(text, fields);
    }
}
