//! The week that a user asks for: a job with config and flags, and the plan that it has with the
//! store as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};

use super::changed_inputs::changed_files;
use super::job_changes::{changed_fields, listed};
use crate::cli::args::RunArgs;
use crate::cli::errors::WrongUse;
use crate::cli::session::run_record::RunRecord;
use crate::cli::session::worker::ProcessWork;
use crate::cli::session::workers::WorkerCount;
use crate::cli::session::{check_name, notify};
use crate::config::{
    Absent, Bytes, Canonical, Cluster, Config, Content, Method, Mode, Reading, Share, Verify, WeekName,
};
use crate::launch::Pool;
use crate::log::Log;
use crate::objects::refuse_secrets;
use crate::plan::{Plan, cut_waves, folder_of, inputs_at_hand, job_of_week, other_readings, stamp_of};
use crate::readers::{Dialect, FoundInputs, Input, Pipes, Spool, list_with_pipes};
use crate::records::{DocumentKey, Week};
use crate::state::{Earlier, Manifest, Store, WeekJournal};
use crate::structures::CompactSort as _;

/// A job with config and flags applied, before the store is read.
pub(super) struct WeekRequest {
    pub(super) job: Cluster,
    /// The date of the week: the one that the user gives, or that [`WeekRequest::name_week`] finds.
    pub(super) week: Week,
    /// What the user calls the week.
    pub(super) name: Option<WeekName>,
    /// The date on which the run began.
    pub(super) today: Week,
    /// The store as the user names it.
    pub(super) store: PathBuf,
    pub(super) inputs: Vec<Input>,
    /// What the documents of the inputs can be known by; `None` if that cannot be seen.
    pub(super) documents: Option<DocumentKey>,
    /// The copies of pipes among the inputs.
    pub(super) spool: Spool,
    pub(super) pool: Pool,
    pub(super) workers: WorkerCount,
    /// Memory for the buffers of all processes, in bytes.
    pub(super) memory: u64,
    /// Whether several workers read one large file.
    pub(super) split_files: bool,
    /// Whether what is read of a wave is kept until the wave is committed.
    pub(super) keep_read: bool,
    pub(super) replace: bool,
    /// Whether copies within the batch stay.
    pub(super) only_older: bool,
}

/// The state of a week in its store.
pub(super) enum WeekState {
    /// Committed, from the same input.
    Made(Box<Plan>),
    /// Not there, unfinished, or to be replaced.
    ToMake(Box<Plan>),
}

/// The fields of the job that a plan needs.
struct WeekSettings {
    method: Method,
    canonical: Canonical,
    mode: Mode,
    max_reject_share: Share,
    max_unknown_share: Share,
    allow_empty: bool,
    wave_bytes: Bytes,
    /// The job file with all flags applied, as it is kept with the week.
    job: String,
}

impl WeekRequest {
    /// Applies config and flags, and lists the inputs.
    pub(super) fn new(mut job: Cluster, config: &Config, pool: Pool, args: &RunArgs, log: &Log) -> Result<WeekRequest> {
        let Cluster { week, store, input, allow_empty, absent, accuracy, canonical, read: reading, method, .. } =
            &mut job;
        let columns = &mut reading.columns;
        *absent = args.absent.unwrap_or(*absent);
        *accuracy &= !args.no_accuracy;
        *allow_empty |= args.allow_empty;
        if !args.input.is_empty() {
            *input = args.input.clone();
        }
        *week = args.week.or(*week);
        if (args.only_older || canonical.only_older.is_some()) && *absent != Absent::Keep {
            bail!(WrongUse(format!(
                "{}: only documents of older batches count (only-older), and a week without absent = \"keep\" has none: `nigh add`, or --absent keep",
                args.job_name()
            )));
        }
        if args.only_older && !canonical.keeps_one() {
            bail!(WrongUse(format!(
                "{}: --only-older says how many documents of a cluster stay, and so do `most`, `each` and `per-host` in `canonical`: leave out one of the two",
                args.job_name()
            )));
        }
        // What documents are chosen by is read with them.
        columns.values.extend(canonical.columns());
        columns.values.sort_items();
        columns.values.dedup();
        *store = args.store.clone().or(store.take());
        let missing = |field: &str, flag: &str| {
            WrongUse(format!("{}: no {field}: give {flag}, or set it in the job", args.job_name()))
        };
        let (name, today) = (*week, Week::today());
        let week = name.map_or(today, |name| name.date(today));
        let store = store.clone().ok_or_else(|| missing("store", "--store DIR"))?;
        check_name(&store)?;
        if input.is_empty() {
            bail!(missing("input", "--input PATH_OR_GLOB_OR_URL"));
        }
        // The job is kept with the week, and the names of inputs are in its tables.
        let reading = &*reading;
        input.iter().chain(&reading.base_url).try_for_each(|url| refuse_secrets(url)).map_err(WrongUse::from_error)?;
        let workers = WorkerCount::new(args.workers, config, &pool);
        if let Some(given) = method.as_ref().filter(|given| given.names_shards) {
            workers.of_shards(given.method.shards as usize)?;
        }
        let mut spool = Spool::new(notify(log));
        let pipes = if args.dry_run {
            Pipes::Refuse("a dry run would use it up. Run without --dry-run, or write it to a file")
        } else if !pool.is_on_this_machine() {
            Pipes::Refuse("other machines cannot read it. Write it to a file that all machines of the pool see")
        } else {
            Pipes::Copy(&mut spool)
        };
        let FoundInputs { inputs, left_out } = list_with_pipes(input, reading, pipes)?;
        if !left_out.is_empty() {
            log.notice(&format!("left out of folders, globs and WACZ files: {left_out}"));
        }
        ensure!(u32::try_from(inputs.len()).is_ok(), "{} inputs are too many for one week", inputs.len());
        let (memory, split_files, replace) = (config.memory(), config.split_files(), args.replace);
        let documents = None;
        Ok(WeekRequest {
            job,
            week,
            name,
            today,
            store,
            inputs,
            documents,
            spool,
            pool,
            workers,
            memory,
            split_files,
            keep_read: config.keep_read(),
            replace,
            only_older: args.only_older,
        })
    }

