//! One run of a command: its store, its pool, and its work in this process or in several, with
//! progress and metrics.

pub(super) mod run_record;
pub(super) mod signals;
pub(super) mod worker;
pub(super) mod workers;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;

use self::run_record::RunRecord;
use self::worker::ProcessWork;
use crate::cli::errors::WrongUse;
use crate::config::{Config, Count};
use crate::launch::{EventSink, Outcome, Pool, exit_on_panic, supervise};
use crate::live::Service;
use crate::log::Log;
use crate::metrics::{Metrics, RunState};
use crate::mirror::{Notify, StoreLocation, WriteGuard, url_of};
use crate::objects::refuse_secrets;
use crate::operators::ingest::TooManyRejects;
use crate::state::{Manifest, Store};
use crate::watch::{Progress, Watch};
use crate::{kernels, progress};

/// How many folders above a given store are looked at: those of a table and of a week.
const INSIDE: usize = 2;

/// Checks that this machine has the instruction set that `NIGH_KERNELS` names, before a run starts.
pub(crate) fn check_kernels() -> Result<()> {
    kernels::chosen().map(|_| ()).map_err(|error| WrongUse::from_error(error).into())
}

/// Where a run is computed, and where it reports.
pub(crate) struct Session<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) log: &'a Log,
    /// Bytes of input that are still to be read.
    pub(crate) bytes: u64,
    /// The address at which metrics are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// What is known of the run at its end.
    pub(crate) record: Arc<RunRecord>,
}

impl Session<'_> {
    /// Computes the run and returns its summary: in this process with `compute_here`, or in the
    /// processes of the pool.
    ///
    /// `work` returns what the processes have to do, by their restart number from 0; it is called
    /// again before each restart, and returns `None` if nothing is left to do. Then the summary is
    /// `None`, too: the processes committed the run and died before they could report it.
    pub(crate) fn compute<S: DeserializeOwned>(
        &self,
        work: impl FnMut(u64) -> Result<Option<ProcessWork>>,
        compute_here: impl FnOnce(&Arc<Watch>) -> Result<Option<S>>,
    ) -> Result<Option<S>> {
        if self.pool.is_this_process() { self.in_this_process(compute_here).map(Some) } else { self.in_pool(work) }
    }

    fn in_this_process<S>(&self, compute: impl FnOnce(&Arc<Watch>) -> Result<Option<S>>) -> Result<S> {
        exit_on_panic(1);
        self.log.set_alone();
        let watch = Arc::new(Watch::default());
        let _metrics = self.serve_metrics({
            let watch = watch.clone();
            move || vec![watch.progress()]
        })?;
        let shown = progress::show(self.log, self.bytes, {
            let watch = watch.clone();
            move || watch.progress()
        });
        let summary = compute(&watch);
        drop(shown);
        self.record.add_here(watch.progress());
        let summary = summary?;
        self.log.spans(&watch.spans());
        summary.context("worker 0 returns the summary")
    }

    fn in_pool<S: DeserializeOwned>(
        &self,
        mut work: impl FnMut(u64) -> Result<Option<ProcessWork>>,
    ) -> Result<Option<S>> {
        let progresses = Arc::new(Mutex::new(Vec::<Progress>::new()));
        let _metrics = self.serve_metrics({
            let progresses = progresses.clone();
            move || progresses.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })?;
        let shown = progress::show(self.log, self.bytes, {
            let progresses = progresses.clone();
            move || {
                let progresses = progresses.lock().unwrap_or_else(PoisonError::into_inner);
                progresses.iter().copied().reduce(Progress::sum).unwrap_or_default()
            }
        });
        let take = {
            let (record, progresses) = (self.record.clone(), progresses.clone());
            move || {
                let ended = std::mem::take(&mut *progresses.lock().unwrap_or_else(PoisonError::into_inner));
                record.add_processes(&ended);
            }
        };
        let events: EventSink = {
            let (log, record, take) = (self.log.clone(), self.record.clone(), take.clone());
            Arc::new(move |event| {
                // Only a restart begins an epoch, or another attempt that is not counted as one. A
                // call of `work` does not: it may find that nothing is left to do.
                if event.kind == "restart" || event.kind == "regroup" {
                    log.set_epoch(event.epoch);
                    take();
                }
                if event.kind == "restart" {
                    record.add_restart();
                }
                log.event(event);
            })
        };
        let mut plans = |epoch| work(epoch)?.map(ProcessWork::of_generation).transpose();
        let outcome = supervise(self.pool, &mut plans, &progresses, &events);
        drop(shown);
        take();
        match outcome? {
            Outcome::Done(summary) => {
                summary.map(|summary| serde_json::from_str(&summary).context("a summary is plain data")).transpose()
            }
            Outcome::AtBorder => {
                bail!("the processes ended after a wave without a next generation: a fault in this program")
            }
            Outcome::Failed { message, code: 3, .. } => Err(TooManyRejects(message).into()),
            Outcome::Failed { message, .. } => bail!(message),
        }
    }

    fn serve_metrics(&self, read: impl Fn() -> Vec<Progress> + Send + 'static) -> Result<Option<Metrics>> {
        let Some(address) = self.metrics else { return Ok(None) };
        let (record, of_bytes) = (self.record.clone(), self.bytes);
        let metrics = Metrics::serve(address, move || RunState {
            labels: record.labels(),
            progresses: read(),
            of_bytes,
            restarts: record.restarts(),
            last_success: record.last_success(),
        })?;
        self.log.notice(&format!("metrics are at http://{}/metrics", metrics.address));
        Ok(Some(metrics))
    }
}

