//! Which hosts a run has now: those that are missing for long are left out, and taken in again when
//! they are back.
//!
//! A host is missing from the moment when its process was lost, or could not be started, until a
//! process there has joined the others. While that lasts less than `grace`, the run tries to start
//! on all of its hosts. Then it goes on without the host, if `min-processes` are left. A host that
//! is left out is looked for; once it can be used, the next generation has it again. If no process
//! of it joins the others then, it is left out again at once. A host that has said that it ends
//! (SIGTERM) is left out at once.
//!
//! Nothing here knows a clock or a network: the callers say what happened, and when.

use std::time::{Duration, Instant};

/// The hosts of a run, by their numbers.
pub struct PoolHosts {
    hosts: Vec<HostStanding>,
    /// With how many the run goes on.
    min: usize,
    grace: Duration,
}

/// What is known of a host.
#[derive(Clone, Debug, Default)]
struct HostStanding {
    /// Since when it is missing.
    missing: Option<Instant>,
    /// Whether the run goes on without it.
    is_out: bool,
    /// When it may be used again: it has said that it ends.
    not_before: Option<Instant>,
    /// Whether it was taken in again, and no process of it has joined the others since.
    is_back: bool,
}

/// What follows from hosts on which no process could be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Try again: none of them is missing for `grace`. This time is left.
    Again(Duration),
    /// The run goes on without the hosts of these numbers.
    Without(Vec<usize>),
    /// Too few hosts would be left.
    TooFew,
}

impl PoolHosts {
    /// All of `count` hosts.
    pub fn new(count: usize, min: usize, grace: Duration) -> PoolHosts {
        PoolHosts { hosts: vec![HostStanding::default(); count], min, grace }
    }

    /// Whether the run may go on without some of its hosts.
    pub fn may_shrink(&self) -> bool {
        self.min < self.hosts.len()
    }

    /// The numbers of the hosts of the next generation.
    pub fn present(&self) -> Vec<usize> {
        self.numbers(|standing| !standing.is_out)
    }

    /// Whether the run would go on without so many of the hosts of the next generation.
    pub fn are_enough_without(&self, missing: usize) -> bool {
        self.present().len() >= self.min + missing
    }

    /// The numbers of the hosts that are left out.
    pub fn left_out(&self) -> Vec<usize> {
        self.numbers(|standing| standing.is_out)
    }

    /// The numbers of the hosts that are left out, each with the time before which it is not looked
    /// for.
    pub fn looked_for(&self) -> Vec<(usize, Option<Instant>)> {
        self.left_out().into_iter().map(|number| (number, self.hosts[number].not_before)).collect()
    }

    /// How long it takes until all of them are looked for.
    pub fn rest(&self, now: Instant) -> Duration {
        let times = self.looked_for().into_iter().filter_map(|(_, from)| from);
        times.max().map_or(Duration::ZERO, |from| from.saturating_duration_since(now))
    }

    /// A process was started on the host, and has joined the others.
    pub fn has_started(&mut self, number: usize) {
        self.hosts[number] = HostStanding::default();
    }

    /// The process of the host was lost.
    pub fn was_lost(&mut self, number: usize, now: Instant) {
        self.hosts[number].missing.get_or_insert(now);
    }

    /// The host has said that it ends. Returns whether the run goes on without it.
    pub fn leaves(&mut self, number: usize, now: Instant) -> bool {
        let is_out = self.present().len() > self.min;
        self.hosts[number].missing.get_or_insert(now);
        if is_out {
            self.leave_out(number);
            self.hosts[number].not_before = Some(now + self.grace);
        }
        is_out
    }

    /// The host is left out: others have waited for it long enough.
    pub fn leave_out(&mut self, number: usize) {
        let standing = &mut self.hosts[number];
        (standing.is_out, standing.is_back) = (true, false);
    }

    /// The host can be used again.
    pub fn is_back(&mut self, number: usize) {
        self.hosts[number] = HostStanding { is_back: true, ..HostStanding::default() };
    }

    /// The numbers of the hosts that were taken in again, and of which no process has joined the
    /// others since.
    pub fn back(&self) -> Vec<usize> {
        self.numbers(|standing| standing.is_back)
    }

    /// No process could be started on these hosts, or none that joined the others.
    pub fn could_not_start(&mut self, numbers: &[usize], now: Instant) -> Missing {
        let mut expired = Vec::new();
        let mut left = self.grace;
        for number in numbers {
            let standing = &mut self.hosts[*number];
            let since = *standing.missing.get_or_insert(now);
            let rest = self.grace.saturating_sub(now.duration_since(since));
            if standing.is_back || rest.is_zero() {
                expired.push(*number);
            } else {
                left = left.min(rest);
            }
        }
        if expired.is_empty() {
            return Missing::Again(left);
        }
        if !self.are_enough_without(expired.len()) {
            return Missing::TooFew;
        }
        expired.iter().for_each(|number| self.leave_out(*number));
        Missing::Without(expired)
    }