    pub(super) fn reading(&self) -> &Reading {
        &self.job.read
    }

    /// Says in the log and in the record which week the run makes.
    pub(super) fn name_run(&self, log: &Log, record: &RunRecord) {
        log.name(format!("cluster {}", self.week));
        record.name("cluster", Some(self.week));
    }

    /// Finds the date of the week, if the user does not give it: that of the last week, or of one
    /// that was begun, if it is from the same input. So the same command takes the same week on
    /// another day. Else the date is that of `today` or `monday` when the run began; of a week
    /// without a name, today's, or the day after the last week if that is later.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) fn name_week(&mut self, store: &Store) -> Result<()> {
        if let Some(WeekName::Date(_)) = self.name {
            return Ok(());
        }
        let stamps: BTreeMap<String, String> = self.inputs.iter().map(stamp_of).collect();
        let last = store.manifest()?.and_then(|manifest| manifest.weeks.last().cloned());
        if let Some(last) = &last {
            let whole = store.whole(last)?;
            if whole.journal.key.stamps == stamps && self.are_files_of(&whole)? {
                self.week = last.week;
                return Ok(());
            }
        }
        for week in store.begun_weeks()? {
            let journal = WeekJournal::read(&store.unfinished(week).journal())?;
            if journal.is_some_and(|journal| journal.key.stamps == stamps) {
                self.week = week;
                return Ok(());
            }
        }
        self.week = match (self.name, last) {
            (Some(name), _) => name.date(self.today),
            (None, Some(last)) => self.today.max(last.week.next_day()),
            (None, None) => self.today,
        };
        Ok(())
    }

    /// The work left after the processes failed; `None` if they committed the week before they
    /// failed.
    pub(super) fn remaining_work(&self, store: &Store) -> Result<Option<ProcessWork>> {
        store.recover()?;
        if store.is_committed(self.week) {
            return Ok(None);
        }
        let (WeekState::Made(plan) | WeekState::ToMake(plan)) = self.week_state(store)?;
        store.begin(plan.week, &plan.method, &plan.key())?;
        Ok(Some(ProcessWork::Run(plan)))
    }

    /// Plans the week from what the store has now, and finds out whether it is there already.
    ///
    /// # Errors
    /// If the job does not fit the store; the message says what to do.
    pub(super) fn week_state(&self, store: &Store) -> Result<WeekState> {
        let (week, root) = (self.week, self.store.display());
        let manifest = store.manifest()?;
        let committed = manifest.as_ref().map_or(&[][..], |manifest| &manifest.weeks);
        let existing = committed.iter().find(|committed| committed.week == week);
        let last = committed.last().map(|committed| committed.week);
        let earlier = manifest.as_ref().map(|manifest| Earlier::before(manifest, week)).unwrap_or_default();
        ensure!(
            existing.is_none() || earlier.last().is_some() || earlier.removed.is_none(),
            "week {week} is in {root} already and cannot be computed again: the weeks before it, of which it may have pages, were removed \
             by `nigh vacuum`. Give a later date with `--week`"
        );
        let settings = self.settings(store, manifest.as_ref(), &earlier)?;
        if let Some(manifest) = &manifest {
            manifest.check(&self.store, &settings.method)?;
        }
        if self.job.keep.shingles && settings.method.verify != Verify::Exact {
            bail!(WrongUse(
                "`keep.shingles = true` is for `verify = \"exact\"` in the method: nothing else reads them".into()
            ));
        }
        // To know whether an existing week has the same input, plan it as it was planned.
        let of_existing = existing.filter(|_| !self.replace).map(|existing| existing.stands_on.clone());
        let last_identity = || manifest.as_ref().map_or_else(String::new, Manifest::identity);
        let plan = Box::new(Plan {
            stands_on: of_existing.unwrap_or_else(last_identity),
            commit: manifest.as_ref().map_or(0, |manifest| manifest.commits) + 1,
            ..self.plan(store, settings, earlier)?
        });
        match existing {
            Some(_) if self.replace => {
                ensure!(
                    last == Some(week),
                    "only the last week of {root}, {}, can be replaced: later weeks depend on week {week}",
                    last.map_or(String::new(), |last| last.to_string())
                );
                Ok(WeekState::ToMake(plan))
            }
            Some(existing) => {
                // A mirror may lack the week's folder; then the message cannot name the files.
                let before = store.whole(existing).ok();
                let are_files = before.as_ref().map_or(Ok(true), |before| self.are_files_of(before))?;
                let is_same = existing.key == plan.key().hash && are_files;
                let before = before.filter(|_| !is_same);
                if let Some(changed) = before.and_then(|before| changed_files(&plan, &before.journal.key)) {
                    bail!("week {week} is in {root} already, and {changed}: --replace computes the week again");
                }
                // A mirror may lack the job, too.
                let by_job = if is_same { None } else { changed_fields(store, existing, &plan).ok() };
                if let Some((of_tables, _)) = by_job.filter(|(of_tables, _)| !of_tables.is_empty()) {
                    bail!(
                        "week {week} is in {root} already, by another job, or with pages deleted, clusters verified or shards added since. The job has now {}: \
                         --replace computes the week again, as if nothing had been deleted",
                        listed(&of_tables)
                    );
                }
                ensure!(
                    is_same,
                    "week {week} is in {root} already, made from other input, or with pages deleted, clusters verified or shards added since: give another --week or --store, \
                     or compute it again with --replace"
                );
                Ok(WeekState::Made(plan))
            }
            None => {
                if let Some(last) = last.filter(|last| *last > week) {
                    bail!(
                        "the store {root} has week {last} already, and weeks must be added in order: {week} is older"
                    );
                }
                Ok(WeekState::ToMake(plan))
            }
        }
    }

    /// Which documents stay. With `--only-older` and no date in the job, copies within a batch stay
    /// from the batch on that was the first one added so.
    ///
    /// # Errors
    /// If the job of the week before cannot be read.
    fn canonical(&self, store: &Store, earlier: &Earlier) -> Result<Canonical> {
        let mut canonical = self.job.canonical.clone();
        if self.only_older && canonical.only_older.is_none() {
            let before = earlier.last().map(|before| job_of_week(store, before)).transpose()?;
            canonical.only_older = before.and_then(|job| job.canonical.only_older).or(Some(self.week));
        }
        Ok(canonical)
    }

    /// The fields of the job that the plan needs. A later week has the method of its store if the
    /// job does not name one.
    ///
    /// # Errors
    /// If the documents of the store are known by something else than those of the input, or the
    /// job of the week before cannot be read.
    fn settings(&self, store: &Store, manifest: Option<&Manifest>, earlier: &Earlier) -> Result<WeekSettings> {
        let root = self.store.display();
        let mut job = Cluster { canonical: self.canonical(store, earlier)?, ..self.job.clone() };
        let of_store = manifest.filter(|manifest| manifest.has_had_weeks()).map(|manifest| &manifest.method);
        let known_by = of_store.map(|method| method.documents);
        let documents = self.documents.or(known_by).unwrap_or_default();
        if let Some(known_by) = known_by {
            ensure!(
                known_by == documents,
                "the store {root} knows documents by their {known_by}, and the documents of this input would be known by their {documents}: set \
                 `id` or `url` in [cluster.read.columns] (--id, --url), or same-id in [cluster.read] (--same-id), as they were for the weeks before"
            );
        }
        let content = self.content(of_store)?;
        let of_job = job.method.take().map(|given| given.in_store(of_store));
        let mut method = of_job.or_else(|| of_store.cloned()).unwrap_or_default();
        method.documents = documents;
        method.rule.check()?;
        // A job says it where it says how pages are read.
        let of_week = Method { content, ..method.clone() };
        method.content = Content::Page;
        job.method = Some(method.into());
        job.read.content = (content != Content::Page).then_some(content);
        job.week = Some(WeekName::Date(self.week));
        let mode = if earlier.last().is_some() { job.mode } else { Mode::Full };
        let text = job.to_text();
        let Cluster { canonical, max_reject_share, max_unknown_share, allow_empty, wave_bytes, .. } = job;
        Ok(WeekSettings {
            method: of_week,
            canonical,
            mode,
            max_reject_share,
            max_unknown_share,
            allow_empty,
            wave_bytes,
            job: text,
        })
    }

    /// What of a page is its text: what the job says, or that of the store.
    ///
    /// # Errors
    /// If the pages of the store were read in another way, or this program cannot read them so.
    fn content(&self, of_store: Option<&Method>) -> Result<Content> {
        let of_job = self.reading().content;
        let known = of_store.map(|method| method.content);
        let content = of_job.or(known).unwrap_or_default();
        if let Some(known) = known.filter(|known| *known != content) {
            bail!(
                "the store {} has content = \"{}\", and the job has content = \"{}\" in [cluster.read]: leave it out, or use another --store",
                self.store.display(),
                known.name(),
                content.name()
            );
        }
        content.check()?;
        Ok(content)
    }

    /// # Errors
    /// If there are too many workers for the shards.
    fn plan(&self, store: &Store, settings: WeekSettings, earlier: Earlier) -> Result<Plan> {
        let WeekSettings { method, canonical, mode, max_reject_share, max_unknown_share, allow_empty, wave_bytes, job } =
            settings;
        let workers = self.workers.of_shards(method.shards as usize)?;
        let earlier_inputs = self.earlier_inputs(store, &earlier, method.verify)?;
        self.check_values(store, &earlier)?;
        let before = earlier.last().map(|before| store.whole(before)).transpose()?;
        let mut readings = BTreeMap::new();
        if let Some(before) = before.as_ref().filter(|_| self.job.absent == Absent::Keep) {
            self.check_earlier_names(method.documents, before)?;
            readings = other_readings(store, before, self.reading())?;
        }
        let mut folders = before.map(|before| before.folders).unwrap_or_default();
        folders.extend(folder_of(&self.inputs)?.map(|folder| (self.week, folder)));
        Ok(Plan {
            week: self.week,
            store: store.root().to_owned(),
            work: store.work_name(),
            earlier,
            stands_on: String::new(),
            commit: 0,
            deletion: None,
            resharding: None,
            absent: self.job.absent,
            folders,
            readings,
            earlier_inputs,
            canonical,
            accuracy: self.job.accuracy,
            mode,
            method,
            // The method says what of a page is its text, whether or not the job does.
            reading: Reading { content: None, ..self.reading().clone() },
            keep: self.job.keep,
            waves: cut_waves(&self.inputs, wave_bytes.0),
            inputs: self.inputs.clone(),
            max_reject_share: max_reject_share.0,
            max_unknown_share: max_unknown_share.0,
            allow_empty,
            job,
            processes: self.pool.processes(),
            workers,
            worker_memory: self.memory / (self.pool.processes() * workers) as u64,
            split_files: self.split_files,
            keep_read: self.keep_read,
        })
    }

    /// The inputs of earlier weeks that can have pages of this one, for reading these again: those
    /// that stay, and those that revisits name.
    fn earlier_inputs(&self, store: &Store, earlier: &Earlier, verify: Verify) -> Result<Vec<Input>> {
        let has_revisits = self.inputs.iter().any(|input| input.format.dialect() == Some(Dialect::Warc));
        let weeks = match &earlier.weeks[..] {
            weeks if has_revisits => weeks,
            [.., last] if self.job.absent == Absent::Keep => std::slice::from_ref(last),
            _ => &[],
        };
        let Some(last) = weeks.last() else { return Ok(Vec::new()) };
        let mut names = BTreeSet::new();
        for week in weeks {
            let journal = store.whole(week)?.journal;
            names.extend(journal.input_names(week.week).map(|(week, name)| (week, name.to_owned())));
        }
        let names = names.iter().map(|(week, name)| (*week, name.as_str()));
        Ok(inputs_at_hand((store, &store.whole(last)?), names, self.reading(), verify, self.job.accuracy))
    }
}
