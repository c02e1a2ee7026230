//! Shows the progress of a run on stderr: a bar on a terminal, otherwise lines of the log.

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

/// The pause between two drawings of the bar.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// The pause between two lines if stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A display of progress, which ends when this is dropped.
pub struct ProgressDisplay {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // If the thread panicked, the display has ended too.
            let _ = thread.join();
        }
    }
}

/// Shows the progress of a run, which `read` returns, from a separate thread. `bytes` is the size of the run's inputs.
pub fn show(log: &Log, bytes: u64, read: impl Fn() -> Progress + Send + 'static) -> ProgressDisplay {
    let ended = Arc::new(AtomicBool::new(false));
    if log.display() == Display::Quiet {
        return ProgressDisplay { ended, thread: None };
    }
    let thread = {
        let ended = ended.clone();
        let log = log.clone();
        std::thread::spawn(move || {
            let mut screen = Screen::new(log, bytes);
            while !ended.load(Ordering::Acquire) {
                screen.draw(read());
                std::thread::park_timeout(DRAW_EVERY);
            }
            screen.end(read());
        })
    };
    ProgressDisplay { ended, thread: Some(thread) }
}

/// The bar, or the lines, and when they were last written.
struct Screen {
    log: Log,
    /// Bytes of the run's inputs.
    bytes: u64,
    /// None if stderr is not a terminal or the log has JSON events.
    bar: Option<ProgressBar>,
    /// Whether the bar is a spinner by now, as in all stages after reading.
    bar_is_spinner: bool,
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
        Screen { log, bytes, bar, bar_is_spinner: false, begun: Instant::now(), last: None }
    }

    /// Draws the bar, or writes a line if the stage is new or the last line is old.
    fn draw(&mut self, progress: Progress) {
        // `Read` is the default stage: a job without inputs has not entered its first stage yet.
        if self.bytes == 0 && progress.stage == Stage::Read {
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_prefix(progress.stage.title());
            if progress.stage != Stage::Read && !self.bar_is_spinner {
                // The duration of the stages after reading is unknown: a spinner, and no estimate.
                self.bar_is_spinner = true;
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
        // Only reading has an estimate: the time of other stages depends on the documents.
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
