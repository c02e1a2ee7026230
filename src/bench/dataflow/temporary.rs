//! The folder of a benchmark: it goes with the benchmark, however that ends but by `kill -9`. (What other processes of it
//! write at that very moment may stay.)

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

/// How long nobody must have made the folder anew, once a signal has come.
const QUIET: Duration = Duration::from_millis(10);

/// A folder that is made by whoever writes to it first, and goes with its owner.
pub(crate) struct Temporary {
    pub folder: PathBuf,
    /// Held by whoever removes the folder; by the signal's thread until the process ends.
    ending: Arc<Mutex<()>>,
}

impl Temporary {
    /// A folder of this process. From now on a signal removes it, and ends the process.
    pub(crate) fn new() -> Temporary {
        let folder = std::env::temp_dir().join(format!("nigh-bench-{}", std::process::id()));
        let ending = Arc::new(Mutex::new(()));
        // Without the handler a signal still ends the process, and leaves the folder.
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
            let (folder, ending) = (folder.clone(), ending.clone());
            std::thread::spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    // The benchmark fails where its files are gone, and waits here for the exit code of the signal.
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
        // Nobody writes any more; what cannot be removed is the system's to clear.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folder, again for a second where others make it anew. Who has found their files gone stops soon.
fn remove_until_quiet(folder: &Path) {
    for _ in 0..100 {
        let _ = std::fs::remove_dir_all(folder);
        std::thread::sleep(QUIET);
        if !folder.exists() {
            break;
        }
    }
}
