//! Shows the progress of a run on stderr: a bar on a terminal, otherwise lines of the log.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::{Bytes, age};
use crate::log::{Display, Log};
use crate::sheet::plural;
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

/// Shows the progress of a run, which `read` returns, from a separate thread. `bytes` is the size
/// of the run's inputs.
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
    begun: Instant,
    /// The part that is done now, and since when.
    part: Option<(ProgressPart, Instant)>,
    /// When the last line was written, and for which part.
    last: Option<(Instant, ProgressPart)>,
}

/// What has progress of its own: a stage; of the first stage the time when everything is read, too,
/// and only the pages are to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressPart {
    Read,
    WritePages,
    Of(Stage),
}

impl ProgressPart {
    fn of(progress: Progress, bytes: u64) -> ProgressPart {
        match progress.stage {
            Stage::Read if progress.bytes < bytes => ProgressPart::Read,
            Stage::Read => ProgressPart::WritePages,
            stage => ProgressPart::Of(stage),
        }
    }

    fn title(self) -> &'static str {
        match self {
            ProgressPart::Read => Stage::Read.title(),
            ProgressPart::WritePages => "writing pages",
            ProgressPart::Of(stage) => stage.title(),
        }
    }
}

/// How much of a part is done, 0 to 1; `None` if it does not say.
fn done(part: ProgressPart, progress: Progress, bytes: u64) -> Option<f64> {
    let share = |done: u64, of: u64| (of > 0).then(|| (done as f64 / of as f64).min(1.0));
    match part {
        ProgressPart::Read => share(progress.bytes, bytes),
        _ => share(progress.steps, progress.of_steps),
    }
}

impl Screen {
    fn new(log: Log, bytes: u64) -> Screen {
        let terminal = !log.is_json() && std::io::stderr().is_terminal();
        let bar = terminal.then(|| ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr()));
        Screen { log, bytes, bar, begun: Instant::now(), part: None, last: None }
    }

    /// Draws the bar, or writes a line if the part is new or the last line is old.
    fn draw(&mut self, progress: Progress) {
        // `Read` is the default stage: a job without inputs has not entered its first stage yet.
        if self.bytes == 0 && progress.stage == Stage::Read {
            return;
        }
        let part = ProgressPart::of(progress, self.bytes);
        let since = match self.part {
            Some((of, since)) if of == part => since,
            _ => Instant::now(),
        };
        self.part = Some((part, since));
        let done = done(part, progress, self.bytes);
        if let Some(bar) = &self.bar {
            let template = match done {
                None => "{prefix:14} {spinner} {msg}",
                Some(_) => "{prefix:14} {wide_bar} {percent:>3}% {msg}",
            };
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(part.title());
            bar.set_position((1000.0 * done.unwrap_or(0.0)) as u64);
            bar.set_message(self.message(part, since, done, progress));
            bar.tick();
            return;
        }
        let due = match self.last {
            None => true,
            Some((at, last)) => last != part || at.elapsed() >= LINE_EVERY,
        };
        if due {
            self.line(part, since, done, progress);
        }
    }

    fn end(&mut self, progress: Progress) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None if self.log.is_json() => {
                let part = ProgressPart::of(progress, self.bytes);
                self.line(part, Instant::now(), done(part, progress, self.bytes), progress);
            }
            None => {}
        }
    }

    /// What is said of a part besides its name and share.
    fn message(&self, part: ProgressPart, since: Instant, done: Option<f64>, progress: Progress) -> String {
        let left = left(since, done).map_or(String::new(), |left| format!(", about {} left", age(left.ceil() as i64)));
        let seconds = self.begun.elapsed().as_secs_f64();
        match part {
            ProgressPart::Read => {
                let rejects = match progress.rejects {
                    0 => String::new(),
                    rejects => format!(", {}", plural(rejects, "reject")),
                };
                let rate = Bytes((progress.bytes as f64 / seconds.max(1e-3)) as u64);
                format!("{}{rejects}, {rate}/s{left}", plural(progress.documents, "page"))
            }
            _ => format!("after {}{left}", age(seconds as i64)),
        }
    }

    fn line(&mut self, part: ProgressPart, since: Instant, done: Option<f64>, progress: Progress) {
        self.last = Some((Instant::now(), part));
        let seconds = self.begun.elapsed().as_secs_f64();
        let left = left(since, done);
        let text = || {
            let message = self.message(part, since, done, progress);
            match (part, done) {
                (ProgressPart::Read, _) => {
                    format!("{}: {} of {}, {message}", part.title(), Bytes(progress.bytes), Bytes(self.bytes))
                }
                (_, Some(done)) => format!("{}: {:.0}% {message}", part.title(), 100.0 * done),
                (_, None) => format!("{} {message}", part.title()),
            }
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
                "steps": progress.steps,
                "of_steps": progress.of_steps,
                "exchanged_bytes": progress.exchanged,
                "seconds_left": left.map(|left| left.round()),
            })
        };
        self.log.progress(text, fields);
    }
}

/// The seconds that a part is likely to take still, if it goes on as it began.
fn left(since: Instant, done: Option<f64>) -> Option<f64> {
    let done = done.filter(|done| *done > 0.02)?;
    Some(since.elapsed().as_secs_f64() * (1.0 - done) / done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_says_how_much_of_it_is_done() {
        let at = |stage, bytes, steps, of_steps| Progress { stage, bytes, steps, of_steps, ..Progress::default() };
        let said = |progress: Progress| {
            let part = ProgressPart::of(progress, 100);
            (part.title(), done(part, progress, 100))
        };
        // Steps count only when everything is read: the shards of earlier waves are written
        // meanwhile.
        assert_eq!(said(at(Stage::Read, 25, 3, 4)), ("reading", Some(0.25)));
        assert_eq!(said(at(Stage::Read, 100, 3, 4)), ("writing pages", Some(0.75)));
        assert_eq!(said(at(Stage::Prune, 100, 1, 8)), ("pruning", Some(0.125)));
        assert_eq!(said(at(Stage::Relabel, 100, 0, 0)), ("relabelling", None));
    }

    #[test]
    fn what_is_left_is_said_when_something_is_done() {
        let since = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        assert_eq!(left(since, None), None);
        assert_eq!(left(since, Some(0.0)), None);
        assert_eq!(left(since, Some(1.0)), Some(0.0));
        let left = left(since, Some(0.25)).unwrap();
        assert!((30.0..31.0).contains(&left), "{left}");
    }
}
