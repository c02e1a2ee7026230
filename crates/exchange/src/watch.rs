//! The counters of a process, which any thread may read while workers add to them; its stage; and
//! its first failure.
//!
//! Workers only add to atomic integers. Other modules read and show them (`progress`, `metrics`,
//! `launch`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The stages of a run, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Read crawl files, and compute documents and features.
    #[default]
    Read,
    /// Copy a week's tables without the deleted documents.
    LeaveOut,
    /// Cut a week's tables into those of more shards.
    Reshard,
    /// Copy the pages of the week before that stay although they were not crawled.
    KeepPages,
    /// Find the feature vectors that differ from the week before.
    Changes,
    /// Update the postings, the inverted index from supershingles to documents.
    Postings,
    /// Find the candidates: unchanged documents that may share a key with a changed one.
    Holders,
    /// Find the clusters that may have split.
    Certificates,
    /// Compute the labels that change.
    Relabel,
    /// Make one node of all documents with identical vectors.
    Collapse,
    /// Remove vectors that share no key with any other.
    Prune,
    /// Compute edges from shared megashingles.
    Pairs,
    /// Compute the connected components of the edges.
    Components,
    /// Check that the pages of clusters are similar enough.
    Verify,
    /// Measure the accuracy of the clusters by samples.
    Accuracy,
    /// Compare the weeks of a store.
    Weeks,
    /// Find all pairs of sets that have enough in common.
    Join,
    /// Follow links from page to page.
    Links,
    /// Write the tables.
    Tables,
    /// Copy the files of the tables into those of the commit.
    Packing,
}

impl Stage {
    /// All stages, in the order of their numbers.
    const ALL: [Stage; 20] = [
        Stage::Read,
        Stage::LeaveOut,
        Stage::Reshard,
        Stage::KeepPages,
        Stage::Changes,
        Stage::Postings,
        Stage::Holders,
        Stage::Certificates,
        Stage::Relabel,
        Stage::Collapse,
        Stage::Prune,
        Stage::Pairs,
        Stage::Components,
        Stage::Verify,
        Stage::Accuracy,
        Stage::Weeks,
        Stage::Join,
        Stage::Links,
        Stage::Tables,
        Stage::Packing,
    ];

    /// The name of the stage for the user.
    pub fn title(self) -> &'static str {
        match self {
            Stage::Read => "reading",
            Stage::LeaveOut => "leaving out",
            Stage::Reshard => "resharding",
            Stage::KeepPages => "keeping pages",
            Stage::Collapse => "collapsing",
            Stage::Prune => "pruning",
            Stage::Pairs => "pairing",
            Stage::Components => "joining",
            Stage::Verify => "verifying",
            Stage::Accuracy => "measuring accuracy",
            Stage::Changes => "finding changes",
            Stage::Postings => "posting",
            Stage::Holders => "finding holders",
            Stage::Certificates => "certifying",
            Stage::Relabel => "relabelling",
            Stage::Weeks => "comparing weeks",
            Stage::Join => "finding pairs",
            Stage::Links => "following links",
            Stage::Tables => "writing tables",
            Stage::Packing => "packing tables",
        }
    }
}

/// The counters, stage times and first failure of one process.
#[derive(Debug, Default)]
pub struct Watch {
    stage: AtomicU64,
    bytes: AtomicU64,
    records: AtomicU64,
    documents: AtomicU64,
    rejects: AtomicU64,
    exchanged: AtomicU64,
    exchanged_records: AtomicU64,
    steps: AtomicU64,
    of_steps: AtomicU64,
    starts: Mutex<Vec<StageStart>>,
    failed: AtomicBool,
    failure: Mutex<Option<anyhow::Error>>,
    asked_for_end: Mutex<Option<Duration>>,
    has_ended_early: AtomicBool,
}

/// When a stage was entered.
#[derive(Clone, Copy, Debug)]
struct StageStart {
    stage: Stage,
    at: Instant,
    /// CPU seconds of the process at that time.
    cpu: f64,
}

/// The time that a stage took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The stage.
    pub stage: Stage,
    /// Seconds of wall-clock time.
    pub wall_s: f64,
    /// CPU seconds of all threads of the process.
    pub cpu_s: f64,
}

