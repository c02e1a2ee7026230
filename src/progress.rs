//! How far a run is, on stderr: a bar on a terminal, plain lines elsewhere, JSON events for programs.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::Bytes;
use crate::report::grouped;
use crate::watch::{Reading, Stage};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// Not at all.
    Quiet,
    /// A bar where stderr is a terminal, a line every few seconds elsewhere.
    Person,
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

/// Shows what `read` says of a run whose inputs have `bytes` bytes, from a thread of its own.
pub fn show(display: Display, bytes: u64, read: impl Fn() -> Reading + Send + 'static) -> Shown {
    let ended = Arc::new(AtomicBool::new(false));
    if display == Display::Quiet {
        return Shown { ended, thread: None };
    }
    let over = ended.clone();
    let thread = std::thread::spawn(move || {
        let mut screen = Screen::new(display, bytes);
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
    bytes: u64,
    bar: Option<ProgressBar>,
    begun: Instant,
    /// When the last line was written, and for which stage.
    last: Option<(Instant, Stage)>,
}

impl Screen {
    fn new(display: Display, bytes: u64) -> Screen {
        let terminal = display == Display::Person && std::io::stderr().is_terminal();
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
            let style =
                ProgressStyle::with_template("{prefix:14} {wide_bar} {percent:>3}% {bytes_per_sec} {msg} {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Screen { display, bytes, bar, begun: Instant::now(), last: None }
    }

    fn draw(&mut self, reading: Reading) {
        if let Some(bar) = &self.bar {
            bar.set_prefix(reading.stage.title());
            bar.set_position(reading.bytes.min(self.bytes));
            bar.set_message(format!("{} pages, {} rejects", grouped(reading.documents), grouped(reading.rejects)));
            return;
        }
        let due = match self.last {
            None => true,
            Some((at, stage)) => stage != reading.stage || at.elapsed() >= LINE_EVERY,
        };
        if due {
            self.line(reading);
        }
    }

    fn end(&mut self, reading: Reading) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None if self.display == Display::Json => self.line(reading),
            None => {}
        }
    }

    fn line(&mut self, reading: Reading) {
        self.last = Some((Instant::now(), reading.stage));
        let seconds = self.begun.elapsed().as_secs_f64();
        let left = match reading.bytes {
            0 => None,
            read => Some(seconds * self.bytes.saturating_sub(read) as f64 / read as f64),
        };
        let text = if self.display == Display::Json {
            let event = serde_json::json!({
                "event": "progress",
                "seconds": (seconds * 1000.0).round() / 1000.0,
                "stage": reading.stage,
                "bytes": reading.bytes,
                "of_bytes": self.bytes,
                "records": reading.records,
                "documents": reading.documents,
                "rejects": reading.rejects,
                "exchanged_bytes": reading.exchanged,
                "seconds_left": left.map(|left| left.round()),
            });
            event.to_string()
        } else if reading.stage == Stage::Read {
            format!(
                "{}: {} of {}, {} pages, {} rejects, {}/s{}",
                reading.stage.title(),
                Bytes(reading.bytes),
                Bytes(self.bytes),
                grouped(reading.documents),
                grouped(reading.rejects),
                Bytes((reading.bytes as f64 / seconds.max(1e-3)) as u64),
                left.map_or(String::new(), |left| format!(", about {left:.0} s left"))
            )
        } else {
            format!("{} after {seconds:.1} s", reading.stage.title())
        };
        // Where nobody reads stderr any more, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}