/// The processes of a run: those of the config, or as many on this machine as `--processes` asks
/// for.
///
/// # Errors
/// If `--processes` is given for a pool of machines, or the config is for tasks of a scheduler.
pub(crate) fn pool_of(config: &Config, processes: Option<Count>) -> Result<Pool> {
    if config.tasks.is_some() {
        bail!(WrongUse("a config with [tasks] works only with `nigh run`, started by the scheduler".into()));
    }
    match processes {
        Some(_) if !config.hosts.is_empty() => bail!(WrongUse(
            "--processes is for this machine only: a pool has one process for each [[hosts]] of its config".into()
        )),
        Some(count) => Ok(Pool::here(count.0, config)),
        None => Pool::new(config),
    }
}

/// Refuses a folder inside of a store, such as that of a week, where a store is to be named.
pub(crate) fn check_not_inside(given: &Path) -> Result<()> {
    let has_manifest = |path: &Path| Store::at(path).manifest_path().exists();
    if has_manifest(given) {
        return Ok(());
    }
    let here = Path::new(".");
    let outer = given.ancestors().skip(1).map(|path| if path == Path::new("") { here } else { path });
    let Some(store) = outer.take(INSIDE).find(|path| has_manifest(path)) else { return Ok(()) };
    let (given, store) = (given.display(), store.display());
    bail!(WrongUse(format!(
        "{given} is a folder inside of the store {store}: give {store} (a week of it is named by --week)"
    )))
}

/// The store that a command names. If it is in a bucket, the local folder for the work is `flag`
/// (`--mirror`), the config's `mirror`, or a folder in this user's cache.
///
/// # Errors
/// If the name is that of a folder inside of a store, or a URL with a secret in it; or if a pool of
/// machines works on a bucket and no mirror is given: all machines must see the same folder.
pub(crate) fn locate_store(given: &Path, flag: Option<&Path>, config: &Config) -> Result<StoreLocation> {
    check_not_inside(given)?;
    let mirror = flag.or(config.mirror.as_deref());
    if let Some(url) = given.to_str() {
        refuse_secrets(url).map_err(WrongUse::from_error)?;
    }
    let is_shared = !config.hosts.is_empty() || config.tasks.is_some();
    if mirror.is_none() && is_shared && url_of(given)?.is_some() {
        let text = format!(
            "a pool needs a local folder that all of its machines see for the work on {}: give it as `mirror` in the config, or by --mirror",
            given.display()
        );
        return Err(WrongUse(text).into());
    }
    StoreLocation::at(given, mirror)
}

/// Refuses a store whose name cannot be written in plans and jobs, which are UTF-8.
pub(crate) fn check_name(store: &Path) -> Result<()> {
    if store.to_str().is_none() {
        bail!(WrongUse(format!("--store {}: the name is not UTF-8", store.display())));
    }
    Ok(())
}

