//! What a stretch of work takes of this process' memory, at its peak.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::watch::anonymous_memory;

/// How often memory is looked at. A peak that is shorter may be missed; a look costs some 30 microseconds.
const PERIOD: Duration = Duration::from_millis(10);

/// Follows this process' anonymous memory: heap and stacks, without mapped files and without the page cache.
pub(crate) struct Meter {
    /// Hung up to end the thread: so a meter that is dropped ends it too.
    end: Sender<()>,
    thread: JoinHandle<Option<u64>>,
}

impl Meter {
    /// Starts to look, in a thread of its own.
    pub(crate) fn start() -> Meter {
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            let mut peak = anonymous_memory();
            while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                peak = peak.max(anonymous_memory());
            }
            peak.max(anonymous_memory())
        });
        Meter { end, thread }
    }

    /// The most bytes there were since the start; `None` where the system does not tell.
    pub(crate) fn stop(self) -> Option<u64> {
        drop(self.end);
        self.thread.join().ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_written_to_shows() {
        let shows = || {
            let (meter, before) = (Meter::start(), anonymous_memory().unwrap());
            let memory = std::hint::black_box(vec![1u8; 64 << 20]);
            std::thread::sleep(3 * PERIOD);
            drop(memory);
            meter.stop().unwrap() >= before + (60 << 20)
        };
        // Other tests, which run beside this one, may free as much just then, but not time after time.
        assert!((0..20).any(|_| shows()));
    }
}
