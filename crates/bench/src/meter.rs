//! The peak of this process' anonymous memory over a period of work.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::watch::anonymous_memory;

/// The interval between two samples. A shorter peak may be missed; a sample costs about 30
/// microseconds.
const PERIOD: Duration = Duration::from_millis(10);

/// Samples this process' anonymous memory: heap and stacks, without mapped files and without the
/// page cache.
pub struct Meter {
    /// Dropped to end the thread, so dropping the meter ends it too.
    end: Sender<()>,
    thread: JoinHandle<Option<u64>>,
}

impl Meter {
    /// Starts sampling in a new thread.
    pub fn start() -> Meter {
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

    /// Stops, and returns the peak since the start in bytes; `None` if the system does not report
    /// memory.
    pub fn stop(self) -> Option<u64> {
        drop(self.end);
        self.thread.join().ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn written_memory_is_in_the_peak() {
        let peak_has_it = || {
            let (meter, before) = (Meter::start(), anonymous_memory().unwrap());
            let memory = std::hint::black_box(vec![1u8; 64 << 20]);
            std::thread::sleep(3 * PERIOD);
            drop(memory);
            meter.stop().unwrap() >= before + (60 << 20)
        };
        // Other tests of this process may free as much memory in the same moment, but not twenty
        // times in a row.
        assert!((0..20).any(|_| peak_has_it()));
    }
}
