//! `nigh run` of a study: reads committed weeks of a store, and writes tables about them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use super::args::RunArgs;
use super::errors::WrongUse;
use super::print::{print_json, result_text};
use super::session::{Session, check_name, inputs_at_hand, locate_store, lock, notify, open_bucket, take_work};
use super::signals::stop_on_signals;
use super::worker::{ProcessWork, study};
use super::workers::{WorkerCount, warn_above_cores};
use crate::config::{Bytes, Cluster, Config, Method, MirrorsByUrl, Reading, Samplers, Study, Unit, Verify};
use crate::jobs::studies::{
    StudyFiles, StudyPlan, check_chunks, check_level, former_list, former_overlap, former_paragraphs,
};
use crate::launch::{Peers, Pool};
use crate::log::Log;
use crate::mirror::WriteGuard;
use crate::records::{DocumentKey, Week};
use crate::report;
use crate::report::print;
use crate::state::{History, PastWeek, Results, Store};
use crate::summary::StudySummary;
use crate::text::printable_lines;

/// Runs the job, and prints its summary.
pub(crate) fn run(mut job: Study, config: &Config, pool: &Pool, args: &RunArgs, log: &Log) -> Result<ExitCode> {
    if let Some(store) = &args.store {
        job.set_store(store.clone());
    }
    let folder = check_flags(&mut job, args)?;
    let location = locate_store(&folder, args.mirror.as_deref(), config)?;
    let may_begin = matches!(&job, Study::MirrorsByUrl(job) if !job.lists.is_empty());
    if location.is_in_bucket() && !may_begin {
        location.expect()?;
    }
    let early_guard = open_bucket(&location, args.dry_run, log)?;
    let store = location.store();
    let plan = make_plan(store, &job, config, args, pool, &|text| log.notice(text))?;
    store.check_writable()?;
    warn_above_cores(plan.workers, pool, log);
    if args.dry_run {
        if args.json {
            print_json(&serde_json::json!({ "plan": plan }))?;
        } else {
            print(&plan_text(&plan, &folder))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.verbose && !args.json {
        eprint!("{}", printable_lines(&plan_text(&plan, &folder)));
    }
    let mut guard = early_guard.map_or_else(|| lock(&location, log), Ok)?;
    let store = take_work(store, pool, 0)?;
    store.recover()?;
    // Plan again: the recovery may have finished the commit of a killed run, which adds a week.
    let plan = make_plan(&store, &job, config, args, pool, &|_| {})?;
    let session = Session { pool, log, bytes: 0, metrics: args.metrics };
    let mut summary = compute(plan, &session, &store, &folder, &mut guard)?;
    if location.is_in_bucket() {
        // The name of the bucket, not that of the mirror.
        summary.set_store(folder.clone());
    }
    print(&result_text(&summary, args.json, |summary| report::study(summary, &folder.join(job.folder())))?)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses flags that mean nothing for this job. Returns the name of the store.
fn check_flags(job: &mut Study, args: &RunArgs) -> Result<PathBuf> {
    let wrong_use = |text: &str| Err(WrongUse(format!("{}: {text}", args.job_name())).into());
    if !args.input.is_empty() {
        let Some(input) = job.input_mut() else {
            return wrong_use("--input is for jobs that read a crawl; this one reads the weeks of a store");
        };
        input.clone_from(&args.input);
    }
    if args.week.is_some_and(|week| !job.set_week(week)) {
        return wrong_use("--week is for jobs about one week: set `first` and `last` in the job");
    }
    if args.replace {
        return wrong_use("--replace is for jobs that make one week: this job always replaces its tables");
    }
    if args.absent.is_some() {
        return wrong_use("--absent is for jobs that make a week");
    }
    let Some(store) = job.store() else {
        return wrong_use("no store: give --store DIR, or set it in the job");
    };
    check_name(store)?;
    Ok(store.clone())
}

/// Computes and publishes the tables. The caller has locked the store.
fn compute(
    mut plan: StudyPlan,
    session: &Session<'_>,
    store: &Store,
    folder: &Path,
    guard: &mut WriteGuard,
) -> Result<StudySummary> {
    let Session { pool, log, .. } = *session;
    let tables = plan.study.folder();
    let results = Results::next(store, tables)?;
    results.begin()?;
    plan.commit = results.commit_number();
    // A restart begins new results, and the signal handler must look at those.
    let results = Arc::new(Mutex::new(results));
    stop_on_signals(log, pool, guard.publish_handle(), {
        let (results, tables) = (results.clone(), folder.join(tables).display().to_string());
        move || {
            let results = results.lock().unwrap_or_else(PoisonError::into_inner);
            // Once the commit has begun, the run ends by itself.
            let text = format!("{tables} is unchanged. The same command starts again");
            (!results.has_begun_to_commit()).then_some(text)
        }
    });
    let work = |epoch| {
        let mut plan = plan.clone();
        if epoch > 0 {
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            let store = take_work(store, pool, epoch)?;
            store.recover()?;
            if results.is_committed() {
                // The processes committed the tables, and failed before they reported it.
                return Ok(None);
            }
            // Unfinished tables are made again.
            *results = Results::next(&store, tables)?;
            results.begin()?;
            (plan.work, plan.commit) = (store.work_name(), results.commit_number());
        }
        Ok(Some(ProcessWork::Study(Box::new(plan))))
    };
    let plan_here = plan.clone();
    let summary = session.compute(work, move |watch| study(plan_here, Peers::None, watch))?;
    let summary = match summary {
        Some(summary) => summary,
        None => {
            StudySummary::read(&results.lock().unwrap_or_else(PoisonError::into_inner).committed_file("summary.json"))?
        }
    };
    guard.publish(false, &notify(log))?;
    Ok(summary)
}

/// The plan for the weeks that the job names, with config and flags applied.
fn make_plan(
    store: &Store,
    study: &Study,
    config: &Config,
    args: &RunArgs,
    pool: &Pool,
    notice: &dyn Fn(&str),
) -> Result<StudyPlan> {
    let processes = pool.processes();
    let (mut first, last) = study.weeks();
    let (mut former, mut files) = (None, StudyFiles::default());
    if let Study::Overlap(job) = study
        && let Some((week, commit)) = former_overlap(store, job)?
    {
        (first, former) = (Some(week), Some(commit));
    }
    if let Study::Paragraphs(job) = study {
        (first, former) = former_paragraphs(store, job, notice)?;
    }
    let history = match study {
        Study::MirrorsByUrl(job) => {
            let history = history_beside_lists(store, job, notice)?;
            files = study_files(store, job, &history)?;
            history
        }
        Study::Samplers(job) => {
            let last = store.manifest()?.and_then(|manifest| manifest.weeks.last().map(|week| week.week));
            let week = job.week.or(last);
            let history = History::open(store, week, week)?;
            files = crawl_files(store, job, history.last().week)?;
            history
        }
        _ => History::open(store, first, last)?,
    };
    if let Some(manifest) = store.manifest()? {
        check_documents(study, manifest.method.documents)?;
    }
    match study {
        Study::Evolution(_) | Study::Mirrors(_) | Study::MirrorsByUrl(_) | Study::Samplers(_) => {}
        Study::Overlap(_) => check_chunks(&history, "overlap")?,
        Study::Paragraphs(_) => check_chunks(&history, "paragraphs")?,
        Study::Collections(job) => {
            let week = check_level(store, &history, job)?;
            match former_list(store, job, week)? {
                Ok(list) => former = list,
                Err(why) => notice(&why),
            }
        }
    }
    let workers = WorkerCount::new(args.workers, config, pool).of_shards(match history.weeks.last() {
        Some(week) => week.rows.len(),
        None => files.method.shards as usize,
    })?;
    let worker_memory = config.memory() / (processes * workers) as u64;
    Ok(StudyPlan {
        study: study.clone(),
        work: store.work_name(),
        commit: 0,
        former,
        files,
        history,
        processes,
        workers,
        worker_memory,
    })
}

/// Checks that the documents are known by what the study is about.
fn check_documents(study: &Study, documents: DocumentKey) -> Result<()> {
    let is_of_hosts = match study {
        Study::Mirrors(_) | Study::MirrorsByUrl(_) | Study::Collections(_) => true,
        Study::Overlap(job) => job.unit == Unit::Host,
        Study::Evolution(_) | Study::Paragraphs(_) | Study::Samplers(_) => false,
    };
    ensure!(
        !is_of_hosts || documents == DocumentKey::Url,
        "this study compares hosts, and the store knows documents by their {documents}, not by URLs"
    );
    Ok(())
}

/// The week of a mirrors-by-url job; none, if the store has no week yet and the job has lists.
fn history_beside_lists(store: &Store, job: &MirrorsByUrl, notice: &dyn Fn(&str)) -> Result<History> {
    let last = store.manifest()?.and_then(|manifest| manifest.weeks.last().map(|week| week.week));
    let week = job.week.or(last);
    if job.lists.is_empty() || week.is_some() {
        return History::open(store, week, week);
    }
    notice(&format!("{} has no week: the URLs are those of the lists", store.root().display()));
    Ok(History::without_weeks(store))
}

/// The files that a mirrors-by-url job names. Pages are read as those of its week were.
fn study_files(store: &Store, job: &MirrorsByUrl, history: &History) -> Result<StudyFiles> {
    let lists = if job.lists.is_empty() { Vec::new() } else { crate::readers::url_files(&job.lists)? };
    let manifest = store.manifest()?;
    let reading = match history.weeks.last() {
        Some(week) if !job.input.is_empty() => super::chunks::job_of_week(store, &store.committed(week.week)?)?.read,
        _ => Reading::default(),
    };
    let crawl = if job.input.is_empty() { Vec::new() } else { crate::readers::list(&job.input, &reading)? };
    crawl.iter().try_for_each(|input| crate::readers::check(input, &reading).map(drop))?;
    let method = manifest.map_or_else(Method::default, |manifest| manifest.method);
    Ok(StudyFiles { lists, crawl, reading, method })
}

/// The crawl files of the week of a samplers job: those that it names, or those that the job of the week names; and those of earlier weeks with
/// pages that stay, which are at hand.
fn crawl_files(store: &Store, job: &Samplers, week: Week) -> Result<StudyFiles> {
    let committed = store.committed(week)?;
    let Cluster { input, read: reading, .. } = super::chunks::job_of_week(store, &committed)?;
    let input = if job.input.is_empty() { input } else { job.input.clone() };
    let mut crawl = crate::readers::list(&input, &reading)
        .with_context(|| format!("the crawl files of week {week} are read again: give them with --input"))?;
    let earlier = store.whole(&committed)?.journal.earlier_inputs;
    let names = earlier.values().flat_map(|names| names.keys()).map(String::as_str);
    let known: BTreeSet<String> = crawl.iter().map(|input| input.name.clone()).collect();
    let at_hand = inputs_at_hand(names, &reading, Verify::Exact, true);
    crawl.extend(at_hand.into_iter().filter(|input| !known.contains(&input.name)));
    let method = store.manifest()?.map_or_else(Method::default, |manifest| manifest.method);
    Ok(StudyFiles { lists: Vec::new(), crawl, reading, method })
}

/// The weeks of a plan of which every page is read.
fn weeks_read(plan: &StudyPlan) -> &[PastWeek] {
    let weeks = &plan.history.weeks;
    match &plan.study {
        Study::Overlap(_) => &weeks[weeks.len() - 1..],
        // Its own week, and those that it is judged by.
        Study::Collections(job) => {
            let from = weeks.iter().position(|past| Some(past.week) == job.week).unwrap_or(weeks.len() - 1);
            &weeks[from..if job.judge { weeks.len() } else { from + 1 }]
        }
        Study::Evolution(_)
        | Study::Mirrors(_)
        | Study::MirrorsByUrl(_)
        | Study::Paragraphs(_)
        | Study::Samplers(_) => weeks,
    }
}

/// The bytes, of all processes, of what stays in memory as long as a study computes; records in flight are not counted. See the Memory
/// sections of the jobs.
fn lasting_bytes(plan: &StudyPlan) -> u64 {
    let urls: u64 = plan.history.rows_by_shard().iter().sum();
    let workers = (plan.processes * plan.workers) as u64;
    match &plan.study {
        Study::Evolution(_) => 144 * urls,
        Study::Samplers(_) => 8 * urls,
        // If all pages of the largest week are on hosts in pairs.
        Study::Mirrors(_) => 56 * plan.history.weeks.iter().map(PastWeek::documents).max().unwrap_or_default(),
        Study::Overlap(_) => 120 * urls,
        // If each page shares ten of its paragraphs.
        Study::Paragraphs(job) => (60 + 8 * job.near.len() as u64 + 160) * urls,
        // If a quarter of the pages are in collections.
        Study::Collections(_) => 80 * urls,
        // If each host has just enough URLs, a fifth of them are sampled: 120 bytes each. A line of a list has about 60 bytes. Every worker
        // has the listed hosts: about 4 kB a pair, if they are so many.
        Study::MirrorsByUrl(job) => {
            let urls = urls + plan.files.lists.iter().map(|file| file.bytes).sum::<u64>() / 60;
            let pairs = u64::from(job.most_candidates.get()).min(urls / (2 * u64::from(job.least_urls.get())));
            24 * urls + 4000 * pairs * workers
        }
    }
}

/// The plan as a dry run prints it.
fn plan_text(plan: &StudyPlan, store: &Path) -> String {
    let (history, files) = (&plan.history, &plan.files);
    let urls: u64 = history.rows_by_shard().iter().sum();
    let weeks = match (history.weeks.first(), history.weeks.last()) {
        (Some(first), Some(last)) => format!("{}, {} to {}", history.weeks.len(), first.week, last.week),
        _ => "none".to_owned(),
    };
    let mut of_files = String::new();
    for (name, count, bytes) in [
        ("Lists", files.lists.len(), files.lists.iter().map(|file| file.bytes).sum()),
        ("Input", files.crawl.len(), files.crawl.iter().map(|input| input.bytes).sum()),
    ] {
        if count > 0 {
            of_files += &format!("{name:9} {} files, {}\n", report::grouped(count as u64), Bytes(bytes));
        }
    }
    let pages: u64 = weeks_read(plan).iter().map(PastWeek::documents).sum();
    format!(
        "Store     {}\nWeeks     {weeks}\nURLs      {}\nPages     {} to read\n{of_files}Memory    {} for records in flight, about \
         {} besides\nWorkers   {} in each of {} processes\n",
        store.display(),
        report::grouped(urls),
        report::grouped(pages),
        Bytes(plan.worker_memory * (plan.processes * plan.workers) as u64),
        Bytes(lasting_bytes(plan)),
        plan.workers,
        plan.processes
    )
}