/// The values of the counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The stage of the run.
    pub stage: Stage,
    /// Bytes of input read, as stored.
    pub bytes: u64,
    /// Records read.
    pub records: u64,
    /// Pages fingerprinted.
    pub documents: u64,
    /// Bad records.
    pub rejects: u64,
    /// Bytes of records that workers sent, including those that a worker sent to itself.
    pub exchanged: u64,
    /// The number of these records.
    pub exchanged_records: u64,
    /// Steps of the stage that are done.
    pub steps: u64,
    /// All steps of the stage, as far as they are known; 0 in a stage that counts none.
    pub of_steps: u64,
    /// CPU time of the process, in milliseconds.
    pub cpu_ms: u64,
    /// Anonymous memory of the process, in bytes; 0 if the system does not report it.
    pub memory: u64,
    /// The most memory that the process has had, with mapped files, in bytes; 0 if the system does
    /// not report it.
    pub peak_memory: u64,
}

impl Progress {
    /// The values that change only if the run makes progress: all except CPU time and memory.
    pub fn counters(self) -> Progress {
        Progress { cpu_ms: 0, memory: 0, peak_memory: 0, ..self }
    }

    /// The sum over two processes, with the earlier of their stages.
    ///
    /// ```
    /// use nigh_exchange::watch::{Progress, Stage};
    /// let first = Progress { stage: Stage::Pairs, records: 40, ..Progress::default() };
    /// let second = Progress { stage: Stage::Tables, records: 2, ..Progress::default() };
    /// let sum = first.sum(second);
    /// assert_eq!((sum.stage, sum.records), (Stage::Pairs, 42));
    /// ```
    pub fn sum(self, other: Progress) -> Progress {
        let stage = self.stage.min(other.stage);
        // A process that is further has done its steps of the stage, and does not say how many
        // these were.
        let [of_self, of_other] =
            [self, other].map(|of| if of.stage == stage { [of.steps, of.of_steps] } else { [0, 0] });
        Progress {
            stage,
            bytes: self.bytes + other.bytes,
            records: self.records + other.records,
            documents: self.documents + other.documents,
            rejects: self.rejects + other.rejects,
            exchanged: self.exchanged + other.exchanged,
            exchanged_records: self.exchanged_records + other.exchanged_records,
            steps: of_self[0] + of_other[0],
            of_steps: of_self[1] + of_other[1],
            cpu_ms: self.cpu_ms + other.cpu_ms,
            memory: self.memory + other.memory,
            peak_memory: self.peak_memory + other.peak_memory,
        }
    }
}

impl Watch {
    /// Enters a stage.
    pub fn enter(&self, stage: Stage) {
        self.stage.store(stage as u64, Ordering::Relaxed);
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        // The stage begins when its first worker enters it.
        if starts.last().is_none_or(|last| last.stage != stage) {
            starts.push(StageStart { stage, at: Instant::now(), cpu: process_cpu() });
            [&self.steps, &self.of_steps].into_iter().for_each(|steps| steps.store(0, Ordering::Relaxed));
        }
    }

    /// Says that a worker has `steps` steps to do in this stage.
    pub fn expect_steps(&self, steps: usize) {
        self.of_steps.fetch_add(steps as u64, Ordering::Relaxed);
    }

    /// Counts steps that are done.
    pub fn add_steps(&self, steps: usize) {
        self.steps.fetch_add(steps as u64, Ordering::Relaxed);
    }

    /// The time that each stage took so far, in the order in which they were entered.
    pub fn spans(&self) -> Vec<Span> {
        let starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = StageStart { stage: Stage::default(), at: Instant::now(), cpu: process_cpu() };
        let ends = starts.iter().skip(1).chain([&now]);
        let span = |(begin, end): (&StageStart, &StageStart)| Span {
            stage: begin.stage,
            wall_s: (end.at - begin.at).as_secs_f64(),
            cpu_s: end.cpu - begin.cpu,
        };
        starts.iter().zip(ends).map(span).collect()
    }

    /// Counts bytes of input.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a record, and whether it is a document or a reject.
    pub fn add_record(&self, document: bool, reject: bool) {
        self.records.fetch_add(1, Ordering::Relaxed);
        self.documents.fetch_add(u64::from(document), Ordering::Relaxed);
        self.rejects.fetch_add(u64::from(reject), Ordering::Relaxed);
    }

