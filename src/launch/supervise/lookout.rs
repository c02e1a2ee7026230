//! Looks for hosts that a run goes on without, while its processes work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::launch::hosts::ProcessHost;

/// The longest pause between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How often the thread sees whether it shall end.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// A thread that looks for hosts, until this is dropped.
pub struct Lookout {
    found: Arc<Mutex<Vec<usize>>>,
    ended: Arc<AtomicBool>,
}

impl Lookout {
    /// Looks for these hosts, at least as often as `every`.
    pub fn new(hosts: Vec<ProcessHost>, every: Duration) -> Lookout {
        let lookout = Lookout { found: Arc::default(), ended: Arc::default() };
        if hosts.is_empty() {
            return lookout;
        }
        let (found, ended, pause) = (lookout.found.clone(), lookout.ended.clone(), every.min(LOOK_EVERY));
        // An attempt to reach a host may take longer than the generation: nothing waits for this
        // thread.
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                // All at the same time: one that does not answer must not hide the others.
                let now: Vec<usize> = std::thread::scope(|scope| {
                    let looks: Vec<_> = hosts.iter().map(|host| scope.spawn(|| host.can_be_used())).collect();
                    // A look that panicked has found nothing.
                    let found =
                        hosts.iter().zip(looks).filter_map(|(host, look)| look.join().ok()?.then_some(host.number));
                    found.collect()
                });
                *found.lock().unwrap_or_else(PoisonError::into_inner) = now;
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
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}
