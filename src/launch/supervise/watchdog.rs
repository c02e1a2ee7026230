//! Who has fallen silent, and whether anything still moves.
//!
//! Processes tell their counters five times a second. One that says nothing for longer than the timeout is frozen, or
//! its host or network is gone: the engine would wait for it for ever. When all speak but no counter changes and no CPU
//! time is used, they wait for each other. Both are told by the clock of the supervisor alone.

use std::time::{Duration, Instant};

use crate::watch::Progress;

/// How often the watchdog must be asked. After a pause of many times as long the supervisor itself was stopped, and
/// nobody is blamed for what it did not hear.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Of processes that lost their connections, one that is quiet for so long is the likely cause.
const QUIET: Duration = Duration::from_secs(2);
/// CPU seconds for each second of the clock, below which a process only waits.
const IDLE: f64 = 0.02;

/// The watchdog of one generation of processes.
pub struct Watchdog {
    timeout: Duration,
    stall: Duration,
    /// When each was last heard; `None` once nothing more is expected of it.
    heard: Vec<Option<Instant>>,
    told: Vec<Progress>,
    /// What was told when something last moved, and when that was.
    moved: (Vec<Progress>, Instant),
    looked: Instant,
}

/// What the watchdog finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// All is well.
    Fine,
    /// This process has said nothing for so long.
    Silent(usize, Duration),
    /// Nothing has moved for so long.
    Stalled(Duration),
}

impl Watchdog {
    /// Watches so many processes from `now` on.
    pub fn new(processes: usize, timeout: Duration, stall: Duration, now: Instant) -> Watchdog {
        let told = vec![Progress::default(); processes];
        Watchdog { timeout, stall, heard: vec![Some(now); processes], moved: (told.clone(), now), told, looked: now }
    }

    /// A process told its counters.
    pub fn tell(&mut self, process: usize, progress: Progress, now: Instant) {
        self.told[process] = progress;
        if let Some(heard) = &mut self.heard[process] {
            *heard = now;
        }
    }

    /// Nothing more is expected of a process.
    pub fn excuse(&mut self, process: usize) {
        self.heard[process] = None;
    }

    /// Looks at all processes.
    pub fn look(&mut self, now: Instant) -> Finding {
        if now.duration_since(self.looked) > LOOK_EVERY * 20 {
            self.heard.iter_mut().flatten().for_each(|heard| *heard = now);
            self.moved.1 = now;
        }
        self.looked = now;
        if self.has_moved(now) {
            self.moved = (self.told.clone(), now);
        }
        let still = now.duration_since(self.moved.1);
        match self.quietest(now) {
            Some((process, quiet)) if quiet > self.timeout => Finding::Silent(process, quiet),
            _ if still > self.stall => Finding::Stalled(still),
            _ => Finding::Fine,
        }
    }

    /// The process that is the likely cause when others have lost their connections.
    pub fn suspect(&self, now: Instant) -> Option<(usize, Duration)> {
        self.quietest(now).filter(|(_, quiet)| *quiet > QUIET)
    }

    fn quietest(&self, now: Instant) -> Option<(usize, Duration)> {
        let quiet = |(process, heard): (usize, &Option<Instant>)| Some((process, now.duration_since((*heard)?)));
        self.heard.iter().enumerate().filter_map(quiet).max_by_key(|(_, quiet)| *quiet)
    }

    fn has_moved(&self, now: Instant) -> bool {
        let (before, at) = &self.moved;
        let counted = before.iter().zip(&self.told).any(|(before, told)| before.counters() != told.counters());
        // Within the first seconds a few milliseconds of CPU time tell nothing.
        let seconds = now.duration_since(*at).as_secs_f64().max(1.0);
        let busy = before
            .iter()
            .zip(&self.told)
            .any(|(before, told)| told.cpu_ms.saturating_sub(before.cpu_ms) as f64 / 1e3 > IDLE * seconds);
        counted || busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Looks every quarter of a second until something is found; `tell` gives what processes tell meanwhile.
    fn found(seconds: u32, tell: impl Fn(u64, &mut Watchdog, Instant)) -> Finding {
        let begun = Instant::now();
        let mut watchdog = Watchdog::new(3, 5 * SECOND, 30 * SECOND, begun);
        for tick in 1..=u64::from(seconds) * 4 {
            let now = begun + LOOK_EVERY * tick as u32;
            tell(tick, &mut watchdog, now);
            match watchdog.look(now) {
                Finding::Fine => {}
                finding => return finding,
            }
        }
        Finding::Fine
    }

    fn counted(records: u64, cpu_ms: u64) -> Progress {
        Progress { records, cpu_ms, ..Progress::default() }
    }

    #[test]
    fn the_one_that_falls_silent_is_named() {
        let finding = found(60, |tick, watchdog, now| {
            for process in (0..3).filter(|process| *process != 1 || tick < 40) {
                watchdog.tell(process, counted(tick, tick), now);
            }
        });
        assert!(matches!(finding, Finding::Silent(1, quiet) if quiet < 6 * SECOND), "{finding:?}");
    }

    #[test]
    fn one_that_ended_is_not_waited_for() {
        let finding = found(60, |tick, watchdog, now| {
            if tick == 8 {
                watchdog.excuse(2);
            }
            (0..2).for_each(|process| watchdog.tell(process, counted(tick, tick), now));
        });
        assert_eq!(finding, Finding::Fine);
    }

    #[test]
    fn processes_that_only_wait_for_each_other_are_told_from_busy_ones() {
        // A thousandth of a core is what telling takes; a tenth is work.
        let waits = found(60, |tick, watchdog, now| {
            (0..3).for_each(|process| watchdog.tell(process, counted(7, tick / 4), now));
        });
        assert!(matches!(waits, Finding::Stalled(still) if still < 32 * SECOND), "{waits:?}");
        let works = found(60, |tick, watchdog, now| {
            (0..3).for_each(|process| watchdog.tell(process, counted(7, tick * 25 * u64::from(process == 2)), now));
        });
        assert_eq!(works, Finding::Fine);
    }

    #[test]
    fn nobody_is_blamed_while_the_supervisor_itself_was_stopped() {
        let begun = Instant::now();
        let mut watchdog = Watchdog::new(2, 5 * SECOND, 30 * SECOND, begun);
        assert_eq!(watchdog.look(begun + LOOK_EVERY), Finding::Fine);
        let woken = begun + 3600 * SECOND;
        assert_eq!(watchdog.look(woken), Finding::Fine);
        // It hears them again, or finds them silent.
        watchdog.tell(0, counted(1, 1), woken + 5 * SECOND);
        let mut finding = Finding::Fine;
        for tick in 1..30 {
            finding = watchdog.look(woken + LOOK_EVERY * tick);
            if finding != Finding::Fine {
                break;
            }
        }
        assert!(matches!(finding, Finding::Silent(1, _)), "{finding:?}");
    }

    #[test]
    fn the_quietest_is_suspected_when_others_lose_their_connections() {
        let begun = Instant::now();
        let mut watchdog = Watchdog::new(3, 20 * SECOND, 60 * SECOND, begun);
        for process in [0, 2] {
            watchdog.tell(process, counted(1, 1), begun + 4 * SECOND);
        }
        watchdog.excuse(0);
        assert_eq!(watchdog.suspect(begun + 4 * SECOND).map(|(process, _)| process), Some(1));
        watchdog.tell(1, counted(1, 1), begun + 4 * SECOND);
        assert_eq!(watchdog.suspect(begun + 5 * SECOND), None);
    }
}