    /// Counts records sent between workers, and their bytes.
    pub fn add_exchanged(&self, records: u64, bytes: u64) {
        self.exchanged_records.fetch_add(records, Ordering::Relaxed);
        self.exchanged.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The current values of the counters.
    pub fn progress(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stage = Stage::ALL.get(load(&self.stage) as usize).copied().unwrap_or_default();
        let [memory, peak_memory] = sizes_of_process(["RssAnon:", "VmHWM:"]).map(Option::unwrap_or_default);
        Progress {
            stage,
            bytes: load(&self.bytes),
            records: load(&self.records),
            documents: load(&self.documents),
            rejects: load(&self.rejects),
            exchanged: load(&self.exchanged),
            exchanged_records: load(&self.exchanged_records),
            steps: load(&self.steps),
            of_steps: load(&self.of_steps),
            cpu_ms: (process_cpu() * 1e3) as u64,
            memory,
            peak_memory,
        }
    }

    /// Records a failure; of several the first one counts. Every worker of the process then stops
    /// at its next step.
    pub fn fail(&self, error: anyhow::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// Whether a failure was recorded.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Asks for the end of the work after a wave, if reading the rest would take at least `worth`.
    /// Of several requests the one for the least counts.
    pub fn ask_for_end(&self, worth: Duration) {
        let mut asked = self.asked_for_end.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = Some(asked.map_or(worth, |before| before.min(worth)));
    }

    /// For how long a rest the work is to end after a wave; `None` if it is not.
    pub fn asked_for_end(&self) -> Option<Duration> {
        *self.asked_for_end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the work has ended after a wave, with more to do.
    pub fn end_early(&self) {
        self.has_ended_early.store(true, Ordering::Release);
    }

    /// Whether the work has ended after a wave, with more to do.
    pub fn has_ended_early(&self) -> bool {
        self.has_ended_early.load(Ordering::Acquire)
    }

    /// Takes the first failure; later calls return `None`.
    pub fn take_failure(&self) -> Option<anyhow::Error> {
        self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }

    /// The value of a result; records the failure and returns `None` if it is an error.
    pub fn check<T>(&self, result: anyhow::Result<T>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }
}

/// Bytes of this process's anonymous memory: heap and stacks, without mapped files and the page
/// cache. `None` if the system does not report it.
pub fn anonymous_memory() -> Option<u64> {
    let [memory] = sizes_of_process(["RssAnon:"]);
    memory
}

/// Sizes that the system reports of this process, in bytes, by their names; `None` for what it does
/// not report.
fn sizes_of_process<const N: usize>(names: [&str; N]) -> [Option<u64>; N] {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return [None; N] };
    names.map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()? * 1024)
    })
}

/// CPU seconds of all threads of this process so far, including time in the kernel.
pub fn process_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_the_stage_that_was_entered() {
        let watch = Watch::default();
        for stage in Stage::ALL {
            watch.enter(stage);
            assert_eq!(watch.progress().stage, stage);
        }
    }

    #[test]
    fn spans_follow_the_stages_that_were_entered() {
        let watch = Watch::default();
        assert!(watch.spans().is_empty());
        [Stage::Read, Stage::Read, Stage::Collapse, Stage::Pairs].into_iter().for_each(|stage| watch.enter(stage));
        let spans = watch.spans();
        assert_eq!(
            spans.iter().map(|span| span.stage).collect::<Vec<_>>(),
            [Stage::Read, Stage::Collapse, Stage::Pairs]
        );
        assert!(spans.iter().all(|span| span.wall_s >= 0.0 && span.cpu_s >= 0.0));
    }

    #[test]
    fn the_most_memory_is_no_less_than_what_is_in_use() {
        let progress = Watch::default().progress();
        assert!(progress.memory > 0 && progress.peak_memory >= progress.memory, "{progress:?}");
        assert_eq!(progress.counters(), Progress::default());
    }

    #[test]
    fn cpu_time_of_other_threads_counts() {
        let before = process_cpu();
        let worked =
            std::thread::spawn(|| (0..1_000_000u64).fold(0, |sum, word| sum ^ nigh_kernels::records::mix(word)));
        std::hint::black_box(worked.join().unwrap());
        assert!(process_cpu() > before);
    }
}
