//! `nigh reshard`: gives a store more shards.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::remake::{DELETED_SINCE, JobOfWeek, Opened, RemakeArgs, job_of};
use crate::cli::errors::WrongUse;
use crate::cli::print::print_json;
use crate::cli::session::run_record::RunRecord;
use crate::cli::session::signals::stop_on_signals;
use crate::cli::session::worker::{ProcessWork, cluster};
use crate::cli::session::workers::{WorkerCount, warn_above_cores};
use crate::cli::session::{Session, notify, refuse_pending, take_work};
use crate::config::{Absent, Cluster, Keep, Method, Mode, Verify};
use crate::jobs::chunks::CHUNKS_SINCE;
use crate::jobs::resharding::OldStore;
use crate::launch::Peers;
use crate::log::Log;
use crate::plan::{Plan, Resharding, folders_of, inputs_by_week, stamp_of};
use crate::records::{MAX_SHARDS, Week};
use crate::report::print;
use crate::state::{CommittedWeek, Earlier, Manifest, Store, WholeWeek, commit_of};
use crate::summary::Summary;
use crate::tables::{ChunkRow, DocumentRow, Table as _};

/// Examples at the end of `nigh help reshard`.
const RESHARD_EXAMPLES: &str = "\
Examples:
    nigh reshard crawls --shards 256 --dry-run
    nigh reshard crawls --shards 256

All weeks are made again from their tables, with the ids that they would have had with so many shards from the first. The store stays as
it is until all are made, and the same command goes on after a kill. Meanwhile the disk has both.";

#[derive(Args)]
#[command(after_help = RESHARD_EXAMPLES)]
pub(crate) struct ReshardArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The new number of shards: that of the store times 2, 4, 8, and so on.
    #[arg(long, value_name = "N")]
    shards: u32,
    /// Print what would be done, and stop.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) remake: RemakeArgs,
}

/// The result of the command, as `--json` prints it.
#[derive(serde::Serialize)]
struct Resharded {
    /// The number of shards that the store had.
    from: u32,
    /// The number that it has, or would have.
    to: u32,
    /// The weeks that were made again, or would be.
    weeks: Vec<Week>,
    /// Folders of the results of jobs, whose ids of documents are those from before.
    results: Vec<String>,
}

/// Gives the store more shards, and prints what was done.
pub(crate) fn run(args: &ReshardArgs, log: &Log) -> Result<ExitCode> {
    log.name("reshard".to_owned());
    check_number(args.shards)?;
    let mut opened = Opened::for_shards(&args.store, &args.remake, Some(args.shards), args.dry_run, log)?;
    let (store, manifest) = (opened.store.clone(), opened.manifest.clone());
    let mut resharded = Resharded {
        from: manifest.method.shards,
        to: args.shards,
        weeks: manifest.weeks.iter().map(|week| week.week).collect(),
        results: manifest.results.keys().cloned().collect(),
    };
    if resharded.from == resharded.to {
        (resharded.weeks, resharded.results) = (Vec::new(), Vec::new());
        publish(&mut opened, log)?;
        return print_result(args, &resharded);
    }
    check_more(&manifest, args)?;
    if args.dry_run {
        check(&store, &manifest, args)?;
        old_store(&store, &manifest, args.shards)?.new_urls(threads())?;
    } else {
        // What a kill left whole needs no check any more.
        if !store.resume_resharding(args.shards)? {
            check(&store, &manifest, args)?;
            make_all(&opened, args, log)?;
        }
        publish(&mut opened, log)?;
    }
    print_result(args, &resharded)
}

fn publish(opened: &mut Opened, log: &Log) -> Result<()> {
    opened.guard.as_mut().map_or(Ok(()), |guard| guard.publish(true, &notify(log)))
}

/// Checks that a store can have so many shards.
fn check_number(shards: u32) -> Result<()> {
    if !shards.is_power_of_two() || shards > MAX_SHARDS {
        let text = format!("--shards {shards}: allowed are the powers of two from 1 to {MAX_SHARDS}");
        return Err(WrongUse(text).into());
    }
    Ok(())
}

/// Checks that a store gets more shards, not fewer.
fn check_more(manifest: &Manifest, args: &ReshardArgs) -> Result<()> {
    let (name, before, shards) = (args.store.display(), manifest.method.shards, args.shards);
    if shards < before {
        // Both are powers of two, so a larger number is a multiple.
        let text = format!(
            "--shards {shards}: {name} has {before} shards, and these can only become more: give {}, or a larger power of two",
            2 * before
        );
        return Err(WrongUse(text).into());
    }
    Ok(())
}

