//! What a process tells while it works: counters that anybody may read, and the first failure.
//!
//! Workers only add to atomics; who shows them is decided above (`report`, `launch`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// The parts of a run, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Crawl files to documents and features.
    #[default]
    Read,
    /// A week's tables without what is deleted from it.
    LeaveOut,
    /// Vectors that differ from last week's.
    Changes,
    /// Who holds which supershingle, to the postings.
    Postings,
    /// Who has keys of documents that changed.
    Holders,
    /// Whose clusters may have come apart.
    Certificates,
    /// Label differences.
    Relabel,
    /// Identical vectors to one node.
    Collapse,
    /// Vectors of which nothing is shared, sorted out.
    Prune,
    /// Shared megashingles to edges.
    Pairs,
    /// Edges to components.
    Components,
    /// Weeks of a store against each other.
    Weeks,
    /// Labels to tables.
    Tables,
}

impl Stage {
    /// All stages, in their order.
    const ALL: [Stage; 13] = [
        Stage::Read,
        Stage::LeaveOut,
        Stage::Changes,
        Stage::Postings,
        Stage::Holders,
        Stage::Certificates,
        Stage::Relabel,
        Stage::Collapse,
        Stage::Prune,
        Stage::Pairs,
        Stage::Components,
        Stage::Weeks,
        Stage::Tables,
    ];

    /// What a reader calls it.
    pub fn title(self) -> &'static str {
        match self {
            Stage::Read => "reading",
            Stage::LeaveOut => "leaving out",
            Stage::Collapse => "collapsing",
            Stage::Prune => "pruning",
            Stage::Pairs => "pairing",
            Stage::Components => "joining",
            Stage::Changes => "finding changes",
            Stage::Postings => "posting",
            Stage::Holders => "finding holders",
            Stage::Certificates => "certifying",
            Stage::Relabel => "relabelling",
            Stage::Weeks => "comparing weeks",
            Stage::Tables => "writing tables",
        }
    }
}

/// The counters of one process.
#[derive(Debug, Default)]
pub struct Watch {
    stage: AtomicU64,
    bytes: AtomicU64,
    records: AtomicU64,
    documents: AtomicU64,
    rejects: AtomicU64,
    exchanged: AtomicU64,
    exchanged_records: AtomicU64,
    entered: Mutex<Vec<Entered>>,
    failed: AtomicBool,
    failure: Mutex<Option<anyhow::Error>>,
}

/// When a stage was entered: by the clock, and in CPU seconds of the process.
#[derive(Clone, Copy, Debug)]
struct Entered {
    stage: Stage,
    at: Instant,
    cpu: f64,
}

/// How long a stage took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Which it was.
    pub stage: Stage,
    /// Seconds by the clock.
    pub wall_s: f64,
    /// CPU seconds of all threads of the process.
    pub cpu_s: f64,
}

/// What the counters say at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The part of the run.
    pub stage: Stage,
    /// Bytes of input taken, as stored.
    pub bytes: u64,
    /// Records read.
    pub records: u64,
    /// Pages fingerprinted.
    pub documents: u64,
    /// Bad records.
    pub rejects: u64,
    /// Bytes of records given to exchange, those for the same worker included.
    pub exchanged: u64,
    /// These records.
    pub exchanged_records: u64,
    /// CPU time of the process, in milliseconds.
    pub cpu_ms: u64,
    /// Its anonymous memory, in bytes; 0 where the system does not tell.
    pub memory: u64,
}

impl Progress {
    /// What only moves when the run gets somewhere.
    pub fn counters(self) -> Progress {
        Progress { cpu_ms: 0, memory: 0, ..self }
    }

    /// The sum over processes; the stage is the least advanced one.
    pub fn sum(self, other: Progress) -> Progress {
        Progress {
            stage: self.stage.min(other.stage),
            bytes: self.bytes + other.bytes,
            records: self.records + other.records,
            documents: self.documents + other.documents,
            rejects: self.rejects + other.rejects,
            exchanged: self.exchanged + other.exchanged,
            exchanged_records: self.exchanged_records + other.exchanged_records,
            cpu_ms: self.cpu_ms + other.cpu_ms,
            memory: self.memory + other.memory,
        }
    }
}

impl Watch {
    /// Enters a stage.
    pub fn enter(&self, stage: Stage) {
        self.stage.store(stage as u64, Ordering::Relaxed);
        let mut entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        // The first worker to enter a stage says when.
        if entered.last().is_none_or(|last| last.stage != stage) {
            entered.push(Entered { stage, at: Instant::now(), cpu: process_cpu() });
        }
    }

    /// How long each stage took so far, in the order in which they were entered.
    pub fn spans(&self) -> Vec<Span> {
        let entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Entered { stage: Stage::default(), at: Instant::now(), cpu: process_cpu() };
        let ends = entered.iter().skip(1).chain([&now]);
        let span = |(begin, end): (&Entered, &Entered)| Span {
            stage: begin.stage,
            wall_s: (end.at - begin.at).as_secs_f64(),
            cpu_s: end.cpu - begin.cpu,
        };
        entered.iter().zip(ends).map(span).collect()
    }

    /// Adds bytes of input.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds a record, and says what became of it.
    pub fn add_record(&self, document: bool, reject: bool) {
        self.records.fetch_add(1, Ordering::Relaxed);
        self.documents.fetch_add(u64::from(document), Ordering::Relaxed);
        self.rejects.fetch_add(u64::from(reject), Ordering::Relaxed);
    }

    /// Adds records given to exchange, and their bytes.
    pub fn add_exchanged(&self, records: u64, bytes: u64) {
        self.exchanged_records.fetch_add(records, Ordering::Relaxed);
        self.exchanged.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The counters now.
    pub fn progress(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stage = Stage::ALL.get(load(&self.stage) as usize).copied().unwrap_or_default();
        Progress {
            stage,
            bytes: load(&self.bytes),
            records: load(&self.records),
            documents: load(&self.documents),
            rejects: load(&self.rejects),
            exchanged: load(&self.exchanged),
            exchanged_records: load(&self.exchanged_records),
            cpu_ms: (process_cpu() * 1e3) as u64,
            memory: anonymous_memory().unwrap_or(0),
        }
    }

    /// Notes a failure; the first one is kept, and every worker of the process stops at its next step.
    pub fn fail(&self, error: anyhow::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// Whether anything failed.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The first failure, once.
    pub fn take_failure(&self) -> Option<anyhow::Error> {
        self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }

    /// The value of a result, or `None` with the failure noted.
    pub fn check<T>(&self, result: anyhow::Result<T>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }
}

/// Bytes of this process' anonymous memory: heap and stacks, without mapped files and without the page cache; `None`
/// where the system does not tell.
pub fn anonymous_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()? * 1024)
}

/// CPU seconds of all threads of this process so far, in the system too.
pub fn process_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_told_as_it_was_entered() {
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
    fn work_takes_time_of_the_process() {
        let before = process_cpu();
        let worked = std::thread::spawn(|| (0..1_000_000u64).fold(0, |sum, word| sum ^ crate::records::mix(word)));
        std::hint::black_box(worked.join().unwrap());
        assert!(process_cpu() > before);
    }
}