    fn numbers(&self, wanted: impl Fn(&HostStanding) -> bool) -> Vec<usize> {
        (0..self.hosts.len()).filter(|number| wanted(&self.hosts[*number])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_host_is_left_out_when_it_is_missing_for_the_grace() {
        let begun = Instant::now();
        let mut hosts = PoolHosts::new(3, 2, 60 * SECOND);
        assert_eq!(hosts.could_not_start(&[1], begun), Missing::Again(60 * SECOND));
        assert_eq!(hosts.could_not_start(&[1], begun + 50 * SECOND), Missing::Again(10 * SECOND));
        assert_eq!(hosts.present(), [0, 1, 2]);
        assert_eq!(hosts.could_not_start(&[1], begun + 60 * SECOND), Missing::Without(vec![1]));
        assert_eq!((hosts.present(), hosts.looked_for()), (vec![0, 2], vec![(1, None)]));
    }

    #[test]
    fn a_host_that_starts_again_is_not_missing_any_more() {
        let begun = Instant::now();
        let mut hosts = PoolHosts::new(3, 2, 60 * SECOND);
        hosts.was_lost(1, begun);
        hosts.has_started(1);
        assert_eq!(hosts.could_not_start(&[1], begun + 90 * SECOND), Missing::Again(60 * SECOND));
        // The time counts from the loss, not from the first attempt to start again.
        hosts.has_started(1);
        hosts.was_lost(1, begun);
        assert_eq!(hosts.could_not_start(&[1], begun + 45 * SECOND), Missing::Again(15 * SECOND));
    }

    #[test]
    fn too_few_hosts_end_the_run_and_those_within_the_grace_still_count() {
        let begun = Instant::now();
        let mut hosts = PoolHosts::new(3, 2, 60 * SECOND);
        hosts.was_lost(0, begun);
        assert_eq!(hosts.could_not_start(&[0, 2], begun + 60 * SECOND), Missing::Without(vec![0]));
        assert_eq!(hosts.could_not_start(&[2], begun + 90 * SECOND), Missing::Again(30 * SECOND));
        assert!(hosts.are_enough_without(0) && !hosts.are_enough_without(1));
        assert_eq!(hosts.could_not_start(&[2], begun + 120 * SECOND), Missing::TooFew);
        let mut all = PoolHosts::new(3, 3, 60 * SECOND);
        all.was_lost(0, begun);
        assert!(!all.may_shrink());
        assert_eq!(all.could_not_start(&[0], begun + 60 * SECOND), Missing::TooFew);
    }

    #[test]
    fn a_host_that_is_back_has_one_attempt() {
        let begun = Instant::now();
        let mut hosts = PoolHosts::new(2, 1, 60 * SECOND);
        hosts.leave_out(1);
        hosts.is_back(1);
        assert_eq!((hosts.present(), hosts.back()), (vec![0, 1], vec![1]));
        assert_eq!(hosts.could_not_start(&[1], begun), Missing::Without(vec![1]));
        // Later failures of the others are not its own.
        assert_eq!((hosts.present(), hosts.back()), (vec![0], vec![]));
        hosts.is_back(1);
        assert!(hosts.leaves(1, begun));
        assert_eq!(hosts.back(), Vec::<usize>::new());
        hosts.is_back(1);
        hosts.has_started(1);
        assert_eq!(hosts.back(), Vec::<usize>::new());
        assert_eq!(hosts.could_not_start(&[1], begun), Missing::Again(60 * SECOND));
    }

    #[test]
    fn a_host_that_leaves_is_out_at_once_and_not_looked_for_within_the_grace() {
        let begun = Instant::now();
        let mut hosts = PoolHosts::new(2, 1, 60 * SECOND);
        assert!(hosts.leaves(1, begun));
        assert_eq!((hosts.present(), hosts.looked_for()), (vec![0], vec![(1, Some(begun + 60 * SECOND))]));
        assert_eq!(
            [0, 20, 90].map(|passed| hosts.rest(begun + passed * SECOND)),
            [60 * SECOND, 40 * SECOND, Duration::ZERO]
        );
        // The last one that is needed stays in, and is waited for.
        assert!(!hosts.leaves(0, begun));
        assert_eq!(hosts.present(), [0]);
    }

    /// The rules in their plain form: what is known of a host is recomputed from all that happened
    /// to it.
    #[test]
    fn random_events_keep_enough_hosts_and_leave_out_only_those_that_were_missing() {
        let begun = Instant::now();
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let (count, min) = (2 + random(4) as usize, 1 + random(2) as usize);
            let grace = 30 * SECOND;
            let mut hosts = PoolHosts::new(count, min.min(count), grace);
            let mut missing: Vec<Option<Instant>> = vec![None; count];
            let mut now = begun;
            for _ in 0..60 {
                now += SECOND * random(20) as u32;
                let number = random(count as u64) as usize;
                let is_present = hosts.present().contains(&number);
                match random(4) {
                    0 if is_present => {
                        hosts.has_started(number);
                        missing[number] = None;
                    }
                    1 if is_present => {
                        hosts.was_lost(number, now);
                        missing[number].get_or_insert(now);
                    }
                    2 if is_present => {
                        let since = *missing[number].get_or_insert(now);
                        match hosts.could_not_start(&[number], now) {
                            Missing::Again(left) => assert_eq!(left, grace - (now - since)),
                            Missing::Without(numbers) => {
                                assert!(numbers == [number] && now - since >= grace);
                            }
                            Missing::TooFew => assert_eq!(hosts.present().len(), min.min(count)),
                        }
                    }
                    _ => {}
                }
                assert!(hosts.present().len() >= min.min(count));
            }
        }
    }
}