/// Checks that all of the store can be made again with these shards from what it has.
fn check(store: &Store, manifest: &Manifest, args: &ReshardArgs) -> Result<()> {
    let (name, shards) = (args.store.display(), args.shards);
    let again =
        format!("Run its weeks again, from their inputs, into another --store with shards = {shards} in [method]");
    ensure!(!manifest.weeks.is_empty(), "{name} has no week yet: its first one makes its shards (shards in [method])");
    if let Some(removed) = &manifest.removed {
        bail!(
            "weeks before {} were removed from {name}: which clusters had which ids in them is not known any more, and so the ids with \
             {shards} shards cannot be computed. {again}",
            removed.before
        );
    }
    refuse_pending(store)?;
    for week in &manifest.weeks {
        check_inputs(store, week, &again)?;
    }
    Ok(())
}

/// Checks that a week that is verified by shingles can be verified again: that its files are as
/// they were.
fn check_inputs(store: &Store, week: &CommittedWeek, again: &str) -> Result<()> {
    let whole = store.whole(week)?;
    if whole.method.verify != Verify::Exact || whole.method.similarity.is_none() {
        return Ok(());
    }
    let JobOfWeek { reading, .. } = job_of(&job_text(store, week)?, folders_of(&whole, week.week));
    let at_hand = inputs_by_week((store, &whole), whole.journal.input_names(week.week), &reading, true);
    for (of, names) in whole.journal.inputs(week.week) {
        for (name, stamp) in names {
            let what = match at_hand.get(&(of, name.clone())) {
                Some(found) if stamp_of(found).1 == *stamp => continue,
                Some(_) => "has changed since",
                None => "is not there",
            };
            bail!(
                "the clusters of week {} are verified by the texts of its pages, which no table has, and the input {name} {what}: put the file \
                 back as it was. {again}",
                week.week
            );
        }
    }
    Ok(())
}

/// The job that is kept with a week.
fn job_text(store: &Store, week: &CommittedWeek) -> Result<String> {
    let path = store.records(week).join("job.toml");
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The job of a week, with the line that its chunks were made later if they were. Older versions
/// did not note that, but the chunks are in files of another commit than the documents.
fn noted_job(store: &Store, whole: &WholeWeek) -> Result<String> {
    let mut text = job_text(store, &whole.committed)?;
    let commit = |table: &str| whole.files.get(table)?.first().and_then(|part| commit_of(&part.file));
    let of_chunks = commit(ChunkRow::NAME);
    if of_chunks.is_some() && of_chunks != commit(DocumentRow::NAME) && !text.lines().any(|line| line == CHUNKS_SINCE) {
        text += &format!("{CHUNKS_SINCE}\n");
    }
    Ok(text)
}

/// The job of a week as it is kept with the week with more shards.
fn with_shards(text: &str, from: u32, to: u32) -> String {
    let Ok(job) = Cluster::of_text(text) else { return text.to_owned() };
    let method = job.method.clone().map(|given| Method { shards: to, ..given.method }.into());
    // What was done to the week is noted at the end.
    let notes: String = text.lines().filter(|line| line.starts_with("# ")).map(|line| format!("{line}\n")).collect();
    format!("{}{notes}# Resharded since: from {from} to {to} shards.\n", Cluster { method, ..job }.to_text())
}

/// The weeks of a store that gets so many shards.
fn old_store(store: &Store, manifest: &Manifest, shards: u32) -> Result<OldStore> {
    let method = &manifest.method;
    OldStore::open(store, &manifest.weeks, (method.shards, shards / method.shards), method.documents)
}

/// The threads that look for the new shards of documents.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Makes all weeks again, each by the workers of the pool, and puts them in the place of those of
/// the store.
fn make_all(opened: &Opened, args: &ReshardArgs, log: &Log) -> Result<()> {
    let Opened { given, config, pool, store, manifest, guard } = opened;
    let guard = guard.as_ref().context("only a locked store is changed")?;
    let method = Method { shards: args.shards, ..manifest.method.clone() };
    let factor = args.shards / manifest.method.shards;
    let workers = WorkerCount::new(args.remake.workers, config, pool).of_shards(args.shards as usize)?;
    warn_above_cores(workers, pool, log);
    stop_on_signals(log, pool, guard.publish_handle(), {
        let (store, root, shards) = (Store::at(store.root()), given.display().to_string(), args.shards);
        move || {
            let is_done = store.manifest().ok().flatten().is_some_and(|manifest| manifest.method.shards == shards);
            (!is_done).then(|| format!("{root} is unchanged. The same command goes on"))
        }
    });
    let urls = old_store(store, manifest, args.shards)?.new_urls(threads())?;
    // Another generation of processes has another work folder.
    let store = RefCell::new(store.clone());
    for (number, (week, urls)) in manifest.weeks.iter().zip(urls).enumerate() {
        let made = store.borrow().begin_resharding(manifest, &method)?;
        if made.is_committed(week.week) {
            continue;
        }
        log.notice(&format!("{} of {}: week {}", number + 1, manifest.weeks.len(), week.week));
        let settings = ReshardedWeek { opened, week, factor, urls, workers };
        let plan = settings.begin(&store.borrow(), &made)?;
        let work = |epoch| {
            let mut current = store.borrow_mut();
            if epoch > 0 {
                *current = take_work(&current, pool, epoch)?;
                current.recover()?;
            }
            let made = current.begin_resharding(manifest, &method)?;
            if made.is_committed(week.week) {
                return Ok(None);
            }
            Ok(Some(ProcessWork::Run(Box::new(settings.begin(&current, &made)?))))
        };
        let session = Session { pool, log, bytes: 0, metrics: None, record: Arc::new(RunRecord::new(log)) };
        let _: Option<Summary> = session.compute(work, |watch| cluster(plan, Peers::None, watch))?;
    }
    store.into_inner().finish_resharding(&method)
}

/// What a week is made again with.
struct ReshardedWeek<'a> {
    opened: &'a Opened,
    week: &'a CommittedWeek,
    factor: u32,
    /// The ids that it gives in each new shard.
    urls: Vec<u64>,
    workers: usize,
}

