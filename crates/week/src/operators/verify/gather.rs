//! Gathers the sets of candidates where they are compared: those of a small cluster at the owner of
//! its root, in the order of clusters; those of a large one at the owners of their documents.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nigh_exchange::{Context, RowDealer, bytes_of_rows, run_dataflow, sink, source};
use timely::dataflow::operators::Probe;

use super::candidate_sets::{CandidateSet, CandidateSource, SetStep};
use super::element_sets::{ElementSets, ElementSetsWriter};
use crate::records::DocId;
use crate::structures::{ExternalSort, Sorted};

/// How long the source works before it yields to others.
const TIME_SLICE: Duration = Duration::from_millis(5);

/// The sets at a worker.
pub struct Gathered {
    /// Those of small clusters whose root it owns, by root and document.
    pub small: Sorted<CandidateSet>,
    /// Those of its own documents in large clusters.
    pub large: ElementSets,
}

/// Where the sets that arrive are kept.
struct Arrived {
    small: ExternalSort<CandidateSet>,
    large: ElementSetsWriter,
}

/// Reads the sets of every worker's `source`, and gathers them. `large` are the roots of large
/// clusters, ascending, the same at every worker. Sets that take more than `memory` bytes go to
/// files in the folder `scratch`.
///
/// # Errors
/// If sets cannot be read, a file cannot be written, or a worker of this process failed.
pub fn gather(
    cx: &mut Context,
    mut source_of_sets: impl CandidateSource + 'static,
    large: &Rc<[DocId]>,
) -> Result<Gathered> {
    let watch = &cx.watch().clone();
    let (index, peers) = (cx.index(), cx.peers());
    let (memory, scratch) = (cx.memory(), cx.scratch());
    let arrived = Arrived {
        small: ExternalSort::new(&scratch.join(format!("candidates-worker{index}")), memory / 2),
        large: ElementSetsWriter::new(scratch.join(format!("elements-worker{index}")), memory / 2),
    };
    let arrived = Rc::new(RefCell::new(arrived));
    let place = {
        let large = large.clone();
        move |set: &CandidateSet| {
            let by = if large.binary_search(&set.root).is_ok() { set.doc } else { set.root };
            by.owner(peers)
        }
    };
    run_dataflow(cx, |scope, probe| {
        let sets = source(scope, "Candidates", |capability, info| {
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
                while slice.elapsed() < TIME_SLICE {
                    match watch.check(source_of_sets.step()) {
                        Some(SetStep::Set(set)) => set.deal(place(&set), &mut dealer),
                        Some(SetStep::Passed) => {}
                        Some(SetStep::End) => {
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
        let (arrived, large, watch) = (arrived.clone(), large.clone(), watch.clone());
        let keep = move |row: Result<&[u8]>| -> Result<()> {
            let set = CandidateSet::read(row?)?;
            let arrived = &mut *arrived.borrow_mut();
            if large.binary_search(&set.root).is_ok() {
                arrived.large.push(set.doc, set.root, &set.elements)
            } else {
                arrived.small.push(set)
            }
        };
        sink(sets, "Gather", move |block| {
            if !watch.failed() {
                watch.check(bytes_of_rows(&block).try_for_each(&keep));
            }
        })
        .probe_with(probe);
    })?;
    // The operators that share what arrived are dropped at the next step.
    cx.worker().step();
    let Ok(arrived) = Rc::try_unwrap(arrived) else { bail!("a dataflow that has ended still writes") };
    let Arrived { small, large } = arrived.into_inner();
    Ok(Gathered { small: small.sorted()?, large: large.finish()? })
}
