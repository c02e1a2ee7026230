//! Records of any size that are sorted, before they are sent and where they arrive.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use nigh_exchange::{Context, RowDealer, SLICE, rows_of, run_dataflow, sink, source};
use timely::dataflow::operators::Probe;

use crate::structures::{ExternalSort, Sortable, Sorted};

/// What arrives at a worker, sorted; beyond a part of the memory in files.
pub struct Arriving<T>(Rc<RefCell<Option<ExternalSort<T>>>>);

impl<T> Clone for Arriving<T> {
    fn clone(&self) -> Arriving<T> {
        Arriving(self.0.clone())
    }
}

impl<T: Sortable> Arriving<T> {
    /// Nothing yet. `name` is that of the files.
    pub fn new(cx: &Context, name: &str) -> Arriving<T> {
        Arriving(Rc::new(RefCell::new(Some(sort_of(cx, name)))))
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn push(&self, record: T) -> Result<()> {
        self.0.borrow_mut().as_mut().map_or(Ok(()), |sort| sort.push(record))
    }

    /// All records in their order.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn sorted(&self) -> Result<Sorted<T>> {
        self.0.borrow_mut().take().context("what has arrived is taken once")?.sorted()
    }
}

/// A sort with a part of the memory of a step.
pub fn sort_of<T: Sortable>(cx: &Context, name: &str) -> ExternalSort<T> {
    let path: PathBuf = cx.scratch().join(format!("{name}-worker{}", cx.index()));
    ExternalSort::new(&path, cx.memory() / 8)
}

/// Sends records to the workers that `to` says, and returns those that arrive, sorted.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn send<T: Sortable + 'static>(
    cx: &mut Context,
    name: &'static str,
    mut records: Sorted<T>,
    to: impl Fn(&T) -> usize + 'static,
) -> Result<Sorted<T>> {
    let watch = &cx.watch().clone();
    let (index, peers) = (cx.index(), cx.peers());
    let arriving = Arriving::new(cx, &format!("arrived-{name}"));
    run_dataflow(cx, |scope, probe| {
        let sent = source(scope, name, |capability, info| {
            let activator = scope.activator_for(info.address);
            let mut capability = Some(capability);
            let mut dealer = RowDealer::new(index, peers, watch);
            let watch = watch.clone();
            move |output| {
                // After a failure the capability is kept: other workers would take silence for an
                // end.
                let Some(current) = capability.as_ref().filter(|_| !watch.failed()) else { return };
                let mut session = output.session_with_builder(current);
                let slice = Instant::now();
                while slice.elapsed() < SLICE {
                    match watch.check(records.record()) {
                        Some(Some(record)) => dealer.deal(to(&record), &record),
                        Some(None) => {
                            dealer.finish().for_each(|mut block| session.give_container(&mut block));
                            drop(session);
                            capability = None;
                            return;
                        }
                        None => return,
                    }
                }
                dealer.full().for_each(|mut block| session.give_container(&mut block));
                activator.activate();
            }
        });
        let (arriving, watch) = (arriving.clone(), watch.clone());
        sink(sent, "Received", move |block| {
            if !watch.failed() {
                watch.check(rows_of(&block).try_for_each(|record| arriving.push(record?)));
            }
        })
        .probe_with(probe);
    })?;
    arriving.sorted()
}
