//! What is known of a run at its end: its id and version, how long it took, what it needed, and
//! what came of it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::cli::args::RunArgs;
use crate::cli::errors::WrongUse;
use crate::cli::print::json_text;
use crate::log::Log;
use crate::metrics::{RunEnd, RunLabels, previous_success, write_file};
use crate::records::Week;
use crate::sheet::{Printable, Sheet};
use crate::watch::{Progress, process_cpu};

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Done {
    /// Tables were made.
    #[serde(rename = "tables made")]
    Made,
    /// They were there already.
    #[serde(rename = "nothing to do")]
    Nothing,
    /// Nothing was to be made: the plan was asked for.
    #[serde(rename = "dry run")]
    DryRun,
}

/// What a run needed, over all of its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Resources {
    /// CPU seconds of all threads.
    pub(crate) cpu_seconds: f64,
    /// The sum of the most memory that each process had, mapped files included, in bytes.
    pub(crate) peak_memory_bytes: u64,
    /// Bytes of input that were read, as stored.
    pub(crate) bytes_read: u64,
}

/// The record of a run, which its parts add to.
pub(crate) struct RunRecord {
    begun: Instant,
    run: String,
    state: Mutex<RecordState>,
}

/// What a record has so far.
#[derive(Default)]
struct RecordState {
    labels: RunLabels,
    restarts: u64,
    /// The counters of processes that have ended; of the program itself only those that are not in
    /// `resources`.
    sum: Progress,
    /// CPU time of other processes, in milliseconds.
    cpu_ms_of_others: u64,
    /// The most memory of all processes that ran at a time.
    peak_memory: u64,
    /// When a run before it was a success, as far as that is known.
    last_success: Option<i64>,
    /// Whether this process served the run of another one.
    is_served: bool,
}

/// A result as JSON, with what is known of its run.
#[derive(Serialize)]
struct WithRun<'a, T> {
    #[serde(flatten)]
    result: &'a T,
    done: Done,
    run: &'a str,
    version: &'static str,
    seconds: f64,
    resources: Resources,
    restarts: u64,
}

