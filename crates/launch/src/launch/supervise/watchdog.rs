//! Finds processes that are silent, and runs in which nothing moves.
//!
//! Processes report their counters five times a second. A process that sends nothing for longer
//! than the timeout is frozen, or its host or network has failed: the engine would wait for it
//! without end. If all processes report but no counter changes and no CPU time is used, they wait
//! for each other: the run has stalled. Only the clock of the supervisor is used.

use std::time::{Duration, Instant};

use crate::watch::Progress;

/// How often the supervisor must call [`Watchdog::look`]. If it did not for much longer, the
/// supervisor itself was stopped, and no process counts as silent for that time.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);
/// When processes have lost their connections, a process that is silent for this time is the likely
/// cause.
const QUIET: Duration = Duration::from_secs(2);
/// A process that uses less than this many CPU seconds a second only waits.
const IDLE: f64 = 0.02;

/// The watchdog of one generation of processes.
pub struct Watchdog {
    timeout: Duration,
    stall: Duration,
    /// When each process last reported; `None` if no more reports are expected of it.
    last_report: Vec<Option<Instant>>,
    counters: Vec<Progress>,
    /// The counters when something last moved, and the time of that.
    moved: (Vec<Progress>, Instant),
    last_look: Instant,
}

/// What the watchdog found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogFinding {
    /// Nothing is wrong.
    Fine,
    /// This process has sent nothing for this time.
    Silent(usize, Duration),
    /// Nothing has moved for this time.
    Stalled(Duration),
}

impl Watchdog {
    /// Watches processes from `now` on.
    pub fn new(processes: usize, timeout: Duration, stall: Duration, now: Instant) -> Watchdog {
        let counters = vec![Progress::default(); processes];
        let last_report = vec![Some(now); processes];
        Watchdog { timeout, stall, last_report, moved: (counters.clone(), now), counters, last_look: now }
    }

    /// Notes the counters that a process reported.
    pub fn note(&mut self, process: usize, progress: Progress, now: Instant) {
        self.counters[process] = progress;
        if let Some(last_report) = &mut self.last_report[process] {
            *last_report = now;
        }
    }

    /// Expects no more reports of a process.
    pub fn excuse(&mut self, process: usize) {
        self.last_report[process] = None;
    }

    /// Looks at all processes.
    pub fn look(&mut self, now: Instant) -> WatchdogFinding {
        if now.duration_since(self.last_look) > LOOK_EVERY * 20 {
            self.last_report.iter_mut().flatten().for_each(|last_report| *last_report = now);
            self.moved.1 = now;
        }
        self.last_look = now;
        if self.has_moved(now) {
            self.moved = (self.counters.clone(), now);
        }
        let still = now.duration_since(self.moved.1);
        match self.quietest(now) {
            Some((process, quiet)) if quiet > self.timeout => WatchdogFinding::Silent(process, quiet),
            _ if still > self.stall => WatchdogFinding::Stalled(still),
            _ => WatchdogFinding::Fine,
        }
    }

    /// The process that is the likely cause when others have lost their connections, and how long
    /// it is silent.
    pub fn suspect(&self, now: Instant) -> Option<(usize, Duration)> {
        self.quietest(now).filter(|(_, quiet)| *quiet > QUIET)
    }

    fn quietest(&self, now: Instant) -> Option<(usize, Duration)> {
        let quiet = |(process, last): (usize, &Option<Instant>)| Some((process, now.duration_since((*last)?)));
        self.last_report.iter().enumerate().filter_map(quiet).max_by_key(|(_, quiet)| *quiet)
    }

