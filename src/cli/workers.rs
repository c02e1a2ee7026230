//! The number of workers of a run: as the user gave it, or one for each core; never more than the store has shards.
//!
//! Each shard has one owner, so a worker without a shard has nothing to do. It is not free: every worker tells every other one about
//! the progress of each dataflow, so a run with too many workers spends its time on these messages.

use anyhow::Result;

use super::errors::WrongUse;
use crate::config::{Config, Count};
use crate::launch::Pool;
use crate::log::Log;

/// The workers that each process of a run shall have, before the number of shards is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerCount {
    processes: usize,
    /// The number that the command or the config gives.
    given: Option<usize>,
    /// The default, if neither a flag nor the config gives a number: one for each core.
    default: usize,
}

impl WorkerCount {
    /// The number that `flag` gives, else the config, else one worker for each core.
    pub(crate) fn new(flag: Option<Count>, config: &Config, pool: &Pool) -> WorkerCount {
        let processes = pool.processes();
        let given = flag.or(config.workers).map(|count| count.0);
        WorkerCount { processes, given, default: config.workers(processes) }
    }

    /// Workers in each process, for a store with this number of shards.
    ///
    /// # Errors
    /// If there are more workers than shards, over all processes: wrong use, and the message says what to do.
    pub(crate) fn of_shards(self, shards: usize) -> Result<usize> {
        let WorkerCount { processes, given, default } = self;
        let most = shards / processes;
        if most == 0 {
            let text = format!(
                "{processes} processes are more than the store's {shards} shards, and a worker without a shard has nothing to do: use at \
                 most {shards} processes"
            );
            return Err(WrongUse(text).into());
        }
        let workers = given.unwrap_or(default.min(most));
        if workers > most {
            let asked = match processes {
                1 => format!("{workers} workers"),
                _ => format!("{processes} processes of {workers} workers, {} workers in all,", processes * workers),
            };
            let text = format!(
                "{asked} are more than the store's {shards} shards, and a worker without a shard has nothing to do: use --workers {most} or \
                 fewer (one for each core is best), or make a new store with more `shards`"
            );
            return Err(WrongUse(text).into());
        }
        Ok(workers)
    }
}

/// Warns if this machine has fewer cores than workers. What other machines have is not known here.
pub(crate) fn warn_above_cores(workers: usize, pool: &Pool, log: &Log) {
    let local = pool.processes_here();
    // It knows of control groups and of the cores that this process may use.
    let cores = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
    if let Some(text) = warning(workers, local, cores) {
        log.warn(&text);
    }
}

/// The warning, if `processes` with this number of workers each are more than `cores`.
fn warning(workers: usize, processes: usize, cores: usize) -> Option<String> {
    let all = workers * processes;
    if all <= cores {
        return None;
    }
    let best = match processes {
        1 => format!("--workers {cores}"),
        _ if processes > cores => format!("--processes {cores} --workers 1"),
        _ => format!("--workers {} for each of {processes} processes", cores / processes),
    };
    let nouns = if cores == 1 { "core" } else { "cores" };
    Some(format!("{all} workers share {cores} {nouns} of this machine, which makes the run slower: {best} is best"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(given: Option<usize>, default: usize, processes: usize) -> WorkerCount {
        WorkerCount { processes, given, default }
    }

    #[test]
    fn a_run_has_no_more_workers_than_shards() {
        assert_eq!(count(Some(64), 2, 1).of_shards(64).unwrap(), 64);
        assert_eq!(count(Some(16), 2, 4).of_shards(64).unwrap(), 16);
        for (workers, processes, wanted) in [
            (65, 1, "65 workers are more than the store's 64 shards"),
            (17, 4, "4 processes of 17 workers, 68 workers in all, are more than the store's 64 shards"),
            (1, 65, "65 processes are more than the store's 64 shards"),
        ] {
            let error = count(Some(workers), 1, processes).of_shards(64).unwrap_err();
            assert!(error.is::<WrongUse>() && error.to_string().contains(wanted), "{error}");
        }
        let error = count(Some(1000), 2, 3).of_shards(64).unwrap_err();
        assert!(error.to_string().contains("use --workers 21 or fewer"), "{error}");
    }

    #[test]
    fn the_default_is_bounded_by_the_shards() {
        assert_eq!(count(None, 192, 1).of_shards(64).unwrap(), 64);
        assert_eq!(count(None, 96, 2).of_shards(64).unwrap(), 32);
        assert_eq!(count(None, 8, 1).of_shards(64).unwrap(), 8);
    }

    #[test]
    fn more_workers_than_cores_are_warned_of() {
        assert_eq!(warning(2, 1, 2), None);
        assert_eq!(warning(1, 2, 2), None);
        let text = warning(3, 1, 2).unwrap();
        assert!(text.starts_with("3 workers share 2 cores") && text.contains("--workers 2 is best"), "{text}");
        let text = warning(4, 2, 2).unwrap();
        assert!(text.starts_with("8 workers") && text.contains("--workers 1 for each of 2 processes"), "{text}");
        let text = warning(1, 4, 1).unwrap();
        assert!(text.contains("4 workers share 1 core of") && text.contains("--processes 1 --workers 1"), "{text}");
    }
}
