//! `nigh run` of a job that makes a week from a crawl: a store's first, or a later one.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use super::args::RunArgs;
use super::errors::WrongUse;
use super::print::print_summary;
use super::session::{Session, end_when_lost, home, notify, take_work};
use super::signals::stop_on_signals;
use super::worker::{ProcessWork, cluster};
use crate::config::{Cluster, Config, Job, Mode, Reading, Weekly};
use crate::launch::{Peers, Pool};
use crate::log::Log;
use crate::plan::{Plan, cut_waves, job_text};
use crate::records::Week;
use crate::report;
use crate::report::{Disk, print};
use crate::state::{Begun, Earlier, Store};
use crate::summary::Summary;

/// Makes the week, or goes on with it, and prints its summary.
pub(crate) fn run(job: Crawled, config: &Config, pool: Pool, args: &RunArgs, log: &Log) -> Result<ExitCode> {
    let draft = Draft::new(job, config, pool, args)?;
    let home = home(&draft.store, args.mirror.as_deref(), config)?;
    let store = home.store().clone();
    store.check_writable()?;
    // A run finds out now, not hours later; objects were asked for when they were listed.
    for input in &draft.inputs {
        if args.dry_run || matches!(input.place, crate::readers::Location::File(_)) {
            crate::readers::check(input, draft.reading())?;
        }
    }
    let notify_user = notify(log);
    let take = || home.take(&notify_user, end_when_lost(log));
    // What a bucket's store holds is known when its mirror is up to date.
    let early = match home.is_in_bucket() {
        true if args.dry_run => home.look(&notify_user).map(|()| None)?,
        true => Some(take()?),
        false => None,
    };
    let standing = draft.standing(&store)?;
    if args.dry_run {
        let (WeekState::Made(plan) | WeekState::ToMake(plan)) = standing;
        let disk = Disk::of(&plan);
        if args.json {
            let dry = serde_json::json!({ "plan": plan, "disk": disk });
            print(&format!("{dry}\n"))?;
        } else {
            print(&report::plan(&plan, &disk))?;
            print("Checked   every input can be opened, the store can be written\n")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut taken = early.map_or_else(take, Ok)?;
    let store = take_work(&store, &draft.pool, 0)?;
    store.recover()?;
    // Another run may have ended meanwhile, or one that was killed have been mended.
    let standing = draft.standing(&store)?;
    let mut summary = match standing {
        WeekState::Made(plan) => {
            let root = draft.store.display();
            log.notice(&format!("week {} is in {root} already, from the same input: nothing to do", plan.week));
            Summary::read(&store.week(plan.week))?
        }
        WeekState::ToMake(plan) => {
            let Begun { journal, dropped } = store.begin(plan.week, &plan.method, &plan.key())?;
            if dropped > 0 {
                log.notice(&format!(
                    "an unfinished week {} was made from other input: its {dropped} waves are dropped, and it is begun anew",
                    plan.week
                ));
            }
            if journal.waves > 0 {
                log.notice(&format!("going on after wave {} of {}", journal.waves, plan.waves.len()));
            }
            if args.verbose && !args.json {
                eprint!("{}", report::plan(&plan, &Disk::of(&plan)));
            }
            let (kept, week) = (store.clone(), plan.week);
            let root = draft.store.display().to_string();
            stop_on_signals(log, &draft.pool, taken.publish_handle(), move || {
                let text = format!("what is committed in {root} is kept. The same command goes on from there");
                (!kept.is_committed(week)).then_some(text)
            });
            let first = plan.waves.get(journal.waves).map_or(plan.inputs.len(), |wave| wave.0);
            let bytes = plan.inputs[first..].iter().map(|input| input.bytes).sum();
            let run = Session { pool: &draft.pool, log, bytes, metrics: args.metrics };
            let alone = (*plan).clone();
            let mut first = Some(plan);
            let work = |epoch| match first.take() {
                Some(plan) => Ok(Some(ProcessWork::Run(plan))),
                None => draft.again(&take_work(&store, &draft.pool, epoch)?),
            };
            let summary = run.compute(work, |watch| cluster(alone, Peers::None, watch))?;
            taken.publish(false, &notify_user)?;
            match summary {
                Some(summary) => summary,
                None => Summary::read(&store.week(week))?,
            }
        }
    };
    if home.is_in_bucket() {
        // Where the tables are for all, not where they were made.
        summary.store = draft.store.clone();
    }
    print_summary(&summary, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// A job with config and flags, before it is known what the store holds.
struct Draft {
    job: Crawled,
    week: Week,
    store: PathBuf,
    inputs: Vec<crate::readers::Input>,
    pool: Pool,
    workers: usize,
    memory: u64,
    replace: bool,
}

/// A job that makes a week from a crawl.
#[derive(Clone)]
pub(crate) enum Crawled {
    /// A store's first week.
    First(Cluster),
    /// A later one.
    Later(Weekly),
}

impl Crawled {
    fn into_job(self) -> Job {
        match self {
            Crawled::First(job) => Job::Cluster(job),
            Crawled::Later(job) => Job::Weekly(job),
        }
    }
}

/// A week in its store.
enum WeekState {
    /// It was made already, from the same input.
    Made(Box<Plan>),
    /// It is to be made, or gone on with.
    ToMake(Box<Plan>),
}

impl Draft {
    fn new(mut job: Crawled, config: &Config, pool: Pool, args: &RunArgs) -> Result<Draft> {
        let (week, store, input, reading) = match &mut job {
            Crawled::First(job) => (&mut job.week, &mut job.store, &mut job.input, &job.read),
            Crawled::Later(job) => (&mut job.week, &mut job.store, &mut job.input, &job.read),
        };
        if !args.input.is_empty() {
            *input = args.input.clone();
        }
        *week = args.week.or(*week);
        *store = args.store.clone().or(store.take());
        let missing = |what: &str, flag: &str| {
            WrongUse(format!("{}: no {what}: give {flag}, or set it in the job", args.job.display()))
        };
        let week = week.ok_or_else(|| missing("week", "--week YYYY-MM-DD"))?;
        let store = store.clone().ok_or_else(|| missing("store", "--store DIR"))?;
        if store.to_str().is_none() {
            bail!(WrongUse(format!("--store {}: the name is no UTF-8", store.display())));
        }
        if input.is_empty() {
            bail!(missing("input", "--input PATH_OR_GLOB_OR_URL"));
        }
        let inputs = crate::readers::list(input, reading)?;
        ensure!(u32::try_from(inputs.len()).is_ok(), "{} inputs are more than one week can have", inputs.len());
        let workers = args.workers.map_or(config.workers(pool.processes()), |count| count.0);
        let (memory, replace) = (config.memory(), args.replace);
        Ok(Draft { job, week, store, inputs, pool, workers, memory, replace })
    }

    fn reading(&self) -> &Reading {
        match &self.job {
            Crawled::First(job) => &job.read,
            Crawled::Later(job) => &job.read,
        }
    }

    /// What is left to do after processes ended badly; nothing where the week was committed before the last of them
    /// could tell.
    fn again(&self, store: &Store) -> Result<Option<ProcessWork>> {
        store.recover()?;
        if store.is_committed(self.week) {
            return Ok(None);
        }
        let (WeekState::Made(plan) | WeekState::ToMake(plan)) = self.standing(store)?;
        store.begin(plan.week, &plan.method, &plan.key())?;
        Ok(Some(ProcessWork::Run(plan)))
    }

    /// The plan, given what the store holds now.
    fn standing(&self, store: &Store) -> Result<WeekState> {
        let (week, root) = (self.week, self.store.display());
        let manifest = store.manifest()?;
        let weeks = manifest.as_ref().map_or(&[][..], |manifest| &manifest.weeks);
        let made = weeks.iter().position(|known| known.week == week);
        let earlier = manifest.as_ref().map(|manifest| Earlier::before(manifest, week)).unwrap_or_default();
        if made.is_some() && earlier.last().is_none() && earlier.removed.is_some() {
            bail!("week {week} is in {root} already, and stays as it is: the weeks that it goes on from were removed");
        }
        let mut job = self.job.clone();
        let (method, mode, max_reject_share, wave_bytes) = match (&mut job, &manifest, earlier.last()) {
            (Crawled::First(_), _, Some(last)) => bail!(
                "the store {root} holds week {} already, and this job makes a store's first week: jobs/weekly.toml goes on from there; or take \
                 another --store",
                last.week
            ),
            (Crawled::Later(_), None, _) | (Crawled::Later(_), _, None) => bail!(
                "the store {root} holds no week before {week} to go on from: make its first week with jobs/cluster.toml"
            ),
            (Crawled::First(job), ..) => (job.method.clone(), Mode::Full, job.max_reject_share, job.wave_bytes),
            (Crawled::Later(job), Some(manifest), _) => {
                let method = job.method.get_or_insert_with(|| manifest.method.clone());
                (method.clone(), job.mode, job.max_reject_share, job.wave_bytes)
            }
        };
        if let Some(manifest) = &manifest {
            manifest.check(&self.store, &method)?;
        }
        let plan = Box::new(Plan {
            week,
            store: store.root().to_owned(),
            work: store.work_name(),
            earlier,
            deletion: None,
            mode,
            method,
            reading: self.reading().clone(),
            waves: cut_waves(&self.inputs, wave_bytes.0),
            inputs: self.inputs.clone(),
            max_reject_share: max_reject_share.0,
            job: job_text(&job.into_job()),
            processes: self.pool.processes(),
            workers: self.workers,
            worker_memory: self.memory / (self.pool.processes() * self.workers) as u64,
        });
        let last = weeks.last().map(|last| last.week);
        match made {
            Some(_) if self.replace => {
                ensure!(
                    last == Some(week),
                    "later weeks of {root} stand on week {week}: only the last one, {}, can be replaced",
                    last.map_or(String::new(), |last| last.to_string())
                );
                Ok(WeekState::ToMake(plan))
            }
            Some(made) => {
                ensure!(
                    weeks[made].key == plan.key().hash,
                    "week {week} is in {root} already, made from other input, or with pages deleted since: take another --week or --store, or make it anew with --replace"
                );
                Ok(WeekState::Made(plan))
            }
            None => {
                if let Some(last) = last.filter(|last| *last > week) {
                    bail!(
                        "the store {root} holds week {last} already, and weeks are made in their order: {week} is older"
                    );
                }
                Ok(WeekState::ToMake(plan))
            }
        }
    }
}
