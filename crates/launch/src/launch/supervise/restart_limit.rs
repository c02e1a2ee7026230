//! How often a run has been restarted, and whether it may be once more.

use std::time::Instant;

use crate::config::{Restarts, Time};

/// Of a rate, the restarts in a row without progress, as a multiple of the number of the rate,
/// after which a run has failed. A failure that always comes at the same place, later than the
/// rate's time, must end some day.
const IN_A_ROW: u32 = 5;

/// The restarts of a run so far.
pub struct RestartLimit {
    restarts: Restarts,
    /// Those that count, the last one last.
    times: Vec<Instant>,
    /// How much was committed at the last failure.
    committed: Option<u64>,
}

impl RestartLimit {
    /// None so far.
    pub fn new(restarts: Restarts) -> RestartLimit {
        RestartLimit { restarts, times: Vec::new(), committed: None }
    }

    /// Adds a restart after a failure, at which so much is committed. Returns which one it is, of
    /// those that count, or `None` if no restart is left.
    pub fn add(&mut self, committed: u64, now: Instant) -> Option<usize> {
        let has_progress = self.committed.replace(committed).is_some_and(|before| committed > before);
        if has_progress && self.restarts.within.is_some() {
            self.times.clear();
        }
        if self.counted(now) >= self.restarts.most as usize {
            return None;
        }
        self.times.push(now);
        Some(self.counted(now))
    }

    /// Those that count against the number.
    fn counted(&self, now: Instant) -> usize {
        let Restarts { most, within } = self.restarts;
        let Some(within) = within else { return self.times.len() };
        if self.times.len() >= (most.saturating_mul(IN_A_ROW)) as usize {
            return self.times.len();
        }
        self.times.iter().filter(|time| now.duration_since(**time) < within).count()
    }

    /// Why no restart is left, for the message of a run that fails; empty if none was ever allowed.
    pub fn used_up(&self) -> String {
        let in_a_row = self.times.len();
        let times = |count: usize| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        match self.restarts {
            Restarts { most: 0, .. } => String::new(),
            Restarts { within: None, .. } => {
                format!("; it was restarted {} already, as `restarts` allows", times(in_a_row))
            }
            Restarts { most, within: Some(_) } if in_a_row >= most.saturating_mul(IN_A_ROW) as usize => {
                format!("; it was restarted {} without progress, and `restarts` = {}", times(in_a_row), self.restarts)
            }
            Restarts { most, within: Some(within) } => {
                let within = Time(within);
                format!(
                    "; it was restarted {} without progress within {within}, as `restarts` allows",
                    times(most as usize)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limit(most: u32, seconds: u32) -> RestartLimit {
        RestartLimit::new(Restarts { most, within: (seconds > 0).then_some(seconds * SECOND) })
    }

    #[test]
    fn a_number_is_of_the_whole_run_whatever_is_committed() {
        let begun = Instant::now();
        let mut limit = limit(2, 0);
        assert_eq!(limit.add(0, begun), Some(1));
        assert_eq!(limit.add(5, begun + 3600 * SECOND), Some(2));
        assert_eq!(limit.add(9, begun + 7200 * SECOND), None);
        assert_eq!(limit.used_up(), "; it was restarted 2 times already, as `restarts` allows");
    }

    #[test]
    fn of_a_rate_only_restarts_of_the_time_and_without_progress_count() {
        let begun = Instant::now();
        let mut limit = limit(2, 60);
        assert_eq!(limit.add(0, begun), Some(1));
        assert_eq!(limit.add(0, begun + 10 * SECOND), Some(2));
        // The first is a minute ago.
        assert_eq!(limit.add(0, begun + 61 * SECOND), Some(2));
        // Progress.
        assert_eq!(limit.add(1, begun + 62 * SECOND), Some(1));
        assert_eq!(limit.add(1, begun + 63 * SECOND), Some(2));
        assert_eq!(limit.add(1, begun + 64 * SECOND), None);
        let text = limit.used_up();
        assert!(text.contains("2 times without progress within 1min, as `restarts` allows"), "{text}");
    }

    #[test]
    fn a_run_that_fails_slowly_and_never_gets_further_ends() {
        let begun = Instant::now();
        let mut slow = limit(2, 60);
        let restarts = (1..).take_while(|hour| slow.add(3, begun + 3600 * SECOND * *hour).is_some()).count();
        assert_eq!(restarts, 10);
        assert!(slow.used_up().contains("10 times without progress"), "{}", slow.used_up());
        // One that gets further each time does not.
        let mut steady = limit(2, 60);
        assert!((0..100u32).all(|hour| steady.add(hour.into(), begun + 3600 * SECOND * hour).is_some()));
    }

    #[test]
    fn no_restart_is_allowed_if_the_number_is_0() {
        for seconds in [0, 60] {
            let mut none = limit(0, seconds);
            assert_eq!((none.add(0, Instant::now()), none.used_up()), (None, String::new()));
        }
    }
}
