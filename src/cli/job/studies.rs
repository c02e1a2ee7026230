//! `nigh studies`: runs all studies on all weeks of a store, in order, so that every figure of
//! their papers can be drawn.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;

use crate::cli::args::RunArgs;
use crate::cli::errors::WrongUse;
use crate::cli::print::print_json;
use crate::cli::session::run_record::RunRecord;
use crate::cli::session::signals::command_text;
use crate::cli::session::{check_kernels, check_name, pool_of, read_manifest};
use crate::config::{Config, Count, WeekName, read_config};
use crate::job_file::{AnyJob, read_job_with};
use crate::log::{Display, Log};
use crate::mirror::ReadStore;
use crate::records::{DocumentKey, Week};
use crate::report::print;
use crate::studies::{AnyStudy, Runs};

/// Examples at the end of `nigh help studies`.
const EXAMPLES: &str = "\
Examples:
  All studies on all weeks, and then their figures:
    nigh studies crawls
    nigh figures crawls --out figures
  After a further week, with jobs of one's own where the folder has some:
    nigh studies crawls --last --jobs my-jobs";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StudiesArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Folder with job files, as overlap.toml; a study without one runs with its defaults.
    #[arg(long, value_name = "DIR")]
    jobs: Option<PathBuf>,
    /// Only the last week, for studies that go on from their tables of the week before.
    #[arg(long)]
    last: bool,
    /// Config file: where to compute [default: this machine].
    #[arg(long)]
    config: Option<PathBuf>,
    /// Local folder for the work on a store in a bucket. Overrides the config.
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    /// Worker threads in each process. Overrides the config.
    #[arg(long, value_name = "N")]
    workers: Option<Count>,
    /// Processes on this machine. Overrides the config.
    #[arg(long, value_name = "N")]
    processes: Option<Count>,
    /// Print the commands that would run, and stop.
    #[arg(long)]
    dry_run: bool,
    /// Print each summary as one JSON object on stdout, and events as JSON lines on stderr.
    #[arg(long)]
    json: bool,
    /// Show no progress and no notices, only warnings and errors.
    #[arg(short, long)]
    quiet: bool,
}

impl StudiesArgs {
    /// The log of the runs.
    pub(crate) fn log(&self) -> Log {
        Log::new(Display::new(self.quiet, false, self.json), self.json)
    }
}

/// A run of a study.
struct StudyRun {
    study: AnyStudy,
    /// The job file, if it has one.
    job: Option<PathBuf>,
    /// The week, if the study is about one.
    week: Option<Week>,
}