    fn has_moved(&self, now: Instant) -> bool {
        let (before, at) = &self.moved;
        let counted = before.iter().zip(&self.counters).any(|(before, after)| before.counters() != after.counters());
        // Within the first second a few milliseconds of CPU time mean nothing.
        let seconds = now.duration_since(*at).as_secs_f64().max(1.0);
        let busy = before
            .iter()
            .zip(&self.counters)
            .any(|(before, after)| after.cpu_ms.saturating_sub(before.cpu_ms) as f64 / 1e3 > IDLE * seconds);
        counted || busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Looks every quarter of a second until something is found; `report` notes the reports of each
    /// tick.
    fn found(seconds: u32, report: impl Fn(u64, &mut Watchdog, Instant)) -> WatchdogFinding {
        let begun = Instant::now();
        let mut watchdog = Watchdog::new(3, 5 * SECOND, 30 * SECOND, begun);
        for tick in 1..=u64::from(seconds) * 4 {
            let now = begun + LOOK_EVERY * tick as u32;
            report(tick, &mut watchdog, now);
            match watchdog.look(now) {
                WatchdogFinding::Fine => {}
                finding => return finding,
            }
        }
        WatchdogFinding::Fine
    }

    fn counted(records: u64, cpu_ms: u64) -> Progress {
        Progress { records, cpu_ms, ..Progress::default() }
    }

    #[test]
    fn a_silent_process_is_named() {
        let finding = found(60, |tick, watchdog, now| {
            for process in (0..3).filter(|process| *process != 1 || tick < 40) {
                watchdog.note(process, counted(tick, tick), now);
            }
        });
        assert!(matches!(finding, WatchdogFinding::Silent(1, quiet) if quiet < 6 * SECOND), "{finding:?}");
    }

    #[test]
    fn a_process_that_ended_is_not_silent() {
        let finding = found(60, |tick, watchdog, now| {
            if tick == 8 {
                watchdog.excuse(2);
            }
            (0..2).for_each(|process| watchdog.note(process, counted(tick, tick), now));
        });
        assert_eq!(finding, WatchdogFinding::Fine);
    }

    #[test]
    fn processes_that_only_wait_for_each_other_have_stalled_and_busy_ones_have_not() {
        // Reports take a thousandth of a core; a tenth is work.
        let waits = found(60, |tick, watchdog, now| {
            (0..3).for_each(|process| watchdog.note(process, counted(7, tick / 4), now));
        });
        assert!(matches!(waits, WatchdogFinding::Stalled(still) if still < 32 * SECOND), "{waits:?}");
        let works = found(60, |tick, watchdog, now| {
            (0..3).for_each(|process| watchdog.note(process, counted(7, tick * 25 * u64::from(process == 2)), now));
        });
        assert_eq!(works, WatchdogFinding::Fine);
    }

    #[test]
    fn no_process_is_silent_while_the_supervisor_itself_was_stopped() {
        let begun = Instant::now();
        let mut watchdog = Watchdog::new(2, 5 * SECOND, 30 * SECOND, begun);
        assert_eq!(watchdog.look(begun + LOOK_EVERY), WatchdogFinding::Fine);
        let woken = begun + 3600 * SECOND;
        assert_eq!(watchdog.look(woken), WatchdogFinding::Fine);
        // Process 0 reports again, process 1 does not.
        watchdog.note(0, counted(1, 1), woken + 5 * SECOND);
        let mut finding = WatchdogFinding::Fine;
        for tick in 1..30 {
            finding = watchdog.look(woken + LOOK_EVERY * tick);
            if finding != WatchdogFinding::Fine {
                break;
            }
        }
        assert!(matches!(finding, WatchdogFinding::Silent(1, _)), "{finding:?}");
    }

    #[test]
    fn the_longest_silent_process_is_suspected_when_others_lose_their_connections() {
        let begun = Instant::now();
        let mut watchdog = Watchdog::new(3, 20 * SECOND, 60 * SECOND, begun);
        for process in [0, 2] {
            watchdog.note(process, counted(1, 1), begun + 4 * SECOND);
        }
        watchdog.excuse(0);
        assert_eq!(watchdog.suspect(begun + 4 * SECOND).map(|(process, _)| process), Some(1));
        watchdog.note(1, counted(1, 1), begun + 4 * SECOND);
        assert_eq!(watchdog.suspect(begun + 5 * SECOND), None);
    }
}
