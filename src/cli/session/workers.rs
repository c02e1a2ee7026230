//! The number of workers of a run: as the user gave it, or one for each core; at most a few for
//! each shard of the store.
//!
//! Each shard has one owner, which writes its tables. A worker without a shard reads pages, finds
//! their features, and compares keys, as all others do: about half of the work of a run. It is not
//! free: every worker reports the progress of each dataflow to every other one, so a run with too
//! many workers spends its time on these messages.

use anyhow::Result;

use crate::cli::errors::WrongUse;
use crate::config::{Config, Count};
use crate::launch::Pool;
use crate::log::Log;

/// The most workers for each shard. What owners do takes a third to three fifths of the CPU time of
/// a run (SPEED.md, where the time goes): more workers would only wait for the owners.
const MOST_PER_SHARD: usize = 4;

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
    /// If there are too many workers for the shards, over all processes: wrong use, and the message
    /// says what to do.
    pub(crate) fn of_shards(self, shards: usize) -> Result<usize> {
        let WorkerCount { processes, given, default } = self;
        let all = MOST_PER_SHARD * shards;
        let most = all / processes;
        let why = format!(
            "too many for the store's {shards} shards: at most {MOST_PER_SHARD} workers a shard, {all} in all, have something to do"
        );
        if most == 0 {
            return Err(WrongUse(format!("{processes} processes are {why}: use at most {all} processes")).into());
        }
        let workers = given.unwrap_or(default.min(most));
        if workers > most {
            let asked = match processes {
                1 => format!("{workers} workers"),
                _ => format!("{processes} processes of {workers} workers, {} workers in all,", processes * workers),
            };
            let text = format!(
                "{asked} are {why}: use --workers {most} or fewer (one for each core is best), or give the store more `shards` (`nigh reshard`)"
            );
            return Err(WrongUse(text).into());
        }
        Ok(workers)
    }
}

/// Says so if some of all `workers` of a run have no shard.
pub(crate) fn notice_without_shard(workers: usize, shards: u32, log: &Log) {
    if let Some(without) = workers.checked_sub(shards as usize).filter(|without| *without > 0) {
        log.notice(&format!(
            "{without} of {workers} workers own none of the store's {shards} shards: they read pages and compare keys, and the others \
             write all tables; with more `shards` (`nigh reshard`) all would"
        ));
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
    fn a_run_has_at_most_four_workers_for_each_shard() {
        assert_eq!(count(Some(256), 2, 1).of_shards(64).unwrap(), 256);
        assert_eq!(count(Some(64), 2, 4).of_shards(64).unwrap(), 64);
        assert_eq!(count(Some(1), 2, 4).of_shards(1).unwrap(), 1);
        for (workers, processes, wanted) in [
            (257, 1, "257 workers are too many for the store's 64 shards"),
            (65, 4, "4 processes of 65 workers, 260 workers in all, are too many for the store's 64 shards"),
            (1, 257, "257 processes are too many for the store's 64 shards"),
        ] {
            let error = count(Some(workers), 1, processes).of_shards(64).unwrap_err();
            assert!(error.is::<WrongUse>() && error.to_string().contains(wanted), "{error}");
        }
        let error = count(Some(1000), 2, 3).of_shards(64).unwrap_err();
        assert!(error.to_string().contains("use --workers 85 or fewer"), "{error}");
    }

    #[test]
    fn the_default_is_bounded_by_the_shards() {
        assert_eq!(count(None, 192, 1).of_shards(64).unwrap(), 192);
        assert_eq!(count(None, 192, 2).of_shards(64).unwrap(), 128);
        assert_eq!(count(None, 8, 1).of_shards(1).unwrap(), 4);
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
