//! Looks for hosts that a run goes on without, while its processes work, and while it waits before
//! the next attempt to start them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::launch::process_hosts::ProcessHost;

/// The longest pause between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How often the thread sees whether it shall end.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// A host, and the time before which it is not looked for.
pub type Sought = (ProcessHost, Option<Instant>);

/// A look at all hosts whose time has come.
#[derive(Clone)]
struct Look {
    begun: Instant,
    /// The numbers of those that can be used.
    found: Vec<usize>,
}

/// A thread that looks for hosts, until this is dropped.
pub struct Lookout {
    hosts: Arc<Vec<Sought>>,
    /// The last look; `None` before the first one.
    last: Arc<Mutex<Option<Look>>>,
    ended: Arc<AtomicBool>,
}

impl Lookout {
    /// Looks for these hosts, at least as often as `every`.
    pub fn new(hosts: Vec<Sought>, every: Duration) -> Lookout {
        let lookout = Lookout { hosts: Arc::new(hosts), last: Arc::default(), ended: Arc::default() };
        if lookout.hosts.is_empty() {
            return lookout;
        }
        let (hosts, last, ended) = (lookout.hosts.clone(), lookout.last.clone(), lookout.ended.clone());
        let pause = every.min(LOOK_EVERY);
        // An attempt to reach a host may take longer than the generation: nothing waits for this
        // thread.
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let now = look(&hosts);
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                let looked = Instant::now();
                while !ended.load(Ordering::Relaxed) && looked.elapsed() < pause {
                    std::thread::sleep(POLL_EVERY.min(pause));
                }
            }
        });
        lookout
    }

    /// The numbers of the hosts that could be used when it last looked.
    pub fn found(&self) -> Vec<usize> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or_else(Vec::new, |look| look.found)
    }

    /// As [`Lookout::found`], once a host is found, or all were looked for, each from its time on;
    /// if that takes no longer than `patience`.
    pub fn found_within(&self, patience: Duration) -> Vec<usize> {
        let begun = Instant::now();
        let from = self.hosts.iter().filter_map(|(_, from)| *from).max();
        let has_looked = || {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.as_ref().is_some_and(|look| !look.found.is_empty() || from.is_none_or(|from| from <= look.begun))
        };
        while !self.hosts.is_empty() && !has_looked() && begun.elapsed() < patience {
            std::thread::sleep(POLL_EVERY);
        }
        self.found()
    }

    /// The names of hosts in messages.
    pub fn names(&self, numbers: &[usize]) -> String {
        let named = self.hosts.iter().filter(|(host, _)| numbers.contains(&host.number));
        named.map(|(host, _)| host.name()).collect::<Vec<_>>().join(", ")
    }
}

/// Those hosts that can be used now. All are looked for at the same time: one that does not answer
/// must not hide the others.
fn look(hosts: &[Sought]) -> Look {
    let begun = Instant::now();
    let found = std::thread::scope(|scope| {
        let due = hosts.iter().filter(|(_, from)| from.is_none_or(|from| from <= begun));
        let looks: Vec<_> = due.map(|(host, _)| (host.number, scope.spawn(|| host.can_be_used()))).collect();
        // A look that panicked has found nothing.
        looks.into_iter().filter_map(|(number, look)| look.join().ok()?.then_some(number)).collect()
    });
    Look { begun, found }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::process_hosts::Pool;

    /// A process of this machine, which can always be used, sought from a time on.
    fn host(number: usize, from: Option<Instant>) -> Sought {
        (ProcessHost { number, ..Pool::here(1, &toml::from_str("").unwrap()).hosts.remove(0) }, from)
    }

    #[test]
    fn a_host_is_found_from_its_time_on() {
        let begun = Instant::now();
        let later = begun + Duration::from_millis(400);
        let lookout = Lookout::new(vec![host(1, None), host(3, Some(later))], Duration::from_millis(20));
        let first = lookout.found_within(Duration::from_secs(20));
        if begun.elapsed() < Duration::from_millis(400) {
            assert_eq!(first, [1]);
        }
        while lookout.found() != [1, 3] {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", lookout.found());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(begun.elapsed() >= Duration::from_millis(400));
        assert_eq!(lookout.names(&[3]), "process 3");
    }

    #[test]
    fn a_host_whose_time_comes_is_waited_for() {
        let later = Instant::now() + Duration::from_millis(400);
        let lookout = Lookout::new(vec![host(2, Some(later))], Duration::from_millis(20));
        assert_eq!(lookout.found_within(Duration::from_secs(20)), [2]);
        assert!(Instant::now() >= later);
    }

    #[test]
    fn nothing_is_waited_for_where_nothing_is_sought() {
        let begun = Instant::now();
        let lookout = Lookout::new(Vec::new(), Duration::from_millis(20));
        assert_eq!(lookout.found_within(Duration::from_secs(60)), Vec::<usize>::new());
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
