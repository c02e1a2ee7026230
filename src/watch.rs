//! What a process tells while it works: counters that anybody may read, and the first failure.
//!
//! Workers only add to atomics; who shows them is decided above (`report`, `launch`).

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// The parts of a run, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Crawl files to documents and features.
    #[default]
    Read,
    /// Identical vectors to one node.
    Collapse,
    /// Shared megashingles to components.
    Components,
    /// Labels to tables.
    Tables,
}

impl Stage {
    /// What a reader calls it.
    pub fn title(self) -> &'static str {
        match self {
            Stage::Read => "reading",
            Stage::Collapse => "collapsing",
            Stage::Components => "joining",
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
    failed: AtomicBool,
    failure: Mutex<Option<anyhow::Error>>,
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
}

impl Progress {
    /// The sum over processes; the stage is the least advanced one.
    pub fn sum(self, other: Progress) -> Progress {
        Progress {
            stage: self.stage.min(other.stage),
            bytes: self.bytes + other.bytes,
            records: self.records + other.records,
            documents: self.documents + other.documents,
            rejects: self.rejects + other.rejects,
            exchanged: self.exchanged + other.exchanged,
        }
    }
}

impl Watch {
    /// Enters a stage.
    pub fn enter(&self, stage: Stage) {
        self.stage.store(stage as u64, Ordering::Relaxed);
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

    /// Adds bytes given to exchange.
    pub fn add_exchanged(&self, bytes: u64) {
        self.exchanged.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The counters now.
    pub fn progress(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stage = match load(&self.stage) {
            0 => Stage::Read,
            1 => Stage::Collapse,
            2 => Stage::Components,
            _ => Stage::Tables,
        };
        Progress {
            stage,
            bytes: load(&self.bytes),
            records: load(&self.records),
            documents: load(&self.documents),
            rejects: load(&self.rejects),
            exchanged: load(&self.exchanged),
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
