//! The workers that keep the labels of a graph: iterative label propagation in differential
//! dataflow, whose arrangements stay.
//!
//! The nodes are fragments ([`super`]). A step sends the edges that come and go as one
//! time, and waits until the labels are right at that time; then no earlier time can be asked for,
//! so that the arrangements merge what belongs to it. It is the same dataflow as that of a weekly
//! delta.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, Result, anyhow};
use differential_dataflow::input::Input;
use timely::communication::WorkerGuards;
use timely::dataflow::operators::probe::Handle;

use crate::operators::delta::labels_of_edges;

/// An edge of the graph, or a node with its label, that comes (1) or goes (-1).
pub(in crate::live::engine) type Difference = ((u64, u64), i32);

/// Timely workers that keep the labels of a graph.
pub(in crate::live::engine) struct LabelWorkers {
    /// To each worker.
    steps: Vec<Sender<Vec<Difference>>>,
    changes: Receiver<Vec<Difference>>,
    _guards: WorkerGuards<()>,
}

impl LabelWorkers {
    /// Starts `count` workers, with a graph that has no edges.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub(in crate::live::engine) fn start(count: usize) -> Result<LabelWorkers> {
        let (steps, received): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        let received: Vec<Mutex<Option<Receiver<Vec<Difference>>>>> =
            received.into_iter().map(|receiver| Mutex::new(Some(receiver))).collect();
        let (sender, changes) = channel();
        let sender = Mutex::new(sender);
        let guards = timely::execute(timely::Config::process(count), move |worker| {
            let receiver = received[worker.index()].lock().ok().and_then(|mut receiver| receiver.take());
            let sender = sender.lock().map(|sender| sender.clone());
            let (Some(receiver), Ok(sender)) = (receiver, sender) else { return };
            let (probe, found) = (Handle::new(), Rc::new(RefCell::new(BTreeMap::<(u64, u64), i32>::new())));
            let mut input = worker.dataflow::<u32, _, _>(|scope| {
                let (input, edges) = scope.new_collection::<(u64, u64), i32>();
                let found = found.clone();
                labels_of_edges(edges)
                    .inspect(move |(label, _, difference)| *found.borrow_mut().entry(*label).or_default() += difference)
                    .probe_with(&probe);
                input
            });
            let mut time = 0;
            // Ends when the sender is dropped, and the input with it.
            while let Ok(differences) = receiver.recv() {
                for (edge, difference) in differences {
                    input.update(edge, difference);
                }
                time += 1;
                input.advance_to(time);
                input.flush();
                while probe.less_than(&time) {
                    worker.step_or_park(None);
                }
                let changed = found.take().into_iter().filter(|(_, difference)| *difference != 0).collect();
                if sender.send(changed).is_err() {
                    break;
                }
            }
        });
        let guards = guards.map_err(|error| anyhow!("cannot start {count} workers: {error}"))?;
        Ok(LabelWorkers { steps, changes, _guards: guards })
    }

    /// Changes edges, and returns the changes of labels, in order. The label of a node is the
    /// smallest node that it is connected to; a node without edges has none.
    ///
    /// # Errors
    /// If a worker has ended: that is a fault of nigh.
    pub(in crate::live::engine) fn step(&mut self, differences: &[Difference]) -> Result<Vec<Difference>> {
        if differences.is_empty() {
            return Ok(Vec::new());
        }
        let ended = || "a worker that keeps the labels has ended: start nigh again, which reads the journal";
        let share = differences.len().div_ceil(self.steps.len());
        let mut shares = differences.chunks(share);
        for worker in &self.steps {
            worker.send(shares.next().unwrap_or_default().to_vec()).ok().with_context(ended)?;
        }
        let mut changes = Vec::new();
        for _ in &self.steps {
            changes.extend(self.changes.recv().ok().with_context(ended)?);
        }
        changes.sort_unstable();
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_edges_that_come_and_go() {
        for workers in [1, 2, 4] {
            let mut labels = LabelWorkers::start(workers).unwrap();
            let changes = labels.step(&[((1, 2), 1), ((3, 4), 1)]).unwrap();
            assert_eq!(changes, [((1, 1), 1), ((2, 1), 1), ((3, 3), 1), ((4, 3), 1)]);
            let changes = labels.step(&[((2, 3), 1)]).unwrap();
            assert_eq!(changes, [((3, 1), 1), ((3, 3), -1), ((4, 1), 1), ((4, 3), -1)]);
            let changes = labels.step(&[((1, 2), -1)]).unwrap();
            assert_eq!(
                changes,
                [((1, 1), -1), ((2, 1), -1), ((2, 2), 1), ((3, 1), -1), ((3, 2), 1), ((4, 1), -1), ((4, 2), 1)]
            );
            assert_eq!(labels.step(&[]).unwrap(), []);
        }
    }
}