/// Runs all studies; one that fails does not keep the others from running.
pub(crate) fn run(args: &StudiesArgs, log: &Log) -> Result<ExitCode> {
    check_name(&args.store)?;
    let (weeks, documents) = ReadStore::at(&args.store, |store| {
        let manifest = read_manifest(store.store(), &args.store)?;
        let weeks: Vec<Week> = manifest.weeks.iter().map(|week| week.week).collect();
        Ok((weeks, manifest.method.documents))
    })?;
    let Some(last) = weeks.last() else { bail!("{} has no week yet: `nigh run` makes one", args.store.display()) };
    let weeks = if args.last { std::slice::from_ref(last) } else { &weeks };
    let steps = steps(args, weeks, documents, &|text| log.notice(text))?;
    if args.dry_run {
        let commands: Vec<String> = steps.iter().map(|step| step.command(&args.store)).collect();
        if args.json {
            print_json(&serde_json::json!({ "commands": commands }))?;
        } else {
            print(&(commands.join("\n") + "\n"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config);
    let config = config.map_err(WrongUse::from_error)?;
    check_kernels()?;
    let pool = pool_of(&config, args.processes)?;
    let mut failed: Vec<String> = Vec::new();
    let mut stopped: Vec<&'static str> = Vec::new();
    let count = steps.len();
    for (number, step) in steps.into_iter().enumerate() {
        let name = step.study.name();
        // Its later weeks stand on the one that failed.
        if stopped.contains(&name) {
            continue;
        }
        let command = step.command(&args.store);
        log.notice(&format!("{} of {count}: {command}", number + 1));
        let record = Arc::new(RunRecord::new(log));
        record.name(name, step.week);
        let run_args = step.arguments(args);
        if let Err(error) = super::study::run(step.study, &config, &pool, &run_args, log, &record) {
            if log.is_stopped() {
                return Err(error);
            }
            log.error(&format!("{command}: {error:#}"));
            failed.push(command);
            stopped.push(name);
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!("{} of {count} runs failed: {}", failed.len(), failed.join("; "))
}

/// The runs, in order.
fn steps(args: &StudiesArgs, weeks: &[Week], documents: DocumentKey, notice: &dyn Fn(&str)) -> Result<Vec<StudyRun>> {
    let names = AnyStudy::all().into_iter().map(|study| study.name());
    if let Some(folder) = &args.jobs
        && !names.into_iter().any(|name| folder.join(format!("{name}.toml")).is_file())
    {
        bail!(WrongUse(format!("--jobs {}: there is no job file of a study, such as overlap.toml", folder.display())));
    }
    // `nigh run jobs/overlap.toml` reads that file, too, if it is there.
    let folder = args.jobs.as_deref().unwrap_or(Path::new("jobs"));
    let mut studies: Vec<(AnyStudy, Option<PathBuf>)> = Vec::new();
    for default in AnyStudy::all() {
        let name = default.name();
        let job = Some(folder.join(format!("{name}.toml"))).filter(|path| path.exists());
        let mut study = match &job {
            None => default,
            Some(path) => match read_job_with(Some(path), &[]).map_err(WrongUse::from_error)?.job {
                AnyJob::Study(study) if study.name() == name => study,
                _ => bail!(WrongUse(format!("{} has no table [{name}]", path.display()))),
            },
        };
        // What to compare with, only the user knows.
        if study.against().is_some_and(|against| against.is_empty()) {
            continue;
        }
        if study.compares_hosts() && documents != DocumentKey::Url {
            notice(&format!(
                "{name} is left out: it compares hosts, and the store knows documents by their {documents}"
            ));
            continue;
        }
        studies.push((study, job));
    }
    studies.sort_by_key(|(study, _)| study.runs());
    let mut steps = Vec::new();
    for of_kind in studies.chunk_by(|a, b| a.0.runs() == b.0.runs()) {
        let runs: Vec<Option<Week>> = match of_kind[0].0.runs() {
            Runs::AllWeeks => vec![None],
            Runs::EachWeek => weeks.iter().copied().map(Some).collect(),
            Runs::LastWeek => vec![weeks.last().copied()],
        };
        // Week by week, since one study of a week may read the tables of another one.
        for week in runs {
            steps.extend(of_kind.iter().map(|(study, job)| StudyRun { study: study.clone(), job: job.clone(), week }));
        }
    }
    Ok(steps)
}

impl StudyRun {
    /// The job file, as a command names it.
    fn job(&self) -> PathBuf {
        self.job.clone().unwrap_or_else(|| Path::new("jobs").join(format!("{}.toml", self.study.name())))
    }

    /// The command that does the same.
    fn command(&self, store: &Path) -> String {
        let week = self.week.map(|week| week.to_string());
        let words = ["nigh".into(), "run".into(), self.job().into_os_string(), "--store".into(), store.into()];
        let week = week.iter().flat_map(|week| ["--week".into(), week.as_str().into()]);
        command_text(words.into_iter().chain(week))
    }

    /// The flags of the run. Variables of flags of `nigh run` do not matter here.
    fn arguments(&self, args: &StudiesArgs) -> RunArgs {
        RunArgs {
            job: Some(self.job()),
            config: args.config.clone(),
            week: self.week.map(WeekName::Date),
            store: Some(args.store.clone()),
            mirror: args.mirror.clone(),
            workers: args.workers,
            processes: args.processes,
            json: args.json,
            quiet: args.quiet,
            ..RunArgs::default()
        }
    }
}
