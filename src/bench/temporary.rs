//! The folder of a benchmark: it goes with the benchmark, however that ends but by `kill -9`.

use std::path::PathBuf;

use signal_hook::consts::{SIGINT, SIGTERM};

/// A folder that is made by whoever writes to it first, and goes with its owner.
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    /// A folder of this process. From now on a signal removes it, and ends the process.
    pub(super) fn new() -> Temporary {
        let folder = std::env::temp_dir().join(format!("nigh-bench-{}", std::process::id()));
        // Without the handler a signal still ends the process, and leaves the folder.
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
            let going = Temporary(folder.clone());
            std::thread::spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    drop(going);
                    std::process::exit(128 + signal);
                }
            });
        }
        Temporary(folder)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What others write meanwhile is removed the next time; what cannot be removed is the system's to clear.
        (0..3).find(|_| std::fs::remove_dir_all(&self.0).is_ok());
    }
}
