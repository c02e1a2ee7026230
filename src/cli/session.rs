//! One run: in this process or in several, with progress, metrics and a folder for its work.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};

use super::errors::WrongUse;
use super::worker::ProcessWork;
use crate::config::{Config, Count};
use crate::launch::{EventSink, Outcome, Pool, exit_on_panic, supervise};
use crate::log::Log;
use crate::metrics::Metrics;
use crate::mirror::{Notify, StoreLocation, url_of};
use crate::operators::ingest::TooManyRejects;
use crate::records::short_hash;
use crate::state::Store;
use crate::watch::{Progress, Watch};
use crate::{kernels, progress};

/// Finds out before anything is done whether `NIGH_KERNELS` names a level that this machine has.
pub(crate) fn known_kernels() -> Result<()> {
    kernels::chosen().map(|_| ()).map_err(|error| WrongUse(format!("{error:#}")).into())
}

/// How a run is computed, and shown.
pub(crate) struct Session<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) log: &'a Log,
    /// Bytes of input that are still to be read.
    pub(crate) bytes: u64,
    /// Where metrics are served.
    pub(crate) metrics: Option<SocketAddr>,
}

impl Session<'_> {
    /// Does the work in this process, by `alone`, or in several; `None` where a generation of processes did all of it
    /// and did not live to tell. What the processes are to do comes from `work`, made anew for each generation.
    pub(crate) fn compute<S: serde::de::DeserializeOwned>(
        &self,
        mut work: impl FnMut(u64) -> Result<Option<ProcessWork>>,
        alone: impl FnOnce(&Arc<Watch>) -> Result<Option<S>>,
    ) -> Result<Option<S>> {
        if self.pool.is_this_process() {
            exit_on_panic(1);
            self.log.set_process(0);
            let watch = Arc::new(Watch::default());
            let read = watch.clone();
            let _metrics = self.serve_metrics(move || vec![read.progress()])?;
            let read = watch.clone();
            let shown = progress::show(self.log, self.bytes, move || read.progress());
            let summary = alone(&watch)?;
            drop(shown);
            self.log.spans(&watch.spans());
            return summary.context("worker 0 gives the summary").map(Some);
        }
        let progresses = Arc::new(Mutex::new(Vec::<Progress>::new()));
        let read = progresses.clone();
        let _metrics =
            self.serve_metrics(move || read.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone())?;
        let read = progresses.clone();
        let _shown = progress::show(self.log, self.bytes, move || {
            let progresses = read.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            progresses.iter().copied().reduce(Progress::sum).unwrap_or_default()
        });
        let log = self.log.clone();
        let voice: EventSink = Arc::new(move |event| {
            // A plan may be asked for and come to nothing: only a restart begins an epoch.
            if event.kind == "restart" {
                log.set_epoch(event.epoch);
            }
            log.event(event);
        });
        let mut plans = |epoch| work(epoch)?.map(|work| work.told()).transpose();
        match supervise(self.pool, &mut plans, &progresses, &voice)? {
            Outcome::Done(summary) => {
                summary.map(|summary| serde_json::from_str(&summary).context("a summary is plain data")).transpose()
            }
            Outcome::Failed { message, code: 3, .. } => Err(TooManyRejects(message).into()),
            Outcome::Failed { message, .. } => bail!(message),
        }
    }
}

impl Session<'_> {
    fn serve_metrics(&self, read: impl Fn() -> Vec<Progress> + Send + 'static) -> Result<Option<Metrics>> {
        let Some(address) = self.metrics else { return Ok(None) };
        let metrics = Metrics::serve(address, read)?;
        self.log.notice(&format!("metrics are at http://{}/metrics", metrics.address));
        Ok(Some(metrics))
    }
}

/// The machines of a config, with the command's flags.
pub(crate) fn pool_of(config: &Config, processes: Option<Count>) -> Result<Pool> {
    if config.tasks.is_some() {
        bail!(WrongUse("a config with [tasks] is for `nigh run`, which the scheduler starts".into()));
    }
    match processes {
        Some(_) if !config.hosts.is_empty() => bail!(WrongUse(
            "--processes is for this machine alone: a pool has as many processes as its config has [[hosts]]".into()
        )),
        Some(count) => Ok(Pool::here(count.0, config)),
        None => Pool::new(config),
    }
}

/// The store of a command: what is given, worked on where the flag, the config or this user's cache says.
pub(crate) fn home(given: &Path, flag: Option<&Path>, config: &Config) -> Result<StoreLocation> {
    let mirror = flag.or(config.mirror.as_deref());
    let is_shared = !config.hosts.is_empty() || config.tasks.is_some();
    if mirror.is_none() && is_shared && url_of(given)?.is_some() {
        let text = format!(
            "a pool works on {} in a folder that all of its machines see: give it as `mirror` in the config, or by --mirror",
            given.display()
        );
        return Err(WrongUse(text).into());
    }
    StoreLocation::at(given, mirror)
}

/// Says what a person should know.
pub(crate) fn notify(log: &Log) -> Notify {
    let log = log.clone();
    Arc::new(move |text| log.notice(text))
}

/// Ends the run whose lock is another's.
pub(crate) fn end_when_lost(log: &Log) -> impl Fn(&str) + Send + 'static {
    let log = log.clone();
    move |reason| {
        log.error(reason);
        std::process::exit(1);
    }
}

/// The store, for the generation of processes of this number. Processes on this machine are surely gone before the next
/// ones begin; one on a host that cannot be reached is not, and would find its folder of work moved away.
pub(crate) fn take_work(store: &Store, pool: &Pool, epoch: u64) -> Result<Store> {
    let store = match pool.is_on_this_machine() {
        true => Store::at(store.root()),
        false => {
            let name = format!("{} {} {epoch}", std::process::id(), jiff::Timestamp::now());
            store.working_in(&format!("_work-{}", short_hash(name.as_bytes())))
        }
    };
    store.take_work()?;
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_of_several_machines_wants_a_mirror_that_all_see() {
        let tasks = "keys = \"k\"\n[tasks]\nscheduler = \"slurm\"\n";
        let hosts = "[[hosts]]\nname = \"a\"\n";
        for text in [tasks, hosts] {
            let config: Config = toml::from_str(text).unwrap();
            let error = home(Path::new("s3://bucket/store"), None, &config).unwrap_err();
            assert!(error.is::<WrongUse>() && error.to_string().contains("`mirror` in the config"), "{error}");
            home(Path::new("folder"), None, &config).unwrap();
        }
    }
}