impl ReshardedWeek<'_> {
    /// Plans the week, and begins it in the inner store.
    fn begin(&self, store: &Store, made: &Store) -> Result<Plan> {
        let ReshardedWeek { opened, week, factor, urls, workers } = self;
        let Opened { config, pool, manifest, .. } = opened;
        let whole = store.whole(week)?;
        let of_made = made.manifest()?.context("the inner store was begun")?;
        let text = noted_job(store, &whole)?;
        let job = job_of(&text, folders_of(&whole, week.week));
        let [inputs, earlier_inputs] = job.inputs_again((store, &whole), whole.method.verify);
        let JobOfWeek { reading, canonical, accuracy } = job;
        let method = Method { shards: whole.method.shards * factor, ..whole.method };
        let processes = pool.processes();
        let job = with_shards(&text, whole.method.shards, method.shards);
        let plan = Plan {
            week: week.week,
            store: made.root().to_owned(),
            work: made.work_name(),
            earlier: Earlier::before(&of_made, week.week),
            stands_on: of_made.identity(),
            commit: of_made.commits + 1,
            deletion: None,
            resharding: Some(Resharding {
                store: store.root().to_owned(),
                weeks: manifest.weeks.clone(),
                of: (*week).clone(),
                key: whole.journal.key,
                factor: *factor,
                urls: urls.clone(),
                is_remade: text.lines().any(|line| line.starts_with(DELETED_SINCE) || line == CHUNKS_SINCE),
            }),
            absent: Absent::Missing,
            folders: whole.folders,
            readings: whole.readings,
            earlier_inputs,
            canonical,
            accuracy,
            mode: Mode::Auto,
            method,
            reading,
            keep: Keep::default(),
            inputs,
            waves: Vec::new(),
            // The rejects were accepted when the crawl was read.
            max_reject_share: 1.0,
            max_unknown_share: 1.0,
            allow_empty: true,
            job,
            processes,
            workers: *workers,
            worker_memory: config.memory() / (processes * workers) as u64,
            split_files: config.split_files(),
            keep_read: false,
        };
        made.begin(plan.week, &plan.method, &plan.key())?;
        Ok(plan)
    }
}

fn print_result(args: &ReshardArgs, resharded: &Resharded) -> Result<ExitCode> {
    if args.remake.json {
        print_json(resharded)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Resharded { from, to, weeks, results } = resharded;
    let store = args.store.display();
    if from == to {
        print(&format!("{store} has {to} shards: nothing to do\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = format!("{} {}", weeks.len(), if weeks.len() == 1 { "week" } else { "weeks" });
    if args.dry_run {
        print(&format!("Would give {store} {to} shards instead of {from}, and make {count} again\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!(
        "{store} has {to} shards now, instead of {from}; {count} made again: documents and clusters have other ids\n"
    ))?;
    if !results.is_empty() {
        let names = results.join(", ");
        print(&format!("The tables of {names} have the ids from before: run the jobs again, or `nigh studies`\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_of_a_week_has_the_new_shards_and_what_was_done() {
        let job = Cluster { method: Some(Method { shards: 4, ..Method::default() }.into()), ..Cluster::default() };
        let text = format!("{}# Deleted since: x.\n", job.to_text());
        let new = with_shards(&text, 4, 16);
        assert_eq!(Cluster::of_text(&new).unwrap().method.unwrap().method.shards, 16);
        assert!(new.ends_with("# Deleted since: x.\n# Resharded since: from 4 to 16 shards.\n"), "{new}");
    }

    #[test]
    fn only_powers_of_two_are_numbers_of_shards() {
        for wrong in [0, 3, 12, 2 * MAX_SHARDS] {
            assert!(check_number(wrong).unwrap_err().is::<WrongUse>(), "{wrong}");
        }
        [1, 2, 64, MAX_SHARDS].iter().for_each(|right| check_number(*right).unwrap());
    }
}
