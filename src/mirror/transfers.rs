//! Many transfers at once, with a word about them every ten seconds.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Say;
use crate::config::Bytes;

/// Objects under way at once: each takes some 24 MiB of memory at most.
const AT_ONCE: usize = 8;
/// How often a person hears of them.
const EVERY: Duration = Duration::from_secs(10);

/// What is transferred: its size tells how far it is.
pub(super) trait Transfer {
    /// Bytes to transfer.
    fn bytes(&self) -> u64;
}

/// Does something with every item, several at once; ends at the first error.
///
/// # Errors
/// The first.
pub(super) fn each<T: Transfer + Sync>(
    items: &[T],
    what: &str,
    say: &Say,
    transfer: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let all = (items.len(), items.iter().map(Transfer::bytes).sum::<u64>());
    let (next, failed, done) = (AtomicUsize::new(0), AtomicBool::new(false), (AtomicU64::new(0), AtomicU64::new(0)));
    let told = Mutex::new(Instant::now());
    let work = || -> Result<()> {
        while !failed.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            transfer(item).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            let count = done.0.fetch_add(1, Ordering::Relaxed) + 1;
            let bytes = done.1.fetch_add(item.bytes(), Ordering::Relaxed) + item.bytes();
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.elapsed() > EVERY {
                *told = Instant::now();
                say(&format!("{what}: {count} of {} objects, {} of {}", all.0, Bytes(bytes), Bytes(all.1)));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE.min(items.len())).map(|_| scope.spawn(work)).collect();
        let ends: Vec<Result<()>> =
            threads.into_iter().map(|thread| thread.join().expect("a transfer does not panic")).collect();
        ends.into_iter().collect()
    })
}