/// Reads the manifest of a store that must exist; `given` is its name in messages.
pub(crate) fn read_manifest(store: &Store, given: &Path) -> Result<Manifest> {
    let missing = || {
        format!(
            "{} is not a nigh store (no manifest.json): `nigh run jobs/cluster.toml` makes a store",
            given.display()
        )
    };
    store.manifest()?.with_context(missing)
}

/// Opens a store in a bucket before its weeks are read, because only then is the mirror up to date.
/// Returns the right to write, which locks the bucket; `None` in a dry run, which writes nothing.
///
/// Also `None` for a store that is a folder. It is locked later, by [`lock`]: locking creates the
/// folder, and a run that is refused must not.
pub(crate) fn open_bucket(location: &StoreLocation, dry_run: bool, log: &Log) -> Result<Option<WriteGuard>> {
    if !location.is_in_bucket() {
        Ok(None)
    } else if dry_run {
        location.look(&notify(log)).map(|()| None)
    } else {
        lock(location, log).map(Some)
    }
}

/// Locks a store for writing. Ends the program if the lock is lost later.
pub(crate) fn lock(location: &StoreLocation, log: &Log) -> Result<WriteGuard> {
    let exit_when_lost = {
        let log = log.clone();
        move |reason: &str| {
            log.error(reason);
            std::process::exit(1);
        }
    };
    location.take(&notify(log), exit_when_lost)
}

/// Refuses a store with batches of `nigh live` that no table has: `nigh live` would put them in the
/// place of what comes to the tables now. The commands of a commit, which have the lock from it,
/// are those that bring them to the tables.
///
/// # Errors
/// If there are such batches, or the journal of `nigh live` cannot be read.
pub(crate) fn refuse_pending(store: &Store) -> Result<()> {
    if store.lock_is_lent() {
        return Ok(());
    }
    let batches = Service::uncommitted(store.root())?;
    ensure!(
        batches == 0,
        "{} has {batches} batches of `nigh live` that are in no table: start `nigh live {}` and let it commit them first (POST /commit), or \
         move the file away to go on without them",
        Service::journal_path(store.root()).display(),
        store.root().display()
    );
    Ok(())
}

/// Takes a store that must exist, for a command that computes nothing: locks it, and finishes the
/// commit of a killed run.
///
/// # Errors
/// If the folder has no store, another run has it, or it cannot be read or written.
pub(crate) fn take_store(location: &StoreLocation, log: &Log) -> Result<WriteGuard> {
    // Locking creates the folder, so check first that it is a store.
    location.expect()?;
    let guard = lock(location, log)?;
    let store = location.store();
    store.check_writable()?;
    store.take_work()?;
    store.recover()?;
    Ok(guard)
}

/// Messages of a store in a bucket, as notices in the log.
pub(crate) fn notify(log: &Log) -> Notify {
    let log = log.clone();
    Arc::new(move |text| log.notice(text))
}

/// Takes over the folder of unfinished work, for the processes with this restart number.
///
/// On other machines the folder has a new name for each restart. A process on a host that cannot be
/// reached may still run; it finds its folder moved away, so that it cannot write into the work of
/// its successors. Processes on this machine are known to have ended.
pub(crate) fn take_work(store: &Store, pool: &Pool, epoch: u64) -> Result<Store> {
    let store = if pool.is_on_this_machine() {
        Store::at(store.root())
    } else {
        let seed = format!("{} {} {epoch}", std::process::id(), jiff::Timestamp::now());
        store.working_in(&Store::work_name_of(&seed))
    };
    store.take_work()?;
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_works_on_a_bucket_needs_a_mirror() {
        let tasks = "keys = \"k\"\n[tasks]\nscheduler = \"slurm\"\n";
        let hosts = "[[hosts]]\nname = \"a\"\n";
        for text in [tasks, hosts] {
            let config: Config = toml::from_str(text).unwrap();
            let error = locate_store(Path::new("s3://bucket/store"), None, &config).unwrap_err();
            assert!(error.is::<WrongUse>() && error.to_string().contains("`mirror` in the config"), "{error}");
            locate_store(Path::new("folder"), None, &config).unwrap();
        }
    }
}