impl RunRecord {
    /// The record of a run that begins now.
    pub(crate) fn new(log: &Log) -> RunRecord {
        RunRecord { begun: Instant::now(), run: log.run().to_owned(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the job, and the week if there is one.
    pub(crate) fn name(&self, job: &str, week: Option<Week>) {
        self.state().labels = RunLabels { job: job.to_owned(), week };
    }

    /// The job and its week.
    pub(crate) fn labels(&self) -> RunLabels {
        self.state().labels.clone()
    }

    /// Says that this process served the run of another one, which writes what there is to write.
    pub(crate) fn set_served(&self) {
        self.state().is_served = true;
    }

    /// Reads from the file of metrics when a run before this one was a success.
    pub(crate) fn read_last_success(&self, path: Option<&PathBuf>) {
        self.state().last_success = path.and_then(|path| previous_success(path));
    }

    /// When a run before this one was a success, as far as that is known.
    pub(crate) fn last_success(&self) -> Option<i64> {
        self.state().last_success
    }

    /// Adds what this process did in a run that has no other one.
    pub(crate) fn add_here(&self, progress: Progress) {
        let mut state = self.state();
        state.sum = state.sum.sum(progress);
    }

    /// Adds what processes did that ran at the same time, and have ended.
    pub(crate) fn add_processes(&self, progresses: &[Progress]) {
        let sum = progresses.iter().copied().reduce(Progress::sum).unwrap_or_default();
        let mut state = self.state();
        state.sum = state.sum.sum(sum);
        state.cpu_ms_of_others += sum.cpu_ms;
        state.peak_memory = state.peak_memory.max(sum.peak_memory);
    }

    /// Counts a restart of the processes.
    pub(crate) fn add_restart(&self) {
        self.state().restarts += 1;
    }

    /// The restarts of the processes so far.
    pub(crate) fn restarts(&self) -> u64 {
        self.state().restarts
    }

    /// What the run needed so far.
    pub(crate) fn resources(&self) -> Resources {
        let state = self.state();
        let here = crate::watch::Watch::default().progress();
        Resources {
            cpu_seconds: thousandths(process_cpu() + state.cpu_ms_of_others as f64 / 1e3),
            peak_memory_bytes: here.peak_memory + state.peak_memory,
            bytes_read: state.sum.bytes,
        }
    }

    /// A result as one line of JSON, with what is known of the run.
    ///
    /// # Errors
    /// If the result has no JSON form.
    pub(crate) fn json_text(&self, result: &impl Serialize, done: Done) -> Result<String> {
        let text = json_text(&WithRun {
            result,
            done,
            run: &self.run,
            version: env!("CARGO_PKG_VERSION"),
            seconds: thousandths(self.begun.elapsed().as_secs_f64()),
            resources: self.resources(),
            restarts: self.restarts(),
        })?;
        Ok(format!("{text}\n"))
    }

    /// A result as it is printed: its report, or with `json` its data.
    ///
    /// # Errors
    /// As [`RunRecord::json_text`].
    pub(crate) fn result_text<T: Serialize>(
        &self,
        result: &T,
        done: Done,
        json: bool,
        report: impl FnOnce(&T) -> Sheet,
    ) -> Result<Printable> {
        if json { Ok((&self.json_text(result, done)?).into()) } else { Ok(report(result).fitted()) }
    }

    /// Writes the metrics of the run to the file of `--metrics-file`, unless this process served
    /// the run of another one.
    pub(crate) fn write_metrics(&self, args: &RunArgs, is_success: bool, log: &Log) {
        let Some(path) = args.metrics_file.as_deref().filter(|_| !args.dry_run) else { return };
        let (labels, sum, is_served) = {
            let state = self.state();
            (state.labels.clone(), state.sum, state.is_served)
        };
        if is_served {
            return;
        }
        let now = jiff::Timestamp::now().as_second();
        let Resources { cpu_seconds, peak_memory_bytes, .. } = self.resources();
        let end = RunEnd {
            labels,
            sum,
            restarts: self.restarts(),
            seconds: thousandths(self.begun.elapsed().as_secs_f64()),
            cpu_seconds,
            peak_memory_bytes,
            is_success,
            ended: now,
            last_success: if is_success { Some(now) } else { previous_success(path) },
        };
        // The tables are made: that a file of metrics cannot be written does not undo it.
        if let Err(error) = write_file(path, &end) {
            log.warn(&format!("the run has ended, but not its metrics: {error:#}"));
        }
    }
}

/// Refuses a file of metrics whose folder is not there, before the run.
///
/// # Errors
/// As it says.
pub(crate) fn check_metrics_file(path: Option<&PathBuf>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || !folder.is_dir() {
        let what = if path.is_dir() { "it is a folder" } else { "its folder is not there" };
        return Err(WrongUse(format!("--metrics-file {}: {what}", path.display())).into());
    }
    Ok(())
}

fn thousandths(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Display;

    #[test]
    fn what_processes_did_is_summed_over_restarts() {
        let record = RunRecord::new(&Log::of_run("r-1".to_owned(), Display::Quiet, true));
        let of = |bytes, cpu_ms, peak_memory| Progress { bytes, cpu_ms, peak_memory, ..Progress::default() };
        // What this process uses meanwhile, with all tests that run in it.
        let idle = RunRecord::new(&Log::of_run("r-2".to_owned(), Display::Quiet, true));
        let idle_before = idle.resources();
        let before = record.resources();
        record.add_processes(&[of(5, 1_000, 100 << 30), of(7, 2_000, 1 << 30)]);
        record.add_restart();
        record.add_processes(&[of(1, 4_000, 50 << 30), of(1, 0, 50 << 30)]);
        let after = record.resources();
        assert_eq!(after.bytes_read, 14);
        let meanwhile = idle.resources().cpu_seconds - idle_before.cpu_seconds;
        let used = after.cpu_seconds - before.cpu_seconds;
        // All are rounded to thousandths.
        assert!((6.998..=7.002 + meanwhile).contains(&used), "{used} {meanwhile} {after:?}");
        // Of processes one after the other the more memory counts, and this process is one of them.
        assert!((101 << 30..102 << 30).contains(&after.peak_memory_bytes), "{after:?}");
        let text = record.json_text(&serde_json::json!({ "week": "2024-01-08" }), Done::Nothing).unwrap();
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&object["week"], &object["run"]), (&"2024-01-08".into(), &"r-1".into()));
        assert_eq!((&object["done"], &object["restarts"]), (&"nothing to do".into(), &1.into()));
        assert_eq!(object["version"], env!("CARGO_PKG_VERSION"));
        assert!(object["seconds"].is_f64() && object["resources"]["cpu_seconds"].is_f64(), "{text}");
    }
}
