//! When a process commits by itself: some time after the first batch that no table has, after a
//! number of lines, or after either.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::commit::{Commitment, Committed};
use super::{Pending, Service};
use crate::config::Time;
use crate::live::refusal::Refusal;

/// After a commit that failed, the next one is tried this much later.
const RETRY: Duration = Duration::from_secs(60);

/// How often a process commits by itself: `10min`, `50000`, or `10min,50000` for what comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitEvery {
    /// This long after the first batch that no table has.
    pub time: Option<Duration>,
    /// After this many lines of batches that no table has.
    pub lines: Option<u64>,
}

impl FromStr for CommitEvery {
    type Err = String;

    fn from_str(text: &str) -> Result<CommitEvery, String> {
        let mut every = CommitEvery::default();
        for part in text.split(',').map(str::trim) {
            let is_first = match part.parse::<u64>() {
                Ok(lines @ 1..) => every.lines.replace(lines).is_none(),
                _ => {
                    let time = Time::try_from(part.to_owned()).map_err(|_| {
                        format!(
                            "`{part}` is neither a time, such as 10min, nor a number of lines above 0, such as 50000"
                        )
                    })?;
                    every.time.replace(time.0).is_none()
                }
            };
            if !is_first {
                return Err(format!("{text} has two times, or two numbers of lines: give one of each at most"));
            }
        }
        Ok(every)
    }
}

impl fmt::Display for CommitEvery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.time.map(|time| Time(time).to_string()), self.lines.map(|lines| lines.to_string())];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// Runs the commands of a commit.
pub type Committer = Box<dyn FnMut(&Commitment) -> Result<()> + Send>;

/// What is called after each commit.
pub type CommitNotice = Box<dyn FnMut(&Result<Committed, Refusal>) + Send>;

/// Commits a service: when it is asked to, and when it is time.
pub struct Commits {
    committer: Committer,
    notice: CommitNotice,
    every: CommitEvery,
    /// After a commit that failed: none is made before this time, except one that is asked for.
    not_before: Option<Instant>,
}

impl Commits {
    /// Commits by `committer`, by themselves as `every` says; each is reported to `notice`.
    pub fn new(every: CommitEvery, committer: Committer, notice: CommitNotice) -> Commits {
        Commits { committer, notice, every, not_before: None }
    }

    /// How long it is until a commit is due; `None` if there is nothing to commit, or none is made
    /// without a request.
    pub fn wait(&self, service: &Service) -> Option<Duration> {
        self.wait_of(service.pending(), Instant::now())
    }

    fn wait_of(&self, pending: Pending, now: Instant) -> Option<Duration> {
        let since = pending.since?;
        // A time that no clock shows does not come.
        let by_time = self.every.time.and_then(|time| since.checked_add(time));
        let by_lines = self.every.lines.filter(|lines| pending.lines >= *lines).map(|_| now);
        let due = [by_time, by_lines].into_iter().flatten().min()?;
        Some(due.max(self.not_before.unwrap_or(due)).saturating_duration_since(now))
    }

    /// Commits if it is time.
    pub fn commit_if_due(&mut self, service: &mut Service) {
        if self.wait(service) == Some(Duration::ZERO) {
            // The notice has the error. The journal stays.
            let _ = self.commit(service);
        }
    }

    /// Commits what is pending at the end of all input, if commits are made without a request.
    ///
    /// # Errors
    /// As [`Service::commit`]. The notice does not have it.
    pub fn commit_rest(&mut self, service: &mut Service) -> Result<(), Refusal> {
        if self.every != CommitEvery::default() && service.pending().since.is_some() {
            let committed = service.commit(&mut self.committer)?;
            (self.notice)(&Ok(committed));
        }
        Ok(())
    }

    /// Commits now.
    ///
    /// # Errors
    /// As [`Service::commit`].
    pub fn commit(&mut self, service: &mut Service) -> Result<Committed, Refusal> {
        let committed = service.commit(&mut self.committer);
        self.not_before = committed.is_err().then(|| Instant::now() + RETRY);
        (self.notice)(&committed);
        committed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_read() {
        let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
        for (text, time, lines) in
            [("10min", minutes(10), None), ("50000", None, Some(50_000)), ("2h,7", minutes(120), Some(7))]
        {
            let every: CommitEvery = text.parse().unwrap();
            assert_eq!(every, CommitEvery { time, lines });
            assert_eq!(every.to_string(), text);
        }
        assert_eq!(" 7, 2h".parse::<CommitEvery>().unwrap().to_string(), "2h,7");
        for (text, reason) in
            [("", "neither"), ("0", "neither"), ("5,-1", "`-1`"), ("1min,2h", "two times"), ("1,2", "two")]
        {
            let error = text.parse::<CommitEvery>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_commit_is_due_by_what_comes_first_and_later_after_a_failure() {
        let now = Instant::now();
        let (before, minute) = (now.checked_sub(Duration::from_secs(20)).unwrap(), Duration::from_secs(60));
        let of = |text: &str| Commits::new(text.parse().unwrap(), Box::new(|_| Ok(())), Box::new(|_| {}));
        let pending = |lines| Pending { batches: 1, lines, since: Some(before) };
        let mut commits = of("1min,100");
        assert_eq!(commits.wait_of(Pending::default(), now), None);
        assert_eq!(commits.wait_of(pending(99), now), Some(Duration::from_secs(40)));
        assert_eq!(commits.wait_of(pending(100), now), Some(Duration::ZERO));
        assert_eq!(commits.wait_of(pending(1), now + minute), Some(Duration::ZERO));
        commits.not_before = Some(now + minute);
        assert_eq!(commits.wait_of(pending(100), now), Some(minute));
        assert_eq!(of("100").wait_of(pending(99), now + minute), None);
        assert_eq!(of("1000000000h").wait_of(pending(99), now + minute).filter(|wait| *wait < minute), None);
    }
}
