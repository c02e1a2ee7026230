//! The context of a worker: what every step of a job needs of its surroundings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use timely::worker::Worker;

use super::shared::SharedValues;
use crate::blocks::dealer::Dealer;
use crate::keyed::kept::KeptRecords;
use crate::keyed::spill::SpillBuffer;
use crate::watch::{Stage, Watch};

/// A worker, the counters of its process, what the workers of the process share, and the memory and
/// the folder that a step may use. Every worker of every process must call the functions that take
/// a `&mut Context`, in the same order.
///
/// ```
/// use nigh_exchange::Context;
///
/// let workers = timely::execute(timely::Config::process(2), |worker| {
///     let mut cx = Context::alone(worker);
///     // Each worker adds its index.
///     cx.sum(cx.index() as u64).unwrap()
/// });
/// for sum in workers.unwrap().join() {
///     assert_eq!(sum.unwrap(), 1);
/// }
/// ```
pub struct Context {
    worker: Worker,
    watch: Arc<Watch>,
    shared: Arc<SharedValues>,
    /// Bytes for records in flight, and the folder to which they spill; `None` before a job says
    /// so.
    limits: Option<(u64, PathBuf)>,
}

impl Context {
    /// The context of a worker whose process counts in `watch`, and whose workers share `shared`.
    pub fn new(worker: &Worker, watch: &Arc<Watch>, shared: &Arc<SharedValues>) -> Context {
        Context { worker: worker.clone(), watch: watch.clone(), shared: shared.clone(), limits: None }
    }

    /// The same context for a step that may have `memory` bytes for records in flight, which spill
    /// to the folder `scratch`.
    pub fn with(&self, memory: u64, scratch: &Path) -> Context {
        let limits = Some((memory, scratch.to_owned()));
        Context { limits, ..Context::new(&self.worker, &self.watch, &self.shared) }
    }

    /// The context of a worker that shares nothing with other workers: for tests and examples.
    pub fn alone(worker: &Worker) -> Context {
        Context::new(worker, &Arc::default(), &Arc::default())
    }

    /// The index of the worker among all workers of all processes.
    pub fn index(&self) -> usize {
        self.worker.index()
    }

    /// The number of workers of all processes.
    pub fn peers(&self) -> usize {
        self.worker.peers()
    }

    /// The counters and the first failure of the process.
    pub fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Enters a stage of the run: see [`Watch::enter`].
    pub fn enter(&self, stage: Stage) {
        self.watch.enter(stage);
    }

    /// A dealer to the workers: the partition of a record is the index of the worker that receives
    /// it.
    pub fn dealer<T: Pod>(&self) -> Dealer<T> {
        Dealer::new(self.index(), self.peers(), &self.watch)
    }

    /// What the workers of the process share.
    pub fn shared(&self) -> &Arc<SharedValues> {
        &self.shared
    }

    /// Bytes that the step may have for records in flight.
    pub fn memory(&self) -> u64 {
        debug_assert!(self.limits.is_some(), "a step that has records in flight is given memory: Context::with");
        self.limits.as_ref().map_or(0, |(memory, _)| *memory)
    }

    /// The folder to which records spill that take more.
    pub fn scratch(&self) -> &Path {
        debug_assert!(self.limits.is_some(), "a step that spills is given a folder: Context::with");
        self.limits.as_ref().map_or(Path::new("."), |(_, scratch)| scratch)
    }

    /// An empty buffer for records in flight.
    pub fn spill_buffer<R: Pod>(&self) -> SpillBuffer<R> {
        SpillBuffer::new(self.scratch(), self.memory())
    }

    /// No records yet, of those that wait for a later step.
    pub fn kept<R: Pod>(&self) -> KeptRecords<R> {
        KeptRecords::new(self.scratch(), self.memory())
    }

    /// The worker of the engine.
    pub fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }
}
