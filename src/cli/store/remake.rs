//! Computing the last week of a store again, from its own tables: what `nigh delete` and
//! `nigh verify` have in common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::errors::WrongUse;
use crate::cli::job::week::read_summary;
use crate::cli::session::run_record::RunRecord;
use crate::cli::session::signals::stop_on_signals;
use crate::cli::session::worker::{ProcessWork, cluster};
use crate::cli::session::workers::WorkerCount;
use crate::cli::session::{
    Session, check_kernels, check_name, locate_store, lock, notify, pool_of, read_manifest, take_work,
};
use crate::config::{Absent, Canonical, Cluster, Config, Count, Keep, Mode, Reading, Verify, read_config};
use crate::jobs::deletion;
use crate::launch::{Peers, Pool};
use crate::log::{Display, Log};
use crate::mirror::WriteGuard;
use crate::plan::{Deletion, Plan, folders_of, inputs_at_hand};
use crate::readers::Input;
use crate::records::{DocId, Week};
use crate::state::{Earlier, Manifest, Store, WholeWeek};
use crate::summary::Summary;
use crate::text::UrlPatterns;

/// How the line of a week's job begins that says that pages were deleted from the week.
pub(crate) const DELETED_SINCE: &str = "# Deleted since: ";

/// The flags of such a command.
#[derive(Args)]
pub(crate) struct RemakeArgs {
    /// Local folder for the work on a store in a bucket. Overrides the config.
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    /// Config file: where to compute [default: this machine].
    #[arg(long)]
    config: Option<PathBuf>,
    /// Worker threads in each process. Overrides the config.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<Count>,
    /// Processes on this machine. Overrides the config.
    #[arg(long, value_name = "N")]
    processes: Option<Count>,
    /// Print the result as one JSON object on stdout, and events as JSON lines on stderr.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress and no notices, only warnings and errors.
    #[arg(short, long)]
    quiet: bool,
}

impl RemakeArgs {
    /// The log of the command.
    pub(crate) fn log(&self) -> Log {
        Log::new(Display::new(self.quiet, false, self.json), self.json)
    }
}

/// A store whose last week is computed again.
pub(crate) struct Opened {
    /// The store as the user names it.
    pub(crate) given: PathBuf,
    pub(crate) config: Config,
    pub(crate) pool: Pool,
    pub(crate) store: Store,
    pub(crate) manifest: Manifest,
    /// The lock of the store; `None` for a dry run.
    pub(crate) guard: Option<WriteGuard>,
}

impl Opened {
    /// Opens a store, and locks it unless for a dry run.
    ///
    /// # Errors
    /// If it is not a store; or, unless this is a dry run, cannot be written or is locked.
    pub(crate) fn new(given: &Path, args: &RemakeArgs, dry_run: bool, log: &Log) -> Result<Opened> {
        Opened::for_shards(given, args, None, dry_run, log)
    }

