//! Runs several transfers at the same time, and reports their progress every ten seconds.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Notify;
use crate::config::Bytes;

/// Transfers that run at the same time; each takes at most about 24 MiB of memory.
const AT_ONCE: usize = 8;
/// The pause between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// An object to transfer.
pub(super) trait Transfer {
    /// Its size in bytes, by which progress is measured.
    fn bytes(&self) -> u64;
}

/// Calls `transfer` for every item, on up to [`AT_ONCE`] threads; `what` is done, for the reports.
/// After an error no further transfer begins.
///
/// # Errors
/// An error of `transfer`.
pub(super) fn each<T: Transfer + Sync>(
    items: &[T],
    what: &str,
    say: &Notify,
    transfer: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let all_bytes = items.iter().map(Transfer::bytes).sum::<u64>();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, done_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let reported = Mutex::new(Instant::now());
    let work = || -> Result<()> {
        while !failed.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            transfer(item).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            let bytes = done_bytes.fetch_add(item.bytes(), Ordering::Relaxed) + item.bytes();
            let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
            if reported.elapsed() > REPORT_EVERY {
                *reported = Instant::now();
                say(&format!("{what}: {count} of {} objects, {} of {}", items.len(), Bytes(bytes), Bytes(all_bytes)));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE.min(items.len())).map(|_| scope.spawn(work)).collect();
        // All threads are joined before the first error is returned.
        let results: Vec<Result<()>> =
            threads.into_iter().map(|thread| thread.join().expect("a transfer does not panic")).collect();
        results.into_iter().collect()
    })
}
