//! The temporary folder of a benchmark, which is removed when the benchmark ends or is interrupted
//! (SIGINT, SIGTERM).
//!
//! Limitation: `kill -9` leaves the folder, and so may files that other processes of the benchmark
//! write at the moment of a signal.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

/// After a signal, the folder counts as removed if no process has created it again for this long.
const QUIET: Duration = Duration::from_millis(10);

/// A temporary folder that is removed when this value is dropped. The first process that writes to
/// it creates it.
pub struct Temporary {
    /// Its path.
    pub folder: PathBuf,
    /// Locked while a thread removes the folder; the signal's thread keeps it locked until the
    /// process ends.
    ending: Arc<Mutex<()>>,
}

impl Temporary {
    /// A folder of this process. From now on SIGINT and SIGTERM remove it and end the process.
    pub fn of_process() -> Temporary {
        let folder = std::env::temp_dir().join(format!("nigh-bench-{}", std::process::id()));
        let ending = Arc::new(Mutex::new(()));
        // If the handler cannot be installed, a signal ends the process and leaves the folder.
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
            let (folder, ending) = (folder.clone(), ending.clone());
            std::thread::spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    // The main thread fails when its files are gone. It waits for this lock in
                    // `drop`, so that the exit code is that of the signal.
                    let _ending = ending.lock().unwrap_or_else(PoisonError::into_inner);
                    remove_until_quiet(&folder);
                    std::process::exit(128 + signal);
                }
            });
        }
        Temporary { folder, ending }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        // No process writes any more. If removal fails, the folder is left to the system.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folder, and again for up to a second if other processes create it again. They soon
/// stop, as their files are gone.
fn remove_until_quiet(folder: &Path) {
    for _ in 0..100 {
        let _ = std::fs::remove_dir_all(folder);
        std::thread::sleep(QUIET);
        if !folder.exists() {
            break;
        }
    }
}