    /// As [`Opened::new`], to compute weeks with this number of shards instead of the store's.
    ///
    /// # Errors
    /// As [`Opened::new`].
    pub(crate) fn for_shards(
        given: &Path,
        args: &RemakeArgs,
        shards: Option<u32>,
        dry_run: bool,
        log: &Log,
    ) -> Result<Opened> {
        let config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config);
        let config = config.map_err(WrongUse::from_error)?;
        check_kernels()?;
        let location = locate_store(given, args.mirror.as_deref(), &config)?;
        check_name(given)?;
        if !dry_run {
            location.store().check_writable()?;
        }
        // Locking creates the folder, so check first that it is a store.
        location.expect()?;
        let pool = pool_of(&config, args.processes)?;
        if let Some(manifest) = location.store().manifest().ok().flatten() {
            // Before anything is locked or taken over; a mirror that is not up to date has the
            // shards of its store, too.
            let shards = shards.unwrap_or(manifest.method.shards);
            WorkerCount::new(args.workers, &config, &pool).of_shards(shards as usize)?;
        }
        let (guard, store) = if dry_run {
            location.look(&notify(log))?;
            (None, location.store().clone())
        } else {
            let guard = lock(&location, log)?;
            let store = take_work(location.store(), &pool, 0)?;
            store.recover()?;
            (Some(guard), store)
        };
        let manifest = read_manifest(&store, given)?;
        Ok(Opened { given: given.to_owned(), config, pool, store, manifest, guard })
    }

    /// The last week of the store.
    ///
    /// # Errors
    /// If it has none.
    pub(crate) fn last_week(&self) -> Result<Week> {
        let last = self.manifest.weeks.last().map(|last| last.week);
        last.with_context(|| format!("{} has no week yet", self.given.display()))
    }

    /// The plan to compute the last week again without the pages of these URLs.
    ///
    /// # Errors
    /// If the store has no week, or its records cannot be read.
    pub(crate) fn plan(&self, args: &RemakeArgs, patterns: &UrlPatterns) -> Result<Plan> {
        let Opened { given, config, pool, store, manifest, .. } = self;
        let last = manifest.weeks.last().with_context(|| format!("{} has no week yet", given.display()))?;
        let whole = store.whole(last)?;
        let path = store.records(last).join("job.toml");
        let job = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let of_job = job_of(&job, folders_of(&whole, last.week));
        let [inputs, earlier_inputs] = of_job.inputs_again((store, &whole), manifest.method.verify);
        let JobOfWeek { reading, canonical, accuracy } = of_job;
        let processes = pool.processes();
        let workers = WorkerCount::new(args.workers, config, pool).of_shards(manifest.method.shards as usize)?;
        Ok(Plan {
            week: last.week,
            store: store.root().to_owned(),
            work: store.work_name(),
            earlier: Earlier::before(manifest, last.week),
            stands_on: last.identity(),
            commit: manifest.commits + 1,
            deletion: Some(Deletion { patterns: patterns.clone(), of: last.clone(), key: whole.journal.key }),
            resharding: None,
            absent: Absent::Missing,
            folders: whole.folders,
            readings: whole.readings,
            earlier_inputs,
            canonical,
            accuracy,
            mode: Mode::Auto,
            method: manifest.method.clone(),
            reading,
            keep: Keep::default(),
            inputs,
            waves: Vec::new(),
            // The rejects were accepted when the crawl was read.
            max_reject_share: 1.0,
            max_unknown_share: 1.0,
            allow_empty: true,
            job: if patterns.is_empty() {
                format!("{job}# Verified since: {}.\n", manifest.method)
            } else {
                format!("{job}{DELETED_SINCE}{patterns}.\n")
            },
            processes,
            workers,
            worker_memory: config.memory() / (processes * workers) as u64,
            split_files: config.split_files(),
            keep_read: false,
        })
    }

    /// Computes and publishes the week of the plan, without some documents. Returns its summary
    /// before and after.
    ///
    /// # Errors
    /// If a file cannot be read or written, or a worker failed. The week is then as it was.
    pub(crate) fn remake(&mut self, plan: Plan, docs: &[DocId], log: &Log) -> Result<(Summary, Summary)> {
        let Opened { given, pool, store, guard, .. } = self;
        let guard = guard.as_mut().context("only a locked store is changed")?;
        let session = Session { pool, log, bytes: 0, metrics: None, record: Arc::new(RunRecord::new(log)) };
        let week = plan.week;
        let begin = |store: &Store| {
            let dropped = store.begin(week, &plan.method, &plan.key())?.dropped;
            if dropped > 0 {
                log.notice(&format!(
                    "week {week} was being computed again: its {dropped} unfinished waves are dropped"
                ));
            }
            if plan.deletion.as_ref().is_some_and(|deletion| !deletion.patterns.is_empty()) {
                deletion::write_deleted(&store.unfinished(week), docs)?;
            }
            Ok::<(), anyhow::Error>(())
        };
        begin(store)?;
        let before = read_summary(store, week)?;
        let is_committed = {
            let (store, key) = (store.clone(), plan.key().hash);
            move || -> Result<bool> {
                let manifest = store.manifest()?;
                let weeks = manifest.map_or_else(Vec::new, |manifest| manifest.weeks);
                Ok(weeks.iter().any(|committed| committed.week == week && committed.key == key))
            }
        };
        stop_on_signals(log, pool, guard.publish_handle(), {
            let (is_committed, root) = (is_committed.clone(), given.display().to_string());
            move || {
                let text = format!("week {week} of {root} is unchanged. The same command starts again");
                (!is_committed().unwrap_or(false)).then_some(text)
            }
        });
        let work = |epoch| {
            let mut plan = plan.clone();
            if epoch > 0 {
                let store = take_work(store, pool, epoch)?;
                store.recover()?;
                if is_committed()? {
                    return Ok(None);
                }
                begin(&store)?;
                plan.work = store.work_name();
            }
            Ok(Some(ProcessWork::Run(Box::new(plan))))
        };
        let plan_here = plan.clone();
        let after = session.compute(work, |watch| cluster(plan_here, Peers::None, watch))?;
        let after = after.map_or_else(|| read_summary(store, week), Ok)?;
        guard.publish(false, &notify(log))?;
        Ok((before, after))
    }
}

/// What the job of a week says.
#[derive(Default)]
pub(super) struct JobOfWeek {
    /// How its crawl files are read.
    pub(super) reading: Reading,
    /// Which documents of a cluster are canonical.
    pub(super) canonical: Canonical,
    /// Whether accuracy is measured by the files.
    pub(super) accuracy: bool,
}

impl JobOfWeek {
    /// The crawl files of the week that are at hand, and those of earlier weeks with pages that
    /// stay.
    pub(super) fn inputs_again(&self, (store, whole): (&Store, &WholeWeek), verify: Verify) -> [Vec<Input>; 2] {
        let (journal, of) = (&whole.journal, whole.committed.week);
        let own = journal.input_names(of).filter(|(week, _)| *week == of);
        let own = inputs_at_hand((store, whole), own, &self.reading, verify, self.accuracy);
        let earlier = inputs_at_hand((store, whole), journal.earlier_names(), &self.reading, verify, self.accuracy);
        [own, earlier]
    }
}

/// Reads the job of a week; its crawl files are also looked for in these folders.
pub(super) fn job_of(job: &str, folders: Vec<PathBuf>) -> JobOfWeek {
    let Ok(Cluster { read: mut reading, canonical, accuracy, .. }) = Cluster::of_text(job) else {
        return JobOfWeek::default();
    };
    reading.folders = folders;
    JobOfWeek { reading, canonical, accuracy }
}
